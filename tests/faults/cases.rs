//! The cases: every element, buffers and images, and the GPU code paths on a CPU that claims to be a
//! GPU.

use crate::stand::Case;

/// A GPU with memory of its own.
pub const GPU: &str = "lie type 4\nlie unified 0\n";

const fn case(name: &'static str, elements: &'static str, format: &'static str) -> Case {
    Case {
        name,
        elements,
        format,
        size: [96, 48],
        ours: false,
        lies: "",
    }
}

const fn ours(case: Case) -> Case {
    Case { ours: true, ..case }
}

const fn gpu(case: Case) -> Case {
    Case { lies: GPU, ..case }
}

/// Judges every frame: a training would begin anew after a fault, and other frames would be judged.
const REFERENCE: &str = "clreference location=MODEL threshold=20 align=translation search-range=8 match-score=0.1 normalize=gain";

/// A case of strips of 24 rows.
const fn web(name: &'static str, elements: &'static str) -> Case {
    Case {
        size: [96, 24],
        ..case(name, elements, "GRAY8")
    }
}

/// Holds two strips: a comparison with rows 32 rows away needs 33 rows below.
const WEB: &str = "clpitchthreshold line-scan=true pitch-x=8 pitch-y=8 multiples=<1,4> min-contrast=0 \
                   threshold=20 output=frame";

/// Every case.
pub const ALL: &[Case] = &[
    case("gaussian", "clgaussian", "GRAY8"),
    case("gaussian-image", "clgaussian memory-object=image", "GRAY8"),
    ours(case(
        "gaussian-planes",
        "clgaussian kernel-size=5 arithmetic=float profile=true",
        "I420",
    )),
    gpu(case("gaussian-gpu", "clgaussian", "GRAY8")),
    case("histogram", "clhistogram", "GRAY8"),
    case("histogram-image", "clhistogram memory-object=image", "NV12"),
    ours(case(
        "histogram-local",
        "clhistogram strategy=local profile=true",
        "RGB",
    )),
    Case {
        size: [640, 480],
        ..case("histogram-pairs", "clhistogram", "GRAY8")
    },
    case("histogram-words", "clhistogram", "GRAY16_LE"),
    gpu(case("histogram-gpu", "clhistogram", "RGB")),
    case("unpack", "clunpack packing=mono12p", "GRAY16_LE"),
    ours(case(
        "unpack-ours",
        "clunpack packing=mono10p profile=true",
        "GRAY16_LE",
    )),
    gpu(case(
        "unpack-gpu",
        "clunpack packing=mono12packed",
        "GRAY16_LE",
    )),
    case("pitch", "clpitchthreshold pitch-x=8 pitch-y=8", "GRAY8"),
    case(
        "pitch-packed",
        "clpitchthreshold pitch-x=8 ! capsfilter caps=video/x-bitmask",
        "GRAY8",
    ),
    case(
        "pitch-pbm",
        "clpitchthreshold pitch-x=8 profile=true ! capsfilter caps=image/x-portable-bitmap",
        "I420",
    ),
    ours(case(
        "pitch-frame",
        "clpitchthreshold pitch-x=8 output=frame",
        "GRAY8",
    )),
    case(
        "pitch-image",
        "clpitchthreshold pitch-x=8 memory-object=image",
        "GRAY8",
    ),
    case("pitch-estimated", "clpitchthreshold pitch-y=-1", "GRAY8"),
    gpu(case("pitch-gpu", "clpitchthreshold pitch-x=8", "GRAY8")),
    case(
        "flat-field",
        "clflatfield location=WHITE profile=true",
        "GRAY8",
    ),
    ours(case(
        "flat-field-ours",
        "clflatfield location=WHITE",
        "GRAY8",
    )),
    gpu(case(
        "flat-field-gpu",
        "clflatfield location=WHITE",
        "GRAY8",
    )),
    case("reference", REFERENCE, "GRAY8"),
    ours(case(
        "reference-frame",
        "clreference location=MODEL threshold=20 output=frame profile=true",
        "GRAY8",
    )),
    gpu(case("reference-gpu", REFERENCE, "GRAY8")),
    // Without a model, whose learning has frames of its own.
    case(
        "surface",
        "clsurface channels=dark-lines thresholds=<2.0,2.0,2.0,2.0,2.0,2.0,2.0,2.0>",
        "GRAY8",
    ),
    web("web", WEB),
    ours(web(
        "web-gaussian",
        "clgaussian line-scan=true kernel-size=31",
    )),
    // Rows of frames are as far apart as those of the web, so strips are uploaded straight into it.
    gpu(Case {
        size: [128, 24],
        ..web("web-gpu", WEB)
    }),
    // The source writes strips into OpenCL memory.
    ours(gpu(Case {
        size: [128, 24],
        ..web(
            "web-chain-gpu",
            "clgaussian line-scan=true ! clpitchthreshold line-scan=true pitch-y=8 threshold=20",
        )
    })),
    gpu(Case {
        size: [90, 24],
        ..web("web-padded-gpu", WEB)
    }),
    ours(case(
        "chain",
        "clgaussian ! clhistogram ! clpitchthreshold pitch-x=8 output=frame",
        "GRAY8",
    )),
    gpu(case(
        "chain-gpu",
        "clgaussian profile=true ! clhistogram profile=true ! \
         clpitchthreshold pitch-x=8 profile=true",
        "GRAY8",
    )),
];

/// A driver that keeps no compiled programs, so the plugin keeps them.
pub const KEPT: Case = Case {
    lies: "lie platform 1\n",
    ..case("kept", "clgaussian", "GRAY8")
};

/// A GPU of NVIDIA, on which a failure ends the context, so that commands in the middle of a submission have no events. The
/// layer's failures end no context.
pub const NVIDIA: Case = Case {
    lies: "lie type 4\nlie unified 0\nlie platform 2\n",
    ..case("nvidia", "clgaussian", "GRAY8")
};

/// The case of this name.
pub fn named(name: &str) -> Case {
    let mut all = ALL.iter().chain([&KEPT, &NVIDIA]);
    *all.find(|case| case.name == name).expect("a case")
}
