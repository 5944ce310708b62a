//! Writes files on a thread, because a disk can take seconds.

use std::{
    path::{Path, PathBuf},
    thread::JoinHandle,
};

use gst::{glib, prelude::*};

use super::base_filter::{ClBaseFilter, ClBaseFilterExt};

/// The thread that writes, if there is one.
#[derive(Default)]
pub struct Saver(Option<JoinHandle<()>>);

/// What is written.
pub struct Saving<W> {
    /// The file.
    pub path: PathBuf,
    /// What the file holds, such as "the model".
    pub subject: &'static str,
    /// The message that is posted when the file is written.
    pub message: String,
    /// Writes the file.
    pub write: W,
}

impl Saver {
    /// Writes after the file before. Posts a message when the file is written, else a warning.
    pub fn save<W>(&mut self, element: &ClBaseFilter, saving: Saving<W>)
    where
        W: FnOnce(&Path) -> Result<(), String> + Send + 'static,
    {
        self.wait();
        let Saving {
            path,
            subject,
            message,
            write,
        } = saving;
        let reporting: glib::WeakRef<ClBaseFilter> = element.downgrade();
        let work = move || {
            let written = write(&path);
            let Some(element) = reporting.upgrade() else {
                return;
            };
            match written {
                Ok(()) => {
                    let fields = gst::Structure::builder(message)
                        .field("location", path.display().to_string())
                        .build();
                    element.post(gst::message::Element::builder(fields).src(&element).build());
                }
                Err(why) => gst::element_warning!(
                    element,
                    gst::ResourceError::Write,
                    ("{} is in use, but was not saved: {}", subject, why)
                ),
            }
        };
        match std::thread::Builder::new()
            .name("clsave".into())
            .spawn(work)
        {
            Ok(thread) => self.0 = Some(thread),
            Err(error) => gst::element_warning!(
                element,
                gst::ResourceError::Write,
                (
                    "{} is in use, but was not saved: no thread could be started: {}",
                    subject,
                    error
                )
            ),
        }
    }

    /// Waits until the file is written.
    pub fn wait(&mut self) {
        if let Some(thread) = self.0.take() {
            // The thread has posted why it failed.
            let _ = thread.join();
        }
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        self.wait();
    }
}
