//! Requests that no browser sends.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use crate::{
    curl::{curl, raw, read},
    fake::{Station, TOKEN, open, with_token},
};

/// The station still answers, at once.
#[track_caller]
fn is_well(station: &Station) {
    let start = Instant::now();
    assert_eq!(curl(&[&station.url("/api/cameras")]).status, 200);
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn no_path_reaches_a_file() {
    let station = Station::start(open(), &["left"]);
    let up = [
        "../",
        "..%2f",
        "%2e%2e/",
        "%2e%2e%2f",
        "..%252f",
        "..\\",
        "..%5c",
        "..%c0%af",
        "....//",
        "..;/",
        "%00/",
    ];
    let before = [
        "/",
        "/live/",
        "/failures/left/",
        "/thumbnails/left/",
        "/api/cameras/",
        "/api/cameras/left/failures/",
        "//",
        "/./",
    ];
    for start in before {
        // A slash that is part of a name gets through to more routes than a real one.
        for (up, end) in up
            .iter()
            .flat_map(|up| [(up, "etc/passwd"), (up, "etc%2fpasswd")])
        {
            let path = format!("{start}{}{end}", up.repeat(16));
            let response = curl(&[&station.url(&path)]);
            assert!(
                [400, 404].contains(&response.status),
                "{path}: {}",
                response.status
            );
            assert!(!response.text().contains("root:"), "{path}");
            assert!(
                !response.text().contains("passwd"),
                "the answer repeats {path}"
            );
        }
    }
    for path in [
        "/failures/left/1.png",
        "/failures/left/1",
        "/failures/left/-1.jpg",
        "/failures/left/1.jpg.jpg",
        "/failures/left/99999999999999999999.jpg",
        "/failures/left/+1.jpg",
        "/failures/none/1.jpg",
        "/live/left.jpg.jpg",
        "/live/.jpg",
        "/live/",
        "/live/left%00.jpg",
        "/index.html",
        "/api/cameras/",
        "/api/cameras/%ff",
        "/station.js/",
        "/.git/config",
        "/page/index.html",
    ] {
        let response = curl(&[&station.url(path)]);
        assert!(
            [400, 404].contains(&response.status),
            "{path}: {}",
            response.status
        );
    }
}

#[test]
fn wrong_methods_are_refused() {
    let station = Station::start(open(), &["left"]);
    for method in [
        "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "POST", "G3T",
    ] {
        for path in ["/", "/api/cameras", "/live/left", "/events", "/metrics"] {
            let request = format!(
                "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
                station.address
            );
            let response = raw(station.address, request.as_bytes());
            assert!(
                [400, 403, 404, 405].contains(&response.status),
                "{method} {path}: {}",
                response.head
            );
        }
    }
    assert_eq!(
        curl(&[&station.url("/api/cameras/left/command")]).status,
        405
    );
    is_well(&station);
}

#[test]
fn large_requests_are_refused_and_bounded() {
    let station = Station::start(with_token(true), &["left"]);
    let address = station.address;
    let long = "x".repeat(1 << 20);
    let get = |rest: &str| raw(address, format!("GET {rest}").as_bytes());
    let status = get(&format!("/{long} HTTP/1.1\r\nHost: {address}\r\n\r\n")).status;
    assert!([0, 414, 431].contains(&status), "a long path: {status}");
    let status = get(&format!(
        "/ HTTP/1.1\r\nHost: {address}\r\nX: {long}\r\n\r\n"
    ))
    .status;
    assert!([0, 431].contains(&status), "a long header: {status}");
    let many = "X: y\r\n".repeat(1000);
    let status = get(&format!("/ HTTP/1.1\r\nHost: {address}\r\n{many}\r\n")).status;
    assert!([0, 431].contains(&status), "many headers: {status}");
    let url = station.url("/api/cameras/left/command");
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let body = format!("{{\"command\": \"{}\"}}", "x".repeat(8000));
    let large = curl(&[
        "-H",
        &bearer,
        "-H",
        "Content-Type: application/json",
        "-d",
        &body,
        &url,
    ]);
    assert_eq!(large.status, 413);
    // A length that is promised and not sent, a wrong one, chunks without end.
    let head = format!(
        "POST /api/cameras/left/command HTTP/1.1\r\nHost: {address}\r\n{bearer}\r\nContent-Type: application/json\r\n"
    );
    let claimed = raw(
        address,
        format!("{head}Content-Length: 99999999999\r\n\r\n").as_bytes(),
    );
    assert_eq!(claimed.status, 413);
    let wrong = raw(
        address,
        format!("{head}Content-Length: -1\r\n\r\n").as_bytes(),
    );
    assert_eq!(wrong.status, 400);
    let both = raw(
        address,
        format!("{head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
            .as_bytes(),
    );
    assert!([0, 400, 422].contains(&both.status), "{}", both.head);
    let chunk = format!("1000\r\n{}\r\n", " ".repeat(4096)).repeat(100);
    let chunks = raw(
        address,
        format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunk}").as_bytes(),
    );
    assert!([0, 413].contains(&chunks.status), "{}", chunks.head);
    is_well(&station);
}

#[test]
fn nonsense_is_refused() {
    let station = Station::start(open(), &["left"]);
    let address = station.address;
    for request in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"\r\n\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ] {
        let response = raw(address, request);
        let status = response.status;
        assert!(
            [0, 400, 403].contains(&status),
            "{}: {status}",
            request.escape_ascii()
        );
    }
    let named = format!("GET http://evil.example/ HTTP/1.1\r\nHost: {address}\r\n\r\n");
    assert_eq!(
        raw(address, named.as_bytes()).status,
        403,
        "two different hosts"
    );
    is_well(&station);
}

#[test]
fn slow_request_is_ended() {
    let station = Station::start(with_token(true), &["left"]);
    let start = Instant::now();
    let mut slow_head = TcpStream::connect(station.address).expect("a connection");
    let mut slow_body = TcpStream::connect(station.address).expect("a connection");
    let mut idle = TcpStream::connect(station.address).expect("a connection");
    let head = format!(
        "POST /api/cameras/left/command HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
        station.address
    );
    slow_body.write_all(head.as_bytes()).expect("a head");
    slow_head.write_all(b"GET / HTTP/1.1\r\n").expect("a line");
    // A byte now and then does not help.
    let mut ended = None;
    while start.elapsed() < Duration::from_secs(14) {
        std::thread::sleep(Duration::from_millis(250));
        let is_sent = slow_head.write_all(b"X").is_ok();
        let _ = slow_body.write_all(b" ");
        if !is_sent && ended.is_none() {
            ended = Some(start.elapsed());
            break;
        }
    }
    let ended = ended.expect("the slow head ends");
    assert!(ended > Duration::from_secs(8), "{ended:?}");
    let mut byte = [0];
    idle.set_read_timeout(Some(Duration::from_secs(5)))
        .expect("a limit");
    assert_eq!(
        idle.read(&mut byte).expect("an end"),
        0,
        "an idle connection ends"
    );
    while start.elapsed() < Duration::from_secs(16) {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(read(&mut slow_body).status, 408, "the slow body ends");
    is_well(&station);
}

#[test]
fn client_that_takes_no_data_is_ended() {
    let station = Station::start(open(), &["left"]);
    let mut greedy = TcpStream::connect(station.address).expect("a connection");
    greedy
        .set_write_timeout(Some(Duration::from_secs(30)))
        .expect("a limit");
    let request = format!(
        "GET /station.js HTTP/1.1\r\nHost: {}\r\n\r\n",
        station.address
    );
    // The answers fill the buffers of both sides, then the station reads no more requests.
    let start = Instant::now();
    let requests = request.repeat(1000);
    // Fails when the station ends the connection, or at the limit.
    while greedy.write_all(requests.as_bytes()).is_ok() {}
    let ended = start.elapsed();
    assert!(
        (14..25).contains(&ended.as_secs()),
        "ended after {ended:?}, not after 15 s"
    );
    is_well(&station);
}

#[test]
fn more_connections_than_places_are_refused_and_places_come_back() {
    let station = Station::start(open(), &["left"]);
    let open: Vec<_> = (0..300)
        .map_while(|_| TcpStream::connect(station.address).ok())
        .collect();
    let refused = |connections: &[TcpStream]| {
        let is_refused = |mut stream: &TcpStream| {
            stream.set_nonblocking(true).expect("a socket");
            let mut bytes = [0; 12];
            matches!(stream.read(&mut bytes), Ok(12)) && &bytes == b"HTTP/1.1 503"
        };
        connections
            .iter()
            .filter(|stream| is_refused(stream))
            .count()
    };
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(refused(&open), 300 - 192);
    drop(open);
    std::thread::sleep(Duration::from_millis(200));
    is_well(&station);
}

#[test]
fn every_response_has_the_security_headers() {
    let station = Station::start(open(), &["left"]);
    for path in [
        "/",
        "/style.css",
        "/api/cameras",
        "/nothing",
        "/live/left.jpg",
        "/metrics",
    ] {
        let response = curl(&[&station.url(path)]);
        let policy = response.header("content-security-policy").expect(path);
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self';"),
            "{policy}"
        );
        assert!(
            policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(
            response.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        assert_eq!(
            response.header("referrer-policy"),
            Some("no-referrer"),
            "{path}"
        );
        assert_eq!(response.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(response.header("server"), None, "{path}");
    }
    let foreign = curl(&["-H", "Host: evil.example", &station.url("/")]);
    assert!(foreign.header("content-security-policy").is_some());
}
