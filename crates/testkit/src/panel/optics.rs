//! The camera's optics: a Gaussian point-spread function and the pixel's square aperture of 1 px.
//!
//! Pixel centres are at integer coordinates; all lengths are in pixels.

use std::f64::consts::{FRAC_2_SQRT_PI, PI, SQRT_2};

/// Reach of the Gaussian in sigmas; the tail beyond (3e-6) is invisible at 16 bits.
const REACH_SIGMAS: f64 = 4.5;

/// Point-spread function and aperture, as transfer function and as responses to bars.
#[derive(Clone, Copy, Debug)]
pub struct Optics {
    /// Standard deviation of the point-spread function, px; 0 is a perfect lens.
    pub psf_sigma_px: f64,
}

impl Optics {
    /// Share of the amplitude of a sine of `frequency` cycles/px that reaches the samples:
    /// `exp(−2π²σ²f²)·sinc(f)`.
    ///
    /// # Source
    /// Fourier pairs of the Gaussian and of the unit box (R. N. Bracewell, The Fourier Transform
    /// and Its Applications, table of pairs); detector aperture as a sinc factor
    /// (G. D. Boreman, Modulation Transfer Function in Optical and Electro-Optical Systems).
    pub fn transfer(&self, frequency: f64) -> f64 {
        let phase = PI * frequency;
        let aperture = if phase == 0.0 {
            1.0
        } else {
            phase.sin() / phase
        };
        let sigma = self.psf_sigma_px;
        (-2.0 * phase * phase * sigma * sigma).exp() * aperture
    }

    /// The sample of a pixel whose centre is `offset_px` from the centre of a bar of `width_px` and
    /// height 1: bar ⊗ aperture ⊗ point-spread function, in closed form.
    ///
    /// # Source
    /// With `F″` the Gaussian, two boxes of widths w and 1 convolved with it are the second
    /// difference `F(t+(w+1)/2) − F(t+(w−1)/2) − F(t−(w−1)/2) + F(t−(w+1)/2)`.
    pub fn bar(&self, offset_px: f64, width_px: f64) -> f64 {
        let (outer, inner) = ((width_px + 1.0) / 2.0, (width_px - 1.0) / 2.0);
        self.ramp(offset_px + outer) - self.ramp(offset_px + inner) - self.ramp(offset_px - inner)
            + self.ramp(offset_px - outer)
    }

    /// Distance from an edge, px, beyond which the edge does not change a sample.
    pub fn reach_px(&self) -> f64 {
        0.5 + REACH_SIGMAS * self.psf_sigma_px
    }

    /// The twofold integral of the point-spread function: `tΦ(t/σ) + σφ(t/σ)`.
    fn ramp(&self, t: f64) -> f64 {
        let sigma = self.psf_sigma_px;
        if sigma == 0.0 {
            return t.max(0.0);
        }
        let z = t / sigma;
        let density = (-0.5 * z * z).exp() * FRAC_2_SQRT_PI / (2.0 * SQRT_2);
        t * 0.5 * (1.0 + erf(z / SQRT_2)) + sigma * density
    }
}

/// Error function to f64 precision.
///
/// # Source
/// Abramowitz and Stegun 7.1.6: `2/√π·e^(−x²)·Σ 2ⁿx^(2n+1)/(2n+1)!!`, all terms of one sign.
fn erf(x: f64) -> f64 {
    // 1 − erf(6) is 2e-17: below the precision of f64.
    if x.abs() >= 6.0 {
        return x.signum();
    }
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > sum.abs() * f64::EPSILON {
        odd += 2.0;
        term *= 2.0 * x * x / odd;
        sum += term;
    }
    FRAC_2_SQRT_PI * (-x * x).exp() * sum
}
