//! What connects a camera with the machine: its output, its input, and the trigger that the station gives.

use std::{io, sync::Arc};

use machine::{
    answer::{Actuator, Release},
    input::{GpioInput, Input},
    output::{CameraLine, Output},
};
use plan::{CameraConfig, Wire};

use crate::{
    pipeline::Pipeline,
    state::{Camera, Trouble},
    stopped::StopReason,
};

/// Stays while pipelines start again.
pub(super) struct Wiring {
    camera: Arc<Camera>,
    output: Option<Arc<Output>>,
    input: Option<Input>,
    release: Option<Arc<Release>>,
    /// Whether output and trigger have the camera of the pipeline.
    has_genicam: bool,
}

impl Wiring {
    pub fn none(camera: &Arc<Camera>) -> Self {
        Self {
            camera: camera.clone(),
            output: None,
            input: None,
            release: None,
            has_genicam: false,
        }
    }

    /// The deadline, the output, the input and the trigger that the file asks for.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn follow(&mut self, config: &CameraConfig) -> Result<(), StopReason> {
        let no_thread = |why: io::Error| (Trouble::DeviceLost, why.to_string());
        // Its edges do not belong to the new settings, and another input or output may want its line.
        if self.input.as_ref().map(|of| of.settings()) != config.input.as_ref() {
            self.end_input();
        }
        self.camera.machine.set_settings(config.machine);
        self.follow_output(config).map_err(no_thread)?;
        self.follow_input(config).map_err(no_thread)?;
        self.follow_release(config).map_err(no_thread)
    }

    fn alarm(&self) -> Box<dyn Fn(String) + Send> {
        let camera = Arc::downgrade(&self.camera);
        Box::new(move |text| {
            if let Some(camera) = camera.upgrade() {
                camera.alarm(text);
            }
        })
    }

    fn follow_output(&mut self, config: &CameraConfig) -> io::Result<()> {
        let before = self.output.as_ref().map(|output| output.settings());
        if before == config.output.as_ref() {
            return Ok(());
        }
        let machine = &self.camera.machine;
        // The one before rests first: both may be the same line.
        machine.set_output(None);
        self.output = None;
        let next = config.output.clone();
        let next = next.map(|next| Output::start(next, &self.camera.name, self.alarm()));
        self.output = next.transpose()?.map(Arc::new);
        machine.set_output(
            self.output
                .clone()
                .map(|output| output as Arc<dyn Actuator>),
        );
        self.has_genicam = false;
        Ok(())
    }

    fn follow_input(&mut self, config: &CameraConfig) -> io::Result<()> {
        if self.input.is_some() {
            return Ok(());
        }
        let next = config.input.as_ref().map(|next| {
            let edges = Box::new(GpioInput::new(next));
            let camera = &self.camera;
            Input::start(next, edges, &camera.name, &camera.machine, self.alarm())
        });
        self.input = next.transpose()?;
        Ok(())
    }

    /// No edge comes any more.
    pub fn end_input(&mut self) {
        self.input = None;
        self.camera.machine.set_input(None);
    }

    fn follow_release(&mut self, config: &CameraConfig) -> io::Result<()> {
        if config.is_triggered_here() == self.release.is_some() {
            return Ok(());
        }
        let machine = &self.camera.machine;
        let release = (config.is_triggered_here())
            .then(|| Release::start(&self.camera.name, machine, self.alarm()));
        self.release = release.transpose()?.map(Arc::new);
        machine.set_release(self.release.clone());
        self.has_genicam = false;
        Ok(())
    }

    /// Gives output and trigger the camera, as soon as the source is done with its settings.
    pub fn give_genicam(&mut self, pipeline: &Pipeline) {
        let Some(camera) = pipeline.genicam().filter(|_| !self.has_genicam) else {
            return;
        };
        self.has_genicam = true;
        if let Some(output) = &self.output
            && let Wire::Camera { user_output, line } = &output.settings().wire
        {
            let line = CameraLine::new(camera.clone(), user_output, line.as_deref());
            output.attach(Box::new(line));
        }
        if let Some(release) = &self.release {
            let camera = camera.clone();
            release.attach(Box::new(move || camera.execute("TriggerSoftware")));
            // Not after a change of the output only: the machine may ask for a frame meanwhile.
            if !pipeline.watched().has_results() {
                release.fire_first(&self.camera.machine);
            }
        }
    }

    /// Takes the camera away again, before it is closed. The output is at rest then, if the camera answers.
    pub fn take_genicam(&mut self) {
        self.has_genicam = false;
        if let Some(release) = &self.release {
            release.detach();
        }
        if let Some(output) = &self.output
            && let Wire::Camera { .. } = output.settings().wire
        {
            output.detach();
        }
    }

    /// Triggers a frame that shows that the new elements work. Without the camera it is triggered when the camera comes.
    pub fn fire_first(&self) {
        if let Some(release) = self.release.as_ref().filter(|_| self.has_genicam) {
            release.fire_first(&self.camera.machine);
        }
    }

    /// The output rests until the next outcome.
    pub fn rest(&self) {
        if let Some(output) = &self.output {
            output.rest();
        }
    }

    /// The output rests, and its line is given back.
    pub fn end_output(&mut self) {
        self.camera.machine.set_output(None);
        self.output = None;
    }
}
