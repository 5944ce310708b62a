//! The peers: `peers.py`, which answers each line of JSON with one.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::marks::{Area, Outcome};

/// A running `peers.py`.
pub struct Peers {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

/// What is asked.
#[derive(Serialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
enum Request<'a> {
    /// The peaks of the maps, in the frame and in its boxes.
    Notch(&'a Part<'a>),
    /// The number of blobs outside the boxes at these limits.
    NotchFalse {
        #[serde(flatten)]
        frame: &'a Part<'a>,
        limits: &'a [f64],
    },
    Board {
        method: &'a str,
        template: &'a Path,
        picture: &'a Path,
        boxes: Vec<[usize; 4]>,
    },
}

/// A frame: a part of a picture.
#[derive(Serialize)]
pub struct Part<'a> {
    pub picture: &'a Path,
    /// First column and row, width and height, px.
    pub part: [usize; 4],
    /// The part is enlarged so many times.
    pub scale: usize,
    /// Frequencies that are light, not pattern, in half cycles a frame along x and y.
    pub light: [usize; 2],
    /// Corners of the defects' boxes, in pixels of the enlarged part.
    pub boxes: Vec<[usize; 4]>,
}

/// The peaks of the peer's maps.
#[derive(Deserialize)]
pub struct Peaks {
    pub peaks: Vec<f64>,
    /// The standard deviation of each map.
    pub deviations: Vec<f64>,
    pub boxes: Vec<Vec<f64>>,
}

#[derive(Deserialize)]
struct PeerAnswer {
    #[serde(default)]
    found: Vec<bool>,
    r#false: usize,
}

fn corners(boxes: &[Area]) -> Vec<[usize; 4]> {
    boxes.iter().map(|a| [a.x0, a.y0, a.x1, a.y1]).collect()
}

impl<'a> Part<'a> {
    /// The part `[x, y, width, height]` of a picture.
    pub fn new(picture: &'a Path, part: [usize; 4], boxes: &[Area]) -> Self {
        Self {
            picture,
            part,
            scale: 1,
            light: [4, 4],
            boxes: corners(boxes),
        }
    }
}

impl Peers {
    /// Starts the script in a Python with numpy and cv2.
    ///
    /// # Errors
    /// The program does not start.
    pub fn start(python: &Path, script: &Path) -> Result<Self> {
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| python.display().to_string())?;
        Ok(Self {
            to: child.stdin.take().context("no standard input")?,
            from: BufReader::new(child.stdout.take().context("no standard output")?),
            child,
        })
    }

    fn ask<T: for<'a> Deserialize<'a>>(&mut self, request: &Request) -> Result<T> {
        writeln!(self.to, "{}", serde_json::to_string(request)?)?;
        let mut line = String::new();
        if self.from.read_line(&mut line)? == 0 {
            bail!("peers.py ended; its error is above");
        }
        serde_json::from_str(&line).context(line)
    }

    /// The peaks of the notch filter's maps.
    ///
    /// # Errors
    /// The script fails.
    pub fn notch(&mut self, frame: &Part) -> Result<Peaks> {
        self.ask(&Request::Notch(frame))
    }

    /// The number of false blobs of the notch filter.
    ///
    /// # Errors
    /// The script fails.
    pub fn notch_false(&mut self, frame: &Part, limits: &[f64]) -> Result<usize> {
        let found: PeerAnswer = self.ask(&Request::NotchFalse { frame, limits })?;
        Ok(found.r#false)
    }

    /// Compares a board with its template.
    ///
    /// # Errors
    /// The script fails.
    pub fn board(
        &mut self,
        method: &str,
        template: &Path,
        picture: &Path,
        boxes: &[Area],
    ) -> Result<Outcome> {
        let found: PeerAnswer = self.ask(&Request::Board {
            method,
            template,
            picture,
            boxes: corners(boxes),
        })?;
        Ok(Outcome {
            is_found: found.found,
            false_blobs: found.r#false,
        })
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // The script may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
