//! Live pictures and verdicts as they come.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use crate::{
    curl::curl,
    fake::{Station, open, report},
};

const SOON: Duration = Duration::from_secs(5);

/// Opens a path and reads the head of the response.
fn ask(station: &Station, path: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(station.address).expect("a connection");
    stream.set_read_timeout(Some(SOON)).expect("a limit");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        station.address
    )
    .expect("a request");
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).expect("a head");
    }
    stream
}

/// Reads the next part of an endless picture; chunked transfer puts its sizes between.
fn picture(stream: &mut impl BufRead) -> Vec<u8> {
    let mut line = Vec::new();
    let length = loop {
        line.clear();
        assert_ne!(stream.read_until(b'\n', &mut line).expect("a picture"), 0);
        let text = String::from_utf8_lossy(&line);
        if let Some(length) = text.strip_prefix("Content-Length: ") {
            break length.trim().parse().expect("a length");
        }
    };
    stream.read_until(b'\n', &mut line).expect("an empty line");
    let mut jpeg = vec![0; length];
    stream.read_exact(&mut jpeg).expect("a picture");
    jpeg
}

#[test]
fn live_picture_moves_and_viewers_go_back_to_zero() {
    let station = Station::start(open(), &["left", "right"]);
    assert_eq!(station.viewers(0), 0);
    let mut stream = ask(&station, "/live/left");
    let first = picture(&mut stream);
    assert_eq!(&first[..2], b"\xff\xd8");
    assert_eq!((station.viewers(0), station.viewers(1)), (1, 0));
    let second = picture(&mut stream);
    assert_ne!(first, second, "the ball moves");
    let start = Instant::now();
    for _ in 0..10 {
        picture(&mut stream);
    }
    let rate = 10.0 / start.elapsed().as_secs_f64();
    assert!(
        (5.0..=13.0).contains(&rate),
        "{rate} pictures/s; 12.5 at most"
    );
    drop(stream);
    station.wait("the viewer goes", SOON, |of| of.viewers(0) == 0);
}

#[test]
fn single_picture_is_a_fresh_one() {
    let station = Station::start(open(), &["left"]);
    let old = curl(&[&station.url("/live/left.jpg")]);
    std::thread::sleep(Duration::from_millis(200));
    let new = curl(&[&station.url("/live/left.jpg?2")]);
    assert_eq!((old.status, new.status), (200, 200));
    assert_eq!(new.header("content-type"), Some("image/jpeg"));
    assert_ne!(old.body, new.body);
    station.wait("the viewer goes", SOON, |of| of.viewers(0) == 0);
    let stopped = run::state::Status::Starting;
    station.cameras[0].status.send_replace(stopped);
    std::thread::sleep(Duration::from_millis(100));
    let none = curl(&[&station.url("/live/left.jpg")]);
    assert_eq!(
        none.status, 503,
        "an old picture would look like a line that runs"
    );
}

#[test]
fn slow_viewer_gets_the_newest_picture_and_keeps_nothing() {
    let station = Station::start(open(), &["left"]);
    let mut slow = ask(&station, "/live/left");
    let mut quick = ask(&station, "/live/left");
    picture(&mut slow);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(2) {
        picture(&mut quick);
    }
    assert_eq!(station.viewers(0), 2);
    drop((slow, quick));
    station.wait("the viewers go", SOON, |of| of.viewers(0) == 0);
}

#[test]
fn endless_picture_ends_when_pictures_fail_and_stays_when_no_frame_comes() {
    let station = Station::start(open(), &["blind", "paused"]);
    let mut blind = ask(&station, "/live/blind");
    let mut paused = ask(&station, "/live/paused");
    picture(&mut blind);
    picture(&mut paused);
    station.wishes[0].blind.store(true, Relaxed);
    station.wishes[1].pause.store(true, Relaxed);
    let start = Instant::now();
    // Pictures come again and again until one of these ends.
    let limit = Some(Duration::from_secs(7));
    blind.get_ref().set_read_timeout(limit).expect("a limit");
    paused.get_ref().set_read_timeout(limit).expect("a limit");
    let mut rest = Vec::new();
    let mut is_over = |stream: &mut BufReader<TcpStream>| {
        rest.clear();
        stream
            .read_until(b'\n', &mut rest)
            .expect("a picture again")
            == 0
    };
    while !is_over(&mut blind) {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "an old picture stays"
        );
    }
    let ended = start.elapsed();
    assert!(
        ended > Duration::from_secs(5),
        "one late picture ends nothing: {ended:?}"
    );
    while start.elapsed() < Duration::from_secs(16) {
        assert!(!is_over(&mut paused), "a trigger may need longer");
    }
    station.wait("the viewer goes", SOON, |of| of.viewers(0) == 0);
}

#[test]
fn last_picture_is_pushed_through_a_proxy_within_two_seconds() {
    let station = Station::start(open(), &["left"]);
    let mut stream = ask(&station, "/live/left");
    let mut last = picture(&mut stream);
    station.wishes[0].pause.store(true, Relaxed);
    let start = Instant::now();
    let mut pushed = picture(&mut stream);
    while !pushed.starts_with(&last) {
        last = pushed;
        pushed = picture(&mut stream);
        assert!(start.elapsed() < SOON, "the camera pauses");
    }
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    // A proxy's buffer has 4 or 8 KiB.
    assert!(pushed.len() >= 8192, "{} bytes", pushed.len());
    assert!(pushed[last.len()..].iter().all(|&byte| byte == 0));
}

#[test]
fn endless_pictures_are_limited() {
    let station = Station::start(open(), &["left"]);
    let streams: Vec<_> = (0..32).map(|_| ask(&station, "/live/left")).collect();
    let refused = curl(&[&station.url("/live/left")]);
    assert_eq!(refused.status, 503);
    assert!(
        refused.text().contains("close another page"),
        "{}",
        refused.text()
    );
    drop(streams);
    station.wait("the viewers go", SOON, |of| of.viewers(0) == 0);
    drop(ask(&station, "/live/left"));
}

#[test]
fn stream_of_a_removed_camera_ends() {
    let mut station = Station::start(open(), &["left", "right"]);
    let mut stream = ask(&station, "/live/right");
    picture(&mut stream);
    let events = ask(&station, "/events");
    station
        .list
        .send_replace(Arc::new(station.cameras[..1].to_vec()));
    station.end_camera(1);
    let start = Instant::now();
    let mut rest = [0; 4096];
    while stream.read(&mut rest).expect("the stream ends") > 0 {
        assert!(start.elapsed() < 2 * SOON, "the last picture stays");
    }
    let start = Instant::now();
    let mut lines = events
        .lines()
        .map_while(Result::ok)
        .take_while(|_| start.elapsed() < SOON);
    assert!(
        lines.any(|line| line == "data: [\"left\"]"),
        "the page hears of the change"
    );
}

/// The events of one camera: its frame number, and when it was read.
fn next_frame(stream: &mut impl BufRead) -> (u64, serde_json::Value) {
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < SOON, "no event of a frame");
        let mut line = String::new();
        assert_ne!(stream.read_line(&mut line).expect("an event"), 0);
        if let Some(data) = line.strip_prefix("data: {") {
            let data: serde_json::Value = serde_json::from_str(&format!("{{{data}")).expect("JSON");
            if let Some(frame) = data["frame"].as_u64() {
                return (frame, data);
            }
        }
    }
}

#[test]
fn verdict_comes_within_300_ms_and_at_most_ten_times_a_second() {
    let station = Station::start(open(), &["left"]);
    let mut events = ask(&station, "/events");
    // Frames with results at known times, once the camera's own have stopped.
    station.wishes[0].pause.store(true, Relaxed);
    std::thread::sleep(Duration::from_millis(100));
    let mut worst = Duration::ZERO;
    for frame in 1_000_000..1_000_020 {
        std::thread::sleep(Duration::from_millis(37));
        let sent = Instant::now();
        let fails = Arc::new(report("left", frame, true));
        station.cameras[0].report.send_replace(Some(fails));
        while next_frame(&mut events).0 != frame {
            assert!(sent.elapsed() < SOON, "no event of frame {frame}");
        }
        worst = worst.max(sent.elapsed());
    }
    eprintln!("a verdict came after {worst:?} at most");
    assert!(worst < Duration::from_millis(300), "{worst:?}");
    station.wishes[0].pause.store(false, Relaxed);
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < Duration::from_secs(1) {
        next_frame(&mut events);
        count += 1;
    }
    assert!((5..=12).contains(&count), "{count} events in a second");
    assert!(station.cameras[0].counters.frames.load(Relaxed) > 0);
}
