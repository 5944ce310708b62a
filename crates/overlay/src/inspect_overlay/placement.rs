//! Positions and sizes of everything drawn; all depend on the frame's size.

use super::{
    area::Area,
    found::FrameMarks,
    properties::{OverlayCorner, OverlayPosition},
    text,
};

/// Frame height per height of text, and minimum and maximum height of text, px.
const TEXT_SHARE: f64 = 42.0;
const LEAST_TEXT: f64 = 12.0;
const MOST_TEXT: f64 = 400.0;
/// Aspect (height over width) up to which the height decides the size of text; in taller frames
/// the width does.
const WIDE: f64 = 9.0 / 16.0;
/// Bar and panel each take at most this fraction (1/n) of the frame's height.
const LEAST_BARS: i32 = 3;
/// Height of a curve in text heights, for one channel and for several.
const PLOT_ALONE: i32 = 5;
const PLOT_OF_SEVERAL: i32 = 3;
/// Minimum height of a readable curve, px.
const LEAST_PLOT: i32 = 8;
/// Maximum width of a panel in characters.
const PANEL_CHARACTERS: i32 = 36;

/// The frame's size and the sizes that depend on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Placement {
    /// The frame.
    pub frame: Area,
    /// Height of text, px.
    pub text: i32,
    /// Height of small text, px.
    pub small: i32,
    /// Width of lines, px.
    pub line: i32,
    /// Distance between drawn items, px.
    pub margin: i32,
}

impl Placement {
    pub fn new([width, height]: [u32; 2], scale: f64) -> Self {
        let side = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
        let size = f64::from(height).min(f64::from(width) * WIDE) / TEXT_SHARE;
        let text = (size.max(LEAST_TEXT) * scale).clamp(LEAST_TEXT / 2.0, MOST_TEXT);
        Self {
            frame: Area::new(0, 0, side(width), side(height)),
            text: text.round() as i32,
            small: (0.8 * text).max(text.min(LEAST_TEXT - 1.0)).round() as i32,
            line: (text / 12.0).round().max(1.0) as i32,
            margin: (text / 2.0).round() as i32,
        }
    }

    /// The place of the verdict bar; `None` on frames that are too small for it.
    pub fn bar(&self, position: OverlayPosition, found: &FrameMarks) -> Option<Area> {
        let height = self.text + self.margin;
        let [top, bottom] =
            [0, self.frame.height - height].map(|y| Area::new(0, y, self.frame.width, height));
        let place = match position {
            OverlayPosition::Auto => found.freest([top, bottom]),
            OverlayPosition::Top => top,
            OverlayPosition::Bottom => bottom,
        };
        (LEAST_BARS * height <= self.frame.height).then_some(place)
    }

    /// The place of a panel for this many channels, beside the bar; `None` on frames that are too
    /// small for it.
    pub fn panel(
        &self,
        channels: i32,
        corner: OverlayCorner,
        bar: Option<Area>,
        found: &FrameMarks,
    ) -> Option<Area> {
        let character = text::advance(self.small);
        let bar_is_above = bar.is_some_and(|bar| bar.y == 0);
        let bar = bar.map_or(0, |bar| bar.height);
        let header = self.header();
        let room_height = self.frame.height - bar - 2 * self.margin;
        let room_width = self.frame.width - 2 * self.margin;
        // A gap below each curve, and one above the first line of text.
        let rest = room_height * 3 / 4 - channels * (header + self.margin) - self.margin / 2;
        let share = if channels == 1 {
            PLOT_ALONE
        } else {
            PLOT_OF_SEVERAL
        };
        let plot = (share * self.text).min(rest / channels.max(1));
        let height = channels * (header + plot + self.margin) + self.margin / 2;
        let width = (PANEL_CHARACTERS * character + 2 * self.margin).min(room_width);
        // At least half of the line must fit.
        if channels == 0 || plot < LEAST_PLOT || width < PANEL_CHARACTERS * character / 2 {
            return None;
        }
        let (left, right) = (self.margin, self.frame.width - self.margin - width);
        let (above, below) = if bar_is_above { (bar, 0) } else { (0, bar) };
        let top = self.margin + above;
        let bottom = self.frame.height - self.margin - height - below;
        let at = |x, y| Area::new(x, y, width, height);
        let corners = [
            at(right, bottom),
            at(left, bottom),
            at(right, top),
            at(left, top),
        ];
        Some(match corner {
            OverlayCorner::Auto => found.freest(corners),
            OverlayCorner::BottomRight => corners[0],
            OverlayCorner::BottomLeft => corners[1],
            OverlayCorner::TopRight => corners[2],
            OverlayCorner::TopLeft => corners[3],
        })
    }

    /// Height of the line of text above a channel's curve, px.
    pub fn header(&self) -> i32 {
        self.small * 4 / 3
    }

    /// Height of each curve in a panel of this many channels, px.
    pub fn plot(&self, panel: Area, channels: i32) -> i32 {
        (panel.height - self.margin / 2) / channels.max(1) - self.header() - self.margin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORNERS: [OverlayCorner; 5] = {
        use OverlayCorner::*;
        [Auto, TopLeft, TopRight, BottomLeft, BottomRight]
    };

    #[test]
    fn bar_and_panel_lie_in_every_frame_beside_each_other() {
        let sides = [
            1, 5, 40, 64, 200, 320, 480, 640, 1080, 1920, 3840, 9000, 16_384,
        ];
        let sizes = sides.iter().flat_map(|&x| sides.map(|y| [x, y]));
        let places = sizes.flat_map(|size| CORNERS.map(|corner| (size, corner)));
        for (size, corner) in places {
            for (scale, position) in [
                (0.25, OverlayPosition::Top),
                (1.0, OverlayPosition::Top),
                (1.0, OverlayPosition::Bottom),
                (8.0, OverlayPosition::Bottom),
            ] {
                let layout = Placement::new(size, scale);
                let found = FrameMarks::new(layout.frame, None, None);
                let bar = layout.bar(position, &found);
                assert!(bar.is_none_or(|bar| bar.and(layout.frame) == bar));
                for channels in 1..=4 {
                    let panel = layout.panel(channels, corner, bar, &found);
                    let Some(panel) = panel else { continue };
                    assert_eq!(panel.and(layout.frame), panel);
                    assert!(!bar.is_some_and(|bar| bar.touches(panel)));
                }
            }
        }
    }

    #[test]
    fn common_sizes_have_room_for_bar_and_panel() {
        for size in [
            [320, 240],
            [640, 480],
            [1920, 1080],
            [3840, 2160],
            [2448, 2048],
        ] {
            let layout = Placement::new(size, 1.0);
            let found = FrameMarks::new(layout.frame, None, None);
            let bar = layout.bar(OverlayPosition::Auto, &found);
            assert!(bar.is_some(), "{size:?}");
            let panel = layout.panel(3, OverlayCorner::Auto, bar, &found);
            assert!(panel.is_some(), "{size:?}");
        }
    }
}
