//! Settings that change while frames flow.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use gst::{glib, prelude::*};

use super::progress;
use crate::elements::last_report::LastReport;
use clinspect_core::ClError;
use clinspect_opencl::{beside_frames, without_compiler};

/// The error of a frame that came before its caps.
pub fn before_caps() -> ClError {
    ClError::Input("received a frame before its caps".into())
}

/// How long a stop or new caps wait for a running compiler.
const BUILD_LIMIT: Duration = Duration::from_secs(3);

/// Builds an operator from settings, on any thread.
type Build<S, O> = Arc<dyn Fn(&S) -> Result<O, ClError> + Send + Sync>;

/// Settings, and the operator that was built from them.
#[derive(Debug)]
pub struct InForce<S, O> {
    /// The operator in use.
    pub operator: O,
    /// Its settings.
    pub settings: S,
}

/// The operator in use, and its replacement when settings change.
///
/// If the kernels for new settings are compiled already, the next frame uses them. Otherwise a
/// thread compiles them, frames continue with the operator in use, and the first frame after the
/// compilation switches. If settings are refused, the operator stays in use, and the element warns once.
pub struct Live<S, O> {
    element: glib::WeakRef<gst::Element>,
    /// `None` before the first caps, and after caps that were refused.
    in_force: Option<InForce<S, O>>,
    build: Option<Build<S, O>>,
    refused: LastReport<S>,
    pending: Option<Pending<S, O>>,
}

impl<S: Clone + PartialEq + Send + 'static, O: Send + 'static> Live<S, O> {
    /// Without an operator; `element` posts messages.
    pub fn new(element: &impl IsA<gst::Element>) -> Self {
        Self {
            element: element.upcast_ref::<gst::Element>().downgrade(),
            in_force: None,
            build: None,
            refused: LastReport::default(),
            pending: None,
        }
    }

    /// Builds the operator for new caps; compiles kernels if necessary. From now on `build` makes an operator for
    /// each change of the settings, possibly on another thread.
    ///
    /// # Errors
    /// The error of `build`.
    pub fn start(
        &mut self,
        settings: S,
        build: impl Fn(&S) -> Result<O, ClError> + Send + Sync + 'static,
    ) -> Result<(), ClError> {
        // Two operators for large frames may not fit in the device's memory.
        (self.in_force, self.pending) = (None, None);
        self.refused.clear();
        let element = self.element.clone();
        let build = move |settings: &S| progress::report(&element, || build(settings));
        let operator = build(&settings)?;
        self.in_force = Some(InForce { operator, settings });
        self.build = Some(Arc::new(build));
        Ok(())
    }

    /// The operator in use and its settings; `None` before caps were accepted.
    pub fn get(&self) -> Option<&InForce<S, O>> {
        self.in_force.as_ref()
    }

    /// The operator in use and its settings.
    ///
    /// # Errors
    /// [`ClError::Input`] before caps were accepted.
    pub fn in_force(&mut self) -> Result<&mut InForce<S, O>, ClError> {
        self.in_force.as_mut().ok_or_else(before_caps)
    }

    /// Applies the settings before a frame. Builds no program in this thread, unless the system can start no other; a
    /// driver may still generate code for a kernel's first launch. If the settings are refused, the element warns once,
    /// and `restore` gets the refused settings and those in force, to set the properties back.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn follow(&mut self, wanted: S, restore: impl FnOnce(&S, &S)) -> Result<(), ClError> {
        let finished = self.pending.take_if(|pending| pending.is_finished());
        if !self.is_new(&wanted)? {
            return Ok(());
        }
        match finished.map(|mut pending| (pending.take_result(), pending.settings.clone())) {
            Some((result, settings)) if settings == wanted => {
                return self.take(settings, result, restore);
            }
            // The settings changed again meanwhile, but these are newer than the ones in use.
            Some((Ok(operator), settings)) => {
                self.in_force = Some(InForce { operator, settings });
            }
            // The settings that were refused are no longer wanted.
            Some((Err(ClError::Refused(_)), _)) | None => {}
            Some((Err(error), _)) => return Err(error),
        }
        if (self.pending.as_ref()).is_some_and(|pending| pending.settings == wanted) {
            return Ok(());
        }
        let build = self.build.clone().ok_or_else(before_caps)?;
        if let Some(result) = without_compiler(|| build(&wanted)) {
            return self.take(wanted, result, restore);
        }
        if self.pending.is_none() {
            self.pending = Pending::start(wanted.clone(), &build);
            if self.pending.is_none() {
                return self.switch(wanted, restore);
            }
        }
        Ok(())
    }

    /// [`Self::follow`], but waits for a compiler if necessary.
    ///
    /// # Errors
    /// A failing OpenCL call.
    pub fn switch(&mut self, wanted: S, restore: impl FnOnce(&S, &S)) -> Result<(), ClError> {
        self.pending = None;
        if !self.is_new(&wanted)? {
            return Ok(());
        }
        let build = self.build.clone().ok_or_else(before_caps)?;
        let result = build(&wanted);
        self.take(wanted, result, restore)
    }

    /// Whether the settings are neither in use nor refused.
    fn is_new(&mut self, wanted: &S) -> Result<bool, ClError> {
        if *wanted == self.in_force()?.settings {
            self.refused.clear();
            return Ok(false);
        }
        Ok(!self.refused.is_last(wanted))
    }

    fn take(
        &mut self,
        settings: S,
        result: Result<O, ClError>,
        restore: impl FnOnce(&S, &S),
    ) -> Result<(), ClError> {
        match result {
            Ok(operator) => {
                self.in_force = Some(InForce { operator, settings });
                self.refused.clear();
                Ok(())
            }
            Err(error @ ClError::Refused(_)) => {
                self.refused.is_new(settings.clone());
                if let (Some(element), Some(in_force)) = (self.element.upgrade(), &self.in_force) {
                    refuse(&element, &error, || restore(&settings, &in_force.settings));
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// Posts a warning that settings are refused, and sets the properties back with `restore`.
pub fn refuse(element: &gst::Element, error: &ClError, restore: impl FnOnce()) {
    let values = || -> Vec<(glib::ParamSpec, String)> {
        let specs = element.list_properties();
        let specs = specs.iter().cloned();
        specs
            .filter(|spec| spec.flags().contains(glib::ParamFlags::READWRITE))
            .map(|spec| {
                let value = element.property_value(spec.name());
                (spec, format!("{value:?}"))
            })
            .collect()
    };
    let before = values();
    restore();
    for ((spec, before), (_, after)) in before.iter().zip(values()) {
        if *before != after {
            element.notify_by_pspec(spec);
        }
    }
    gst::element_warning!(
        element,
        gst::LibraryError::Settings,
        ("{}", error),
        ["the properties have their previous values again"]
    );
}

/// Replaces `settings` by `in_force` if they are still the refused ones.
pub fn put_back<T: Clone + PartialEq>(settings: &mut T, refused: &T, in_force: &T) {
    if settings == refused {
        *settings = in_force.clone();
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

    /// The result of a thread that has ended.
    fn take_result(&mut self) -> Result<O, ClError> {
        self.result.take().unwrap_or_else(|| {
            Err(ClError::Unavailable(
                "the thread that compiles for changed settings has ended without a result; stop and start the \
                 pipeline"
                    .into(),
            ))
        })
    }

    /// Whether the thread has ended.
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
        gst::init().expect("GStreamer");
        let bin = gst::Bin::new();
        let mut live = Live::new(&bin);
        assert!(live.follow(1, |_, _| ()).is_err(), "before caps");
        live.start(1, build).expect("live");
        let mut restored = Vec::new();
        let mut follow = |wanted: i32| {
            let restore = |refused: &i32, in_force: &i32| restored.push((*refused, *in_force));
            live.follow(wanted, restore).expect("no failing call");
            let InForce { operator, settings } = live.in_force().expect("an operator");
            (*operator, *settings)
        };
        assert_eq!(follow(-1), (10, 1));
        assert_eq!(follow(-1), (10, 1));
        assert_eq!(follow(2), (20, 2));
        assert_eq!(follow(-1), (20, 2));
        assert_eq!(restored, [(-1, 1), (-1, 2)]);
    }
}
