//! The state of a buffer: its owner, its contents, and the commands that use it.

use std::sync::Arc;

use super::{event::Event, mapping::Mapping};
use clinspect_core::ClError;

/// The owner of a buffer.
#[derive(Debug)]
pub(super) enum State {
    /// The device.
    Device(Contents),
    /// The host reads through `maps` maps; kernels may read too.
    Reading {
        mapping: Mapping,
        maps: usize,
        contents: Contents,
    },
    /// The device. The host's last mapping for reading is kept, so the next map for reading needs
    /// no transfer. A writer ends the mapping first.
    Kept {
        mapping: Mapping,
        contents: Contents,
    },
    /// The host writes through `maps` maps.
    Writing { mapping: Mapping, maps: usize },
    /// Nobody: an unmap failed. The host's write may be lost, and the driver may still count the
    /// buffer as mapped.
    Broken(ClError),
}

/// The contents of a buffer, and the last commands that used it.
#[derive(Debug)]
pub(super) enum Contents {
    /// Undefined. The next write need not preserve anything, but must come after `last`.
    Undefined { last: Option<Arc<Event>> },
    /// Written by `writer`, whose failure fails the next user of the buffer. `reader` is the last reader since.
    Written {
        writer: Arc<Event>,
        reader: Option<Arc<Event>>,
    },
}

impl Contents {
    pub const NEW: Self = Self::Undefined { last: None };

    /// Contents that `writer` wrote.
    pub fn written_by(writer: Arc<Event>) -> Self {
        Self::Written {
            writer,
            reader: None,
        }
    }

    /// Notes the last command that reads. All readers are in one queue, in order.
    pub fn note_read(&mut self, event: Arc<Event>) {
        match self {
            Self::Undefined { last } => *last = Some(event),
            Self::Written { reader, .. } => *reader = Some(event),
        }
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined { .. })
    }

    /// The command that wrote the contents.
    pub fn writer(&self) -> Option<&Arc<Event>> {
        match self {
            Self::Undefined { .. } => None,
            Self::Written { writer, .. } => Some(writer),
        }
    }

    /// Later readers wait for `writer`, which wrote the part that they read. The last reader remains.
    pub fn set_writer(&mut self, writer: Arc<Event>) {
        let reader = self.reader().cloned();
        *self = Self::Written { writer, reader };
    }

    /// The last command that read the contents; for undefined contents, the last command that used
    /// the memory.
    pub fn reader(&self) -> Option<&Arc<Event>> {
        match self {
            Self::Undefined { last } => last.as_ref(),
            Self::Written { reader, .. } => reader.as_ref(),
        }
    }

    /// Forgets the last reader, so that its failure fails only one map.
    pub fn forget_reader(&mut self) {
        match self {
            Self::Undefined { last } => *last = None,
            Self::Written { reader, .. } => *reader = None,
        }
    }

    /// The last command that used the memory.
    pub fn last_use(&self) -> Option<&Arc<Event>> {
        self.reader().or(self.writer())
    }

    /// Declares the contents undefined, and returns the failure of the command that wrote them.
    pub fn set_undefined(&mut self) -> Option<ClError> {
        let failure = self.writer()?.failure("a frame");
        // A failed command has ended, and the next writer must not fail because of it.
        let last = self
            .reader()
            .or(self.writer().filter(|_| failure.is_none()));
        *self = Self::Undefined {
            last: last.cloned(),
        };
        failure
    }
}

impl State {
    /// The contents; `None` while only the host has them, and after a failed unmap.
    pub fn contents(&mut self) -> Option<&mut Contents> {
        match self {
            Self::Device(contents)
            | Self::Reading { contents, .. }
            | Self::Kept { contents, .. } => Some(contents),
            Self::Writing { .. } | Self::Broken(_) => None,
        }
    }

    /// The mapping in force.
    pub fn mapping(&self) -> Option<Mapping> {
        match self {
            Self::Reading { mapping, .. }
            | Self::Kept { mapping, .. }
            | Self::Writing { mapping, .. } => Some(*mapping),
            Self::Device(_) | Self::Broken(_) => None,
        }
    }
}
