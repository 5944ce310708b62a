//! Takes the frames of a pipeline one by one.

use anyhow::{Context, Result, bail};
use gst::prelude::*;

/// A playing pipeline that ends in an appsink; stopped when dropped.
pub struct Frames {
    pipeline: gst::Pipeline,
    sink: gst_app::AppSink,
    started: bool,
}

impl Frames {
    /// Plays a gst-launch description that has no sink.
    ///
    /// # Errors
    /// The description cannot be parsed or has no free output. [`Frames::close`] reports a pipeline
    /// that does not start.
    pub fn of(description: &str) -> Result<Self> {
        let source = gst::parse::bin_from_description(description, true)
            .with_context(|| format!("this is not a pipeline: {description}"))?;
        let sink = gst_app::AppSink::builder().sync(false).build();
        let pipeline = gst::Pipeline::new();
        pipeline.add_many([source.upcast_ref(), sink.upcast_ref::<gst::Element>()])?;
        source
            .link(&sink)
            .context("the pipeline has no free output: leave out its sink")?;
        let started = pipeline.set_state(gst::State::Playing).is_ok();
        Ok(Self {
            pipeline,
            sink,
            started,
        })
    }

    /// The next frame; `None` at the end, and after an error.
    pub fn next(&self) -> Option<gst::Sample> {
        if self.started {
            self.sink.pull_sample().ok()
        } else {
            None
        }
    }

    /// Stops the pipeline.
    ///
    /// # Errors
    /// The pipeline's error, also one from before the first frame.
    pub fn close(self) -> Result<()> {
        let bus = self.pipeline.bus().context("a pipeline has a bus")?;
        let error = bus.pop_filtered(&[gst::MessageType::Error]);
        self.pipeline.set_state(gst::State::Null)?;
        if let Some(gst::MessageView::Error(error)) = error.as_ref().map(|message| message.view()) {
            bail!("{}", error.error().message());
        }
        if !self.started {
            bail!("the pipeline does not start");
        }
        Ok(())
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        // There is nothing to do if the pipeline does not stop.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}
