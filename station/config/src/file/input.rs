//! The table `[camera.machine.input]`: the line whose edges are triggers.

use plan::{Edge, InputSettings};

use super::{gpio, mistakes::Mistakes, table::Table};

/// Reads the table, if there is one.
pub(super) fn read(
    machine: &mut Table<'_, '_>,
    mistakes: &mut Mistakes<'_>,
) -> Option<InputSettings> {
    let mut table = machine.table("input", mistakes)?;
    let gpio = gpio::read(&mut table, "input", mistakes);
    let edges = [("rising", Edge::Rising), ("falling", Edge::Falling)];
    let edge = table.choice("edge", &edges, mistakes);
    table.finish(mistakes);
    Some(InputSettings {
        gpio: gpio?,
        edge: edge.unwrap_or(Edge::Rising),
    })
}
