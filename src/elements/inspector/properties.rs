//! Properties of every inspector.

use gst::{glib, prelude::*};

use crate::elements::{
    base_filter::MessageSettings,
    property_table::{Row, properties},
    specs,
};
use clinspect_core::components::Limits;
use clinspect_results::{MOST_DEFECTS, VerdictLimits};

/// An element's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Output {
    /// The mask.
    #[default]
    Mask,
    /// The frame.
    Frame,
    /// A GRAY8 picture of this kind.
    Picture(DrawnPicture),
}

/// A picture that an element draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrawnPicture {
    /// What frames are compared with.
    Model,
    /// The difference of the frame.
    Difference,
}

/// The values of the property `output` of an element.
pub trait OutputChoice:
    StaticType
    + ToValue
    + for<'a> glib::value::FromValue<'a>
    + glib::translate::FromGlib<i32>
    + glib::translate::IntoGlib<GlibType = i32>
    + From<Output>
    + Into<Output>
{
}

/// The output of `clpitchthreshold`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[enum_type(name = "GstClPitchThresholdOutput")]
pub enum PitchThresholdOutput {
    /// The mask.
    #[default]
    #[enum_value(
        name = "Mask: the defect mask, with the results as meta",
        nick = "mask"
    )]
    Mask,
    /// The frame.
    #[enum_value(
        name = "Frame: frames unchanged, with the results and the packed mask as meta",
        nick = "frame"
    )]
    Frame,
    /// The difference before the threshold.
    #[enum_value(
        name = "Difference: the difference before the threshold as GRAY8, 128 for none, with the results and the \
                packed mask as meta",
        nick = "difference"
    )]
    Difference,
}

impl OutputChoice for PitchThresholdOutput {}

impl From<PitchThresholdOutput> for Output {
    fn from(choice: PitchThresholdOutput) -> Self {
        match choice {
            PitchThresholdOutput::Mask => Self::Mask,
            PitchThresholdOutput::Frame => Self::Frame,
            PitchThresholdOutput::Difference => Self::Picture(DrawnPicture::Difference),
        }
    }
}

impl From<Output> for PitchThresholdOutput {
    fn from(output: Output) -> Self {
        match output {
            Output::Frame => Self::Frame,
            Output::Picture(DrawnPicture::Difference) => Self::Difference,
            Output::Mask | Output::Picture(DrawnPicture::Model) => Self::Mask,
        }
    }
}

/// Settings of the list, the verdict and the reports.
#[derive(Debug, Clone)]
pub(super) struct Reporting {
    pub limits: VerdictLimits,
    pub listing: Limits,
    pub output: Output,
    pub messages: MessageSettings,
    pub message_defects: bool,
    pub send_events: bool,
    /// Size of a pixel along x and along y, mm; 0: unknown.
    pub mm_per_pixel: [f64; 2],
}

impl Default for Reporting {
    fn default() -> Self {
        Self {
            limits: VerdictLimits {
                defect_pixels: -1,
                defect_count: 0,
                defect_area: -1,
                classes: Vec::new(),
            },
            listing: Limits {
                min_area: 1,
                merge_distance: 0,
                max_defects: 100,
                max_runs: 131_072,
                max_defect_rows: 16_384,
            },
            output: Output::default(),
            messages: MessageSettings::default(),
            message_defects: false,
            send_events: false,
            mm_per_pixel: [0.0; 2],
        }
    }
}

pub(super) fn rows<O: OutputChoice + 'static>() -> Vec<Row<Reporting>> {
    let mut rows = properties!(Reporting {
        uint(
            "min-area", "Minimum area",
            "Minimum marked pixels of a listed defect; mask and defect-pixels include smaller ones",
            0..=u32::MAX
        ) = listing.min_area;
        uint(
            "merge-distance", "Merge distance",
            "Marked pixels with a gap of at most this many pixels between them, along x, along y or \
             both, are one defect; 0 = only pixels that touch, corners included",
            0..=u32::MAX
        ) = listing.merge_distance;
        uint(
            "max-defect-rows", "Maximum rows of a defect",
            "In a web (line-scan=true): a defect that is still open after this many rows is closed and \
             listed, and its rest is a new defect; no effect on frames",
            1..=u32::MAX
        ) = listing.max_defect_rows;
        limit(
            "fail-defect-pixels", "Fail at defect pixels",
            "A frame with more marked pixels than this fails; -1 = off"
        ) = limits.defect_pixels;
        limit(
            "fail-defect-count", "Fail at defect count",
            "A frame with more listed defects than this fails; with max-defects=0, a frame with a \
             marked pixel fails; -1 = off"
        ) = limits.defect_count;
        limit(
            "fail-defect-area", "Fail at defect area",
            "A frame with a listed defect of more pixels than this fails; -1 = off"
        ) = limits.defect_area;
        boolean(
            "post-messages", "Post messages",
            "Post a message at every change of the verdict, and otherwise at most once per interval"
        ) = messages.post;
        interval() = messages.interval_ns;
        boolean(
            "message-defects", "Message defects",
            "Add the 16 largest defects to messages"
        ) = message_defects;
        boolean(
            "send-events", "Send events",
            "Also send the results as an event before each buffer, for transports that drop metas, \
             such as rtpgstpay"
        ) = send_events;
    });
    rows.push(Row::new(
        specs::choice_at_start(
            "output",
            "Output",
            "What the element outputs",
            O::from(Output::default()),
        ),
        |reporting: &mut Reporting| O::from(reporting.output).to_value(),
        |reporting, value| {
            if let Ok(choice) = value.get::<O>() {
                reporting.output = choice.into();
            }
        },
    ));
    rows.push(Row::new(
        specs::uint(
            "max-runs",
            "Maximum runs",
            "If the mask has more runs (marked pixels side by side in a row) than this, no defect is listed \
             and the frame fails with overflow, so that the pipeline keeps up when the lamp fails",
            1..=u32::MAX,
            Reporting::default().listing.max_runs as u32,
        ),
        |reporting: &mut Reporting| (reporting.listing.max_runs as u32).to_value(),
        |reporting, value| {
            if let Ok(most) = value.get::<u32>() {
                reporting.listing.max_runs = most as usize;
            }
        },
    ));
    for (n, axis) in ["x", "y"].into_iter().enumerate() {
        rows.push(Row::new(
            specs::double(
                &format!("mm-per-pixel-{axis}"),
                &format!("Millimetres per pixel along {axis}"),
                &format!(
                    "Size of a pixel along {axis} in mm, for positions in mm and m, and for the visibility of \
                     defects (SEMU, only from clpitchthreshold with min-contrast other than 0); 0 = unknown"
                ),
                0.0..=f64::MAX,
                0.0,
            ),
            move |reporting: &mut Reporting| reporting.mm_per_pixel[n].to_value(),
            move |reporting, value| {
                if let Ok(size) = value.get::<f64>() {
                    reporting.mm_per_pixel[n] = size;
                }
            },
        ));
    }
    rows.push(Row::new(
        specs::uint(
            "max-defects",
            "Maximum defects",
            "Maximum number of listed defects, largest first; 0 = no list, which is fastest",
            0..=MOST_DEFECTS,
            Reporting::default().listing.max_defects as u32,
        ),
        |reporting: &mut Reporting| (reporting.listing.max_defects as u32).to_value(),
        |reporting, value| {
            if let Ok(most) = value.get::<u32>() {
                reporting.listing.max_defects = most as usize;
            }
        },
    ));
    rows
}
