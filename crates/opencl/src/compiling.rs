//! Tells an observer what the driver is about to compile.

use std::{cell::RefCell, rc::Rc};

/// What a driver may compile now; its cache may hold the result already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compiling {
    /// A program, by its file; this process has not built the program before.
    Program(&'static str),
    /// A kernel that is launched; PoCL generates machine code at the first launch.
    Kernel(&'static str),
}

type Observer = Rc<dyn Fn(Compiling)>;

thread_local! {
    static OBSERVER: RefCell<Option<Observer>> = const { RefCell::new(None) };
}

/// Runs `work`, and calls `observer` before each program that is built and each kernel that is
/// launched on this thread meanwhile.
pub fn observe_compiler<T>(observer: impl Fn(Compiling) + 'static, work: impl FnOnce() -> T) -> T {
    OBSERVER.set(Some(Rc::new(observer)));
    let result = work();
    OBSERVER.set(None);
    result
}

/// Calls the observer of this thread.
pub(super) fn note(what: Compiling) {
    // The observer must not run while the cell is borrowed.
    let observer = OBSERVER.with_borrow(Clone::clone);
    if let Some(observer) = observer {
        observer(what);
    }
}
