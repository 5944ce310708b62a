//! The program of the line station.

fn main() {}
