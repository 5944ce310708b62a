//! Properties of every element that uses a device.

use std::{path::PathBuf, sync::LazyLock};

use gst::{glib, prelude::*};

use crate::elements::property_table::{Access, PropertyTable, field};
use clinspect_opencl::Meter;

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
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            device: default_device(),
            memory_object: MemoryObject::default(),
            profile: false,
        }
    }
}

fn default_device() -> String {
    // A name that is not UTF-8 matches no device; keep it, so that no other device is chosen.
    std::env::var_os(DEVICE_VARIABLE)
        .map_or_else(|| "auto".into(), |name| name.to_string_lossy().into_owned())
}

/// Writable properties; they take effect at the start.
pub(super) static TABLE: LazyLock<PropertyTable<Settings>> = LazyLock::new(|| {
    PropertyTable::new(vec![
        (
            glib::ParamSpecString::builder("device")
                .nick("Device")
                .blurb(
                    "OpenCL device: auto (first GPU, else the CPU), gpu, cpu, gpu:N or cpu:N (N \
                     from 0), or part of a device's name; the environment variable \
                     CLINSPECT_DEVICE sets the default",
                )
                .default_value(Some("auto"))
                .mutable_ready()
                .build(),
            Access::new(
                |s: &Settings| s.device.to_value(),
                // Read as a path: a C program may set any bytes, and glib-rs panics on a string
                // that is not UTF-8.
                |s: &mut Settings, value| {
                    let name = value.get::<Option<PathBuf>>().ok().flatten();
                    s.device = name
                        .map_or_else(default_device, |name| name.to_string_lossy().into_owned());
                },
            ),
        ),
        (
            glib::ParamSpecEnum::builder_with_default("memory-object", MemoryObject::default())
                .nick("Memory object")
                .blurb("Kind of OpenCL memory object that kernels read frames from")
                .mutable_ready()
                .build(),
            field!(Settings, memory_object),
        ),
        (
            glib::ParamSpecBoolean::builder("profile")
                .nick("Profile")
                .blurb(
                    "Measure every step on the device; stats then has durations and MB/s per step",
                )
                .default_value(false)
                .mutable_ready()
                .build(),
            field!(Settings, profile),
        ),
    ])
});

/// Descriptions of the read-only properties.
pub(super) fn read_only_specs() -> [glib::ParamSpec; 2] {
    [
        glib::ParamSpecString::builder("device-name")
            .nick("Device name")
            .blurb("Name of the device in use; empty before the element is PAUSED")
            .read_only()
            .build(),
        glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
            .nick("Statistics")
            .blurb(
                "Counts since the element started: frames, how they reached the device \
                 (zero-copy, wrapped, copied), maps and transfers of frame memory, bytes, and \
                 per step (upload, kernel, download) duration in ns and MB/s if profile is set",
            )
            .read_only()
            .build(),
    ]
}

/// The `stats` property.
pub(super) fn stats(meter: &Meter) -> gst::Structure {
    let totals = meter.totals();
    let mut stats = gst::Structure::builder("clinspect-stats")
        .field("frames", totals.frames)
        .field("frames-zero-copy", totals.zero_copy)
        .field("frames-wrapped", totals.wrapped)
        .field("frames-copied", totals.copied)
        .field("image-copies", totals.image_copies)
        .field("host-maps", totals.host_maps)
        .field("frame-uploads", totals.uploads)
        .field("frame-downloads", totals.downloads)
        .field("bytes-uploaded", totals.bytes_uploaded)
        .field("bytes-downloaded", totals.bytes_downloaded)
        .build();
    for (step, profile) in meter.steps().into_iter().flatten() {
        let name = step.name();
        stats.set(format!("{name}-count"), profile.count);
        stats.set(format!("{name}-last-ns"), profile.last_ns);
        stats.set(format!("{name}-mean-ns"), profile.mean_ns());
        stats.set(format!("{name}-last-mbps"), profile.last_rate());
        stats.set(format!("{name}-mean-mbps"), profile.mean_rate());
    }
    stats
}
