//! Requests with curl, and raw ones.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    process::Command,
    time::Duration,
};

/// A response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Response {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        assert_eq!(self.status, 200, "{}", self.text());
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (of, value) = line.split_once(':')?;
            of.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// Runs curl with these arguments, the URL among them; it does not normalise the path.
#[track_caller]
pub fn curl(arguments: &[&str]) -> Response {
    let done = Command::new("curl")
        .args([
            "--silent",
            "--include",
            "--path-as-is",
            "--max-time",
            "30",
            "--noproxy",
            "*",
            "--http1.1",
        ])
        // Without "100 Continue" there is one head.
        .args(["--header", "Expect:"])
        .args(arguments)
        .output()
        .expect("the tests need the package curl");
    response(&done.stdout)
}

/// Sends bytes as they are and reads until the station closes or is quiet for a second.
pub fn raw(address: SocketAddr, request: &[u8]) -> Response {
    let mut stream = TcpStream::connect(address).expect("a connection");
    // The station may close before it has read all.
    let _ = stream.write_all(request);
    read(&mut stream)
}

/// Reads what the station answers.
pub fn read(stream: &mut TcpStream) -> Response {
    let limit = Some(Duration::from_secs(1));
    stream.set_read_timeout(limit).expect("a time limit");
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        let kinds = [
            ErrorKind::WouldBlock,
            ErrorKind::TimedOut,
            ErrorKind::ConnectionReset,
        ];
        assert!(kinds.contains(&error.kind()), "{error}");
    }
    response(&bytes)
}

fn response(bytes: &[u8]) -> Response {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let (head, body) = match end {
        Some(end) => (&bytes[..end], &bytes[end + 4..]),
        None => (bytes, &[][..]),
    };
    let head = String::from_utf8_lossy(head).into_owned();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    Response {
        status: status.unwrap_or(0),
        head,
        body: body.to_vec(),
    }
}
