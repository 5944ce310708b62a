//! The power is lost in the middle of a switch.

use std::{
    io::Write,
    net::TcpStream,
    thread::sleep,
    time::{Duration, Instant},
};

use clinspect_testkit::tools::{Sandbox, has_device};

use super::{Folder, INSPECTION, TOKEN, head, switch};
use crate::process::{Station, live_camera};

/// Moments of the end after the request, from before the station has read it to after the switch.
const STEPS: u32 = 14;

#[test]
fn after_a_loss_of_power_the_recipe_is_the_one_before_or_the_one_after() {
    if !has_device() {
        return;
    }
    let sandbox = Sandbox::new("station-recipe-power");
    let cameras = ["left", "right"];
    let folder = Folder::of_two(&sandbox, &cameras);
    let tables = cameras.map(|name| live_camera(name, "ball", INSPECTION));
    let file = head(&sandbox, &folder) + &tables.concat();
    let mut seen = Vec::new();
    let mut took = 0;
    for step in 0..=STEPS {
        let mut station = Station::start(&sandbox, &file);
        for name in cameras {
            station.wait_for_status(name, "running");
        }
        if step == 0 {
            took = switch(&station, "strict");
            station.end("KILL");
            continue;
        }
        // What the file says is what all cameras do.
        let active = folder.active().unwrap();
        let verdict = if active == "lenient" { "pass" } else { "fail" };
        for name in cameras {
            let camera = station.camera(name);
            assert_eq!(camera["recipe"]["name"], *active, "{camera}");
            assert_eq!(camera["verdict"], verdict, "{camera}");
        }
        let changes = folder.changes();
        let last = changes.last().unwrap();
        assert_eq!(
            (&last["who"], &last["to"]),
            (&"start".into(), &(*active).into())
        );
        let next = if active == "strict" {
            "lenient"
        } else {
            "strict"
        };
        let asked = Instant::now();
        ask(station.port(), next);
        // The moments go over the whole switch and a little beyond.
        let wait = Duration::from_millis(2 * took) * step / STEPS;
        sleep(wait.saturating_sub(asked.elapsed()));
        station.end("KILL");
        let after = folder.active().unwrap();
        assert!(["strict", "lenient"].contains(&&*after), "{after:?}");
        seen.push(after == next);
    }
    eprintln!("the switch of {took} ms was done: {seen:?}");
    assert!(seen.contains(&true) && seen.contains(&false), "{seen:?}");
}

/// Asks for a switch and does not wait for the answer.
fn ask(port: u16, name: &str) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let body = format!("{{\"name\": \"{name}\"}}");
    let length = body.len();
    write!(
        stream,
        "POST /api/recipe HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    // The request must not end with its sender.
    std::mem::forget(stream);
}
