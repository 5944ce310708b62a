//! A pipeline while it runs.

use anyhow::{Context, Result, bail};
use gst::prelude::*;

use super::stop::stopped;

/// How often a run is asked whether it goes on.
const POLL: gst::ClockTime = gst::ClockTime::from_mseconds(50);

/// A pipeline of a gst-launch description, stopped when it goes out of scope.
pub struct Running(gst::Pipeline);

impl Running {
    /// Makes the pipeline, not started.
    ///
    /// # Errors
    /// The description cannot be parsed, or is one element only.
    pub fn new(description: &str) -> Result<Self> {
        let parsed = gst::parse::launch_full(description, None, gst::ParseFlags::FATAL_ERRORS);
        let element = parsed.with_context(|| format!("no pipeline is: {description}"))?;
        let pipeline = element.downcast::<gst::Pipeline>();
        let pipeline = pipeline.map_err(|_| anyhow::anyhow!("no pipeline is: {description}"))?;
        Ok(Self(pipeline))
    }

    /// The element of this name.
    ///
    /// # Errors
    /// There is none, or it is of another type.
    pub fn get<T: IsA<gst::Element>>(&self, name: &str) -> Result<T> {
        let found = self.0.by_name(name).and_then(|e| e.downcast().ok());
        found.with_context(|| format!("the pipeline has no {name}"))
    }

    /// Starts it; a failure to start is told by [`Self::run_while`].
    pub fn start(&self) {
        let _ = self.0.set_state(gst::State::Playing);
    }

    /// Runs to the end of the stream, to Ctrl-C, or until `goes_on`, asked often, says no.
    ///
    /// # Errors
    /// What the pipeline's first error says.
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
