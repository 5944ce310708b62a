//! Properties of every inspector.

use gst::{glib, prelude::*};

use super::{
    classify::{self, Rules},
    learn::LearnSettings,
};
use crate::elements::{
    base_filter::MessageSettings,
    checked::{CheckedValue, Readable},
    property_table::{Row, properties},
    specs,
    structure::{Structure, structure},
};
use clinspect_core::{ClError, components::Limits};
use clinspect_results::MOST_DEFECTS;

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
    + ToSendValue
    + for<'a> glib::value::FromValue<'a>
    + glib::translate::FromGlib<i32>
    + glib::translate::IntoGlib<GlibType = i32>
    + From<Output>
    + Into<Output>
{
}

/// Declares the values of `output` of an element: the mask, the frame, and the pictures that the element draws.
macro_rules! output_choice {
    ($(#[$doc:meta])* $choice:ident, $type_name:literal $(, $picture:ident, $name:literal, $nick:literal)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
        #[enum_type(name = $type_name)]
        pub enum $choice {
            /// The mask.
            #[default]
            #[enum_value(name = "Mask: the defect mask, with the results as meta", nick = "mask")]
            Mask,
            /// The frame.
            #[enum_value(
                name = "Frame: frames unchanged, with the results and the packed mask as meta",
                nick = "frame"
            )]
            Frame,
            $(
                #[doc = $name]
                #[enum_value(name = $name, nick = $nick)]
                $picture,
            )*
        }

        impl OutputChoice for $choice {}

        impl From<$choice> for Output {
            fn from(choice: $choice) -> Self {
                match choice {
                    $choice::Mask => Self::Mask,
                    $choice::Frame => Self::Frame,
                    $($choice::$picture => Self::Picture(DrawnPicture::$picture),)*
                }
            }
        }

        impl From<Output> for $choice {
            fn from(output: Output) -> Self {
                match output {
                    Output::Frame => Self::Frame,
                    $(Output::Picture(DrawnPicture::$picture) => Self::$picture,)*
                    _ => Self::Mask,
                }
            }
        }
    };
}

output_choice!(
    /// The output of an element that draws no pictures.
    MaskedOutput,
    "GstClMaskedOutput"
);

output_choice!(
    /// The output of `clpitchthreshold`.
    PitchThresholdOutput,
    "GstClPitchThresholdOutput",
    Difference,
    "Difference: the difference before the threshold as GRAY8, 128 for none, with the results and the packed mask as meta",
    "difference"
);

output_choice!(
    /// The output of `clreference`.
    ReferenceOutput,
    "GstClReferenceOutput",
    Model,
    "Model: the mean of the training as GRAY8, with the results and the packed mask as meta",
    "model",
    Difference,
    "Difference: the difference from the mean as GRAY8, 128 for none, with the results and the packed mask as meta",
    "difference"
);

/// Settings of the list, the classes and the reports.
#[derive(Debug, Clone)]
pub(super) struct ReportSettings {
    pub min_area: u32,
    pub merge_distance: u32,
    pub rules: Rules,
    pub limits: CheckedValue<ListLimits>,
    pub output: Output,
    pub reports: CheckedValue<Reports>,
    pub mm_per_pixel: CheckedValue<PixelSize>,
    pub learn: CheckedValue<LearnSettings>,
}

impl Default for ReportSettings {
    fn default() -> Self {
        Self {
            min_area: 1,
            merge_distance: 0,
            rules: Rules::default(),
            limits: CheckedValue::default(),
            output: Output::default(),
            reports: CheckedValue::default(),
            mm_per_pixel: CheckedValue::default(),
            learn: CheckedValue::default(),
        }
    }
}

impl ReportSettings {
    /// The settings of the list.
    fn listing(&self) -> Limits {
        let limits = self.limits.usable();
        Limits {
            min_area: self.min_area,
            merge_distance: self.merge_distance,
            max_defects: limits.max_defects as usize,
            max_runs: limits.max_runs as usize,
            max_defect_rows: limits.max_defect_rows,
        }
    }

    /// The usable values.
    pub fn usable(&self) -> UsableReportSettings {
        UsableReportSettings {
            listing: self.listing(),
            rules: self.rules.clone(),
            reports: self.reports.usable().clone(),
            mm_per_pixel: self.mm_per_pixel.usable().0,
            learn: self.learn.usable().clone(),
        }
    }

    /// Checks what GObject does not check.
    ///
    /// # Errors
    /// [`ClError::Refused`] for a value that is not usable.
    pub fn check(&self) -> Result<(), ClError> {
        let Self {
            limits,
            reports,
            mm_per_pixel,
            learn,
            ..
        } = self;
        limits.check(ListLimits::NAME, |_| Ok(()))?;
        reports.check(Reports::NAME, |_| Ok(()))?;
        mm_per_pixel.check(PixelSize::NAME, |_| Ok(()))?;
        learn.check(LearnSettings::NAME, |_| Ok(()))
    }

    /// The refusals of [`Self::check`], each once: from then on the last usable values count.
    pub fn take_refusals(&mut self) -> impl Iterator<Item = ClError> + use<> {
        let refusals = [
            self.limits.take_refusal(ListLimits::NAME),
            self.reports.take_refusal(Reports::NAME),
            self.mm_per_pixel.take_refusal(PixelSize::NAME),
            self.learn.take_refusal(LearnSettings::NAME),
        ];
        refusals.into_iter().flatten()
    }
}

/// The usable values of [`ReportSettings`], for frames.
#[derive(Debug)]
pub(super) struct UsableReportSettings {
    pub listing: Limits,
    pub rules: Rules,
    pub reports: Reports,
    /// Size of a pixel along x and along y, mm; 0: unknown.
    pub mm_per_pixel: [f64; 2],
    pub learn: LearnSettings,
}

/// Limits of the list of defects.
#[derive(Debug, Clone)]
pub(super) struct ListLimits {
    max_defects: u32,
    max_runs: u32,
    max_defect_rows: u32,
}

impl Default for ListLimits {
    fn default() -> Self {
        Self {
            max_defects: 100,
            max_runs: 32_768,
            max_defect_rows: 16_384,
        }
    }
}

structure!(ListLimits, "limits" {
    uint(
        "max-defects", "Maximum defects",
        "Maximum number of listed defects, largest first; 0 = no list, which is fastest",
        0..=MOST_DEFECTS
    ) = max_defects;
    uint(
        "max-runs", "Maximum runs",
        "If the mask has more runs (marked pixels side by side in a row) than this, no defect is \
         listed and the frame fails with overflow; without light, for instance, a list of all \
         runs would take too long",
        1..=u32::MAX
    ) = max_runs;
    uint(
        "max-defect-rows", "Maximum rows of a defect",
        "In a web (line-scan=true): a defect that is still open after this many rows is closed and \
         listed, and its rest is a new defect; no effect on frames",
        1..=u32::MAX
    ) = max_defect_rows;
});

/// How results are reported besides the meta.
#[derive(Debug, Clone, Default)]
pub(super) struct Reports {
    pub messages: MessageSettings,
    pub message_defects: bool,
    pub events: bool,
}

structure!(Reports, "reports" {
    boolean(
        "messages", "Messages",
        "Post a message at every change of the verdict, and otherwise at most once per interval"
    ) = messages.post;
    interval() = messages.interval_ns;
    boolean(
        "message-defects", "Message defects", "Add the 16 largest defects to messages"
    ) = message_defects;
    boolean(
        "events", "Events",
        "Also send the results as an event before each buffer, for transports that drop metas, \
         such as rtpgstpay"
    ) = events;
});

/// Size of a pixel along x and along y, mm; 0: unknown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PixelSize(pub [f64; 2]);

impl PixelSize {
    const NAME: &str = "mm-per-pixel";
}

impl Readable for PixelSize {
    fn read(value: &glib::Value) -> Result<Self, String> {
        let sizes = Vec::<f64>::read(value)?;
        if let Some(size) = sizes.iter().find(|size| **size < 0.0) {
            return Err(format!("{size} is no size; set 0 or more"));
        }
        match sizes[..] {
            [] => Ok(Self::default()),
            [both] => Ok(Self([both; 2])),
            [x, y] => Ok(Self([x, y])),
            _ => Err(format!("<x, y> are 2 numbers, not {}", sizes.len())),
        }
    }

    fn write(&self) -> glib::SendValue {
        gst::Array::new(self.0).to_send_value()
    }
}

pub(super) fn rows<O: OutputChoice + 'static>() -> Vec<Row<ReportSettings>> {
    let mut rows = properties!(ReportSettings {
        uint(
            "min-area", "Minimum area",
            "Minimum marked pixels of a listed defect; mask and defect-pixels include smaller ones",
            0..=u32::MAX
        ) = min_area;
        uint(
            "merge-distance", "Merge distance",
            "Marked pixels with a gap of at most this many pixels between them, along x, along y or \
             both, are one defect; 0 = only pixels that touch, corners included",
            0..=u32::MAX
        ) = merge_distance;
        structure("Limits", "Limits of the list of defects, such as \"limits, max-defects=0\"") = limits;
        structure(
            "Reports", "How results are reported besides the meta, such as \"reports, interval=0, events=true\""
        ) = reports;
        pair(
            PixelSize::NAME, "Millimetres per pixel",
            "Size of a pixel in mm, <x, y>, or <size> for both, for positions in mm and m, and for the visibility \
             of defects (SEMU, only from clpitchthreshold with min-contrast other than 0); 0 = unknown"
        ) = mm_per_pixel;
        structure(
            "Learn", "How the signal learn learns limits from good frames, such as \"learn, frames=30\""
        ) = learn;
    });
    rows.extend(
        classify::rows()
            .into_iter()
            .map(|row| row.within(|reporting: &mut ReportSettings| &mut reporting.rules)),
    );
    rows.push(Row::new(
        specs::choice_at_start(
            "output",
            "Output",
            "What the element outputs",
            O::from(Output::default()),
        ),
        |reporting: &mut ReportSettings| O::from(reporting.output).to_send_value(),
        |reporting, value| {
            let choice = value.get::<O>().map_err(|error| error.to_string())?;
            reporting.output = choice.into();
            Ok(())
        },
    ));
    rows
}
