//! A broker: topics, TLS and passwords, the last will, a broker that goes and comes.

use std::{
    fs, io,
    net::{Shutdown, TcpListener, TcpStream},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use clinspect_results::Verdict;
use gstinspectpublish::{Method, Publisher, Settings};

use crate::{
    broker::{Broker, PASSWORD, USER, frames},
    frames::Rig,
};

const RESULT: &str = "plant/left/result";
const STATE: &str = "plant/left/state";

fn line(broker: &Broker, scheme: &str) -> String {
    format!(
        "method=mqtt uri={scheme}://localhost:{} topic=plant camera=left",
        broker.port
    )
}

#[test]
fn results_and_the_retained_state_arrive() {
    let Some(broker) = Broker::start("plain", false) else {
        return;
    };
    let subscriber = broker.subscribe();
    let mut rig = Rig::new(&line(&broker, "mqtt"));
    rig.push(Verdict::Pass);
    rig.push_fails(49);
    let texts = subscriber.wait(RESULT, |texts| texts.len() >= 50);
    assert_eq!(frames(&texts), (0..50).collect::<Vec<_>>());
    rig.wait_for("published", 50);
    // Whoever subscribes later gets the state.
    let late = broker.subscribe();
    late.wait(STATE, |texts| texts == ["online"]);
    assert!(rig.stop() < Duration::from_secs(2));
    late.wait(STATE, |texts| texts == ["online", "offline"]);
}

#[test]
fn tls_and_a_password_are_used_and_a_wrong_password_is_told_without_it() {
    let Some(broker) = Broker::start("safe", true) else {
        return;
    };
    let subscriber = broker.subscribe();
    let ca = broker.file("ca.pem");
    let good = broker.private_file("good", &format!("{USER}\n{PASSWORD}\n"));
    let mut rig = Rig::new(&format!(
        "{} ca-file={ca} credentials-file={good}",
        line(&broker, "mqtts")
    ));
    rig.push_fails(3);
    subscriber.wait(RESULT, |texts| frames(texts) == [0, 1, 2]);
    rig.stop();

    let wrong = broker.private_file("wrong", &format!("{USER}:not-{PASSWORD}"));
    let mut rig = Rig::new(&format!(
        "{} ca-file={ca} credentials-file={wrong}",
        line(&broker, "mqtts")
    ));
    rig.push_fails(1);
    rig.wait_for("errors", 2);
    let told = rig.told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("refuses user and password"), "{told:?}");
    assert!(!told[0].contains(PASSWORD), "{told:?}");
    assert_eq!((rig.stat("published"), rig.stat("queued")), (0, 1));
    assert!(rig.stop() < Duration::from_secs(4));

    // A broker whose certificate nobody has signed that we know.
    let mut rig = Rig::new(&format!(
        "{} credentials-file={good}",
        line(&broker, "mqtts")
    ));
    rig.push_fails(1);
    rig.wait_for("errors", 1);
    let told = rig.told();
    assert!(
        told[0].contains("TLS") || told[0].contains("certificate"),
        "{told:?}"
    );
    assert_eq!(rig.stat("published"), 0);
    rig.stop();
}

#[test]
fn files_are_read_for_each_connection_and_each_new_reason_is_told() {
    let Some(mut broker) = Broker::start("changed", true) else {
        return;
    };
    let subscriber = broker.subscribe();
    let ca = broker.file("ca.pem");
    let foreign = Broker::start("foreign", true).unwrap();
    let trusted = broker.private_file(
        "trusted.pem",
        &fs::read_to_string(foreign.file("ca.pem")).unwrap(),
    );
    let user = |password: &str| format!("{USER}\n{password}\n");
    let file = broker.private_file("user", &user("wrong"));
    let mut rig = Rig::new(&format!(
        "{} ca-file={trusted} credentials-file={file}",
        line(&broker, "mqtts")
    ));
    let mut told = Vec::new();
    rig.push_fails(1);
    // A wrong certificate, then a wrong password, each corrected while results wait.
    until_told(&mut rig, &mut told, "ertificate");
    fs::copy(&ca, &trusted).unwrap();
    until_told(&mut rig, &mut told, "refuses user and password");
    broker.private_file("user", &user(PASSWORD));
    subscriber.wait(RESULT, |texts| frames(texts) == [0]);
    // The password changes at the broker: the connection breaks first.
    told.clear();
    broker.set_password("another");
    rig.push_fails(1);
    until_told(&mut rig, &mut told, "refuses user and password");
    assert!(told.len() >= 2 && told.len() < 5, "{told:?}");
    // A file that is away for a moment.
    fs::remove_file(&file).unwrap();
    until_told(&mut rig, &mut told, "cannot be read");
    broker.private_file("user", &user("another"));
    rig.wait_for("published", 2);
    rig.stop();
}

/// Waits until a warning of the element contains a text; `told` gets all of them.
#[track_caller]
fn until_told(rig: &mut Rig, told: &mut Vec<String>, text: &str) {
    let begun = Instant::now();
    while !told.iter().any(|of| of.contains(text)) {
        assert!(
            begun.elapsed() < Duration::from_secs(40),
            "{text}: {told:?}"
        );
        told.extend(rig.told());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_ipv6_literal_and_files_of_windows_are_used() {
    let Some(broker) = Broker::start("ipv6", true) else {
        return;
    };
    let subscriber = broker.subscribe();
    let of_windows = |text: &str| format!("\u{feff}{}", text.replace('\n', " \r\n"));
    let ca = std::fs::read_to_string(broker.file("ca.pem")).unwrap();
    let ca = broker.private_file("ca-of-windows", &of_windows(&ca));
    for (name, text) in [
        ("two", format!("{USER}\n{PASSWORD}\n")),
        ("one", format!("{USER}:{PASSWORD}\n\n")),
    ] {
        let credentials = broker.private_file(name, &of_windows(&text));
        let mut rig = Rig::new(&format!(
            "method=mqtt uri=mqtts://[::1]:{} topic=plant camera={name} ca-file={ca} credentials-file={credentials}",
            broker.port
        ));
        rig.push_fails(1);
        rig.wait_for("published", 1);
        subscriber.wait(&format!("plant/{name}/result"), |texts| texts.len() == 1);
        rig.stop();
    }

    // A message prints the address as the property takes it.
    let wrong = broker.private_file("wrong", &format!("{USER}:not-{PASSWORD}"));
    let rig = Rig::new(&format!(
        "method=mqtt uri=mqtts://[0:0::1]:{} ca-file={ca} credentials-file={wrong}",
        broker.port
    ));
    rig.wait_for("errors", 1);
    let told = rig.told();
    assert!(
        told[0].contains(&format!("broker [::1]:{} ", broker.port)),
        "{told:?}"
    );
    rig.stop();
}

#[test]
fn no_fail_is_lost_while_the_broker_is_away() {
    let Some(mut broker) = Broker::start("away", false) else {
        return;
    };
    let subscriber = broker.subscribe();
    let mut rig = Rig::new(&format!("{} max-queued=100", line(&broker, "mqtt")));
    rig.push_fails(20);
    subscriber.wait(RESULT, |texts| texts.len() >= 20);
    broker.kill();
    rig.push_fails(60);
    rig.wait_for("errors", 2);
    broker.run();
    let wanted: Vec<u64> = (0..80).collect();
    let seen = |texts: &[String]| {
        let mut seen = frames(texts);
        seen.sort_unstable();
        // At least once: a frame may come again.
        seen.dedup();
        seen
    };
    let texts = subscriber.wait(RESULT, |texts| seen(texts).len() >= 80);
    assert_eq!(seen(&texts), wanted);
    assert_eq!(rig.stat("dropped"), 0);
    let told = rig.told();
    // The connection ended, and then the port was closed: each once, however often it was tried.
    let (again, reasons) = told.split_last().unwrap();
    assert!(again.contains("again"), "{told:?}");
    let different: std::collections::BTreeSet<_> = reasons.iter().collect();
    assert!(
        (1..=2).contains(&reasons.len()) && different.len() == reasons.len(),
        "{told:?}"
    );

    // More than the queue holds: the oldest give way.
    broker.kill();
    rig.wait_for("errors", 3);
    rig.push_fails(130);
    broker.run();
    subscriber.wait(RESULT, |texts| frames(texts).contains(&209));
    assert_eq!(rig.stat("dropped"), 30);
    let texts = subscriber.texts(RESULT);
    assert!(
        !frames(&texts).contains(&109) && frames(&texts).contains(&110),
        "{texts:?}"
    );
    rig.stop();
}

#[test]
fn no_fail_is_lost_while_the_broker_restarts_again_and_again() {
    let Some(mut broker) = Broker::start("restarts", false) else {
        return;
    };
    let subscriber = broker.subscribe();
    let mut rig = Rig::new(&line(&broker, "mqtt"));
    for round in 1..=8 {
        rig.push_fails(20);
        broker.kill();
        rig.push_fails(5);
        broker.run();
        // The next end comes while results are on their way.
        rig.wait_for("published", 25 * round - 20);
    }
    let wanted: Vec<u64> = (0..200).collect();
    subscriber.wait(RESULT, |texts| {
        let mut seen = frames(texts);
        seen.sort_unstable();
        seen.dedup();
        seen == wanted
    });
    assert_eq!(rig.stat("dropped"), 0);
    rig.stop();
}

/// Environment of [`child_that_publishes`]: its properties.
const CHILD: &str = "INSPECTPUBLISH_CHILD";

#[test]
fn child_that_publishes() {
    if let Ok(properties) = std::env::var(CHILD) {
        let mut rig = Rig::new(&properties);
        rig.push_fails(1);
        thread::sleep(Duration::from_secs(60));
    }
}

#[test]
fn a_process_that_is_killed_is_offline_by_its_last_will() {
    let Some(broker) = Broker::start("will", false) else {
        return;
    };
    let subscriber = broker.subscribe();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "mqtt::child_that_publishes"])
        .env(CHILD, line(&broker, "mqtt"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    subscriber.wait(RESULT, |texts| texts.len() == 1);
    assert_eq!(subscriber.texts(STATE), ["online"]);
    child.kill().unwrap();
    child.wait().unwrap();
    subscriber.wait(STATE, |texts| texts == ["online", "offline"]);
}

/// Passes connections on to a broker.
struct Relay {
    port: u16,
    clients: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn new(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let clients = Arc::new(Mutex::new(Vec::new()));
        let accepted = clients.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let broker = TcpStream::connect(("127.0.0.1", to)).unwrap();
                accepted.lock().unwrap().push(client.try_clone().unwrap());
                for (mut from, mut to) in [
                    (client.try_clone().unwrap(), broker.try_clone().unwrap()),
                    (broker, client),
                ] {
                    // The end of one side is not passed on: the other side must find out by itself.
                    thread::spawn(move || io::copy(&mut from, &mut to));
                }
            }
        });
        Self { port, clients }
    }

    /// Ends the client's side of all connections; the broker's side stays open.
    fn cut(&self) {
        for client in self.clients.lock().unwrap().drain(..) {
            let _ = client.shutdown(Shutdown::Both);
        }
    }
}

#[test]
fn a_connection_that_only_the_broker_still_believes_in_does_not_overwrite_the_state() {
    let Some(broker) = Broker::start("half-open", false) else {
        return;
    };
    let subscriber = broker.subscribe();
    let relay = Relay::new(broker.port);
    let mut rig = Rig::new(&format!(
        "method=mqtt uri=mqtt://localhost:{} topic=plant camera=left",
        relay.port
    ));
    rig.push_fails(1);
    subscriber.wait(RESULT, |texts| texts.len() == 1);
    relay.cut();
    rig.push_fails(1);
    subscriber.wait(RESULT, |texts| frames(texts).contains(&1));
    // The broker gives a silent client up after one and a half times its keep-alive of 10 s.
    thread::sleep(Duration::from_secs(17));
    let states = subscriber.texts(STATE);
    assert_eq!(
        states.last().map(String::as_str),
        Some("online"),
        "{states:?}"
    );
    rig.stop();
}

#[test]
fn state_says_whether_frames_come() {
    let Some(broker) = Broker::start("state", false) else {
        return;
    };
    let subscriber = broker.subscribe();
    let settings = Settings {
        method: Method::Mqtt,
        uri: format!("mqtt://localhost:{}", broker.port),
        topic: "plant".into(),
        camera: "left".into(),
        ..Settings::default()
    };
    let publisher = Publisher::start(settings, "", |_| {}).unwrap();
    subscriber.wait(STATE, |texts| texts == ["online"]);
    publisher.set_online(false);
    subscriber.wait(STATE, |texts| texts == ["online", "offline"]);
    publisher.set_online(true);
    subscriber.wait(STATE, |texts| texts.len() == 3);
    publisher.set_online(false);
    subscriber.wait(STATE, |texts| texts.len() == 4);
    assert!(publisher.end());
    thread::sleep(Duration::from_millis(200));
    assert_eq!(
        subscriber.texts(STATE),
        ["online", "offline", "online", "offline"]
    );
}
