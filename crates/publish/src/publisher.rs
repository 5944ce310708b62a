//! Sends reports, in a thread of its own: what the element does, for applications that have the reports.

use std::{
    fmt, io,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering::Relaxed},
};

use clinspect_results::report::Report;

use crate::{
    Frames, Method,
    broker::Broker,
    file::JsonLines,
    mqtt::Mqtt,
    queue::Queue,
    sender::{Notice, Running},
};

pub(crate) const DEFAULT_TOPIC: &str = "clinspect";
pub(crate) const DEFAULT_MAX_QUEUED: u32 = 1000;
/// Six results with as many defects as an element lists.
pub(crate) const DEFAULT_MAX_QUEUED_BYTES: u64 = 64 << 20;

/// Longest `topic` and `camera` in topics, bytes; a topic has at most 65 535.
const LONGEST_PART: usize = 1024;

/// What is sent, and where. The fields are the properties of `inspectpublish`; an empty text stands for no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// A file or a broker.
    pub method: Method,
    /// The file; `-` is standard output.
    pub location: String,
    /// The broker.
    pub uri: String,
    /// First part of the topics.
    pub topic: String,
    /// Name of the camera in topics and reports.
    pub camera: String,
    /// Which frames are sent.
    pub frames: Frames,
    /// Most reports that wait.
    pub max_queued: u32,
    /// Most memory of the reports that wait, bytes; one report may be larger.
    pub max_queued_bytes: u64,
    /// User and password.
    pub credentials_file: String,
    /// Certificates of authorities, PEM.
    pub ca_file: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            method: Method::default(),
            location: String::new(),
            uri: String::new(),
            topic: DEFAULT_TOPIC.into(),
            camera: String::new(),
            frames: Frames::default(),
            max_queued: DEFAULT_MAX_QUEUED,
            max_queued_bytes: DEFAULT_MAX_QUEUED_BYTES,
            credentials_file: String::new(),
            ca_file: String::new(),
        }
    }
}

/// A sender that is not started yet.
enum Prepared {
    File(JsonLines),
    Mqtt(Mqtt),
}

impl Settings {
    /// Checks the settings and reads the files that they name. `name` stands for an empty `camera` in topics.
    ///
    /// # Errors
    /// A sentence that says what to do, without a secret.
    pub fn check(&self, name: &str) -> Result<(), String> {
        self.prepare(name).map(|_| ())
    }

    fn prepare(&self, name: &str) -> Result<Prepared, String> {
        match self.method {
            Method::File if self.location.is_empty() => {
                Err("location is empty; set a file, or - for standard output".into())
            }
            Method::File => Ok(Prepared::File(JsonLines::new(&self.location))),
            Method::Mqtt => {
                let broker = Broker::new(&self.uri, &self.credentials_file, &self.ca_file)?;
                let camera = match self.camera.as_str() {
                    "" => name,
                    camera => camera,
                };
                for (name, part) in [("topic", self.topic.as_str()), ("camera", camera)] {
                    check_topic(name, part)?;
                }
                Ok(Prepared::Mqtt(Mqtt::new(broker, &self.topic, camera)))
            }
        }
    }
}

/// # Errors
/// A sentence: `part`, the value of the setting `name`, is no part of a topic.
pub(crate) fn check_topic(name: &str, part: &str) -> Result<(), String> {
    // Brokers end the connection at control characters and at a longer topic.
    let is_wrong =
        |c: char| c.is_control() || matches!(c, '#' | '+' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    if part.is_empty() || part.contains(is_wrong) || part.len() > LONGEST_PART {
        return Err(format!(
            "{name}={part:?} is no part of a topic: it must not be empty, nor contain # or + or control characters, and has \
             at most {LONGEST_PART} bytes"
        ));
    }
    Ok(())
}

/// Why nothing can be sent.
#[derive(Debug)]
pub enum StartError {
    /// The settings are wrong: a sentence that says what to do.
    Settings(String),
    /// The system has no thread left.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(why) => f.write_str(why),
            Self::System(error) => {
                write!(f, "no thread to send results: {error}; end other programs")
            }
        }
    }
}

impl std::error::Error for StartError {}

/// What happened to the reports since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Reports that wait.
    pub queued: u64,
    /// Memory of the reports that wait, bytes.
    pub queued_bytes: u64,
    /// Reports that the file or the broker has taken.
    pub published: u64,
    /// Reports that were dropped: the queue was full, the broker never takes them, or the end came before.
    pub dropped: u64,
    /// Failed attempts to write, to connect or to send.
    pub errors: u64,
    /// Whether the file is open, or the broker answers.
    pub is_connected: bool,
}

/// Sends reports; ends when dropped. [`Self::offer`] never waits.
pub struct Publisher {
    running: Mutex<Option<Running>>,
    queue: Arc<Queue>,
    settings: Settings,
    /// The verdict of the report before.
    last: Mutex<Option<&'static str>>,
}

impl Publisher {
    /// Starts the thread. `name` stands for an empty `camera` in topics. `notify` gets the first failure, and the first
    /// success after it, in that thread.
    ///
    /// # Errors
    /// The settings are wrong, or the system has no thread left.
    pub fn start(
        settings: Settings,
        name: &str,
        notify: impl Fn(Notice) + Send + 'static,
    ) -> Result<Self, StartError> {
        let queue = Arc::new(Queue::new(
            settings.max_queued as usize,
            settings.max_queued_bytes,
        ));
        let prepared = settings.prepare(name).map_err(StartError::Settings)?;
        let running = match prepared {
            Prepared::File(file) => Running::start(file, queue.clone(), notify),
            Prepared::Mqtt(mqtt) => Running::start(mqtt, queue.clone(), notify),
        };
        Ok(Self {
            running: Mutex::new(Some(running.map_err(StartError::System)?)),
            queue,
            settings,
            last: Mutex::default(),
        })
    }

    /// The settings of the start.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Queues a report if the settings ask for its frame.
    pub fn offer(&self, report: &Arc<Report>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.replace(report.verdict);
        let is_wanted = match self.settings.frames {
            Frames::All => true,
            Frames::Fail => report.verdict == "fail",
            Frames::Change => before != Some(report.verdict),
        };
        if is_wanted {
            self.queue.push(report.clone());
        }
    }

    /// Whether frames come: what the retained topic `state` says. `true` at the start.
    pub fn set_online(&self, is_online: bool) {
        self.queue.set_online(is_online);
    }

    /// The numbers so far.
    pub fn numbers(&self) -> Numbers {
        let of = self.queue.numbers();
        Numbers {
            queued: self.queue.len() as u64,
            queued_bytes: self.queue.bytes(),
            published: of.published.load(Relaxed),
            dropped: of.dropped.load(Relaxed),
            errors: of.errors.load(Relaxed),
            is_connected: of.is_connected.load(Relaxed),
        }
    }

    /// Asks the thread to send what waits and to end. Does not wait.
    pub fn ask_end(&self) {
        self.queue.stop();
    }

    /// Sends what waits, for at most two seconds, and ends. What was not sent counts as dropped. Returns `false` if the
    /// thread did not end within one more second; it then ends alone.
    pub fn end(&self) -> bool {
        let running = self
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let has_ended = running.is_none_or(Running::stop);
        self.queue.close();
        has_ended
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.end();
    }
}
