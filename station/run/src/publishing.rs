//! Sends the results of a camera. The publishers stay while its pipelines start again, so nothing that waits is lost.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use clinspect_results::report::Report;
use gst::prelude::*;
use gstinspectpublish::{InspectPublish, Notice, Numbers, Publisher};
use machine::info;
use plan::Properties;

use crate::{properties, state::Camera};

/// The publishers of a camera, one for each table of the file.
pub struct Publishers {
    tables: Vec<Properties>,
    camera: Arc<Camera>,
    publishers: Vec<Publisher>,
    /// Results dropped, and errors, of publishers that have ended.
    before: [u64; 2],
}

impl Publishers {
    /// Nothing is sent.
    pub fn none(camera: &Arc<Camera>) -> Self {
        Self {
            tables: Vec::new(),
            camera: camera.clone(),
            publishers: Vec::new(),
            before: [0; 2],
        }
    }

    /// Starts publishers with these properties of `inspectpublish`. Brokers get the state `offline` until frames come.
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub fn start(tables: &[Properties], camera: &Arc<Camera>) -> Result<Self, String> {
        let start = |table: &Properties| {
            let element = gst::glib::Object::new::<InspectPublish>();
            element.set_property("camera", &camera.name);
            properties::apply(table, element.upcast_ref());
            let of = camera.clone();
            let notify = move |notice| match notice {
                Notice::Failed(why) => of.alarm(format!("{why}; the results wait")),
                Notice::Refused(why) => of.alarm(why),
                Notice::Recovered(text) => info!("camera {}: {text}", of.name),
            };
            Publisher::start(element.settings(), &camera.name, notify)
        };
        let publishers = tables.iter().map(start).collect::<Result<_, _>>();
        let publishers = Self {
            tables: tables.to_vec(),
            camera: camera.clone(),
            publishers: publishers.map_err(|error| format!("publish: {error}"))?,
            before: [0; 2],
        };
        publishers.set_online(false);
        Ok(publishers)
    }

    /// The tables of the file.
    pub fn tables(&self) -> &[Properties] {
        &self.tables
    }

    /// Queues the results of a frame. Does not wait.
    pub fn offer(&self, report: &Arc<Report>) {
        for publisher in &self.publishers {
            let name = Some(&publisher.settings().camera).filter(|name| !name.is_empty());
            if name == report.camera.as_ref() {
                publisher.offer(report);
            } else {
                publisher.offer(&Arc::new(Report {
                    camera: name.cloned(),
                    ..Report::clone(report)
                }));
            }
        }
    }

    /// Publishes the state `online` or `offline` of the camera.
    pub fn set_online(&self, is_online: bool) {
        for publisher in &self.publishers {
            publisher.set_online(is_online);
        }
    }

    /// Writes the numbers to the camera's counters.
    pub fn count(&self) {
        let numbers: Vec<Numbers> = self.publishers.iter().map(Publisher::numbers).collect();
        let sum = |of: fn(&Numbers) -> u64| numbers.iter().map(of).sum::<u64>();
        let [dropped, errors] = self.before;
        let counters = &self.camera.counters;
        counters.publish_queue.store(sum(|n| n.queued), Relaxed);
        counters
            .publish_dropped
            .store(dropped + sum(|n| n.dropped), Relaxed);
        counters
            .publish_errors
            .store(errors + sum(|n| n.errors), Relaxed);
        // A publisher that has not tried yet has no failure.
        let is_connected = numbers.iter().all(|n| n.is_connected || n.errors == 0);
        counters.publish_connected.store(is_connected, Relaxed);
    }

    /// Ends the publishers, and adds their numbers to those of `next`, which takes their place.
    pub fn hand_over_to(&self, next: &mut Self) {
        self.publishers.iter().for_each(Publisher::ask_end);
        for publisher in &self.publishers {
            publisher.end();
        }
        let ended = self.publishers.iter().map(Publisher::numbers);
        next.before = ended.fold(self.before, |[dropped, errors], numbers| {
            [dropped + numbers.dropped, errors + numbers.errors]
        });
    }
}

impl Drop for Publishers {
    fn drop(&mut self) {
        // Each one waits for its end; together they wait no longer.
        self.publishers.iter().for_each(Publisher::ask_end);
    }
}
