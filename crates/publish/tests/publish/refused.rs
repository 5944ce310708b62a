//! Packets that a broker never accepts: it ends the connection, or it does not acknowledge, and says nothing.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use crate::{
    broker::{Broker, frames},
    frames::Rig,
};

/// Defects of a result of some 15 kB.
const LARGE: usize = 100;

/// A broker that ends the connection at packets that it does not like.
struct Fussy {
    port: u16,
    seen: Arc<Mutex<Vec<(String, String)>>>,
    /// What it does with a packet of this topic and payload.
    likes: Arc<Mutex<Likes>>,
}

type Likes = Box<dyn Fn(&str, &str) -> Answer + Send>;

/// What the broker does with a packet.
#[derive(Clone, Copy)]
enum Answer {
    Acknowledge,
    End,
    Nothing,
}

/// Acknowledges what it likes, and ends the connection else.
fn if_liked(likes: impl Fn(&str, &str) -> bool) -> impl Fn(&str, &str) -> Answer {
    move |topic, text| match likes(topic, text) {
        true => Answer::Acknowledge,
        false => Answer::End,
    }
}

impl Fussy {
    fn new(likes: impl Fn(&str, &str) -> bool + Send + 'static) -> Self {
        Self::that_answers(if_liked(likes))
    }

    fn that_answers(likes: impl Fn(&str, &str) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let broker = Self {
            port: listener.local_addr().unwrap().port(),
            seen: Arc::default(),
            likes: Arc::new(Mutex::new(Box::new(likes))),
        };
        let (seen, likes) = (broker.seen.clone(), broker.likes.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, likes) = (seen.clone(), likes.clone());
                thread::spawn(move || serve(stream, &seen, &likes));
            }
        });
        broker
    }

    fn now_likes(&self, likes: impl Fn(&str, &str) -> bool + Send + 'static) {
        *self.likes.lock().unwrap() = Box::new(if_liked(likes));
    }

    fn rig(&self) -> Rig {
        Rig::new(&format!(
            "method=mqtt uri=mqtt://127.0.0.1:{} topic=plant camera=left",
            self.port
        ))
    }

    /// The frames whose results were acknowledged, each once, sorted.
    fn frames(&self) -> Vec<u64> {
        let seen = self.seen.lock().unwrap();
        let results = seen.iter().filter(|(topic, _)| topic.ends_with("/result"));
        let mut seen = frames(&results.map(|(_, text)| text.clone()).collect::<Vec<_>>());
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    /// Waits until these frames are acknowledged.
    #[track_caller]
    fn wait(&self, wanted: &[u64]) {
        let begun = Instant::now();
        while self.frames() != wanted {
            let waited = begun.elapsed();
            assert!(waited < Duration::from_secs(60), "{:?}", self.frames());
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Acknowledges packets until one is disliked.
fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<(String, String)>>,
    likes: &Mutex<Likes>,
) -> io::Result<()> {
    loop {
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        let (mut size, mut shift) = (0, 0);
        loop {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            size |= usize::from(byte[0] & 127) << shift;
            shift += 7;
            if byte[0] < 128 {
                break;
            }
        }
        let mut body = vec![0; size];
        stream.read_exact(&mut body)?;
        match kind[0] >> 4 {
            1 => stream.write_all(&[0x20, 2, 0, 0])?,
            3 => {
                let end = 2 + usize::from(u16::from_be_bytes([body[0], body[1]]));
                let topic = String::from_utf8_lossy(&body[2..end]).into_owned();
                let text = String::from_utf8_lossy(&body[end + 2..]).into_owned();
                match (likes.lock().unwrap())(&topic, &text) {
                    Answer::Acknowledge => {}
                    Answer::End => return Ok(()),
                    Answer::Nothing => continue,
                }
                seen.lock().unwrap().push((topic, text));
                stream.write_all(&[0x40, 2, body[end], body[end + 1]])?;
            }
            12 => stream.write_all(&[0xD0, 0])?,
            _ => return Ok(()),
        }
    }
}

fn is_small(_: &str, text: &str) -> bool {
    text.len() < 4000
}

/// All frames but these.
fn others(count: u64, refused: &[u64]) -> Vec<u64> {
    (0..count)
        .filter(|frame| !refused.contains(frame))
        .collect()
}

#[test]
fn a_result_too_large_for_mosquitto_is_dropped_and_told_and_all_others_arrive() {
    let Some(broker) = Broker::start_with("limit", false, "max_packet_size 4000\n") else {
        return;
    };
    let subscriber = broker.subscribe();
    let mut rig = Rig::new(&format!(
        "method=mqtt uri=mqtt://localhost:{} topic=plant camera=left",
        broker.port
    ));
    rig.push_fails(20);
    rig.push_defects(LARGE);
    rig.push_fails(130);
    let seen = |texts: &[String]| {
        let mut seen = frames(texts);
        seen.sort_unstable();
        seen.dedup();
        seen
    };
    let wanted = others(151, &[20]);
    subscriber.wait("plant/left/result", |texts| seen(texts) == wanted);
    rig.wait_for("dropped", 1);
    let told = rig.wait_until_told("is dropped");
    assert!(
        told.contains("(frame 20)") && told.contains(" bytes"),
        "{told}"
    );
    rig.wait_for("published", 150);
    assert_eq!((rig.stat("dropped"), rig.stat("queued")), (1, 0));
    rig.stop();
    subscriber.wait("plant/left/state", |texts| {
        texts.last().is_some_and(|text| text == "offline")
    });
}

#[test]
fn the_first_the_last_and_several_in_a_row_are_dropped() {
    for refused in [
        &[0][..],
        &[39],
        &[38, 39],
        &[0, 1, 2, 3],
        &[5, 6, 7, 8, 9, 10, 20, 30],
    ] {
        let broker = Fussy::new(is_small);
        let mut rig = broker.rig();
        for frame in 0..40 {
            // The later ones are smaller.
            let defects = LARGE - frame;
            rig.push_defects(if refused.contains(&(frame as u64)) {
                defects
            } else {
                1
            });
        }
        broker.wait(&others(40, refused));
        rig.wait_for("dropped", refused.len() as u64);
        assert_eq!(
            (rig.stat("dropped"), rig.stat("queued")),
            (refused.len() as u64, 0),
            "{refused:?}"
        );
        rig.stop();
    }
}

#[test]
fn a_stop_leaves_time_to_find_the_refused_result_and_to_send_all_others() {
    let broker = Fussy::new(is_small);
    let mut rig = broker.rig();
    rig.push_fails(20);
    rig.push_defects(LARGE);
    rig.push_fails(130);
    rig.stop();
    assert_eq!(broker.frames(), others(151, &[20]));
}

#[test]
fn a_broker_that_takes_no_results_for_a_while_loses_none() {
    // As without the right to publish there: the broker takes the state.
    let broker = Fussy::new(|topic, _| topic.ends_with("/state"));
    let mut rig = broker.rig();
    rig.push_fails(20);
    // The first one ends connections alone; the others are as large, and wait.
    rig.wait_for("errors", 4);
    assert_eq!((rig.stat("dropped"), rig.stat("published")), (0, 0));
    broker.now_likes(|_, _| true);
    rig.push_fails(1);
    broker.wait(&others(21, &[]));
    assert_eq!(rig.stat("dropped"), 0);

    // It takes nothing at all, also after it took results.
    let errors = rig.stat("errors");
    broker.now_likes(|_, _| false);
    rig.push_fails(20);
    rig.wait_for("errors", errors + 6);
    broker.now_likes(|_, _| true);
    broker.wait(&others(41, &[]));
    assert_eq!(rig.stat("dropped"), 0);
    rig.stop();
}

#[test]
fn a_refused_state_is_given_up_and_the_results_arrive() {
    let broker = Fussy::new(|topic, _| !topic.ends_with("/state"));
    let mut rig = broker.rig();
    rig.push_fails(40);
    broker.wait(&others(40, &[]));
    let told = rig.wait_until_told("the state is not sent");
    assert!(told.contains("plant/left/state"), "{told}");
    rig.push_fails(40);
    broker.wait(&others(80, &[]));
    assert_eq!(rig.stat("dropped"), 0);
    assert!(rig.stop() < Duration::from_secs(2));
}

#[test]
fn once_the_limit_is_known_larger_results_end_no_connection() {
    let broker = Fussy::new(is_small);
    let mut rig = broker.rig();
    for _ in 0..3 {
        rig.push_fails(3);
        rig.push_defects(LARGE);
    }
    rig.wait_for("dropped", 3);
    let errors = rig.stat("errors");
    for _ in 0..20 {
        rig.push_fails(3);
        rig.push_defects(LARGE);
    }
    rig.wait_for("dropped", 23);
    rig.wait_for("published", 69);
    assert_eq!(rig.stat("errors"), errors);
    rig.stop();
}

#[test]
fn a_packet_that_a_living_broker_does_not_acknowledge_is_sent_again() {
    let was_silent = std::sync::atomic::AtomicBool::new(false);
    let broker = Fussy::that_answers(move |_, text| {
        let is_second = text.contains("\"frame\":1,");
        match is_second && !was_silent.swap(true, std::sync::atomic::Ordering::Relaxed) {
            true => Answer::Nothing,
            false => Answer::Acknowledge,
        }
    });
    let mut rig = broker.rig();
    rig.push_fails(5);
    broker.wait(&others(5, &[]));
    assert!(
        rig.wait_until_told("does not acknowledge")
            .contains("127.0.0.1")
    );
    assert_eq!(rig.stat("dropped"), 0);
    rig.stop();
}
