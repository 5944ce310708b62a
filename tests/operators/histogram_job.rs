//! Runs a histogram and compares the result with the reference.

use std::sync::Arc;

use clinspect_core::ClError;
use clinspect_core::{region::user_region, statistics::Statistics, variant::HistogramVariant};
use clinspect_opencl::frame::layout_of;
use clinspect_opencl::{ClContext, Meter};
use clinspect_operators::{Histogram, HistogramSettings, Strategy};

use crate::{
    device,
    frames::Frame,
    oracle::{SampleKind, histogram as oracle},
};

/// A strategy to force, and whether it reads an image.
pub type Choice = (Strategy, bool);

/// Every strategy, the one chosen for the device, and those that read images.
pub const CHOICES: [Choice; 7] = [
    (Strategy::Auto, false),
    (Strategy::Pairs, false),
    (Strategy::Private, false),
    (Strategy::Banked, false),
    (Strategy::Local, false),
    (Strategy::Private, true),
    (Strategy::Local, true),
];

/// The settings of a count; the region as a user sets it.
#[derive(Clone, Copy, Debug)]
pub struct CountCase {
    pub bins: usize,
    pub bit_depth: u32,
    pub region: [u32; 4],
}

/// All of an 8-bit frame.
pub const ALL: CountCase = CountCase {
    bins: 256,
    bit_depth: 0,
    region: [0; 4],
};

impl CountCase {
    pub fn depth(&self, input: &Frame) -> u32 {
        match self.bit_depth {
            0 => 8 * input.kind().size() as u32,
            depth => depth,
        }
    }

    pub fn settings(&self, input: &Frame, (strategy, image): Choice) -> HistogramSettings {
        let [width, height] = input.size();
        HistogramSettings {
            bins: self.bins,
            bit_depth: self.bit_depth,
            region: user_region(self.region, width, height).expect("a region inside"),
            strategy,
            image,
        }
    }

    /// All bins of the reference, channel-major.
    pub fn expected(&self, input: &Frame) -> Vec<u32> {
        let [width, height] = input.size();
        let region = match self.region {
            [0, 0, 0, 0] => [0, 0, width, height],
            region => region.map(|v| v as usize),
        };
        let description = input.info.format_info();
        (0..input.component_count())
            .flat_map(|c| {
                let samples = input.component(c);
                let part = oracle::chroma_region(
                    region,
                    description.w_sub()[c],
                    description.h_sub()[c],
                    samples.width,
                    samples.height,
                );
                oracle::histogram(samples, part, self.depth(input), self.bins)
            })
            .collect()
    }
}

/// The reason why the device cannot run a strategy; the operator must refuse exactly these.
fn refusal(device: &ClContext, counters: usize, (strategy, image): Choice) -> Option<&'static str> {
    let caps = device.caps();
    let table = 4 * counters as u64;
    if image && !device::has_images(device) {
        return Some("the device has no images");
    }
    match strategy {
        Strategy::Local if table > caps.local_memory => {
            Some("the counters are over the local memory")
        }
        Strategy::Banked if 2 * table > caps.local_memory || caps.max_work_group < 2 => {
            Some("two copies of the counters are over the local memory")
        }
        _ => None,
    }
}

/// An operator for frames like `input`; `None` if the strategy cannot run: on 16-bit samples,
/// which it must refuse, or on this device, which is a visible skip.
pub fn operator(
    device: &Arc<ClContext>,
    input: &Frame,
    wanted: &CountCase,
    choice: Choice,
) -> Option<Histogram> {
    let layout = layout_of(&input.info).expect("a layout");
    let bytes = input.kind() == SampleKind::U8;
    let (strategy, image) = choice;
    let result = Histogram::new(device, &layout, &wanted.settings(input, choice));
    if !bytes && (image || strategy == Strategy::Pairs) {
        let refused = matches!(result, Err(ClError::Refused(_)));
        assert!(refused, "{choice:?} on 16 bits: {result:?}");
        return None;
    }
    // Banks hold the counters of one plane at a time.
    let channels = match strategy {
        Strategy::Banked => {
            let planes = layout.planes.iter();
            planes.map(|p| p.lanes.iter().flatten().count()).max()
        }
        _ => None,
    };
    let counters = channels.unwrap_or(input.component_count()) * wanted.bins;
    match (result, refusal(device, counters, choice)) {
        (Ok(histogram), None) => {
            let variant = histogram.variant();
            let right = match strategy {
                Strategy::Auto => true,
                Strategy::Pairs => variant == HistogramVariant::Pairs,
                Strategy::Private => variant == HistogramVariant::Private,
                Strategy::Banked => matches!(variant, HistogramVariant::Banked { .. }),
                Strategy::Local => variant == HistogramVariant::Local,
            };
            assert!(right, "{choice:?} became {variant:?}");
            Some(histogram)
        }
        (Err(ClError::Refused(_)), Some(why)) => {
            device::skip(
                &format!("histogram {choice:?} with {counters} counters"),
                why,
            );
            None
        }
        (result, why) => panic!("{choice:?} on {}: {result:?}, {why:?}", input.describe()),
    }
}

/// Counts a frame with an operator.
pub fn count(device: &Arc<ClContext>, histogram: &mut Histogram, input: &Frame) -> Vec<u32> {
    let mut bins = vec![7; 3];
    histogram
        .run(&input.import(device), &Meter::new(false), &mut bins)
        .expect("the histogram runs");
    bins
}

#[track_caller]
pub fn assert_bins(actual: &[u32], expected: &[u32], about: impl FnOnce() -> String) {
    if actual != expected {
        assert_eq!(actual.len(), expected.len(), "{}: counters", about());
        let first = (0..expected.len()).find(|&i| actual[i] != expected[i]);
        let first = first.expect("a difference");
        panic!(
            "{}: counter {first} is {} instead of {} (sums {} and {})",
            about(),
            actual[first],
            expected[first],
            actual.iter().sum::<u32>(),
            expected.iter().sum::<u32>(),
        );
    }
}

/// Compares every choice with the reference, on two frames each.
#[track_caller]
pub fn check(device: &Arc<ClContext>, input: &Frame, wanted: &CountCase, choices: &[Choice]) {
    let expected = wanted.expected(input);
    for &choice in choices {
        let Some(mut histogram) = operator(device, input, wanted, choice) else {
            continue;
        };
        for frame in 0..2 {
            let bins = count(device, &mut histogram, input);
            assert_bins(&bins, &expected, || {
                let input = input.describe();
                format!("{input} {wanted:?} {choice:?}, frame {frame}")
            });
        }
        check_statistics(&expected, wanted, input);
    }
}

/// Compares the statistics with the reference. Both sum exact integers and divide once,
/// so levels are equal and other values differ only by f64 rounding.
#[track_caller]
fn check_statistics(bins: &[u32], wanted: &CountCase, input: &Frame) {
    let depth = wanted.depth(input);
    for channel in bins.chunks(wanted.bins) {
        let ours = Statistics::from_bins(channel, depth);
        let right = oracle::statistics(channel, depth);
        let levels = |s: [f64; 8]| s;
        assert_eq!(ours.count, right.count);
        assert_eq!(
            levels([
                ours.minimum,
                ours.maximum,
                ours.median,
                ours.p1,
                ours.p5,
                ours.p95,
                ours.p99,
                ours.otsu_threshold
            ]),
            levels([
                right.minimum,
                right.maximum,
                right.median,
                right.p1,
                right.p5,
                right.p95,
                right.p99,
                right.otsu_threshold
            ]),
            "{} {wanted:?}",
            input.describe()
        );
        for (ours, right) in [
            (ours.mean, right.mean),
            (ours.stddev, right.stddev),
            (ours.saturated_low, right.saturated_low),
            (ours.saturated_high, right.saturated_high),
            (ours.entropy, right.entropy),
            (ours.otsu_separability, right.otsu_separability),
        ] {
            assert!(
                (ours - right).abs() <= 1e-9 * right.abs().max(1.0),
                "{ours} is not {right}"
            );
        }
    }
}
