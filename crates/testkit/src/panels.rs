//! Panel frames, and the defects that the references list on them.

use gst_video::VideoFormat as Format;
use gstclinspect::results::Defect;

use crate::{
    frames::{Arrangement, Frame, INPUT_POISON, PLAIN},
    oracle::{
        self, SampleKind,
        pitch_threshold::{self, Compare, Settings},
        put,
    },
    panel::{PanelGenerator, PanelSpec},
    support::pitch_threshold_settings,
};

/// Frames of one panel, drawn as luma of any format.
pub struct Panels(PanelGenerator);

impl Panels {
    /// Frames of the panel that `spec` describes.
    pub fn new(spec: PanelSpec) -> Self {
        Self(PanelGenerator::new(spec, 11).expect("a panel that can be drawn"))
    }

    /// The next frame, with `planted` defects.
    pub fn next(&mut self, planted: usize) -> Frame {
        self.next_as(Format::Gray8, PLAIN, planted)
    }

    /// The next frame in another format and memory layout.
    pub fn next_as(&mut self, format: Format, arrangement: Arrangement, planted: usize) -> Frame {
        let panel = match planted {
            0 => self.0.clean_frame(),
            _ => self.0.next_random(planted),
        };
        let size = [panel.width, panel.height];
        let mut frame = Frame::poisoned(format, size, arrangement, INPUT_POISON);
        let geometry = frame.geometry(0);
        let scale = match frame.kind() {
            SampleKind::U8 => 1,
            _ => 256,
        };
        for y in 0..size[1] {
            for x in 0..size[0] {
                let sample = panel.sample(x, y).expect("a sample inside");
                put(&mut frame.bytes, &geometry, x, y, scale * u32::from(sample));
            }
        }
        frame
    }
}

/// A small panel with a few clear defects.
pub fn spotted(size: [usize; 2]) -> Panels {
    Panels::new(PanelSpec {
        width: size[0],
        height: size[1],
        noise_sigma: 3.0,
        ..PanelSpec::default()
    })
}

/// Properties of the recommended comparison at the pitch of `spotted`.
pub const RECOMMENDED: &str = "pitch-x=7.35 pitch-y=7.35 compare=minimum match-center=true multiples=\"<1,4>\" \
     scales=3 min-contrast=0 fail=fail,defect-pixels=0,defect-area=0";

/// The same settings for the reference.
pub fn recommended(threshold: f64) -> Settings {
    Settings {
        compare: Compare::Minimum,
        match_center: true,
        multiples: vec![1, 4],
        inward: true,
        edge_margin: 2,
        scales: 3,
        scale_factors: vec![0.6, 0.3, 0.15, 0.08],
        ..pitch_threshold_settings(7.35, 7.35, threshold)
    }
}

/// Which defects are listed.
#[derive(Clone, Copy, Debug)]
pub struct ListSettings {
    /// The property `min-area`.
    pub min_area: u32,
    /// The property `merge-distance`.
    pub merge_distance: u32,
    /// The limit `max-defects`.
    pub max_defects: u32,
}

impl ListSettings {
    fn rules(self) -> oracle::defects::Rules {
        oracle::defects::Rules {
            min_area: self.min_area,
            merge_distance: self.merge_distance,
            max_defects: self.max_defects as usize,
            max_defect_rows: u32::MAX,
        }
    }
}

/// The properties' defaults.
pub const DEFAULT: ListSettings = ListSettings {
    min_area: 1,
    merge_distance: 0,
    max_defects: 100,
};

/// The reference's list, and whether there are more defects.
pub fn listed(frame: &Frame, settings: &Settings, wanted: ListSettings) -> (Vec<Defect>, bool) {
    with_marked(frame, settings, |web| listed_of(web, wanted))
}

/// Calls `list` with what the reference of the pitch comparison marks.
fn with_marked<R>(
    frame: &Frame,
    settings: &Settings,
    list: impl FnOnce(oracle::defects::Web) -> R,
) -> R {
    let samples = frame.component(0);
    list(oracle::defects::Web {
        mask: &pitch_threshold::compare(samples, settings).mask,
        differences: &pitch_threshold::difference(samples, settings),
        levels: &pitch_threshold::finest_level(samples, settings),
        width: samples.width,
    })
}

/// The reference's list of a mask that any comparison made, and whether there are more defects.
pub fn listed_of(web: oracle::defects::Web, wanted: ListSettings) -> (Vec<Defect>, bool) {
    let list = oracle::defects::defects(web, &wanted.rules());
    (records(&list), list.overflow)
}

/// The reference's lists of the strips of a web, `rows` rows each.
pub fn listed_of_strips(
    web: &Frame,
    settings: &Settings,
    wanted: ListSettings,
    rows: usize,
) -> Vec<Vec<Defect>> {
    let heights = vec![rows; web.component(0).height / rows];
    let lists = with_marked(web, settings, |marked| {
        oracle::defects::defects_of_web(marked, &heights, &wanted.rules())
    });
    lists.iter().map(records).collect()
}

/// A list as metas hold it, without ids.
fn records(list: &oracle::defects::List) -> Vec<Defect> {
    let records = list.defects.iter().map(|d| Defect {
        x: d.x as i32,
        y: d.y as i32,
        width: d.width,
        height: d.height,
        area: d.area,
        centroid_x: d.centroid_x as f32,
        centroid_y: d.centroid_y as f32,
        mean_difference: d.mean_difference as f32,
        peak_difference: d.peak_difference as f32,
        polarity: d.polarity,
        flags: (d.level as u16) << Defect::LEVEL_SHIFT,
        major_axis: d.major_axis as f32,
        minor_axis: d.minor_axis as f32,
        orientation: d.orientation as f32,
        boundary_length: d.boundary_length,
        ..Defect::default()
    });
    records.collect()
}

/// Defects as [`listed`] gives them: an element counts its ids over all frames.
pub fn without_ids(defects: &[Defect]) -> Vec<Defect> {
    let without = defects.iter().map(|&defect| Defect { id: 0, ..defect });
    without.collect()
}
