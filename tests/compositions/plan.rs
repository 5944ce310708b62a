//! Compositions of pipelines: their text for gst-launch, and the paths from the sources to the sinks.

use std::fmt::{self, Display, Formatter};

use crate::sinks::Key;

/// Makes a source live.
pub const LIVE: &str = " is-live=true";

/// Pipelines that run at the same time in one process.
#[derive(Debug, Clone)]
pub struct Composition {
    pub pipelines: Vec<Plan>,
}

/// A pipeline: a source, and a tree of elements that ends in sinks.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Source and caps.
    pub source: String,
    pub tree: Tree,
    pub actions: Vec<Action>,
}

/// Elements in a row, and what is behind them.
#[derive(Debug, Clone)]
pub struct Tree {
    pub chain: Vec<Link>,
    pub end: End,
}

/// A part of a chain.
#[derive(Debug, Clone)]
pub enum Link {
    /// Decides only when frames pass and in which thread: the path of a sink goes without queues.
    Queue(String),
    /// One or several elements that change frames or attach results.
    Element(String),
}

/// The end of a chain.
#[derive(Debug, Clone)]
pub enum End {
    Sink(Sink),
    Tee { name: String, branches: Vec<Tree> },
}

/// A sink, which checks frames.
#[derive(Debug, Clone)]
pub struct Sink {
    pub name: String,
    pub reads: Reads,
}

/// When a sink maps frames for the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    AtOnce,
    /// In another thread, while the next frames come.
    Later,
    /// The sink reads the results only, so that frames stay on the device.
    Never,
}

/// What an application does while frames flow.
#[derive(Debug, Clone, Copy)]
pub struct Action {
    /// Frames that arrived at all sinks of the pipeline since the action before.
    pub after: usize,
    pub what: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Back to the frame at this share of those that arrived, in per cent.
    SeekTo(u8),
    /// To this state, and to PLAYING again.
    Visit(gst::State),
    /// To NULL, before the source has ended.
    Stop,
}

/// The way of the frames of one sink.
#[derive(Debug, Clone)]
pub struct Path {
    pub sink: Sink,
    /// A pipeline without its sink, which is not live: that would decide only when frames come.
    pub text: String,
    pub key: Key,
}

impl Display for Composition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "gst-launch-1.0")?;
        for plan in &self.pipelines {
            // Such a sink reads frames, as the test does.
            let read = |sink: &Sink| match sink.reads {
                Reads::Never => sink.text(),
                Reads::AtOnce | Reads::Later => format!("{} dump=true", sink.text()),
            };
            write!(f, " {}", plan.text_with(&read))?;
        }
        for (number, plan) in self.pipelines.iter().enumerate() {
            for Action { after, what } in &plan.actions {
                write!(
                    f,
                    " # pipeline {number}, {after} frames later: {}",
                    match what {
                        Change::SeekTo(percent) =>
                            format!("a flushing seek back to {percent} % of the frames so far"),
                        Change::Visit(state) => format!("to {state:?} and back to PLAYING"),
                        Change::Stop => "a stop".into(),
                    }
                )?;
            }
        }
        Ok(())
    }
}

impl Plan {
    /// Text for `gst::parse`.
    pub fn text(&self) -> String {
        self.text_with(&Sink::text)
    }

    fn text_with(&self, sink: &dyn Fn(&Sink) -> String) -> String {
        format!("{} ! {}", self.source, self.tree.text(sink))
    }

    /// The paths of all sinks.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        let source = self.source.replace(LIVE, "");
        let key = match self.source.contains(LIVE) {
            true => Key::Number,
            false => Key::Time,
        };
        self.tree.add_paths(&source, key, &mut paths);
        paths
    }

    /// Whether every frame must arrive at every sink, once and in order.
    pub fn is_complete(&self) -> bool {
        self.actions.is_empty() && !self.text().contains("leaky=")
    }
}

impl Tree {
    fn text(&self, sink: &dyn Fn(&Sink) -> String) -> String {
        let mut parts: Vec<String> = self.chain.iter().map(|link| link.text().into()).collect();
        parts.push(match &self.end {
            End::Sink(end) => sink(end),
            End::Tee { name, branches } => {
                let mut text = format!("tee name={name}");
                for branch in branches {
                    text += &format!(" {name}. ! {}", branch.text(sink));
                }
                text
            }
        });
        parts.join(" ! ")
    }

    fn add_paths(&self, before: &str, key: Key, paths: &mut Vec<Path>) {
        let mut text = before.to_owned();
        for link in &self.chain {
            if let Link::Element(element) = link {
                text += &format!(" ! {element}");
            }
        }
        match &self.end {
            End::Sink(sink) => paths.push(Path {
                sink: sink.clone(),
                text,
                key,
            }),
            End::Tee { branches, .. } => {
                for branch in branches {
                    branch.add_paths(&text, key, paths);
                }
            }
        }
    }
}

impl Link {
    fn text(&self) -> &str {
        match self {
            Self::Queue(text) | Self::Element(text) => text,
        }
    }
}

impl Sink {
    /// Without `async=false` a tee without queues would wait forever: the first sink takes one frame and waits until the
    /// others have one.
    fn text(&self) -> String {
        format!("fakesink name={} sync=false async=false", self.name)
    }
}
