//! A line of this PC as an output.

use gpiocdev::{Request, line::Value};
use plan::Gpio;

use super::Line;
use crate::gpio;

/// A line of this PC. It belongs to the station from the first [`Line::set`] on, so that no other program sets it.
pub struct GpioOutput {
    gpio: Gpio,
    is_inverted: bool,
    request: Option<Request>,
}

impl GpioOutput {
    /// The line, which is not opened yet.
    pub fn new(gpio: &Gpio, is_inverted: bool) -> Self {
        Self {
            gpio: gpio.clone(),
            is_inverted,
            request: None,
        }
    }
}

impl Line for GpioOutput {
    fn set(&mut self, is_active: bool) -> Result<(), String> {
        let value = Value::from(is_active);
        if let Some(request) = &self.request {
            let set = request.set_lone_value(value);
            return set.map_err(|why| {
                // The device may come back under the same name.
                self.request = None;
                format!("{}: {why}", self.gpio.chip.display())
            });
        }
        let request = gpio::take(&self.gpio, |wanted| {
            wanted.as_output(value);
            if self.is_inverted {
                wanted.as_active_low();
            }
        });
        self.request = Some(request?);
        Ok(())
    }
}
