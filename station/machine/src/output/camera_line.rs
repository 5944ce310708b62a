//! An output of a GenICam camera.

use std::sync::Arc;

use clinspect_aravis::Camera;

use super::Line;

/// A user output of a camera that is open.
pub struct CameraLine {
    camera: Arc<Camera>,
    user_output: String,
    line: Option<String>,
    is_connected: bool,
}

impl CameraLine {
    /// The user output, and the line to which it is connected at the first [`Line::set`].
    pub fn new(camera: Arc<Camera>, user_output: &str, line: Option<&str>) -> Self {
        Self {
            camera,
            user_output: user_output.to_owned(),
            line: line.map(ToOwned::to_owned),
            is_connected: false,
        }
    }

    /// Lets the line show the user output. A line that is an output for ever has no `LineMode`.
    fn connect(&self, line: &str) -> Result<(), String> {
        let camera = &self.camera;
        let told = |why| format!("line = {line:?}: {why}");
        camera.set_text("LineSelector", line).map_err(told)?;
        for (feature, value) in [("LineMode", "Output"), ("LineSource", &self.user_output)] {
            if camera.has(feature).map_err(told)? {
                camera.set_text(feature, value).map_err(told)?;
            }
        }
        Ok(())
    }
}

impl Line for CameraLine {
    fn set(&mut self, is_active: bool) -> Result<(), String> {
        let user_output = &self.user_output;
        let told = |why| format!("user-output = {user_output:?}: {why}");
        // Nobody else selects another one while the camera is open: a pulse needs one write.
        let was_connected = std::mem::take(&mut self.is_connected);
        if !was_connected {
            let selected = self.camera.set_text("UserOutputSelector", user_output);
            selected.map_err(told)?;
        }
        // Rest, before the line shows it.
        let set = self.camera.set_boolean("UserOutputValue", is_active);
        set.map_err(told)?;
        if let Some(line) = self.line.as_ref().filter(|_| !was_connected) {
            self.connect(line)?;
        }
        self.is_connected = true;
        Ok(())
    }
}
