//! A mosquitto of the tests' own.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use clinspect_testkit::tools::{exists, skip};

/// User and password of brokers that want them.
pub const USER: &str = "line";
pub const PASSWORD: &str = "s3cret-of-the-test";

/// A running broker; ends with the value.
pub struct Broker {
    folder: PathBuf,
    pub port: u16,
    child: Option<Child>,
    is_safe: bool,
}

/// A port that is free now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn run(program: &str, args: &[&str]) {
    let done = Command::new(program).args(args).output().unwrap();
    assert!(done.status.success(), "{program} {args:?}: {done:?}");
}

impl Broker {
    /// Starts a broker, with TLS and a password if it `is_safe`; `None` is a skip.
    pub fn start(name: &str, is_safe: bool) -> Option<Self> {
        Self::start_with(name, is_safe, "")
    }

    /// As [`Self::start`], with more lines of its configuration.
    pub fn start_with(name: &str, is_safe: bool, more: &str) -> Option<Self> {
        for program in ["mosquitto", "mosquitto_sub", "openssl"] {
            if !exists(program) {
                skip(&format!("{program} is not installed"));
                return None;
            }
        }
        let folder = format!("inspectpublish-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        let mut broker = Self {
            folder,
            port: free_port(),
            child: None,
            is_safe,
        };
        let mut config = format!(
            "allow_anonymous {}\npersistence true\npersistence_location {}/\n{more}",
            !is_safe,
            broker.folder.display()
        );
        // As root it would become another user, who may not write to the folder.
        if let Ok(user) = std::env::var("USER").or_else(|_| Ok::<_, ()>("root".into())) {
            config += &format!("user {user}\n");
        }
        let mut of_listener = String::new();
        if is_safe {
            broker.make_certificates();
            let passwords = broker.file("passwords");
            run(
                "mosquitto_passwd",
                &["-b", "-c", &passwords, USER, PASSWORD],
            );
            config += &format!("password_file {passwords}\n");
            of_listener = format!(
                "cafile {}\ncertfile {}\nkeyfile {}\n",
                broker.file("ca.pem"),
                broker.file("server.pem"),
                broker.file("server.key")
            );
        }
        for address in ["127.0.0.1", "::1"] {
            config += &format!("listener {} {address}\n{of_listener}", broker.port);
        }
        fs::write(broker.folder.join("mosquitto.conf"), config).unwrap();
        broker.run();
        Some(broker)
    }

    /// A file in the broker's folder.
    pub fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Writes a private file; its path.
    pub fn private_file(&self, name: &str, text: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        let path = self.file(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// An authority, and a certificate of it for localhost.
    fn make_certificates(&self) {
        let [ca, ca_key, key, request, certificate, names] = [
            "ca.pem",
            "ca.key",
            "server.key",
            "server.csr",
            "server.pem",
            "names",
        ]
        .map(|name| self.file(name));
        fs::write(&names, "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1\n").unwrap();
        run(
            "openssl",
            &[
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=test authority",
                "-keyout",
                &ca_key,
                "-out",
                &ca,
            ],
        );
        run(
            "openssl",
            &[
                "req",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-subj",
                "/CN=localhost",
                "-keyout",
                &key,
                "-out",
                &request,
            ],
        );
        run(
            "openssl",
            &[
                "x509",
                "-req",
                "-in",
                &request,
                "-CA",
                &ca,
                "-CAkey",
                &ca_key,
                "-CAcreateserial",
                "-days",
                "2",
                "-extfile",
                &names,
                "-out",
                &certificate,
            ],
        );
    }

    /// Starts again with another password of the user.
    pub fn set_password(&mut self, password: &str) {
        self.kill();
        run(
            "mosquitto_passwd",
            &["-b", &self.file("passwords"), USER, password],
        );
        self.run();
    }

    /// Starts the process, also after [`Self::kill`], and waits until it listens.
    pub fn run(&mut self) {
        let child = Command::new("mosquitto")
            .args(["-c", &self.file("mosquitto.conf")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.unwrap());
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(10),
                "mosquitto does not listen"
            );
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the process; it keeps its sessions in a file.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            run("kill", &["-TERM", &child.id().to_string()]);
            child.wait().unwrap();
        }
    }

    /// A subscriber to all topics, which a broker that starts again knows.
    pub fn subscribe(&self) -> Subscriber {
        let mut command = Command::new("mosquitto_sub");
        let port = self.port.to_string();
        let id = format!("test-{}", free_port());
        command.args([
            "-h",
            "localhost",
            "-p",
            &port,
            "-t",
            "#",
            "-v",
            "-q",
            "1",
            "-c",
            "-i",
            &id,
        ]);
        if self.is_safe {
            command.args(["--cafile", &self.file("ca.pem"), "-u", USER, "-P", PASSWORD]);
        }
        let subscriber = Subscriber::new(command.stdout(Stdio::piped()).spawn().unwrap());
        // Nothing is published before the subscription is known.
        thread::sleep(Duration::from_millis(700));
        subscriber
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(Path::new(&self.folder));
    }
}

/// What arrives at a subscriber.
pub struct Subscriber {
    child: Child,
    lines: Arc<Mutex<Vec<(String, String)>>>,
}

impl Subscriber {
    fn new(mut child: Child) -> Self {
        let lines: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let out = BufReader::new(child.stdout.take().unwrap());
        let into = lines.clone();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let (topic, text) = line.split_once(' ').unwrap_or((&line, ""));
                into.lock().unwrap().push((topic.into(), text.into()));
            }
        });
        Self { child, lines }
    }

    /// Texts of a topic so far.
    pub fn texts(&self, topic: &str) -> Vec<String> {
        let lines = self.lines.lock().unwrap();
        let of_topic = lines.iter().filter(|(of, _)| of == topic);
        of_topic.map(|(_, text)| text.clone()).collect()
    }

    /// Waits until `is_enough` of the texts of a topic.
    #[track_caller]
    pub fn wait(&self, topic: &str, is_enough: impl Fn(&[String]) -> bool) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let texts = self.texts(topic);
            if is_enough(&texts) {
                return texts;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(40),
                "{topic}: {texts:?}"
            );
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Frame numbers of reports.
pub fn frames(texts: &[String]) -> Vec<u64> {
    let number = |text: &String| {
        let json: serde_json::Value = serde_json::from_str(text).expect("JSON");
        json["frame"].as_u64().expect("a frame number")
    };
    texts.iter().map(number).collect()
}
