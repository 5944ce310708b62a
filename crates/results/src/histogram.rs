//! `GstClHistogramMeta` and the message `clhistogram`.

use gst::glib;

use super::metas::{attach, structures};
use clinspect_core::statistics::Statistics;

/// Name of the meta.
pub const HISTOGRAM_META: &str = "GstClHistogramMeta";
/// Version of its fields.
const VERSION: u32 = 1;
/// Between the names of alarms.
const ALARM_SEPARATOR: &str = ";";

/// A frame's histogram.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramResult {
    /// Name of the counting element.
    pub element: String,
    /// The buffer's offset if it has one, otherwise a counter.
    pub frame_number: u64,
    /// Format of the frame, such as `RGB`.
    pub format: String,
    /// Width of the frame, px.
    pub width: u32,
    /// Height of the frame, px.
    pub height: u32,
    /// Region counted: x, y, width, height, px.
    pub roi: [u32; 4],
    /// Number of bits that samples fill.
    pub bit_depth: u32,
    /// Bins per channel.
    pub bins: u32,
    /// Counts, all bins of channel 0 first.
    pub counts: Vec<u32>,
    /// Statistics of each channel.
    pub statistics: Vec<Statistics>,
    /// Names of the raised alarms, such as `over-exposed`.
    pub alarms: Vec<String>,
    /// The source flagged the frame as corrupted.
    pub corrupted: bool,
}

/// A statistic's field name, and its value for a channel.
type Statistic = (&'static str, fn(&Statistics) -> f64);

/// In the order in which [`HistogramResult::read`] reads them.
const STATISTICS: [Statistic; 14] = [
    ("minimum", |s| s.minimum),
    ("maximum", |s| s.maximum),
    ("mean", |s| s.mean),
    ("stddev", |s| s.stddev),
    ("median", |s| s.median),
    ("p1", |s| s.p1),
    ("p5", |s| s.p5),
    ("p95", |s| s.p95),
    ("p99", |s| s.p99),
    ("saturated-low", |s| s.saturated_low),
    ("saturated-high", |s| s.saturated_high),
    ("entropy", |s| s.entropy),
    ("otsu-threshold", |s| s.otsu_threshold),
    ("otsu-separability", |s| s.otsu_separability),
];

impl HistogramResult {
    /// The bins of one channel.
    pub fn channel(&self, channel: usize) -> Option<&[u32]> {
        self.counts.chunks(self.bins.max(1) as usize).nth(channel)
    }

    /// Writes the fields that meta and message share: all but the bins.
    pub fn write_scalars(&self, fields: &mut gst::StructureRef) {
        fields.set("element", &self.element);
        fields.set("frame-number", self.frame_number);
        fields.set("format", &self.format);
        fields.set("width", self.width);
        fields.set("height", self.height);
        fields.set("roi", gst::Array::new(self.roi));
        fields.set("bit-depth", self.bit_depth);
        fields.set("bins", self.bins);
        fields.set("corrupted", self.corrupted);
        fields.set("channels", self.statistics.len() as u32);
        fields.set(
            "count",
            gst::Array::new(self.statistics.iter().map(|s| s.count)),
        );
        for (name, value) in STATISTICS {
            let values = self.statistics.iter().map(value);
            fields.set(name, gst::Array::new(values));
        }
    }

    /// The bins as an array of arrays, one per channel, for messages.
    pub fn bin_arrays(&self) -> gst::Array {
        let channels = self.counts.chunks(self.bins.max(1) as usize);
        gst::Array::new(channels.map(|bins| gst::Array::new(bins.iter().copied())))
    }

    /// Attaches the result to a buffer.
    ///
    /// # Errors
    /// The meta is not registered (see [`super::register`]).
    pub fn attach(&self, buffer: &mut gst::BufferRef) -> Result<(), glib::BoolError> {
        let bytes: Vec<u8> = self.counts.iter().flat_map(|n| n.to_le_bytes()).collect();
        attach(buffer, HISTOGRAM_META, |fields| {
            self.write_scalars(fields);
            fields.set("version", VERSION);
            fields.set("bins-data", glib::Bytes::from_owned(bytes));
            if !self.alarms.is_empty() {
                fields.set("alarms", self.alarms.join(ALARM_SEPARATOR));
            }
        })
    }

    /// Every histogram on a buffer, in the order of attachment. A meta is ignored if fields are
    /// missing or if the numbers of bins, channels and values contradict each other.
    pub fn read(buffer: &gst::BufferRef) -> Vec<Self> {
        structures(buffer, HISTOGRAM_META)
            .filter_map(|fields| Self::from_structure(&fields))
            .collect()
    }

    fn from_structure(fields: &gst::StructureRef) -> Option<Self> {
        let bytes = fields.get::<glib::Bytes>("bins-data").ok()?;
        let (words, rest) = bytes.as_chunks::<4>();
        let bins: u32 = fields.get("bins").ok()?;
        let channels = fields.get::<u32>("channels").ok()? as usize;
        let expected = channels.checked_mul(bins as usize);
        if bins == 0 || !rest.is_empty() || expected != Some(words.len()) {
            return None;
        }
        let numbers = |name: &str| -> Option<Vec<f64>> {
            let array = fields.get::<gst::Array>(name).ok()?;
            if array.len() != channels {
                return None;
            }
            array.iter().map(|value| value.get::<f64>().ok()).collect()
        };
        let roi: Vec<u32> = fields
            .get::<gst::Array>("roi")
            .ok()?
            .iter()
            .map(|value| value.get::<u32>().ok())
            .collect::<Option<_>>()?;
        let count: Vec<u64> = fields
            .get::<gst::Array>("count")
            .ok()?
            .iter()
            .map(|value| value.get::<u64>().ok())
            .collect::<Option<_>>()?;
        if count.len() != channels {
            return None;
        }
        let columns: Vec<Vec<f64>> = STATISTICS
            .iter()
            .map(|(name, _)| numbers(name))
            .collect::<Option<_>>()?;
        let statistics = count
            .into_iter()
            .enumerate()
            .map(|(channel, count)| {
                let at = |column: usize| columns[column].get(channel).copied();
                Some(Statistics {
                    count,
                    minimum: at(0)?,
                    maximum: at(1)?,
                    mean: at(2)?,
                    stddev: at(3)?,
                    median: at(4)?,
                    p1: at(5)?,
                    p5: at(6)?,
                    p95: at(7)?,
                    p99: at(8)?,
                    saturated_low: at(9)?,
                    saturated_high: at(10)?,
                    entropy: at(11)?,
                    otsu_threshold: at(12)?,
                    otsu_separability: at(13)?,
                })
            })
            .collect::<Option<_>>()?;
        Some(Self {
            element: fields.get("element").ok()?,
            frame_number: fields.get("frame-number").ok()?,
            format: fields.get("format").ok()?,
            width: fields.get("width").ok()?,
            height: fields.get("height").ok()?,
            roi: roi.try_into().ok()?,
            bit_depth: fields.get("bit-depth").ok()?,
            corrupted: fields.get("corrupted").unwrap_or_default(),
            bins,
            counts: words.iter().map(|w| u32::from_le_bytes(*w)).collect(),
            statistics,
            alarms: fields
                .get::<&str>("alarms")
                .unwrap_or_default()
                .split(ALARM_SEPARATOR)
                .filter(|name| !name.is_empty())
                .map(Into::into)
                .collect(),
        })
    }
}
