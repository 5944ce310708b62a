//! Drivers that compute wrong or read old memory: the self-test refuses the start.

use crate::{
    layer::{self, Report},
    stand::{Case, Frame, Stand},
};

/// A fault of a driver.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// With the property at its default.
    elements: &'static str,
    format: &'static str,
    size: [u32; 2],
    /// A CPU that claims to be a GPU has other kernels.
    device: &'static str,
    fault: &'static str,
    /// Words of the error.
    words: &'static [&'static str],
}

const fn on_cpu(
    elements: &'static str,
    fault: &'static str,
    words: &'static [&'static str],
) -> Scenario {
    Scenario {
        elements,
        format: "GRAY8",
        size: [96, 48],
        device: "",
        fault,
        words,
    }
}

const GPU: &str = crate::cases::GPU;
const TEXTURE: &str = "cltexture pitch-x=8 pitch-y=8 thresholds=<3.0,2.0,1.5,1.2,2.0,1.5>";
const TURNED_TEXTURE: &str =
    "cltexture lattice=<8.0,2.0,-2.0,8.0> thresholds=<3.0,2.0,1.5,1.2,2.0,1.5>";
/// A row of means is brighter by 64 grey levels.
const BRIGHT_ROW: &str = "edit STORE_SHORTS(means,~SCALED(sum,~repeat.w)); STORE_SHORTS(means,SCALED(sum,repeat.w)+(lanes_t)(y==40?4096u:0u));";
/// As high as the test frame of a texture.
const TALL: [u32; 2] = [96, 64];
const OLD_HOST: &[&str] = &["reads old contents of host memory"];
const OLD_MAPPED: &[&str] = &["reads old contents of mapped OpenCL memory"];

/// Every scenario.
pub const ALL: &[Scenario] = &[
    on_cpu(
        "clgaussian",
        "edit if~(n~<~count)~{ out[9]~^=~1;if~(n~<~count)~{",
        &["gaussian_binomial", "x=9 y=0 of component 0"],
    ),
    Scenario {
        format: "RGB",
        ..on_cpu(
            "clgaussian kernel-size=9 arithmetic=float",
            "edit store_sums16(out~+~x~*~SAMPLE_BYTES,~sum); store_sums16(out+x*SAMPLE_BYTES,(x==16)?sum+3:sum);",
            &["gaussian_rows", "of component 0"],
        )
    },
    on_cpu(
        "clhistogram",
        "edit bin_of(v,~shift,~bins)]~+=~n; bin_of(v,~shift,~bins)]~+=~n~+~(v~==~77);",
        &["the histogram (Bytes", "bin 77 of component 0"],
    ),
    Scenario {
        device: GPU,
        ..on_cpu(
            "clhistogram strategy=local",
            "edit atomic_inc(&table[ atomic_inc(&table[(get_global_id(0)==3)+",
            &["the histogram (Local", "of component 0"],
        )
    },
    on_cpu(
        "clpitchthreshold pitch-x=20 pitch-y=0",
        "edit count~+=~popcount(bits); if(word==1&&y==5)out[4]^=32;count~+=~popcount(bits);",
        &["the pitch comparison (Words", "x=34 y=5 of the mask"],
    ),
    Scenario {
        format: "RGB",
        ..on_cpu(
            "clreference",
            "edit =~COMPONENT(GREEN); =~COMPONENT(BLUE);",
            &["the split into components", "of green"],
        )
    },
    Scenario {
        format: "BGRx",
        ..on_cpu(
            "clreference",
            "edit marked~+=~popcount(bits); marked~+=~popcount(bits)+(word==3);",
            &["the union of masks", "the number of marked pixels"],
        )
    },
    on_cpu(
        "clreference",
        "edit out[2~*~block]~=~(uchar)bits; out[2*block]=(uchar)(bits^(y==7));",
        &["the comparison with a reference", "x=7 y=7 of the mask"],
    ),
    Scenario {
        size: TALL,
        ..on_cpu(
            TEXTURE,
            "edit x,~n,~limits)~&~wanted; x,n,limits)&wanted^(x==32&&y==5?1u<<29:0u);",
            &["the texture comparison (Rows", "x=34 y=5 of the mask"],
        )
    },
    Scenario {
        size: TALL,
        device: GPU,
        ..on_cpu(
            TEXTURE,
            "edit nibbles[row][at~/~4]~=~(uchar)bits; nibbles[row][at/4]=(uchar)(bits^(x==8&&y==6));",
            &["the texture comparison (Items", "x=11 y=6 of the mask"],
        )
    },
    Scenario {
        size: TALL,
        ..on_cpu(
            TURNED_TEXTURE,
            BRIGHT_ROW,
            &["the texture comparison (Rows along vectors", "of the mask"],
        )
    },
    Scenario {
        size: TALL,
        device: GPU,
        ..on_cpu(
            TURNED_TEXTURE,
            BRIGHT_ROW,
            &["the texture comparison (Items along vectors", "of the mask"],
        )
    },
    Scenario {
        size: TALL,
        ..on_cpu(
            "clsurface channels=novelty+dark-lines",
            "edit mask[mask_offset~+~at]~=~(uchar)bits; mask[mask_offset+at]=(uchar)(bits^(y==12&&column==4?8u:0u));",
            &[
                "the comparison of a surface (lines true",
                "x=36 y=12 of the mask",
            ],
        )
    },
    on_cpu(
        "clflatfield",
        "edit SAMPLE_BYTES,~last); SAMPLE_BYTES,last);if(y==3)to[5]^=4;",
        &["the flat field (Area", "x=5 y=3 of component 0"],
    ),
    on_cpu("clgaussian", "lie stale-wrapped 1", OLD_HOST),
    on_cpu("clgaussian", "lie stale-mapped 1", OLD_MAPPED),
    // The layer may have seen the address of the test frame before.
    on_cpu("clhistogram", "lie stale-wrapped 1", &["host memory"]),
    on_cpu(
        "clpitchthreshold pitch-x=8",
        "lie stale-mapped 1",
        OLD_MAPPED,
    ),
    Scenario {
        device: "lie type 4\nlie unified 1\n",
        ..on_cpu("clgaussian", "lie stale-wrapped 1", OLD_HOST)
    },
];

impl Scenario {
    pub fn name(&self) -> String {
        let words = self.fault.split_whitespace().take(2).collect::<Vec<_>>();
        format!("{} {}: {}", self.elements, self.format, words.join(" "))
    }

    fn stand(&self, mode: &str, fault: &str) -> Stand {
        // Each scenario leaks a few small strings.
        Stand::new(Case {
            name: "self-test",
            elements: format!("{} self-test={mode}", self.elements).leak(),
            format: self.format,
            size: self.size,
            ours: false,
            lies: format!("{}{fault}\n", self.device).leak(),
        })
    }
}

/// # Errors
/// The expectation that failed.
pub fn try_one(scenario: &Scenario) -> Result<(), String> {
    let trace = scenario.stand("always", scenario.fault).live(None);
    let [error] = &trace.errors[..] else {
        return Err(format!("not one error: {:?}", trace.errors));
    };
    let advice = ["update the driver", "set device to another device"];
    let mut words = scenario.words.iter().chain(&advice);
    if let Some(missing) = words.find(|word| !error.contains(**word)) {
        return Err(format!("no \"{missing}\" in: {error}"));
    }
    let is_out = |frame: &Frame| matches!(frame, Frame::Out(_));
    if trace.frames.iter().any(is_out) {
        return Err("frames pass".into());
    }
    let trusted = scenario.stand("never", scenario.fault).live(None);
    if !trusted.errors.is_empty() {
        return Err(format!("self-test=never: {:?}", trusted.errors));
    }
    // The same element without the fault.
    let healthy = scenario.stand("always", "").live(None);
    if !healthy.errors.is_empty() || !healthy.frames.iter().all(is_out) {
        return Err(format!("without the fault: {:?}", healthy.errors));
    }
    passes_are_kept(scenario)
}

/// `auto` runs the test once, whatever process the element is in, and again for another driver.
fn passes_are_kept(scenario: &Scenario) -> Result<(), String> {
    let launches = |mode: &str| {
        let before = Report::now().unwrap_or_default();
        let trace = scenario.stand(mode, "").live(None);
        let calls = Report::now().unwrap_or_default().calls_since(&before);
        match trace.errors.first() {
            Some(error) => Err(error.clone()),
            None => Ok(calls.get("clEnqueueNDRangeKernel").copied().unwrap_or(0)),
        }
    };
    let _ = launches("auto")?;
    let (never, auto, always) = (launches("never")?, launches("auto")?, launches("always")?);
    if auto != never || always <= never {
        return Err(format!(
            "launches: never {never}, auto {auto}, always {always}"
        ));
    }
    let cache = &layer::cache();
    let kept = std::fs::read_dir(cache).map_or(0, Iterator::count);
    if kept == 0 {
        return Err(format!("no pass is kept in {}", cache.display()));
    }
    Ok(())
}
