//! Properties of every element that uses a device.

use std::path::PathBuf;

use gst::{glib, prelude::*, subclass::prelude::*};

use super::ClBaseFilter;
use crate::elements::{
    property_table::{PropertyTable, Row, properties},
    specs,
};
use clinspect_operators::SelfTest;

/// Environment variable with the default of `device`.
const DEVICE_VARIABLE: &str = "CLINSPECT_DEVICE";

/// The kind of memory object that kernels read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClMemoryObject")]
pub enum MemoryObject {
    /// The faster kind: buffers, on every device measured.
    #[default]
    #[enum_value(
        name = "Auto: buffers, which were faster on every device measured",
        nick = "auto"
    )]
    Auto,
    /// Buffers.
    #[enum_value(name = "Buffers: any format, no copy", nick = "buffer")]
    Buffer,
    /// Images.
    #[enum_value(
        name = "Images: 8-bit formats, through a copy made on the device",
        nick = "image"
    )]
    Image,
}

/// Settings of the parent class.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub device: String,
    pub memory_object: MemoryObject,
    pub profile: bool,
    pub self_test: SelfTest,
    /// Only elements with [`with_line_scan`] have the property.
    pub line_scan: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            device: default_device(),
            memory_object: MemoryObject::default(),
            profile: false,
            self_test: SelfTest::default(),
            line_scan: false,
        }
    }
}

fn default_device() -> String {
    // A name that is not UTF-8 matches no device; keep it, so that no other device is chosen.
    std::env::var_os(DEVICE_VARIABLE)
        .map_or_else(|| "auto".into(), |name| name.to_string_lossy().into_owned())
}

/// The table with the property `line-scan`.
pub fn with_line_scan<T>(table: PropertyTable<T>) -> PropertyTable<T>
where
    T: ObjectSubclass<Type: IsA<ClBaseFilter> + IsA<glib::Object>>,
{
    let spec = specs::boolean_at_start(
        "line-scan",
        "Line scan",
        "Buffers are strips of the endless web of a line camera: results are those of the whole web, \
         wherever it is cut; strips are held until the rows that they need have come",
        false,
    );
    table.with_own(
        spec,
        |this| {
            this.obj()
                .upcast_ref::<ClBaseFilter>()
                .imp()
                .line_scan()
                .to_value()
        },
        |this, value| {
            if let Ok(value) = value.get() {
                this.obj()
                    .upcast_ref::<ClBaseFilter>()
                    .imp()
                    .set_line_scan(value);
            }
        },
    )
}

/// Writable properties; they take effect at the start.
pub(super) fn rows() -> Vec<Row<Settings>> {
    properties!(Settings {
        choice_at_start(
            "memory-object", "Memory object",
            "Kind of OpenCL memory object that kernels read frames from"
        ) = memory_object;
        boolean_at_start(
            "profile", "Profile",
            "Measure every step on the device for stats"
        ) = profile;
        choice_at_start(
            "self-test", "Self-test",
            "When the element runs its kernels on small frames with known answers before the first frame; a wrong \
             answer refuses the start"
        ) = self_test;
    })
}

pub(super) fn device_spec() -> glib::ParamSpec {
    glib::ParamSpecString::builder("device")
        .nick("Device")
        .blurb(
            "OpenCL device: auto (first GPU, else the CPU), gpu, cpu, gpu:N or cpu:N (N \
             from 0), or part of a device's name; the environment variable \
             CLINSPECT_DEVICE sets the default",
        )
        .default_value(Some("auto"))
        .mutable_ready()
        .build()
}

impl Settings {
    /// Sets `device`.
    pub fn set_device(&mut self, value: &glib::Value) {
        // Read as a path: a C program may set any bytes, and glib-rs panics on a string that is not
        // UTF-8.
        let name = value.get::<Option<PathBuf>>().ok().flatten();
        self.device = name.map_or_else(default_device, |name| name.to_string_lossy().into_owned());
    }
}

pub(super) fn stats_spec() -> glib::ParamSpec {
    glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
        .nick("Statistics")
        .blurb(
            "Name of the device, and counts since the start: frames, copies, transfers and bytes; with \
             profile=true also the times (ns) and rates (MB/s) of each step",
        )
        .read_only()
        .build()
}
