//! Autocorrelation by FFT, and interpolation between whole lags.
//!
//! # Source
//! Wiener–Khinchin theorem: the autocorrelation is the Fourier transform of the power spectrum
//! (N. Wiener, Generalized Harmonic Analysis, Acta Mathematica 55, 1930). Lines are padded with
//! zeros to at least twice their length, so that the correlation does not wrap (Press et al.,
//! Numerical Recipes, "Correlation and Autocorrelation Using the FFT").

use rustfft::FftPlanner;
use rustfft::num_complex::Complex32;

/// `(−1)^k·C(11, k)`, the barycentric weights of twelve nodes. A sine of 0.3 cycles/px loses less
/// than 1 % halfway between two nodes, and the effect on the pitch is divided by the multiple.
const BINOMIALS: [f64; 12] = [
    1.0, -11.0, 55.0, -165.0, 330.0, -462.0, 462.0, -330.0, 165.0, -55.0, 11.0, -1.0,
];
/// The first node, counted from the whole lag at or before the position.
const FIRST_TAP: isize = -5;

/// Sums the power spectra of lines and transforms the sum; keeps plans and buffers.
#[derive(Default)]
pub struct Correlator {
    planner: Option<FftPlanner<f32>>,
    buffer: Vec<Complex32>,
    scratch: Vec<Complex32>,
    /// Sum of the lines' power, bins 0..=M/2.
    power: Vec<f32>,
}

impl Correlator {
    /// Starts a sum over lines of `length` samples.
    pub fn start(&mut self, length: usize) {
        let size = transform_length(2 * length);
        self.buffer.clear();
        self.buffer.resize(size, Complex32::default());
        self.power.clear();
        self.power.resize(size / 2 + 1, 0.0);
    }

    /// Adds two lines: `fill` writes one into the real and the other into the imaginary parts of a
    /// zeroed buffer, from its start, at most as many samples as given to `start`.
    pub fn add_pair(&mut self, fill: impl FnOnce(&mut [Complex32])) {
        self.buffer.fill(Complex32::default());
        fill(&mut self.buffer);
        self.transform();
        let size = self.buffer.len();
        // Real a and b, z = a + ib: |A|² + |B|² = (|Z(k)|² + |Z(−k)|²) / 2.
        for (k, power) in self.power.iter_mut().enumerate() {
            let mirrored = if k == 0 { 0 } else { size - k };
            *power += 0.5 * (self.buffer[k].norm_sqr() + self.buffer[mirrored].norm_sqr());
        }
    }

    /// The summed autocorrelation at lags `0..lags` after each of two filters, computed by one
    /// transform. `gains` are the filters' power gains at `f` cycles/px.
    pub fn filtered(
        &mut self,
        gains: [&dyn Fn(f32) -> f32; 2],
        out: [&mut Vec<f32>; 2],
        lags: usize,
    ) {
        let size = self.buffer.len();
        for k in 0..=size / 2 {
            let f = k as f32 / size as f32;
            let value = Complex32::new(gains[0](f), gains[1](f)) * self.power[k];
            self.buffer[k] = value;
            if k > 0 {
                self.buffer[size - k] = value;
            }
        }
        self.transform();
        // A real, even spectrum has a real transform: one result is the real part, the other the
        // imaginary part.
        let lags = lags.min(size / 2);
        let scale = 1.0 / size as f32;
        let [first, second] = out;
        first.clear();
        first.extend(self.buffer[..lags].iter().map(|v| v.re * scale));
        second.clear();
        second.extend(self.buffer[..lags].iter().map(|v| v.im * scale));
    }

    /// For lags `0..length`: the summed autocorrelation, the autocorrelation of the weight (the
    /// pairs), and the energies of the left and of the right samples of all pairs.
    pub fn with_weight(&mut self, weight: &[f32], energy: &[f32], out: &mut Overlaps) {
        let size = self.buffer.len();
        let length = weight.len();
        let scale = 1.0 / size as f32;

        self.buffer.fill(Complex32::default());
        for (slot, (&w, &e)) in self.buffer.iter_mut().zip(weight.iter().zip(energy)) {
            *slot = Complex32::new(w, e);
        }
        self.transform();
        // Split the spectrum into W and E. |W|² is even and real, conj(W)·E is Hermitian, so the
        // sum |W|² + i·conj(W)·E transforms into n(τ) + i·(energy of the right samples).
        self.scratch_spectrum(|z, mirrored| {
            let w = (z + mirrored.conj()) * 0.5;
            let e = (z - mirrored.conj()) * Complex32::new(0.0, -0.5);
            Complex32::new(w.norm_sqr(), 0.0) + Complex32::i() * (w.conj() * e)
        });
        // The forward transform reverses time: lag −τ is at index τ.
        self.transform();
        let forward = |i: usize| (size - i) % size;
        out.pairs.clear();
        out.pairs
            .extend((0..length).map(|lag| self.buffer[lag].re * scale));
        out.right.clear();
        out.right
            .extend((0..length).map(|lag| self.buffer[forward(lag)].im * scale));
        out.left.clear();
        out.left
            .extend((0..length).map(|lag| self.buffer[lag].im * scale));

        for k in 0..=size / 2 {
            let value = Complex32::new(self.power[k], 0.0);
            self.buffer[k] = value;
            if k > 0 {
                self.buffer[size - k] = value;
            }
        }
        self.transform();
        out.product.clear();
        out.product
            .extend(self.buffer[..length].iter().map(|v| v.re * scale));
    }

    /// Replaces every bin by a function of the bin and its mirror at zero.
    fn scratch_spectrum(&mut self, function: impl Fn(Complex32, Complex32) -> Complex32) {
        let size = self.buffer.len();
        for k in 0..=size / 2 {
            let mirrored = (size - k) % size;
            let (a, b) = (self.buffer[k], self.buffer[mirrored]);
            self.buffer[k] = function(a, b);
            self.buffer[mirrored] = function(b, a);
        }
    }

    fn transform(&mut self) {
        let planner = self.planner.get_or_insert_with(FftPlanner::new);
        let plan = planner.plan_fft_forward(self.buffer.len());
        self.scratch
            .resize(plan.get_inplace_scratch_len(), Complex32::default());
        plan.process_with_scratch(&mut self.buffer, &mut self.scratch);
    }
}

/// Sums over all pairs of weighted samples one lag apart; index is the lag.
#[derive(Default)]
pub struct Overlaps {
    /// Products.
    pub product: Vec<f32>,
    /// Number of pairs.
    pub pairs: Vec<f32>,
    /// Squares of the left samples.
    pub left: Vec<f32>,
    /// Squares of the right samples.
    pub right: Vec<f32>,
}

/// The smallest length from `least` on that is a power of two, or 3 or 5 times a power of two: such
/// lengths are fast to transform.
pub fn transform_length(least: usize) -> usize {
    let power = least.max(16).next_power_of_two();
    [power / 8 * 5, power / 4 * 3, power]
        .into_iter()
        .find(|&length| length >= least)
        .unwrap_or(power)
}

/// Lowers the correlation at lag 0 to the highest value elsewhere. White noise correlates at lag 0
/// only, and interpolation would spread that to the lags around.
pub fn remove_noise_at_zero(rho: &mut [f32]) {
    // Far lags have few pairs.
    let near = rho.get(2..rho.len() / 2).unwrap_or(&[]);
    let highest = near.iter().copied().fold(0.0, f32::max);
    if let Some(zero) = rho.first_mut() {
        *zero = zero.min(highest);
    }
}

/// The value of an even sequence (`values[0]` at lag 0) between whole lags; 0 past its end.
///
/// Not a windowed sinc: its second moment changes with the fraction, which pulls broad peaks
/// towards whole lags (by 0.03 px at a period of 100 px).
///
/// # Source
/// Lagrange's polynomial in barycentric form; equidistant nodes have the binomial coefficients of
/// alternating sign as weights (J.-P. Berrut, L. N. Trefethen, Barycentric Lagrange Interpolation,
/// SIAM Review 46, 2004).
pub fn interpolate(values: &[f32], lag: f64) -> f64 {
    let whole = lag.floor();
    let fraction = lag - whole;
    let whole = whole as isize;
    let at = |i: isize| values.get(i.unsigned_abs()).map_or(0.0, |&v| f64::from(v));
    if fraction < 1e-9 {
        return at(whole);
    }
    let (mut sum, mut weights) = (0.0, 0.0);
    for (binomial, tap) in BINOMIALS.iter().zip(FIRST_TAP..) {
        let weight = binomial / (fraction - tap as f64);
        sum += weight * at(whole + tap);
        weights += weight;
    }
    sum / weights
}
