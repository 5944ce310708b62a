//! The figures as text.

use std::fmt::Write;

use crate::{DeviceCost, IncrementCost, increment::Increment};

/// The tables of a device.
pub fn to_text(cost: &DeviceCost) -> String {
    let mut text = String::new();
    // Writing into a string does not fail.
    let _ = write(&mut text, cost);
    text
}

/// The table of a device's program that increments integers.
pub fn of_increment(cost: &IncrementCost) -> String {
    let mut text = format!("{} ({})\n", cost.device, cost.kind);
    let _ = write_increment(&mut text, &cost.increment);
    text + "\n"
}

fn write_increment(text: &mut String, program: &Increment) -> std::fmt::Result {
    let title = format!("increment {} integers, ms", program.count);
    writeln!(
        text,
        "\n{title:36} {:>12} {:>12}",
        "empty cache", "warm cache"
    )?;
    for step in &program.steps {
        let (cold, warm) = (ms(step.cold_ms), ms(step.warm_ms));
        writeln!(text, "{:36} {cold:>12} {warm:>12}", step.step)?;
    }
    let (cold, warm) = (ms(program.cold_ms), ms(program.warm_ms));
    writeln!(text, "{:36} {cold:>12} {warm:>12}", "sum of these steps")
}

fn write(text: &mut String, cost: &DeviceCost) -> std::fmt::Result {
    writeln!(
        text,
        "{} ({}, {} compute units, memory {} the host)",
        cost.device,
        cost.kind,
        cost.compute_units,
        if cost.shares_host_memory {
            "shared with"
        } else {
            "apart from"
        }
    )?;
    write_increment(text, &cost.increment)?;
    writeln!(
        text,
        "\n{:36} {:>12} {:>12}",
        "start, ms", "empty cache", "warm cache"
    )?;
    for step in &cost.startup {
        let (cold, warm) = (ms(step.cold_ms), ms(step.warm_ms));
        writeln!(text, "{:36} {cold:>12} {warm:>12}", step.step)?;
    }
    writeln!(text, "\n{:34} {:>12}", "operation", "ms")?;
    for operation in &cost.operations {
        writeln!(text, "{:34} {:>12}", operation.operation, ms(operation.ms))?;
    }
    writeln!(
        text,
        "\n{:>10} {:>10} {:>8} {:>10} {:>8} {:>14} {:>14}",
        "bytes", "upload ms", "MB/s", "downl. ms", "MB/s", "map+unmap wr.", "map+unmap rd."
    )?;
    for transfer in &cost.transfers {
        writeln!(
            text,
            "{:>10} {:>10} {:>8.0} {:>10} {:>8.0} {:>14} {:>14}",
            transfer.bytes,
            ms(transfer.upload_ms),
            transfer.upload_mb_per_s,
            ms(transfer.download_ms),
            transfer.download_mb_per_s,
            ms(transfer.map_write_ms),
            ms(transfer.map_read_ms)
        )?;
    }
    for element in &cost.elements {
        writeln!(
            text,
            "\n{} {}\n{:>10} {:>14} {:>14} {:>8} {:>14} {:>8}",
            element.element,
            element.settings,
            "frame",
            "sequential ms",
            "host-host ms",
            "times",
            "on device ms",
            "times"
        )?;
        for size in &element.sizes {
            writeln!(
                text,
                "{:>10} {:>14} {:>14} {:>8.2} {:>14} {:>8.2}",
                name(size.size),
                ms(size.sequential_ms),
                ms(size.host_ms),
                size.sequential_ms / size.host_ms,
                ms(size.on_device_ms),
                size.sequential_ms / size.on_device_ms
            )?;
        }
        let from = |size: Option<[usize; 2]>| {
            size.map_or("at no measured size".into(), |size| {
                format!("from {} on", name(size))
            })
        };
        writeln!(
            text,
            "faster than sequential {} (frame and result on the host), {} (on the device)",
            from(element.faster_from),
            from(element.faster_from_on_device)
        )?;
    }
    writeln!(
        text,
        "\nMedians after a warm-up. Frames are GRAY8 panels. Sequential: plain Rust loops on one \
         thread,\nvectorised by the compiler for this build's CPU baseline ({}); results are checked \
         to be equal.\nThe first program or element also includes the start of the compiler.\n",
        std::env::consts::ARCH
    )
}

fn ms(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.4}"),
    }
}

fn name([width, height]: [usize; 2]) -> String {
    format!("{width}x{height}")
}
