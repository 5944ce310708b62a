//! Who may read and who may write.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use config::token::Token;

use crate::{
    curl::{Response, curl},
    fake::{Station, TOKEN, open, with_token},
};

const WHITE: &str = r#"{"command": "take-white"}"#;

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

fn command(station: &Station, headers: &[&str]) -> Response {
    let url = station.url("/api/cameras/left/command");
    let mut arguments = vec![
        "-d",
        WHITE,
        "-H",
        "Content-Type: application/json",
        url.as_str(),
    ];
    for header in headers {
        arguments.extend(["-H", header]);
    }
    curl(&arguments)
}

/// Every path that holds results.
const RESULTS: [&str; 12] = [
    "/api/cameras",
    "/api/cameras/left",
    "/api/cameras/left/history",
    "/api/cameras/left/roll",
    "/api/cameras/left/report",
    "/api/cameras/left/failures/1",
    "/live/left",
    "/live/left.jpg",
    "/failures/left/1.jpg",
    "/thumbnails/left/1.jpg",
    "/metrics",
    "/healthz",
];

#[test]
fn loopback_reads_freely_and_writes_with_switch_and_token_only() {
    let station = Station::start(open(), &["left"]);
    assert_eq!(curl(&[&station.url("/api/cameras")]).status, 200);
    assert_eq!(command(&station, &[]).status, 403, "no token is configured");
    let station = Station::start(with_token(false), &["left"]);
    assert_eq!(curl(&[&station.url("/api/cameras")]).status, 200);
    assert_eq!(command(&station, &[]).status, 403, "allow-writing is off");
    assert_eq!(
        command(&station, &[&bearer(TOKEN)]).status,
        403,
        "allow-writing is off"
    );
    let station = Station::start(with_token(true), &["left"]);
    assert_eq!(command(&station, &[]).status, 401, "no token came");
    assert_eq!(
        command(&station, &[&bearer("another-token-0123456789")]).status,
        401
    );
    assert_eq!(command(&station, &[&bearer(TOKEN)]).status, 200);
}

#[test]
fn elsewhere_everything_but_the_empty_page_needs_the_token() {
    let station = Station::start_on("0.0.0.0:0", with_token(true), &["left"]);
    let at = |path: &str| format!("http://127.0.0.1:{}{path}", station.address.port());
    for path in RESULTS
        .iter()
        .chain(&["/events", "/etc/passwd", "/api/session/x"])
    {
        assert_eq!(curl(&[&at(path)]).status, 401, "{path}");
    }
    for path in [
        "/",
        "/style.css",
        "/station.js",
        "/icon.svg",
        "/api/session",
    ] {
        assert_eq!(curl(&[&at(path)]).status, 200, "{path}");
    }
    let session = curl(&[&at("/api/session")]).json();
    assert_eq!(session["reading"], false);
    assert_eq!(
        curl(&["-H", &bearer(TOKEN), &at("/api/cameras")]).status,
        200
    );
    assert_eq!(
        curl(&["-u", &format!("admin:{TOKEN}"), &at("/api/cameras")]).status,
        401
    );
}

#[test]
fn elsewhere_without_a_token_the_station_refuses_to_serve() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let error = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("0.0.0.0:0")
            .await
            .expect("a port");
        let cameras = tokio::sync::watch::Sender::default();
        let served = web::serve(listener, cameras.subscribe(), open(), None, None);
        tokio::time::timeout(Duration::from_secs(5), served).await
    });
    let error = error.expect("it serves: the network could read");
    let error = error.expect_err("the network could read").to_string();
    assert!(error.contains("set token-file"), "{error}");
}

#[test]
fn cookie_is_not_the_token_and_works_with_the_right_origin_only() {
    let station = Station::start_on("0.0.0.0:0", with_token(true), &["left"]);
    let host = format!("127.0.0.1:{}", station.address.port());
    let url = format!("http://{host}/api/session");
    let done = curl(&["-X", "POST", "-H", &bearer(TOKEN), &url]);
    assert_eq!(done.status, 204, "{}", done.text());
    let cookie = done.header("set-cookie").expect("a cookie").to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    assert!(!cookie.contains(TOKEN));
    let value = cookie.split(';').next().expect("a value");
    let cookie = format!("Cookie: other=1; {value}");
    let read = format!("http://{host}/api/cameras");
    assert_eq!(curl(&["-H", &cookie, &read]).status, 200);
    let origin = format!("Origin: http://{host}");
    let write = |headers: &[&str]| {
        let url = format!("http://{host}/api/cameras/left/command");
        let mut arguments = vec!["-d", WHITE, "-H", "Content-Type: application/json", &url];
        for header in headers {
            arguments.extend(["-H", header]);
        }
        curl(&arguments).status
    };
    assert_eq!(write(&[&cookie, &origin]), 200);
    assert_eq!(write(&[&cookie]), 403, "a browser names the origin");
    assert_eq!(write(&[&cookie, "Origin: http://evil.example"]), 403);
    assert_eq!(write(&[&cookie, "Origin: null"]), 403);
    assert_eq!(
        write(&[&cookie, &origin, "Sec-Fetch-Site: cross-site"]),
        403
    );
    // A changed time, a cut value, another station's cookie.
    let (name, value) = value.split_once('=').expect("a value");
    let (expires, tag) = value.split_once('.').expect("two parts");
    for wrong in [
        format!("{name}=f{expires}.{tag}"),
        format!("{name}={}", &value[..value.len() - 1]),
        format!("{name}={expires}."),
        format!("{name}="),
        format!("x{name}={value}"),
        format!("{name}=1.{tag}"),
    ] {
        assert_eq!(
            curl(&["-H", &format!("Cookie: {wrong}"), &read]).status,
            401,
            "{wrong}"
        );
    }
}

#[test]
fn wrong_tokens_are_slowed_and_lock_out_no_one_behind_the_same_address() {
    let station = Station::start(with_token(true), &["left"]);
    let url = station.url("/api/session");
    let done = curl(&["-X", "POST", "-H", &bearer(TOKEN), &url]);
    let cookie = done.header("set-cookie").expect("a cookie").to_owned();
    let cookie = format!("Cookie: {}", cookie.split(';').next().expect("a value"));
    for _ in 0..5 {
        assert_eq!(
            curl(&["-X", "POST", "-H", &bearer("wrong"), &url]).status,
            401
        );
    }
    let slowed = curl(&["-X", "POST", "-H", &bearer("wrong"), &url]);
    assert_eq!(slowed.status, 429, "the sixth one");
    assert_eq!(slowed.header("retry-after"), Some("60"));
    // Behind a proxy all clients have this address, the ones with the right token included.
    let forwarded = "X-Forwarded-For: 10.0.0.9";
    let right = ["-H", forwarded, "-H", &bearer(TOKEN)];
    let read = station.url("/api/cameras");
    assert_eq!(curl(&[&right[..], &[&read]].concat()).status, 200);
    assert_eq!(
        curl(&[&right[..], &["-X", "POST", &url]].concat()).status,
        204
    );
    // The right token gives the wrong ones no further attempts.
    let slowed = curl(&["-H", &bearer("wrong"), &url]);
    assert_eq!(slowed.status, 429, "the seventh one");
    let session = curl(&["-H", &cookie, &url]).json();
    assert_eq!(session["logged_in"], true);
    assert_eq!(
        curl(&[&station.url("/api/cameras")]).status,
        200,
        "reading stays free"
    );
}

#[test]
fn names_of_other_hosts_are_refused_without_a_token() {
    let station = Station::start(open(), &["left"]);
    let port = station.address.port();
    let url = station.url("/api/cameras");
    let with = |host: String| curl(&["-H", &format!("Host: {host}"), &url]).status;
    for host in [
        "127.0.0.1",
        "127.0.0.2",
        "localhost",
        "LOCALHOST.",
        "[::1]",
        "[::ffff:127.0.0.1]",
    ] {
        assert_eq!(with(format!("{host}:{port}")), 200, "{host}");
    }
    for host in [
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("user@localhost:{port}"),
        format!("0.0.0.0:{port}"),
        "localhost".into(),
        format!("localhost:{}", port ^ 1),
        format!("localhost:{port}:80"),
        String::new(),
    ] {
        assert_eq!(with(host.clone()), 403, "{host:?}");
    }
    // A proxy on the same PC would open the page to its own clients.
    assert_eq!(curl(&["-H", "X-Forwarded-For: 10.0.0.9", &url]).status, 403);
}

#[test]
fn ipv4_peers_of_an_ipv6_socket_have_their_ipv4_rights() {
    if std::net::TcpListener::bind("[::]:0").is_err() {
        eprintln!("SKIP peers of a dual-stack socket: this PC has no IPv6");
        return;
    }
    // A loopback address inside IPv6 is a loopback address: no token is needed.
    let station = Station::start_on("[::ffff:127.0.0.1]:0", open(), &["left"]);
    let port = station.address.port();
    let url = format!("http://127.0.0.1:{port}/api/cameras");
    assert_eq!(curl(&[&url]).status, 200);
    drop(station);

    // The peers of a dual-stack socket are ::ffff:127.0.0.1 and ::ffff:127.0.0.2.
    let station = Station::start_on("[::]:0", with_token(true), &["left"]);
    let port = station.address.port();
    let url = format!("http://127.0.0.1:{port}/api/cameras");
    let from = |interface, token| curl(&["--interface", interface, "-H", &bearer(token), &url]);
    for _ in 0..5 {
        assert_eq!(from("127.0.0.1", "wrong").status, 401);
    }
    assert_eq!(from("127.0.0.1", "wrong").status, 429);
    assert_eq!(from("127.0.0.2", "wrong").status, 401, "another address");
    // Only other addresses have a limit of 64 connections.
    let connections: Vec<_> = (0..70)
        .map(|_| std::net::TcpStream::connect(("127.0.0.1", port)).expect("a connection"))
        .collect();
    assert_eq!(from("127.0.0.1", TOKEN).status, 200);
    drop(connections);
}

#[test]
fn other_hosts_and_proxies_need_the_token_on_loopback_too() {
    let station = Station::start(with_token(false), &["left"]);
    let url = station.url("/api/cameras");
    for header in [
        "Host: station.plant.example",
        "X-Forwarded-For: 10.0.0.9",
        "Via: 1.1 proxy",
    ] {
        assert_eq!(curl(&["-H", header, &url]).status, 401, "{header}");
        assert_eq!(
            curl(&["-H", header, "-H", &bearer(TOKEN), &url]).status,
            200,
            "{header}"
        );
    }
}

#[test]
fn pages_of_other_hosts_cannot_use_a_browser_against_the_station() {
    let station = Station::start(open(), &["left"]);
    let url = station.url("/live/left.jpg");
    assert_eq!(
        curl(&["-H", "Origin: http://evil.example", &url]).status,
        403
    );
    assert_eq!(
        curl(&[
            "-H",
            "Sec-Fetch-Site: cross-site",
            "-H",
            "Sec-Fetch-Mode: no-cors",
            &url
        ])
        .status,
        403
    );
    let link = [
        "-H",
        "Sec-Fetch-Site: cross-site",
        "-H",
        "Sec-Fetch-Mode: navigate",
    ];
    let page = station.url("/");
    assert_eq!(
        curl(&[&link[..], &["-H", "Sec-Fetch-Dest: document", &page]].concat()).status,
        200
    );
    assert_eq!(
        curl(&[&link[..], &["-H", "Sec-Fetch-Dest: iframe", &page]].concat()).status,
        403
    );
}

#[test]
fn token_file_is_checked() {
    let dir = std::env::temp_dir().join(format!("clinspect-token-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a folder");
    let path = dir.join("token");
    let read = |text: &[u8], mode: u32| {
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("permissions");
        Token::read(&path).map_err(|error| format!("{error:#}"))
    };
    assert!(read(b"0123456789abcdef\n", 0o600).is_ok());
    assert!(read(b"0123456789abcdef\r\n", 0o640).is_ok());
    // As editors of Windows write it.
    assert!(read(b"\xEF\xBB\xBF0123456789abcdef \r\n\r\n", 0o600).is_ok());
    for (text, mode, what) in [
        (&b"0123456789abcdef\n"[..], 0o604, "every user can read"),
        (b"short\n", 0o600, "16 to 256"),
        (b"", 0o600, "16 to 256"),
        (b"0123456789abcdef\n0123456789abcdef\n", 0o600, "one line"),
        (b"0123456789 abcdef\n", 0o600, "no blanks"),
        ("0123456789abcdefü\n".as_bytes(), 0o600, "letters"),
        (&[b'x'; 4096], 0o600, "larger than 1024 bytes"),
        (b"\xFF\xFE0\x001\x00", 0o600, "save it as UTF-8"),
    ] {
        let error = read(text, mode).expect_err(what);
        assert!(error.contains(what), "{error}");
        assert!(
            !error.contains("0123456789"),
            "the error shows the token: {error}"
        );
    }
    assert!(Token::read(&dir).is_err(), "a folder");
    assert!(Token::read(&dir.join("none")).is_err(), "no file");
    let debug = format!("{:?}", with_token(true));
    assert!(!debug.contains(TOKEN), "{debug}");
    fs::remove_dir_all(&dir).expect("the folder goes");
}
