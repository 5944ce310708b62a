//! What the server asks of the station.

use std::{pin::Pin, sync::Arc};

use crate::answer::Machine;

/// A camera that runs.
pub trait Camera: Send + Sync {
    /// Its frames between their arrival and their outcomes.
    fn machine(&self) -> &Machine;

    /// Whether frames come and are inspected.
    ///
    /// # Errors
    /// 1: camera lost, 2: device lost, 3: settings refused; 0: it starts.
    fn is_online(&self) -> Result<(), u16>;

    /// Raises an alarm.
    fn alarm(&self, text: String);
}

/// Finds the camera of a name among those that run.
pub type FindCamera = Box<dyn Fn(&str) -> Option<Arc<dyn Camera>> + Send + Sync>;

/// The recipes, and the switch to one of them.
pub trait Recipes: Send + Sync {
    /// Whether another recipe comes into force, and the number of the one in force.
    fn in_force(&self) -> (bool, Option<u16>);

    /// The names of the recipes with this number. Reads the files.
    fn with_number(&self, number: u16) -> Vec<String>;

    /// Switches all cameras to a recipe, or none.
    ///
    /// # Errors
    /// A sentence: all cameras are as before.
    fn switch<'a>(&'a self, name: &'a str) -> SwitchResult<'a>;
}

/// A switch in progress.
pub type SwitchResult<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;
