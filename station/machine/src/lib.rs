//! The answer to the machine: one outcome for each frame by a deadline, outputs, inputs, and the server for PLCs. No GStreamer.

pub mod address;
pub mod answer;
pub mod clock;
mod gpio;
pub mod input;
pub mod listen;
pub mod locks;
pub mod log;
pub mod modbus;
pub mod output;
pub mod worker;
