//! The elements of a composition, and what they make of a picture.
//!
//! Caps are written behind each element that could send several formats: behind a tee an element would choose by the other
//! branches. Settings are few, because each has kernels that must be compiled.

/// What frames hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Gray8,
    Gray16,
    Rgb,
    I420,
    Nv12,
    /// A packed mask.
    Bitmask,
    /// A packed mask as a PBM file.
    Pbm,
}

impl Form {
    /// Those of `video/x-raw`.
    pub const RAW: [Self; 5] = [Self::Gray8, Self::Gray16, Self::Rgb, Self::I420, Self::Nv12];

    /// Caps without a size.
    pub fn caps(self) -> &'static str {
        match self {
            Self::Gray8 => "video/x-raw,format=GRAY8",
            Self::Gray16 => "video/x-raw,format=GRAY16_LE",
            Self::Rgb => "video/x-raw,format=RGB",
            Self::I420 => "video/x-raw,format=I420",
            Self::Nv12 => "video/x-raw,format=NV12",
            Self::Bitmask => "video/x-bitmask",
            Self::Pbm => "image/x-portable-bitmap",
        }
    }
}

/// What flows between two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picture {
    pub form: Form,
    pub size: [u32; 2],
}

/// What the pipeline around allows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allowed {
    /// The source is live: frames may leave before their masks have come.
    pub live: bool,
    /// Frames may be dropped or come again, so no result may depend on frames before.
    pub drops: bool,
}

/// Elements that can follow.
#[derive(Debug, Clone)]
pub struct Choice {
    pub weight: u32,
    /// `WHITE-WxH-BITS`, `MEAN-WxH-8`, `PART-WxH-8` and `SURFACE-WxH-BITS` stand for files.
    pub text: String,
    pub gives: Picture,
}

/// Width of frames with a part that can be searched.
const PART_OF: u32 = 161;

/// Smallest frames in which `cltexture` and an alignment find enough.
const LARGE: [u32; 2] = [64, 48];

/// Smaller frames are not cropped: `clpitchthreshold` warns if most of its pixels lack a neighbour.
const SMALL: u32 = 20;

/// The elements that can follow such a picture. `name` is a part of their names: results hold the names of their elements, and
/// the overlay draws them, so an element must have the same name on its path alone.
pub fn behind(picture: Picture, allowed: Allowed, name: &str) -> Vec<Choice> {
    let mut all = Choices {
        picture,
        name,
        list: Vec::new(),
    };
    match picture.form {
        Form::Pbm => all.same(1, "identity"),
        Form::Bitmask => {
            all.same(1, "identity");
            all.form(3, "clmaskunpack", Form::Gray8);
        }
        _ => {
            all.smooth_and_count(allowed);
            all.judge(allowed);
            all.overlay(allowed);
            all.on_the_cpu();
        }
    }
    all.list
}

struct Choices<'a> {
    picture: Picture,
    name: &'a str,
    list: Vec<Choice>,
}

impl Choices<'_> {
    fn add(&mut self, weight: u32, text: &str, gives: Picture) {
        self.list.push(Choice {
            weight,
            text: text.to_owned(),
            gives,
        });
    }

    fn same(&mut self, weight: u32, text: &str) {
        self.add(weight, text, self.picture);
    }

    fn form(&mut self, weight: u32, text: &str, form: Form) {
        let gives = Picture {
            form,
            ..self.picture
        };
        self.add(weight, text, gives);
    }

    fn bits(&self) -> u32 {
        match self.picture.form {
            Form::Gray16 => 16,
            _ => 8,
        }
    }

    fn is_large(&self) -> bool {
        let [width, height] = self.picture.size;
        width >= LARGE[0] && height >= LARGE[1]
    }

    /// Whether frames may be the strips of a web. Colour samples of two rows cannot be cut.
    fn may_be_strips(&self, allowed: Allowed) -> bool {
        let whole = match self.picture.form {
            Form::I420 | Form::Nv12 => self.picture.size[1].is_multiple_of(2),
            _ => true,
        };
        whole && !allowed.drops && !allowed.live
    }

    fn pitch(&self) -> String {
        let threshold = if self.bits() == 16 { 5000 } else { 20 };
        format!(
            "clpitchthreshold name=c{} pitch-x=4 pitch-y=4 multiples=\"<1>\" min-contrast=0 threshold={threshold}",
            self.name
        )
    }

    fn smooth_and_count(&mut self, allowed: Allowed) {
        self.same(12, "clgaussian");
        self.same(4, "clgaussian kernel-size=5 sigma=0.8");
        for (weight, strategy) in [(10, "auto"), (2, "local"), (2, "private")] {
            let text = format!("clhistogram name={} strategy={strategy}", self.name);
            self.same(weight, &text);
        }
        if self.bits() == 8 {
            self.same(2, "clgaussian memory-object=image");
        }
        if self.may_be_strips(allowed) {
            self.same(2, "clgaussian line-scan=true");
        }
    }

    /// Every element that inspects, in every output.
    fn judge(&mut self, allowed: Allowed) {
        let [width, height] = self.picture.size;
        let (bits, form) = (self.bits(), self.picture.form);
        let name = self.name;
        let pitch = self.pitch();
        self.inspector(8, &pitch);
        self.form(
            2,
            &format!("{pitch} output=difference ! {}", Form::Gray8.caps()),
            Form::Gray8,
        );
        self.inspector(3, &format!("{pitch} lattice=\"<4,1,-1,4>\""));
        if self.may_be_strips(allowed) {
            self.inspector(2, &format!("{pitch} line-scan=true"));
        }
        if self.is_large() {
            for repeats in ["pitch-x=8 pitch-y=8", "lattice=\"<8,2,-2,8>\""] {
                let limits = "min-contrast=0 thresholds=\"<3.0,2.0,1.5,1.2,2.0,1.5>\"";
                self.inspector(2, &format!("cltexture name={name} {repeats} {limits}"));
            }
        }
        if self.is_large() {
            let lines = ["3.0"; 16].join(",");
            let learned =
                format!("learn=\"learn,location=(string)SURFACE-{width}x{height}-{bits}\"");
            for settings in [
                format!("channels=dark-lines+bright-lines thresholds=\"<{lines}>\""),
                learned,
            ] {
                self.inspector(2, &format!("clsurface name={name} {settings}"));
            }
        }
        if matches!(form, Form::Gray8 | Form::Gray16) {
            self.same(
                8,
                &format!("clflatfield location=WHITE-{width}x{height}-{bits}"),
            );
        }
        if bits == 8 {
            let reference = format!(
                "clreference name={name} components=luma location=MEAN-{width}x{height}-8 threshold=40"
            );
            self.inspector(3, &reference);
            if width >= PART_OF {
                let part = format!(
                    "clreference name={name} components=luma location=PART-{width}x{height}-8 threshold=40 align=any \
                     rois=\"<<40,32,80,64>>\" parts=\"<1,3>\" place-score=0"
                );
                self.inspector(3, &part);
            }
            if self.is_large() {
                self.inspector(
                    3,
                    &format!("{reference} align=translation search-range=8 match-score=0"),
                );
            }
        }
    }

    fn inspector(&mut self, weight: u32, text: &str) {
        let frame = self.picture.form;
        self.same(weight, &format!("{text} output=frame ! {}", frame.caps()));
        for form in [Form::Gray8, Form::Bitmask, Form::Pbm] {
            let weight = weight.div_ceil(3);
            self.form(weight, &format!("{text} ! {}", form.caps()), form);
        }
    }

    /// The overlay with the results of the frames, or with masks that come on a branch of their own.
    fn overlay(&mut self, allowed: Allowed) {
        if self.bits() == 16 {
            return;
        }
        self.same(4, "inspectoverlay");
        if allowed.live {
            return;
        }
        let (name, pitch) = (self.name, self.pitch());
        // Shown in another format than judged.
        let shown = match self.picture.form {
            Form::Rgb => Form::I420,
            _ => Form::Rgb,
        };
        for (convert, form) in [
            (String::new(), self.picture.form),
            (format!("videoconvert ! {} ! ", shown.caps()), shown),
        ] {
            let text = format!(
                "tee name=d{name} d{name}. ! queue max-size-buffers=2 ! {convert}{name}.sink \
                 d{name}. ! queue max-size-buffers=2 ! \
                 {pitch} ! video/x-bitmask ! {name}.mask inspectoverlay name={name}"
            );
            self.form(4, &text, form);
        }
    }

    fn on_the_cpu(&mut self) {
        let Picture { form, size } = self.picture;
        for other in Form::RAW {
            if other != form {
                self.form(3, &format!("videoconvert ! {}", other.caps()), other);
            }
        }
        for [width, height] in [[64, 48], [161, 121]] {
            if size != [width, height] {
                let text = format!("videoscale ! video/x-raw,width={width},height={height}");
                let size = [width, height];
                self.add(2, &text, Picture { form, size });
            }
        }
        self.same(2, "videoflip method=horizontal-flip");
        self.same(2, "identity");
        if size.iter().all(|&length| length >= SMALL) {
            let size = size.map(|length| length - 4);
            let text = "videocrop left=2 top=2 right=2 bottom=2";
            self.add(2, text, Picture { form, size });
        }
        // They write into the frame, or into a copy where others hold the frame.
        if matches!(form, Form::Rgb | Form::I420 | Form::Nv12) {
            self.same(4, "gamma gamma=1.5");
            self.same(4, "videobalance brightness=0.1");
        }
    }
}
