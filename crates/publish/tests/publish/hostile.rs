//! Servers that are no brokers.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use crate::frames::Rig;

/// A server that treats each connection with `serve`; its port.
fn server(serve: fn(TcpStream, u32)) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            thread::spawn(move || serve(stream, number as u32));
        }
    });
    port
}

fn rig(port: u16) -> Rig {
    Rig::new(&format!(
        "method=mqtt uri=mqtt://127.0.0.1:{port} max-queued=50"
    ))
}

#[test]
fn frames_never_wait_for_a_broker_that_reads_nothing() {
    // It keeps the connection open and is silent.
    let mut rig = rig(server(|stream, _| {
        thread::sleep(Duration::from_secs(30));
        drop(stream);
    }));
    let begun = Instant::now();
    rig.push_fails(500);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(rig.stat("queued") + rig.stat("dropped"), 500);
    let stopped = rig.stop();
    assert!(stopped < Duration::from_secs(4), "{stopped:?}");
}

#[test]
fn a_broker_that_accepts_and_then_never_acknowledges_keeps_no_frame_waiting() {
    let mut rig = rig(server(|mut stream, _| {
        let mut first = [0; 1024];
        let _ = stream.read(&mut first);
        // CONNACK: accepted.
        let _ = stream.write_all(&[0x20, 2, 0, 0]);
        thread::sleep(Duration::from_secs(30));
    }));
    let begun = Instant::now();
    rig.push_fails(500);
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert_eq!(rig.stat("published"), 0);
    assert!(rig.stop() < Duration::from_secs(4));
}

#[test]
fn hostile_answers_are_errors() {
    // Seeded bytes, some after a CONNACK.
    let mut rig = rig(server(|mut stream, number| {
        let mut first = [0; 1024];
        let _ = stream.read(&mut first);
        let mut state = number.wrapping_mul(2_654_435_761) | 1;
        let mut bytes: Vec<u8> = Vec::new();
        if number % 2 == 1 {
            bytes.extend([0x20, 2, 0, 0]);
        }
        for _ in 0..4096 {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            bytes.push(state as u8);
        }
        let _ = stream.write_all(&bytes);
    }));
    rig.push_fails(10);
    rig.wait_for("errors", 4);
    assert_eq!(rig.stat("published"), 0);
    assert_eq!(rig.stat("queued"), 10);
    assert!(rig.stop() < Duration::from_secs(4));
}
