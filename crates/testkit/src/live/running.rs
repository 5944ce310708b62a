//! Runs a pipeline to its end.

use anyhow::{Context, Result, bail};
use gst::prelude::*;

use super::stop::stopped;

/// Interval at which a run checks whether to go on.
const POLL: gst::ClockTime = gst::ClockTime::from_mseconds(50);

/// A pipeline made from a gst-launch description; stopped when dropped.
pub struct Running(gst::Pipeline);

impl Running {
    /// Makes the pipeline without starting it.
    ///
    /// # Errors
    /// The description cannot be parsed, or is a single element.
    pub fn new(description: &str) -> Result<Self> {
        let parsed = gst::parse::launch_full(
            &crate::support::line(description),
            None,
            gst::ParseFlags::FATAL_ERRORS,
        );
        let element = parsed.with_context(|| format!("this is not a pipeline: {description}"))?;
        let pipeline = element.downcast::<gst::Pipeline>();
        let pipeline =
            pipeline.map_err(|_| anyhow::anyhow!("this is not a pipeline: {description}"))?;
        Ok(Self(pipeline))
    }

    /// The element of this name.
    ///
    /// # Errors
    /// There is no such element, or it is of another type.
    pub fn get<T: IsA<gst::Element>>(&self, name: &str) -> Result<T> {
        let found = self.0.by_name(name).and_then(|e| e.downcast().ok());
        found.with_context(|| format!("the pipeline has no {name}"))
    }

    /// Starts the pipeline; [`Self::run_while`] reports a failure to start.
    pub fn start(&self) {
        let _ = self.0.set_state(gst::State::Playing);
    }

    /// Runs to the end of the stream, to Ctrl-C, or until `goes_on` (called often) returns false.
    ///
    /// # Errors
    /// The pipeline's first error.
    pub fn run_while(&self, mut goes_on: impl FnMut() -> bool) -> Result<()> {
        let bus = self.0.bus().context("a pipeline has a bus")?;
        let ends = [gst::MessageType::Eos, gst::MessageType::Error];
        while goes_on() && !stopped() {
            let Some(message) = bus.timed_pop_filtered(POLL, &ends) else {
                continue;
            };
            let gst::MessageView::Error(error) = message.view() else {
                return Ok(());
            };
            let source = message.src().map(|source| source.name());
            bail!(
                "{}: {}",
                source.unwrap_or_default(),
                error.error().message()
            );
        }
        Ok(())
    }
}

impl std::ops::Deref for Running {
    type Target = gst::Pipeline;

    fn deref(&self) -> &gst::Pipeline {
        &self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.set_state(gst::State::Null);
    }
}
