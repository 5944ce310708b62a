//! What the cameras of a line are to do, as values: the file is parsed into them, and the station runs by them.

mod camera;
mod gpio;
mod input;
mod machine;
mod modbus;
mod mqtt;
mod network;
mod output;
mod pixel_format;
mod properties;
mod recording;
mod repeats;
mod source;

pub use camera::{Analyzer, CameraConfig, LONGEST_NAME, is_name, model_file};
pub use gpio::{Gpio, GpioLine};
pub use input::{Edge, InputSettings};
pub use machine::{MachineSettings, Trigger, UninspectedAction};
pub use modbus::{MOST_CAMERAS, ModbusSettings};
pub use mqtt::MqttSettings;
pub use network::Network;
pub use output::{OutputSettings, Wire};
pub use pixel_format::{BAYER, PIXEL_FORMATS, PixelFormat, bytes_a_pixel};
pub use properties::Properties;
pub use recording::{MOST_AROUND, RecordingSettings};
pub use repeats::RepeatSettings;
pub use source::{Controls, Place, RequestedFormat, SOFTWARE, Source};
