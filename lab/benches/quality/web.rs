//! A woven web as one frame and in strips: which planted defects are listed, and how often.

use anyhow::{Context, Result, anyhow, bail};
use gst::prelude::*;
use gstclinspect::results::{Defect, DefectResult};

use crate::common::cloth::{ClothDefect, ClothSpec, ClothWeb};

const SEED: u64 = 17;
/// A contrast that is learned depends on the rows from which it is learned: all rows of a frame, or the
/// first ones of a web.
const MIN_CONTRAST: f64 = 13.0;
const MASK_TIMEOUT: gst::ClockTime = gst::ClockTime::from_seconds(120);

/// How the web is cut, and what was found.
#[derive(Clone, Debug, PartialEq)]
pub struct WebRow {
    /// Rows of a strip; `None` for one frame.
    pub strip_rows: Option<usize>,
    /// Figures.
    pub found: WebMarks,
}

/// Figures of a web; equal wherever it is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebMarks {
    /// Planted defects.
    pub planted: usize,
    /// Planted defects that are listed once.
    pub once: usize,
    /// More than once.
    pub more: usize,
    /// Listed defects where none is planted.
    pub others: usize,
    /// Marked pixels.
    pub marked: u64,
    /// Judged pixels.
    pub judged: u64,
}

/// Lines of `width` pixels; the strips of each height fill the rows.
pub fn measure(width: usize, rows: usize, heights: &[usize]) -> Result<Vec<WebRow>> {
    let spec = ClothSpec {
        width,
        ..ClothSpec::default()
    };
    let mut web = ClothWeb::new(spec, SEED).map_err(|why| anyhow!(why))?;
    let mut samples = Vec::with_capacity(width * rows);
    (0..rows as u64).for_each(|y| web.row(y, &mut samples));
    let planted = spec.planted(SEED, 0..rows as u64);
    let cuts = [None].into_iter().chain(heights.iter().copied().map(Some));
    cuts.map(|strip_rows| {
        let results = judge(&samples, width, strip_rows.unwrap_or(rows), spec.pitch_px)?;
        Ok(WebRow {
            strip_rows,
            found: count(&planted, &results),
        })
    })
    .collect()
}

/// The results of each strip; a strip with all rows is a frame.
fn judge(samples: &[u8], width: usize, height: usize, pitch: f64) -> Result<Vec<DefectResult>> {
    let rows = samples.len() / width;
    if !width.is_multiple_of(4) || !rows.is_multiple_of(height) {
        bail!("{rows} rows of {width} px are no strips of {height} rows without padding");
    }
    let line_scan = height < rows;
    let description = format!(
        "appsrc name=source format=time block=true max-buffers=4 max-bytes=0 \
         caps=video/x-raw,format=GRAY8,width={width},height={height},framerate=0/1 ! clgaussian \
         kernel-size=5 sigma=0.8 line-scan={line_scan} ! clpitchthreshold pitch-x={pitch} \
         pitch-y={pitch} merge-distance=3 min-area=12 limits=limits,max-defects=100000,max-runs=2147483647 scales=0 min-contrast={MIN_CONTRAST} \
         reports=reports,messages=false line-scan={line_scan} ! appsink name=sink sync=false"
    );
    let pipeline = gst::parse::launch(&description)?
        .downcast::<gst::Pipeline>()
        .map_err(|_| anyhow!("no pipeline: {description}"))?;
    let element = |name| pipeline.by_name(name).context("an element is missing");
    let source = element("source")?
        .downcast::<gst_app::AppSrc>()
        .map_err(|_| anyhow!("source is not an appsrc"))?;
    let sink = element("sink")?
        .downcast::<gst_app::AppSink>()
        .map_err(|_| anyhow!("sink is not an appsink"))?;
    pipeline.set_state(gst::State::Playing)?;
    let results = std::thread::scope(|scope| {
        scope.spawn(|| {
            for strip in samples.chunks(width * height) {
                if source
                    .push_buffer(gst::Buffer::from_slice(strip.to_vec()))
                    .is_err()
                {
                    return;
                }
            }
            // Refused only while the pipeline stops.
            let _ = source.end_of_stream();
        });
        let mut results = Vec::new();
        while let Some(sample) = sink.try_pull_sample(MASK_TIMEOUT) {
            let buffer = sample.buffer().context("a sample without a buffer")?;
            results.extend(DefectResult::read(buffer));
        }
        // An appsrc that blocks returns at the stop.
        pipeline.set_state(gst::State::Null)?;
        Ok::<_, anyhow::Error>(results)
    })?;
    if results.len() != rows / height {
        bail!("{} results of {} strips", results.len(), rows / height);
    }
    Ok(results)
}

fn count(planted: &[ClothDefect], results: &[DefectResult]) -> WebMarks {
    let mut times = vec![0; planted.len()];
    let mut found = WebMarks {
        planted: planted.len(),
        ..WebMarks::default()
    };
    for result in results {
        found.marked += result.defect_pixels;
        found.judged += result.judged_pixels;
        for defect in &result.defects {
            let mut is_planted = false;
            for (planted, times) in planted.iter().zip(&mut times) {
                if meets(planted, result, defect) {
                    *times += 1;
                    is_planted = true;
                }
            }
            found.others += usize::from(!is_planted);
        }
    }
    found.once = times.iter().filter(|&&times| times == 1).count();
    found.more = times.iter().filter(|&&times| times > 1).count();
    found
}

fn meets(planted: &ClothDefect, result: &DefectResult, defect: &Defect) -> bool {
    let line = result.first_line.saturating_add_signed(i64::from(defect.y));
    let left = u64::try_from(defect.x).unwrap_or(0);
    planted.is_met(
        left..left + u64::from(defect.width),
        line..line + u64::from(defect.height),
    )
}

/// The table in Markdown.
pub fn write(out: &mut String, [width, rows]: [usize; 2], table: &[WebRow]) {
    use std::fmt::Write as _;
    let _ = write!(
        out,
        "## A web in strips\n\n{rows} lines of {width} px of a woven web (`crates/testkit/src/cloth.rs`), pitch \
         16.35, σ 4, T = 12, as one frame, and as strips with `line-scan=true`. Every row must have the same \
         figures.\n\n| cut | planted | listed once | more than once | not listed | listed, not planted | \
         marked pixels | judged pixels |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    for WebRow { strip_rows, found } in table {
        let cut = strip_rows.map_or_else(
            || "one frame".to_owned(),
            |height| format!("strips of {height} rows"),
        );
        let _ = writeln!(
            out,
            "| {cut} | {} | {} | {} | {} | {} | {} | {} |",
            found.planted,
            found.once,
            found.more,
            found.planted - found.once - found.more,
            found.others,
            found.marked,
            found.judged
        );
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_web_has_the_same_figures_wherever_it_is_cut() {
        gst::init().unwrap();
        gstclinspect::register_static().unwrap();
        if let Err(why) = clinspect_opencl::open("auto") {
            assert!(
                std::env::var_os("CLINSPECT_REQUIRE_DEVICE").is_none(),
                "{why}"
            );
            eprintln!("SKIPPED: {why}");
            return;
        }
        let rows = super::measure(256, 2100, &[300, 100, 7]).unwrap();
        assert!(rows[0].found.once >= 6, "{rows:?}");
        for row in &rows {
            assert_eq!(row.found, rows[0].found, "{:?}", row.strip_rows);
            assert_eq!(row.found.once, row.found.planted);
        }
    }
}
