//! Pictures of frames, written by a separate thread so that no frame waits for them.

use std::{
    fmt::Display,
    fs::File,
    io::BufWriter,
    path::{Path, PathBuf},
    sync::mpsc,
    thread::JoinHandle,
};

use clinspect_core::mask::{packed_stride, pbm_header};
use gst_video::prelude::*;
use gstclinspect::results::{HistogramResult, Verdict};
use image::{DynamicImage, GrayImage, ImageBuffer, Luma, Rgb, RgbImage, codecs::png};
use plotters::prelude::*;

use crate::{failure::Failure, pipeline::Inspected, simulated::shift};

/// Distance of the outline from marked pixels, px: single pixels are hard to see without it.
const OUTLINE_PX: usize = 5;
const OUTLINE: Rgb<u8> = Rgb([255, 210, 0]);
const PLOT_SIZE: (u32, u32) = (800, 400);

/// Writes pictures of some frames into a folder.
pub struct Pictures {
    folder: PathBuf,
    /// Pictures still to write: of any frames, and then of failed ones.
    any_left: usize,
    failed_left: usize,
    jobs: mpsc::Sender<Inspected>,
    writer: JoinHandle<Result<(), String>>,
}

impl Pictures {
    /// Pictures of the first `count` frames and of up to `count` failed ones after them;
    /// `bit_depth` is that of 16-bit samples, 0 for 16.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(folder: &Path, count: usize, bit_depth: u32) -> Result<Self, Failure> {
        std::fs::create_dir_all(folder).map_err(|error| {
            Failure::Usage(format!(
                "the folder {} cannot be made: {error}",
                folder.display()
            ))
        })?;
        let (jobs, waiting) = mpsc::channel::<Inspected>();
        let place = folder.to_owned();
        let writer = std::thread::Builder::new()
            .name("pictures".into())
            .spawn(move || {
                waiting
                    .iter()
                    .try_for_each(|frame| write(&place, &frame, bit_depth))
            })
            .map_err(|error| Failure::Runtime(format!("no thread for pictures: {error}")))?;
        Ok(Self {
            folder: folder.to_owned(),
            any_left: count,
            failed_left: count,
            jobs,
            writer,
        })
    }

    /// Takes a frame and writes pictures of it if it is among the chosen ones.
    ///
    /// # Errors
    /// Writing has failed.
    pub fn take(&mut self, frame: Inspected) -> Result<(), Failure> {
        let failed = frame
            .judged
            .as_ref()
            .is_some_and(|judged| judged.result.verdict == Verdict::Fail);
        if self.any_left > 0 {
            self.any_left -= 1;
        } else if failed && self.failed_left > 0 {
            self.failed_left -= 1;
        } else {
            return Ok(());
        }
        // The writing thread has ended early; `finish` returns the reason.
        self.jobs.send(frame).map_err(|_| {
            Failure::Runtime(format!(
                "pictures cannot be written to {}",
                self.folder.display()
            ))
        })
    }

    /// Waits until all pictures are written.
    ///
    /// # Errors
    /// Why the pictures could not be written.
    pub fn finish(self) -> Result<(), Failure> {
        drop(self.jobs);
        match self.writer.join() {
            Ok(result) => result.map_err(Failure::Runtime),
            Err(_) => Err(Failure::Runtime("writing pictures has failed".into())),
        }
    }
}

fn write(folder: &Path, inspected: &Inspected, bit_depth: u32) -> Result<(), String> {
    let path = |what: &str| folder.join(format!("{:04}-{what}", inspected.number));
    if let Some(original) = &inspected.passage.original {
        // clgaussian keeps format and size.
        save(
            &image(original, inspected.frame.caps())?,
            &path("frame.png"),
        )?;
    }
    let mut picture = picture(&inspected.frame, bit_depth)?;
    if let Some(judged) = &inspected.judged {
        let mask = judged
            .mask
            .map_readable()
            .map_err(|_| "the mask cannot be read".to_owned())?;
        tint(&mut picture, &mask, shift(&judged.result));
        let file = path("mask.pbm");
        let header = pbm_header(picture.width() as usize, picture.height() as usize);
        let pbm = [header.as_bytes(), &mask].concat();
        std::fs::write(&file, pbm).map_err(|error| failed(&file, &error))?;
    }
    let file = path("overlay.png");
    save(&picture.into(), &file)?;
    let file = path("histogram.svg");
    plot(&file, inspected.number, &inspected.histogram).map_err(|error| failed(&file, &error))
}

fn failed(file: &Path, why: &dyn Display) -> String {
    format!("{}: {why}", file.display())
}

/// Writes a PNG.
///
/// # Errors
/// The file cannot be written.
pub fn save(picture: &DynamicImage, file: &Path) -> Result<(), String> {
    let created = File::create(file).map_err(|error| failed(file, &error))?;
    let encoder = png::PngEncoder::new_with_quality(
        BufWriter::new(created),
        png::CompressionType::Fast,
        png::FilterType::Sub,
    );
    picture
        .write_with_encoder(encoder)
        .map_err(|error| failed(file, &error))
}

/// The frame's samples as they are: grey with 8 or 16 bits, or RGB.
fn image(buffer: &gst::BufferRef, caps: Option<&gst::CapsRef>) -> Result<DynamicImage, String> {
    let cannot = || "a frame cannot be read for its picture".to_owned();
    let info = caps
        .and_then(|caps| gst_video::VideoInfo::from_caps(caps).ok())
        .ok_or_else(cannot)?;
    let frame =
        gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info).map_err(|_| cannot())?;
    let data = frame.plane_data(0).map_err(|_| cannot())?;
    let stride = frame.plane_stride().first();
    let stride = stride
        .and_then(|&stride| usize::try_from(stride).ok())
        .ok_or_else(cannot)?;
    let (width, height) = (info.width(), info.height());
    let at = |x: u32, y: u32| y as usize * stride + x as usize;
    let byte = |at: usize| data.get(at).copied().unwrap_or(0);
    Ok(match info.format() {
        gst_video::VideoFormat::Rgb => RgbImage::from_fn(width, height, |x, y| {
            Rgb([0, 1, 2].map(|c| byte(at(3 * x + c, y))))
        })
        .into(),
        gst_video::VideoFormat::Gray16Le => ImageBuffer::from_fn(width, height, |x, y| {
            Luma([u16::from_le_bytes([0, 1].map(|b| byte(at(2 * x + b, y))))])
        })
        .into(),
        _ => GrayImage::from_fn(width, height, |x, y| Luma([byte(at(x, y))])).into(),
    })
}

/// The smoothed frame as 8-bit RGB.
fn picture(sample: &gst::Sample, bit_depth: u32) -> Result<RgbImage, String> {
    let buffer = sample.buffer().ok_or("a frame came without data")?;
    let image = image(buffer, sample.caps())?;
    let DynamicImage::ImageLuma16(levels) = &image else {
        return Ok(image.into_rgb8());
    };
    // 16-bit samples sit in the low bits.
    let shift = if bit_depth == 0 { 8 } else { bit_depth - 8 };
    let pixel = |x, y| Rgb([(levels.get_pixel(x, y).0[0] >> shift).min(255) as u8; 3]);
    Ok(RgbImage::from_fn(levels.width(), levels.height(), pixel))
}

/// Tints the mask's pixels, moved by `shift`, red and outlines them.
fn tint(picture: &mut RgbImage, mask: &[u8], [dx, dy]: [isize; 2]) {
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let stride = packed_stride(width);
    let marked: Vec<(usize, usize)> = (0..height)
        .flat_map(|y| (0..width).map(move |x| (x, y)))
        .filter(|&(x, y)| {
            mask.get(y * stride + x / 8)
                .is_some_and(|byte| byte >> (7 - x % 8) & 1 == 1)
        })
        .filter_map(|(x, y)| x.checked_add_signed(dx).zip(y.checked_add_signed(dy)))
        .filter(|&(x, y)| x < width && y < height)
        .collect();
    let near = around(&marked, [width, height], OUTLINE_PX - 1);
    for (at, _) in around(&marked, [width, height], OUTLINE_PX)
        .iter()
        .zip(&near)
        .enumerate()
        .filter(|&(_, (&far, &near))| far && !near)
    {
        picture.put_pixel((at % width) as u32, (at / width) as u32, OUTLINE);
    }
    for (x, y) in marked {
        let Rgb([r, g, b]) = *picture.get_pixel(x as u32, y as u32);
        let tinted = Rgb([128 + r / 2, g / 4, b / 4]);
        picture.put_pixel(x as u32, y as u32, tinted);
    }
}

/// Pixels at most `distance` from a marked one, along both axes.
fn around(marked: &[(usize, usize)], [width, height]: [usize; 2], distance: usize) -> Vec<bool> {
    let mut near = vec![false; width * height];
    for &(x, y) in marked {
        let columns = x.saturating_sub(distance)..(x + distance + 1).min(width);
        for row in y.saturating_sub(distance)..(y + distance + 1).min(height) {
            near[row * width..][columns.clone()].fill(true);
        }
    }
    near
}

/// The histogram as bars, a colour per channel, with a line at each median.
fn plot(
    file: &Path,
    number: u64,
    result: &HistogramResult,
) -> Result<(), Box<dyn std::error::Error>> {
    let colours = match result.statistics.len() {
        1 => vec![("grey", RGBColor(90, 90, 90))],
        _ => vec![("red", RED), ("green", GREEN), ("blue", BLUE)],
    };
    let root = SVGBackend::new(file, PLOT_SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let highest = f64::from(result.counts.iter().copied().max().unwrap_or(0).max(1));
    let levels = (1_u32 << result.bit_depth) as f64;
    let bin_width = levels / f64::from(result.bins.max(1));
    let title = format!(
        "Frame {number}: {}x{} {}",
        result.width, result.height, result.format
    );
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(35)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..levels, 0.0..1.05 * highest)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_desc("grey level")
        .y_desc("pixels")
        .y_label_formatter(&|count| format!("{count:.0}"))
        .x_label_formatter(&|level| format!("{level:.0}"))
        .draw()?;
    for (channel, (name, colour)) in colours.into_iter().enumerate() {
        let (Some(bins), Some(statistics)) =
            (result.channel(channel), result.statistics.get(channel))
        else {
            continue;
        };
        let bars = bins.iter().enumerate().filter(|(_, count)| **count > 0);
        chart.draw_series(bars.map(|(bin, &count)| {
            let left = bin as f64 * bin_width;
            let corners = [(left, 0.0), (left + bin_width, f64::from(count))];
            Rectangle::new(corners, colour.mix(0.5).filled())
        }))?;
        let median = statistics.median + bin_width / 2.0;
        chart
            .draw_series([PathElement::new(
                [(median, 0.0), (median, 1.05 * highest)],
                colour,
            )])?
            .label(format!("{name}: median {}", statistics.median))
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 12, y + 4)], colour.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .draw()?;
    root.present()?;
    Ok(())
}
