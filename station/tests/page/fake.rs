//! A station whose cameras are made here: moving pictures, verdicts on request, no inspection.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use clinspect_results::report::{
    Channel, Histogram, Inspection, Progress, Report, ReportedAlignment, ReportedDefect,
    ReportedPart, ReportedParts, ReportedRepeat,
};
use config::{recipes::Recipes, token::Token};
use gst::prelude::*;
use machine::{
    answer::{Line, Machine},
    locks::Mutex,
    modbus::Modbus,
};
use plan::ModbusSettings;
use run::state::{
    Camera, Command, Counters, Failure, FailurePictures, History, Minute, Picture, Request,
    RollMark, RollPlace, RollRepeat, Status,
};
use setup::Setup;
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
};
use web::{Access, serve};

pub const TOKEN: &str = "a-token-of-the-tests-0123456789";
pub const RATE: i32 = 25;

/// A station that ends when it is dropped.
pub struct Station {
    pub address: SocketAddr,
    pub cameras: Vec<Arc<Camera>>,
    pub list: watch::Sender<Arc<Vec<Arc<Camera>>>>,
    /// What the cameras do, in their order.
    pub wishes: Vec<Arc<Wishes>>,
    /// The server for PLCs, which nobody reaches; with recipes.
    pub modbus: Option<Arc<Modbus>>,
    runtime: Option<tokio::runtime::Runtime>,
    ends: Vec<Arc<AtomicBool>>,
    threads: Vec<JoinHandle<()>>,
}

/// What a camera does differently from now on.
#[derive(Default)]
pub struct Wishes {
    /// The next frame fails; then this is false again.
    pub plant: AtomicBool,
    /// No frame comes, as between two triggers.
    pub pause: AtomicBool,
    /// Frames come without live pictures.
    pub blind: AtomicBool,
}

/// Free reading, no writing.
pub fn open() -> Access {
    Access::default()
}

pub fn with_token(write: bool) -> Access {
    let token = Token::new(TOKEN.as_bytes()).expect("a token");
    Access {
        token: Some(token.into()),
        write,
    }
}

impl Station {
    pub fn start(access: Access, names: &[&str]) -> Self {
        Self::start_on("127.0.0.1:0", access, names)
    }

    pub fn start_on(address: &str, access: Access, names: &[&str]) -> Self {
        Self::start_with(address, access, names, None)
    }

    pub fn start_with(
        address: &str,
        access: Access,
        names: &[&str],
        recipes: Option<Arc<Recipes>>,
    ) -> Self {
        gst::init().expect("GStreamer");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime
            .block_on(TcpListener::bind(address))
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut station = Self {
            address,
            cameras: Vec::new(),
            list: watch::Sender::new(Arc::default()),
            wishes: Vec::new(),
            modbus: None,
            runtime: None,
            ends: Vec::new(),
            threads: Vec::new(),
        };
        for name in names {
            let (commands, asked) = mpsc::channel(4);
            let camera = Arc::new(camera(name, commands));
            let wishes = Arc::new(Wishes::default());
            runtime.spawn(obey(asked));
            let end = Arc::new(AtomicBool::new(false));
            let of_thread = (camera.clone(), wishes.clone(), end.clone());
            let frames = move || frames(&of_thread.0, &of_thread.1, &of_thread.2);
            station.threads.push(std::thread::spawn(frames));
            station.ends.push(end);
            station.wishes.push(wishes);
            station.cameras.push(camera);
        }
        station.list.send_replace(Arc::new(station.cameras.clone()));
        station.modbus = recipes.as_ref().map(|recipes| {
            let settings = ModbusSettings {
                listen: address,
                allow_from: Vec::new(),
                allow_commands: true,
                heartbeat_timeout: Duration::from_secs(1),
            };
            let names = names.iter().map(|name| (*name).to_owned());
            let line = Line::new().expect("a line");
            Modbus::new(settings, names, &line, Some(recipes.clone()))
        });
        let of_recipes = |recipes| {
            let file = std::path::PathBuf::from("station.toml");
            Arc::new(Setup::new(file, None, recipes, station.list.subscribe()))
        };
        let setup = recipes.map(of_recipes);
        let served = serve(
            listener,
            station.list.subscribe(),
            access,
            setup,
            station.modbus.clone(),
        );
        runtime.spawn(async move { served.await.expect("the server runs") });
        station.runtime = Some(runtime);
        station
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Pictures are made for so many requests now.
    pub fn viewers(&self, camera: usize) -> usize {
        self.cameras[camera].viewers.load(Relaxed)
    }

    /// Ends a camera for good, as a reload does.
    pub fn end_camera(&mut self, camera: usize) {
        self.ends[camera].store(true, Relaxed);
        self.threads
            .remove(camera)
            .join()
            .expect("the camera's thread ends well");
        self.ends.remove(camera);
        self.wishes.remove(camera);
        self.cameras.remove(camera);
    }

    /// Waits until the condition holds.
    #[track_caller]
    pub fn wait(&self, what: &str, limit: Duration, mut is: impl FnMut(&Self) -> bool) {
        let start = std::time::Instant::now();
        while !is(self) {
            assert!(start.elapsed() < limit, "{what}: not after {limit:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        for end in &self.ends {
            end.store(true, Relaxed);
        }
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.expect("the camera's thread ends well");
            }
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(2));
        }
    }
}

fn camera(name: &str, commands: mpsc::Sender<Request>) -> Camera {
    Camera {
        name: name.into(),
        status: watch::Sender::new(Status::Running),
        report: watch::Sender::new(None),
        live: watch::Sender::new(None),
        tap: Default::default(),
        machine: Machine::new(name, &Line::new().unwrap()),
        viewers: 0.into(),
        counters: Counters {
            publish_connected: true.into(),
            ..Counters::default()
        },
        history: Mutex::new(History {
            device: Some("pthread-test".into()),
            frame_rate: RATE.into(),
            offers: vec![Command::TakeWhite, Command::Learn],
            bins: vec![(0..64).map(|bin| 1000 - (bin as u64 * 15)).collect()],
            ..History::default()
        }),
        recordings: Mutex::default(),
        commands,
    }
}

/// Answers commands.
async fn obey(mut asked: mpsc::Receiver<Request>) {
    while let Some(request) = asked.recv().await {
        let answer = match request.command {
            Command::TakeWhite => Ok("The next 16 frames become the white reference.".into()),
            Command::Forget => Ok(format!(
                "Frame {} is forgotten.",
                request.frame.unwrap_or_default()
            )),
            _ => Err("The light is off; switch it on first.".into()),
        };
        let _ = request.answer.send(answer);
    }
}

/// Makes frames until `stop`.
fn frames(camera: &Camera, wishes: &Wishes, stop: &AtomicBool) {
    let pipeline = gst::parse::launch(&format!(
        "videotestsrc is-live=true pattern=ball ! video/x-raw,width=320,height=240,framerate={RATE}/1 \
         ! jpegenc ! appsink name=sink max-buffers=1 drop=true"
    ));
    let pipeline = pipeline
        .expect("a pipeline")
        .downcast::<gst::Pipeline>()
        .expect("a pipeline");
    let sink = pipeline
        .by_name("sink")
        .and_downcast::<gst_app::AppSink>()
        .expect("a sink");
    pipeline.set_state(gst::State::Playing).expect("pictures");
    let mut number = 0;
    while !stop.load(Relaxed) {
        let limit = gst::ClockTime::from_mseconds(500);
        let Some(sample) = sink.try_pull_sample(limit) else {
            continue;
        };
        let map = sample
            .buffer()
            .expect("a picture")
            .map_readable()
            .expect("a picture");
        let is_running = *camera.status.borrow() == Status::Running;
        if is_running && !wishes.pause.load(Relaxed) {
            frame(camera, number, wishes, map.as_slice());
        }
        number += 1;
    }
    pipeline.set_state(gst::State::Null).expect("the end");
}

/// One frame's results, as the station's pipelines leave them.
fn frame(camera: &Camera, number: u64, wishes: &Wishes, jpeg: &[u8]) {
    let fails = wishes.plant.swap(false, Relaxed);
    let picture = Picture::copy_from_slice(jpeg);
    let report = Arc::new(report(&camera.name, number, fails));
    camera.counters.frames.fetch_add(1, Relaxed);
    camera.counters.verdicts[usize::from(fails)].fetch_add(1, Relaxed);
    camera.counters.latency_sum.fetch_add(8000, Relaxed);
    if camera.viewers.load(Relaxed) > 0 && !wishes.blind.load(Relaxed) {
        camera.live.send_replace(Some(picture.clone()));
    }
    if fails {
        fail(&mut camera.history(), &report, picture);
    }
    camera.history().newest = Some(Instant::now());
    camera.report.send_replace(Some(report));
}

fn fail(history: &mut History, report: &Arc<Report>, picture: Picture) {
    let id = history.failures.back().map_or(1, |last| last.id + 1);
    history.failures.push_back(Arc::new(Failure {
        id,
        report: report.clone(),
        pictures: Ok(FailurePictures {
            thumbnail: picture.clone(),
            picture,
        }),
    }));
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a clock");
    let minute = since.as_secs() / 60;
    history.minutes.push_back(Minute {
        minute,
        frames: 1500,
        failed: 1,
        defects: BTreeMap::from([("scratch".into(), 2), ("particle".into(), 1)]),
    });
    history.web = Some(3);
    history.roll.push_back(RollMark {
        web: 3,
        class: "scratch".into(),
        across: 0.25,
        line: 1200 + id as i64,
        metres: Some(1.2 + id as f64),
        area: 30,
    });
    history.repeats = vec![repeat()];
    history.minutes = VecDeque::from_iter(history.minutes.drain(..).rev().take(1).rev());
}

/// Six marks of a roller.
fn repeat() -> RollRepeat {
    let places = (0..6).map(|turn| RollPlace {
        line: 1200.0 + 628.0 * f64::from(turn),
        metres: Some(1.2 + 0.628 * f64::from(turn)),
        across: 0.25,
    });
    RollRepeat {
        repeat: ReportedRepeat {
            id: 1,
            period_lines: 628.0,
            period_m: Some(0.628),
            count: 6,
            left: 80.0,
            right: 80.0,
            first_line: 1200.0,
            last_line: 4340.0,
        },
        across: [0.25; 2],
        is_active: true,
        places: places.collect(),
    }
}

/// A name of a class that a page without care would run.
pub const HOSTILE_CLASS: &str = "<img src=x onerror=alert(1)>";

pub fn report(camera: &str, frame: u64, fails: bool) -> Report {
    let classes: &[&str] = if fails {
        &["scratch", "scratch", HOSTILE_CLASS]
    } else {
        &[]
    };
    let defects = classes
        .iter()
        .enumerate()
        .map(|(index, class)| ReportedDefect {
            part: None,
            channel: None,
            id: index as u32 + 1,
            class: (*class).into(),
            x: 40 + index as i32,
            y: 50,
            width: 12,
            height: 3,
            area: 30,
            mean_difference: 21.5,
            peak_difference: -40.0,
            x_mm: Some(4.0),
            y_m: Some(0.005),
            semu: None,
        });
    let mut counts = serde_json::Map::new();
    if fails {
        counts.insert("scratch".into(), 2.into());
        counts.insert(HOSTILE_CLASS.into(), 1.into());
    }
    let verdict = if fails { "fail" } else { "pass" };
    // Each frame has its own time.
    let time = format!("2026-01-02T03:04:{:02}.678901Z", frame % 60);
    Report {
        camera: Some(camera.into()),
        frame: Some(frame),
        inspections: vec![Inspection {
            element: "clpitchthreshold0".into(),
            verdict,
            web: 0,
            first_line: 0,
            width: 320,
            height: 240,
            alignment: (camera != "right").then_some(ReportedAlignment {
                shift_x: 3.25,
                shift_y: -1.5,
                rotation_degrees: 0.125,
                scale: 1.0125,
                transform: [3.0, 1.0125, 0.0, -1.0, 0.0, 1.0125],
                step: "affine",
                match_score: 0.96,
                matched: true,
                misfit: 2.25,
                largest_local_shift: 0.75,
            }),
            parts: (camera == "right").then(|| ReportedParts {
                least: 1,
                most: 1,
                found: vec![ReportedPart {
                    number: 1,
                    x: 120.5,
                    y: 80.25,
                    x_mm: Some(12.05),
                    y_mm: Some(8.025),
                    angle: -33.25,
                    scale: 1.0,
                    score: 0.97,
                    inside: 1.0,
                    cut: false,
                    judged_pixels: 70_000,
                    defect_pixels: 0,
                    verdict,
                }],
            }),
            training: None,
            learning: (camera == "right").then_some(Progress { frames: 7, all: 24 }),
            reason: None,
            blind_limit: None,
            judged_pixels: 76_800,
            defect_pixels: 90,
            missing_pixels: 0,
            defect_count: classes.len(),
            overflow: false,
            counts,
            defects: defects.collect(),
            repeats: Vec::new(),
        }],
        histograms: vec![Histogram {
            element: "clhistogram0".into(),
            format: "GRAY8".into(),
            alarms: vec![],
            channels: vec![Channel {
                minimum: 3.0,
                maximum: 250.0,
                mean: 101.5,
                stddev: 20.0,
                median: 100.0,
                saturated_low: 0.0,
                saturated_high: 0.01,
            }],
        }],
        ..Report::empty(verdict, time)
    }
}
