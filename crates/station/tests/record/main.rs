//! Recordings of failed frames, and the numbers for Prometheus.

mod disk;
mod limits;
mod metrics;
mod pixels;
mod sequence;
mod support;
