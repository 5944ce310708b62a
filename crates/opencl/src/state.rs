//! The state of a buffer: who has it, what it holds, and which commands use it.

use std::sync::Arc;

use super::{event::Event, mapping::Mapping};
use clinspect_core::ClError;

/// Who has a buffer.
#[derive(Debug)]
pub(super) enum State {
    /// The device.
    Device(Contents),
    /// The host reads it through `maps` maps; kernels may read it too.
    Reading {
        mapping: Mapping,
        maps: usize,
        contents: Contents,
    },
    /// The device, and the host's mapping for reading still stands: the next reader needs no
    /// transfer. Whoever writes ends the mapping first.
    Kept {
        mapping: Mapping,
        contents: Contents,
    },
    /// The host writes it through `maps` maps.
    Writing { mapping: Mapping, maps: usize },
    /// Nobody: an unmap failed. What the host wrote may be lost, and the driver may think that the
    /// host still writes.
    Broken(ClError),
}

/// What a buffer holds, and the last commands that used it.
#[derive(Debug)]
pub(super) enum Contents {
    /// Nothing of worth. The next write need not keep it, but must come after `last`.
    Undefined { last: Option<Arc<Event>> },
    /// What `writer` wrote; its failure surfaces at whoever uses the buffer next. `reader` came
    /// after it.
    Written {
        writer: Arc<Event>,
        reader: Option<Arc<Event>>,
    },
}

impl Contents {
    pub const NEW: Self = Self::Undefined { last: None };

    /// What `writer` wrote.
    pub fn written_by(writer: Arc<Event>) -> Self {
        Self::Written {
            writer,
            reader: None,
        }
    }

    /// Notes the last command that reads. Readers are all in one queue, in order.
    pub fn note_read(&mut self, event: Arc<Event>) {
        match self {
            Self::Undefined { last } => *last = Some(event),
            Self::Written { reader, .. } => *reader = Some(event),
        }
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined { .. })
    }

    /// Who wrote them.
    pub fn writer(&self) -> Option<&Arc<Event>> {
        match self {
            Self::Undefined { .. } => None,
            Self::Written { writer, .. } => Some(writer),
        }
    }

    /// Who has read them since, or used the memory before.
    pub fn reader(&self) -> Option<&Arc<Event>> {
        match self {
            Self::Undefined { last } => last.as_ref(),
            Self::Written { reader, .. } => reader.as_ref(),
        }
    }

    /// Forgets the last reader, so that its failure fails one map only.
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

    /// Declares them worthless, and returns the failure of the command that wrote them.
    pub fn set_undefined(&mut self) -> Option<ClError> {
        let failure = self.writer()?.failure("a frame");
        // A failed command is over, and whoever writes next must not fail for it.
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
    /// What the buffer holds, unless the host is writing it or it is lost.
    pub fn contents(&mut self) -> Option<&mut Contents> {
        match self {
            Self::Device(contents)
            | Self::Reading { contents, .. }
            | Self::Kept { contents, .. } => Some(contents),
            Self::Writing { .. } | Self::Broken(_) => None,
        }
    }

    /// The mapping that stands.
    pub fn mapping(&self) -> Option<Mapping> {
        match self {
            Self::Reading { mapping, .. }
            | Self::Kept { mapping, .. }
            | Self::Writing { mapping, .. } => Some(*mapping),
            Self::Device(_) | Self::Broken(_) => None,
        }
    }
}
