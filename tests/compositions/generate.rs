//! Draws a composition from a seed.

use gst::State;
use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;

use crate::{
    elements::{self, Allowed, Form, Picture},
    plan::{Action, Change, Composition, End, LIVE, Link, Plan, Reads, Sink, Tree},
};

/// Tees within tees.
const MOST_TEES: u32 = 2;
/// Elements of a pipeline, so that a composition takes about a second.
const MOST_ELEMENTS: u32 = 10;
/// Samples of all frames of a source, for the same reason.
const MOST_SAMPLES: u32 = 5_000_000;
const FEWEST_FRAMES: u32 = 20;
const MOST_FRAMES: u32 = 200;

const SIZES: [[u32; 2]; 6] = [
    [16, 16],
    [33, 17],
    [64, 48],
    [161, 121],
    [320, 240],
    [640, 480],
];
/// Sizes of four samples a group, which every packing can hold.
const PACKED_SIZES: [[u32; 2]; 2] = [[64, 48], [320, 240]];

/// Patterns whose frames depend on their number alone, so that a frame that is made again after a seek is the same.
const PATTERNS: [&str; 4] = [
    "pattern=ball",
    "pattern=zone-plate kx2=20 ky2=20 kt=1",
    "pattern=checkers-8 horizontal-speed=1",
    "pattern=spokes horizontal-speed=3",
];

const QUEUES: [&str; 6] = [
    "queue",
    "queue max-size-buffers=1",
    "queue max-size-buffers=1",
    "queue max-size-buffers=2",
    "queue max-size-buffers=3",
    "queue max-size-buffers=16",
];

/// The composition of a seed: always the same.
pub fn composition(seed: u64) -> Composition {
    let mut generator = Generator {
        rng: ChaCha8Rng::seed_from_u64(seed),
        names: 0,
        elements: 0,
        leaky: false,
        allowed: Allowed::default(),
    };
    let count = *[1, 1, 1, 2, 2, 3].choose(&mut generator.rng).unwrap();
    Composition {
        pipelines: (0..count).map(|_| generator.plan()).collect(),
    }
}

struct Generator {
    rng: ChaCha8Rng,
    /// Names so far: each is used once in a composition.
    names: u32,
    /// Elements that the pipeline may still get.
    elements: u32,
    /// Whether queues of the pipeline may drop frames.
    leaky: bool,
    allowed: Allowed,
}

impl Generator {
    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_ratio(percent, 100)
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from.choose(&mut self.rng).unwrap().clone()
    }

    fn name(&mut self, kind: char) -> String {
        self.names += 1;
        format!("{kind}{}", self.names)
    }

    fn plan(&mut self) -> Plan {
        let has_actions = self.chance(35);
        self.leaky = self.chance(25);
        let live = self.chance(15);
        self.allowed = Allowed {
            live,
            drops: has_actions || self.leaky,
        };
        self.elements = MOST_ELEMENTS;
        let (source, frames, picture) = self.source();
        let tree = self.tree(picture, MOST_TEES);
        let mut plan = Plan {
            source,
            tree,
            actions: Vec::new(),
        };
        if has_actions {
            plan.actions = self.actions(frames, plan.paths().len());
        }
        plan
    }

    /// The source with its caps, the number of its frames, and what they are.
    fn source(&mut self) -> (String, u32, Picture) {
        let packed = self.chance(10);
        let size = match packed {
            true => self.pick(&PACKED_SIZES),
            false => self.pick(&SIZES),
        };
        let samples = size[0] * size[1];
        let most = (MOST_SAMPLES / samples).clamp(FEWEST_FRAMES, MOST_FRAMES);
        let frames = self.rng.random_range(FEWEST_FRAMES..=most);
        let pattern = self.pick(&PATTERNS);
        let rate = match self.allowed.live {
            true => self.pick(&[200, 500]),
            false => self.pick(&[25, 50]),
        };
        let live = if self.allowed.live { LIVE } else { "" };
        let begin = format!("videotestsrc num-buffers={frames} {pattern}{live} !");
        let [width, height] = size;
        let end = format!("width={width},height={height},framerate={rate}/1");
        if packed {
            let (text, picture) = self.packed(size, &end);
            return (format!("{begin} {text}"), frames, picture);
        }
        let form = self.pick(&Form::RAW);
        let picture = Picture { form, size };
        let mut text = format!("{begin} {},{end}", form.caps());
        match self.rng.random_range(0..4) {
            // Without an answer to its query the source takes memory of its own.
            0 => text += " ! identity drop-allocation=true",
            1 => {
                let picture = Picture {
                    form: self.pick(&Form::RAW),
                    size,
                };
                text += &format!(" ! videoconvert ! {}", picture.form.caps());
                return (text, frames, picture);
            }
            _ => {}
        }
        (text, frames, picture)
    }

    /// What a camera sends, and `clunpack`.
    fn packed(&mut self, size: [u32; 2], end: &str) -> (String, Picture) {
        let form = self.pick(&[Form::Gray8, Form::Gray16]);
        let text = match self.rng.random_range(0..3) {
            0 => format!("video/x-bayer,format=rggb,{end} ! clunpack"),
            1 => format!("video/x-raw,format=GRAY16_LE,{end} ! clunpack packing=mono12p"),
            _ => format!("video/x-raw,format=GRAY16_LE,{end} ! clunpack packing=mono10packed"),
        };
        let text = format!("{text} ! {}", form.caps());
        (text, Picture { form, size })
    }

    fn tree(&mut self, mut picture: Picture, tees: u32) -> Tree {
        let mut chain = Vec::new();
        let elements = self.pick(&[0, 1, 1, 2, 2, 3]).min(self.elements);
        for _ in 0..elements {
            let name = self.name('e');
            let all = elements::behind(picture, self.allowed, &name);
            let Ok(choice) = all.choose_weighted(&mut self.rng, |choice| choice.weight) else {
                break;
            };
            self.elements -= 1;
            chain.push(Link::Element(choice.text.clone()));
            picture = choice.gives;
            if self.chance(10) {
                chain.push(self.queue());
            }
        }
        let has_tee = tees > 0 && self.elements > 0 && self.chance(if tees > 1 { 85 } else { 40 });
        let end = if has_tee {
            End::Tee {
                name: self.name('t'),
                branches: self.branches(picture, tees - 1),
            }
        } else {
            End::Sink(Sink {
                name: self.name('s'),
                reads: self.pick(&[Reads::AtOnce, Reads::AtOnce, Reads::Later, Reads::Never]),
            })
        };
        Tree { chain, end }
    }

    fn branches(&mut self, picture: Picture, tees: u32) -> Vec<Tree> {
        let count = self.pick(&[1, 2, 2, 2, 3, 3]);
        (0..count)
            .map(|_| {
                let queue = (!self.chance(20)).then(|| self.queue());
                let mut tree = self.tree(picture, tees);
                tree.chain.splice(0..0, queue);
                tree
            })
            .collect()
    }

    fn queue(&mut self) -> Link {
        let mut text = self.pick(&QUEUES).to_owned();
        if self.leaky && self.chance(50) {
            text += self.pick(&[" leaky=upstream", " leaky=downstream"]);
        }
        Link::Queue(text)
    }

    fn actions(&mut self, frames: u32, sinks: usize) -> Vec<Action> {
        let count = self.rng.random_range(1..=3);
        let at_all_sinks = frames as usize * sinks;
        (0..count)
            .map(|number| {
                let mut kinds = vec![
                    Change::SeekTo(self.pick(&[0, 30, 90])),
                    Change::Visit(State::Paused),
                    Change::Visit(State::Ready),
                    Change::Visit(State::Null),
                ];
                if number + 1 == count {
                    kinds.push(Change::Stop);
                }
                Action {
                    after: self.rng.random_range(1..=at_all_sinks / (count + 1)),
                    what: self.pick(&kinds),
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Link::Queue;

    /// A piece of a composition's text, or of its actions.
    const PIECES: &[&str] = &[
        "clgaussian !",
        "kernel-size=5",
        "clgaussian memory-object=image",
        "clgaussian line-scan=true",
        "strategy=auto",
        "strategy=local",
        "strategy=private",
        "clpitchthreshold",
        "lattice=",
        "threshold=20 line-scan=true",
        "output=difference",
        "output=frame",
        "video/x-bitmask ! fakesink",
        "video/x-bitmask ! clmaskunpack",
        "image/x-portable-bitmap",
        "clsurface",
        "location=(string)SURFACE",
        "cltexture",
        "<8,2,-2,8>",
        "clflatfield location=WHITE",
        "components=luma location=MEAN",
        "align=translation",
        "inspectoverlay !",
        ".mask inspectoverlay",
        "clunpack packing=mono12p",
        "clunpack packing=mono10packed",
        "x-bayer",
        "drop-allocation=true",
        "is-live=true",
        "videoflip",
        "videocrop",
        "videoscale",
        "gamma gamma",
        "videobalance",
        "framerate=25/1 ! tee",
        "max-size-buffers=1 leaky=upstream",
        "max-size-buffers=1 leaky=downstream",
        "dump=true",
        "a flushing seek",
        "to Paused",
        "to Ready",
        "to Null",
        "a stop",
    ];

    #[test]
    fn every_element_queue_and_action_occurs_in_the_first_compositions() {
        let texts: Vec<String> = (0..100).map(|seed| composition(seed).to_string()).collect();
        for piece in PIECES {
            let count = texts.iter().filter(|text| text.contains(piece)).count();
            assert!(count > 0, "{piece}");
        }
        assert_eq!(texts[7], composition(7).to_string());
    }

    #[test]
    fn tees_are_nested_and_have_branches_with_and_without_queues() {
        fn count(tree: &Tree, depth: usize, found: &mut [[usize; 2]; 3]) {
            if let End::Tee { branches, .. } = &tree.end {
                for branch in branches {
                    let has_queue = matches!(branch.chain.first(), Some(Queue(_)));
                    found[depth][usize::from(has_queue)] += 1;
                    count(branch, depth + 1, found);
                }
            }
        }
        let mut found = [[0; 2]; 3];
        let plans = (0..100).flat_map(|seed| composition(seed).pipelines);
        plans.for_each(|plan| count(&plan.tree, 0, &mut found));
        assert!(found[..2].iter().flatten().all(|&n| n > 10), "{found:?}");
        assert_eq!(found[2], [0, 0]);
    }

    #[test]
    fn a_third_of_the_pipelines_has_actions_and_most_must_be_complete() {
        let plans = (0..100).flat_map(|seed| composition(seed).pipelines);
        let plans: Vec<Plan> = plans.collect();
        let complete = plans.iter().filter(|plan| plan.is_complete()).count();
        let changed = plans.iter().filter(|plan| !plan.actions.is_empty()).count();
        assert!(2 * complete > plans.len(), "{complete} of {}", plans.len());
        assert!(4 * changed > plans.len(), "{changed} of {}", plans.len());
    }
}
