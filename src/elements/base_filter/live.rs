//! Settings that change while frames flow.

use std::{
    fmt,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use crate::elements::told::Told;
use clinspect_core::ClError;
use clinspect_opencl::{beside_frames, without_compiler};

/// How long a stop or new caps wait for a running compiler.
const BUILD_LIMIT: Duration = Duration::from_secs(3);

/// Builds an operator from settings, on any thread.
type Build<S, O> = Arc<dyn Fn(&S) -> Result<O, ClError> + Send + Sync>;

/// The operator in use, and its replacement when settings change.
///
/// If the kernels for new settings are compiled already, the next frame uses them. Otherwise a
/// thread compiles them, frames continue with the operator in use, and the first frame after the
/// compilation switches. If settings are refused, the operator stays in use.
pub struct Live<S, O> {
    /// The operator in use.
    pub operator: O,
    /// The settings of the operator in use.
    pub settings: S,
    build: Build<S, O>,
    refused: Told<S>,
    pending: Option<Pending<S, O>>,
}

impl<S: fmt::Debug, O> fmt::Debug for Live<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl<S: Clone + PartialEq + Send + 'static, O: Send + 'static> Live<S, O> {
    /// An operator for the settings; compiles kernels if necessary.
    ///
    /// # Errors
    /// The error of `build`.
    pub fn new(
        settings: S,
        build: impl Fn(&S) -> Result<O, ClError> + Send + Sync + 'static,
    ) -> Result<Self, ClError> {
        Ok(Self {
            operator: build(&settings)?,
            settings,
            build: Arc::new(build),
            refused: Told::default(),
            pending: None,
        })
    }

    /// Applies the settings before a frame; never waits for a compiler. Returns a refusal once.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn follow(&mut self, wanted: S) -> Result<Option<ClError>, ClError> {
        let finished = self.pending.take_if(|pending| pending.is_finished());
        if !self.is_new(&wanted) {
            return Ok(None);
        }
        match finished
            .and_then(|mut pending| Some((pending.result.take()?, pending.settings.clone())))
        {
            Some((result, settings)) if settings == wanted => return self.take(settings, result),
            // The settings changed again meanwhile, but these are newer than the ones in use.
            Some((Ok(operator), settings)) => (self.operator, self.settings) = (operator, settings),
            _ => {}
        }
        if (self.pending.as_ref()).is_some_and(|pending| pending.settings == wanted) {
            return Ok(None);
        }
        if let Some(result) = without_compiler(|| (self.build)(&wanted)) {
            return self.take(wanted, result);
        }
        if self.pending.is_none() {
            self.pending = Pending::start(wanted.clone(), &self.build);
            if self.pending.is_none() {
                return self.switch(wanted);
            }
        }
        Ok(None)
    }

    /// Applies the settings, and waits for a compiler if necessary. Returns a refusal once.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn switch(&mut self, wanted: S) -> Result<Option<ClError>, ClError> {
        self.pending = None;
        if !self.is_new(&wanted) {
            return Ok(None);
        }
        let result = (self.build)(&wanted);
        self.take(wanted, result)
    }

    /// Whether the settings are neither in use nor refused.
    fn is_new(&mut self, wanted: &S) -> bool {
        if *wanted == self.settings {
            self.refused.clear();
            return false;
        }
        !self.refused.is_last(wanted)
    }

    fn take(
        &mut self,
        settings: S,
        result: Result<O, ClError>,
    ) -> Result<Option<ClError>, ClError> {
        match result {
            Ok(operator) => {
                self.operator = operator;
                self.settings = settings;
                self.refused.clear();
                Ok(None)
            }
            Err(error @ ClError::Refused(_)) => {
                self.refused.is_news(settings);
                Ok(Some(error))
            }
            Err(error) => Err(error),
        }
    }
}

/// An operator that a thread builds.
struct Pending<S, O> {
    settings: S,
    sent: Receiver<Result<O, ClError>>,
    result: Option<Result<O, ClError>>,
    thread: Option<JoinHandle<()>>,
}

impl<S: Clone + Send + 'static, O: Send + 'static> Pending<S, O> {
    /// Starts the thread; `None` if the system cannot start one.
    fn start(settings: S, build: &Build<S, O>) -> Option<Self> {
        let (sender, sent) = channel();
        let (build, wanted) = (build.clone(), settings.clone());
        let thread = std::thread::Builder::new().name("clbuild".into());
        let thread = thread
            .spawn(move || {
                let result = beside_frames(|| build(&wanted));
                // Release the context before the result is sent, so that it ends with the element.
                drop(build);
                // After a stop nobody receives the result.
                let _ = sender.send(result);
            })
            .ok()?;
        Some(Self {
            settings,
            sent,
            result: None,
            thread: Some(thread),
        })
    }

    /// Whether the thread has ended; `result` is then set.
    fn is_finished(&mut self) -> bool {
        match self.sent.try_recv() {
            Err(TryRecvError::Empty) => false,
            Err(TryRecvError::Disconnected) => true,
            Ok(result) => {
                self.result = Some(result);
                true
            }
        }
    }
}

impl<S, O> Drop for Pending<S, O> {
    fn drop(&mut self) {
        // The process must not exit while the compiler runs, so a stop waits for the thread. A
        // thread whose compiler hangs is abandoned.
        let hangs = matches!(
            self.sent.recv_timeout(BUILD_LIMIT),
            Err(RecvTimeoutError::Timeout)
        );
        if let Some(thread) = self.thread.take().filter(|_| !hangs) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(n: &i32) -> Result<i32, ClError> {
        if *n < 0 {
            Err(ClError::Refused("negative".into()))
        } else {
            Ok(10 * n)
        }
    }

    #[test]
    fn live_refused_settings_leave_the_operator_and_are_told_once() {
        let mut live = Live::new(1, build).expect("live");
        assert!(matches!(live.follow(-1), Ok(Some(_))));
        assert!(matches!(live.follow(-1), Ok(None)));
        assert_eq!((live.operator, live.settings), (10, 1));
        assert!(matches!(live.follow(2), Ok(None)));
        assert_eq!((live.operator, live.settings), (20, 2));
        assert!(matches!(live.follow(-1), Ok(Some(_))));
    }
}
