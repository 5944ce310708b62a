//! Many connections, connections from elsewhere, and nonsense.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread::sleep,
    time::{Duration, Instant},
};

use clinspect_testkit::tools::{Sandbox, has_device};

use super::{RESULT_VALID, camera, client::Client, start, table};

const READ: [u8; 5] = [4, 0, 0, 0, 22];

#[test]
fn places_are_for_those_who_ask_and_a_silent_connection_gives_way() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-modbus-many");
    let (station, port) = start(&sandbox, &(table("") + &camera("left", "")), &["left"]);
    let mut plcs: Vec<Client> = (0..8).map(|_| Client::new(port)).collect();
    let ask = |plcs: &mut [Client]| {
        for plc in plcs {
            plc.inputs(0);
        }
    };
    ask(&mut plcs);
    // All ask all the time: others are closed at once.
    for _ in 0..20 {
        assert!(Client::new(port).try_ask(&READ).is_err());
    }
    ask(&mut plcs);
    // The first one falls silent.
    let until = Instant::now() + Duration::from_millis(2500);
    while Instant::now() < until {
        ask(&mut plcs[1..]);
        sleep(Duration::from_millis(50));
    }
    let mut new = Client::new(port);
    new.inputs(0);
    assert!(plcs[0].try_ask(&READ).is_err());
    ask(&mut plcs[1..]);
    let text = station.get("/metrics");
    assert!(text.contains("clinspect_modbus_connections 8\n"), "{text}");
    assert!(
        text.contains("clinspect_modbus_refused_connections_total 20\n"),
        "{text}"
    );
    assert_eq!(station.log().matches("was closed").count(), 1);
    drop(plcs);
    // The station must see their ends.
    sleep(Duration::from_millis(500));
    Client::new(port).inputs(0);
}

#[test]
fn connection_from_elsewhere_is_closed_at_once() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-modbus-elsewhere");
    let file = table("allow-from = [\"192.0.2.0/24\", \"2001:db8::1\"]") + &camera("left", "");
    let (station, port) = start(&sandbox, &file, &["left"]);
    for _ in 0..10 {
        assert!(Client::new(port).try_ask(&READ).is_err());
    }
    let log = station.log();
    let told = "a connection from 127.0.0.1 was closed: allow-from does not have this address";
    assert_eq!(log.matches(told).count(), 1, "{log}");
    assert!((station.get("/metrics")).contains("clinspect_modbus_refused_connections_total 10\n"));
}

/// Returns whether the station closes the connection in this time.
fn is_closed(stream: &mut TcpStream, within: Duration) -> bool {
    stream.set_read_timeout(Some(within)).unwrap();
    let mut bytes = [0; 512];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

#[test]
fn nonsense_closes_its_own_connection_and_nothing_else() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-modbus-nonsense");
    let (station, port) = start(&sandbox, &(table("") + &camera("left", "")), &["left"]);
    let mut plc = Client::new(port);
    let soon = Duration::from_secs(2);
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        // Another protocol, no length, too short, too long.
        &[0, 0, 0, 1, 0, 6, 1, 4, 0, 0, 0, 1],
        &[0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 1],
        &[0, 0, 0, 0, 0, 1, 1, 4, 0, 0, 0, 1],
        &[0, 0, 0, 0, 1, 0, 1, 4, 0, 0, 0, 1],
        &[0xff; 300],
    ] {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(bytes).unwrap();
        assert!(is_closed(&mut stream, soon), "{bytes:?}");
    }
    // These have a length that is true, so they get exceptions: coils without bytes, a count that overflows.
    assert_eq!(plc.refused(&[15, 0, 0, 0, 8, 0]), 1);
    assert_eq!(plc.refused(&[16, 0, 0, 0x80, 0, 0]), 3);
    assert_eq!(plc.refused(&[0xff]), 1);
    // A frame that does not end, and one that comes byte by byte.
    let mut half = TcpStream::connect(("127.0.0.1", port)).unwrap();
    half.write_all(&[0, 0, 0, 0, 0, 6]).unwrap();
    let mut slow = Client::new(port);
    for byte in [0x12, 0x34, 0, 0, 0, 6, 0x55, 4, 0, 0, 0] {
        slow.0.write_all(&[byte]).unwrap();
        sleep(Duration::from_millis(20));
    }
    // The last byte of the slow frame, and another request behind it.
    let next = [1, 0x12, 0x34, 0, 0, 0, 6, 0x55, 4, 0, 0, 0, 1];
    slow.0.write_all(&next).unwrap();
    let mut answers = [0; 22];
    slow.0.read_exact(&mut answers).unwrap();
    assert_eq!(answers[..9], [0x12, 0x34, 0, 0, 0, 5, 0x55, 4, 2]);
    assert_eq!(answers[11..20], answers[..9]);
    // Random bytes, with true headers for every second connection.
    let mut seed = 0x0c11_5bec_u32;
    let mut random = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as u8
    };
    for round in 0..200 {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        for _ in 0..5 {
            let len = 1 + random() % 60;
            let mut bytes: Vec<u8> = (0..len).map(|_| random()).collect();
            if round % 2 == 0 {
                bytes[0] %= 48;
                bytes.splice(0..0, [0, round, 0, 0, 0, len + 1, 1]);
            }
            // It may be closed already.
            let _ = stream.write_all(&bytes);
        }
    }
    assert!(is_closed(&mut half, Duration::from_secs(10)));
    // Whoever asks has kept the place.
    plc.wait(0, RESULT_VALID, 0);
    let log = station.log();
    assert!(!log.contains("panicked"), "{log}");
}
