//! The histogram panel: a curve for each channel, with median and percentiles.

use gst_video::VideoFormat;

use super::{
    area::Area,
    canvas::{Canvas, Colour},
    placement::Placement,
    text,
};
use clinspect_core::statistics::Statistics;
use clinspect_results::HistogramResult;

/// Maximum number of channels drawn; no format has more.
const MOST_CHANNELS: usize = 4;
/// Maximum bit depth of a valid histogram.
const MOST_BITS: u32 = 16;

const BACKGROUND: Colour = Colour(0xd810_1418);
const PLOT_BACKGROUND: Colour = Colour(0x30ff_ffff);
const TEXT: Colour = Colour(0xffff_ffff);
const MEDIAN: Colour = Colour(0xffff_ffff);
const PERCENTILE: Colour = Colour(0xc0ff_ffff);
const RED: Colour = Colour(0xffff_6057);
const GREEN: Colour = Colour(0xff4f_d66b);
const BLUE: Colour = Colour(0xff5a_a9ff);
const GREY: Colour = Colour(0xffd8_dde3);
const ALPHA: Colour = Colour(0xffa0_a6ad);

/// Number of channels that are drawn.
pub(super) fn channels(histogram: &HistogramResult) -> i32 {
    histogram.statistics.len().min(MOST_CHANNELS) as i32
}

/// Draws the panel in its place.
pub(super) fn draw(layout: &Placement, histogram: &HistogramResult, area: Area) -> Canvas {
    let mut canvas = Canvas::new(area, BACKGROUND);
    let left = area.x + layout.margin;
    let width = area.width - 2 * layout.margin;
    let mut y = area.y + layout.margin / 2;
    let names = channel_names(&histogram.format);
    for (channel, statistics) in histogram.statistics.iter().take(MOST_CHANNELS).enumerate() {
        let (name, colour) = names.get(channel).copied().unwrap_or(("?", GREY));
        let small = layout.small;
        canvas.text(name, left, y, (small, colour));
        let numbers = numbers(statistics, width / text::advance(small) - 2);
        let x = left + width - text::width(&numbers, small);
        canvas.text(&numbers, x, y, (small, TEXT));
        y += layout.header();
        let plot = Area::new(left, y, width, layout.plot(area, channels(histogram)));
        canvas.fill(plot, PLOT_BACKGROUND);
        let bins = histogram.channel(channel).unwrap_or_default();
        let heights = heights(bins, plot.width.max(0) as usize, plot.height - layout.line);
        canvas.curve(plot, &heights, layout.line, colour);
        let (depth, line) = (histogram.bit_depth, layout.line);
        marks(&mut canvas, plot, statistics, depth, line);
        y = plot.bottom() + layout.margin;
    }
    canvas
}

/// The names of the channels, in GStreamer's order of components.
fn channel_names(format: &str) -> Vec<(&'static str, Colour)> {
    let format = VideoFormat::from_string(format);
    let info = gst_video::VideoFormatInfo::from_format(format);
    let mut names = if info.is_gray() {
        vec![("Y", GREY)]
    } else if info.is_yuv() {
        vec![("Y", GREY), ("U", BLUE), ("V", RED)]
    } else {
        vec![("R", RED), ("G", GREEN), ("B", BLUE)]
    };
    names.push(("A", ALPHA));
    names
}

/// The statistics as text of at most this many characters.
fn numbers(statistics: &Statistics, characters: i32) -> String {
    let level = |value: f64| format!("{:.0}", value.clamp(0.0, 65_535.0));
    let [p5, median, p95] = [statistics.p5, statistics.median, statistics.p95].map(level);
    let wordings = [
        format!("p5 {p5:>3}  median {median:>3}  p95 {p95:>3}"),
        format!("p5 {p5} med {median} p95 {p95}"),
        format!("{p5} \u{b7} {median} \u{b7} {p95}"),
    ];
    let fits = |text: &String| text.chars().count() <= characters.max(0) as usize;
    wordings.into_iter().find(fits).unwrap_or(median)
}

/// Heights of a curve's columns, 0 to `full` px: the square root of the highest count in the
/// column, so that small peaks are visible beside large ones. The first and the last bin, where
/// saturated samples pile up, do not affect the scale and may be clipped.
fn heights(bins: &[u32], columns: usize, full: i32) -> Vec<i32> {
    let most = |bins: &[u32]| bins.iter().copied().max().filter(|&n| n > 0);
    let inner = bins.get(1..bins.len().saturating_sub(1)).and_then(most);
    let highest = f64::from(inner.or_else(|| most(bins)).unwrap_or(1));
    (0..columns)
        .map(|column| {
            let first = column * bins.len() / columns;
            let end = ((column + 1) * bins.len() / columns).max(first + 1);
            let part = bins.get(first..end.min(bins.len())).unwrap_or_default();
            let most = f64::from(part.iter().copied().max().unwrap_or(0));
            ((most / highest).min(1.0).sqrt() * f64::from(full)).round() as i32
        })
        .collect()
}

/// Draws the percentiles as dashed lines and the median as a solid line.
fn marks(canvas: &mut Canvas, plot: Area, statistics: &Statistics, bit_depth: u32, line: i32) {
    let levels = f64::from(1_u32 << bit_depth.min(MOST_BITS));
    let mut mark = |level: f64, [width, dash, gap]: [i32; 3], colour| {
        let share = (level + 0.5).clamp(0.0, levels - 0.5) / levels;
        let x = plot.x + (share * f64::from(plot.width)) as i32 - width / 2;
        for y in (plot.y..plot.bottom()).step_by((dash + gap).max(1) as usize) {
            let height = dash.min(plot.bottom() - y);
            canvas.fill(Area::new(x, y, width, height), colour);
        }
    };
    for level in [statistics.p5, statistics.p95] {
        mark(level, [line, 3 * line, 2 * line], PERCENTILE);
    }
    let solid = [(3 * line + 1) / 2, plot.height, 0];
    mark(statistics.median, solid, MEDIAN);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_show_the_highest_count_that_falls_there() {
        assert_eq!(heights(&[0, 4, 16, 1], 4, 8), [0, 4, 8, 2]);
        assert_eq!(heights(&[0, 4, 16, 1], 2, 8), [4, 8]);
        assert_eq!(heights(&[1, 4], 4, 8), [4, 4, 8, 8]);
        assert_eq!(heights(&[900, 4, 16, 900], 4, 8), [8, 4, 8, 8]);
        assert_eq!(heights(&[0, 0], 2, 8), [0, 0]);
        assert_eq!(heights(&[], 2, 8), [0, 0]);
    }

    #[test]
    fn numbers_are_worded_to_fit_and_no_number_breaks_them() {
        let statistics = Statistics {
            p5: 3.0,
            median: 128.0,
            p95: f64::NAN,
            ..Statistics::default()
        };
        assert_eq!(numbers(&statistics, 80), "p5   3  median 128  p95 NaN");
        assert_eq!(numbers(&statistics, 10), "128");
        assert_eq!(numbers(&statistics, -4), "128");
        let large = Statistics {
            median: 1e300,
            ..Statistics::default()
        };
        assert_eq!(numbers(&large, 0), "65535");
    }

    #[test]
    fn channels_have_the_names_of_their_format() {
        let names = |format: &str| -> Vec<&str> {
            gst::init().ok();
            channel_names(format)
                .into_iter()
                .map(|(name, _)| name)
                .collect()
        };
        assert_eq!(names("BGRA"), ["R", "G", "B", "A"]);
        assert_eq!(names("I420"), ["Y", "U", "V", "A"]);
        assert_eq!(names("GRAY16_LE")[0], "Y");
        assert_eq!(names("nonsense").len(), 4);
    }
}
