//! The test notices wrong, missing and unexpected frames.

use clinspect_testkit::{device, support};

use crate::{
    files::Files,
    plan::{Composition, End, Link, Plan, Reads, Sink, Tree},
    run::{self, Alone},
};

/// Frames behind these elements, a tee and a queue.
fn composition(frames: u32, elements: &str, reads: Reads) -> Composition {
    let sink = Sink {
        name: "s2".into(),
        reads,
    };
    let branch = Tree {
        chain: vec![Link::Queue("queue".into())],
        end: End::Sink(sink),
    };
    let tree = Tree {
        chain: vec![Link::Element(elements.into())],
        end: End::Tee {
            name: "t1".into(),
            branches: vec![branch],
        },
    };
    let source = format!(
        "videotestsrc num-buffers={frames} pattern=ball ! \
         video/x-raw,format=GRAY8,width=64,height=48,framerate=25/1"
    );
    Composition {
        pipelines: vec![Plan {
            source,
            tree,
            actions: Vec::new(),
        }],
    }
}

/// The failure of `run` if what is expected are the frames of `expected`.
fn failure(run: Composition, expected: &Composition) -> Option<String> {
    let path = |composition: &Composition| composition.pipelines[0].paths().remove(0);
    let (mut alone, files) = (Alone::default(), Files::new());
    alone.learn(expected, &files).unwrap();
    alone.plant(&path(&run), &path(expected));
    run::composition(&run, &alone, &files).err()
}

const JUDGED: &str = "clpitchthreshold name=p pitch-x=4 pitch-y=4 multiples=<1> min-contrast=0 output=frame threshold=20";

#[test]
fn wrong_pixels_and_results_and_missing_frames_are_noticed() {
    support::register();
    if device::open().is_none() {
        return;
    }
    let other_limit = JUDGED.replace("threshold=20", "threshold=21");
    let smoothed = "clgaussian";
    let more = "clgaussian kernel-size=5 sigma=0.8";
    for reads in [Reads::AtOnce, Reads::Later, Reads::Never] {
        let of = |frames, elements: &str| composition(frames, elements, reads);
        let fails = |run, expected, why: &str| {
            let failure = failure(run, &expected).unwrap_or_default();
            assert!(failure.contains(why), "{reads:?}: no {why:?}: {failure}");
        };
        assert_eq!(failure(of(20, smoothed), &of(20, smoothed)), None);
        assert_eq!(failure(of(20, JUDGED), &of(20, JUDGED)), None);
        fails(of(20, &other_limit), of(20, JUDGED), "has other results");
        fails(
            of(20, smoothed),
            of(21, smoothed),
            "1 of 21 frames are missing",
        );
        fails(
            of(21, smoothed),
            of(20, smoothed),
            "no frame 800000000 is expected",
        );
        if reads != Reads::Never {
            fails(of(20, smoothed), of(20, more), "has other pixels");
        }
    }
}
