//! Interrupts and progress: the first signal asks the engine to stop at the next safe place, the second ends at once.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use checkpoint_core::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Nothing is shown before something has taken so long.
const PATIENCE: Duration = Duration::from_millis(300);

/// Set by the first signal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    asked: Arc<AtomicBool>,
    /// Somebody else listens and says it.
    told: bool,
}

impl Stop {
    /// What another stops: signals are left to it.
    #[cfg(feature = "mcp")]
    pub(crate) const fn told_by(asked: Arc<AtomicBool>) -> Self {
        Self { asked, told: true }
    }

    /// From now on the first SIGINT, SIGTERM or SIGHUP asks to stop and a second one ends the process, which leaves
    /// the intent open for `rwd recover`. Before, a signal ends the process at once: nothing is being written then.
    pub(crate) fn listen(&self) {
        if self.told {
            return;
        }
        // The two actions of a signal are set one after the other: what comes in between must not get lost.
        let early = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let code = i32::from(crate::exit::INTERRUPTED);
            let noticed = signal_hook::flag::register(signal, Arc::clone(&early));
            let second = noticed
                .and_then(|_| signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&self.asked)));
            let first = second.and_then(|_| signal_hook::flag::register(signal, Arc::clone(&self.asked)));
            if let Err(error) = first {
                tracing::warn!(%error, signal, "signals cannot be caught: an interrupt will need rwd recover");
            }
        }
        if early.load(Ordering::Relaxed) {
            self.asked.store(true, Ordering::Relaxed);
        }
    }

    /// True once a signal came.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

/// Shows how far it is on a terminal, and stops when a signal came.
pub(crate) struct Watch {
    stop: Stop,
    shown: AtomicBool,
    bar: Mutex<Option<(Instant, ProgressBar)>>,
}

impl Watch {
    pub(crate) fn new(stop: Stop, shown: bool) -> Self {
        Self { stop, shown: AtomicBool::new(shown), bar: Mutex::new(None) }
    }

    /// Shows nothing from now on.
    pub(crate) fn hush(&self) {
        self.shown.store(false, Ordering::Relaxed);
    }

    /// Takes the line away again.
    pub(crate) fn clear(&self) {
        if let Some((_, bar)) = self.bar.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
    }

    fn show(&self, what: &'static str, done: u64, total: Option<u64>) {
        let mut slot = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, bar) = slot.get_or_insert_with(|| (Instant::now(), ProgressBar::hidden()));
        if since.elapsed() < PATIENCE {
            return;
        }
        if bar.is_hidden() {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        let template = if total.is_some() { "{msg} {pos}/{len}" } else { "{msg} {pos}" };
        if bar.message() != what {
            bar.set_style(ProgressStyle::with_template(template).expect("the template is well-formed"));
            bar.set_message(what);
        }
        match total {
            Some(total) => bar.set_length(total),
            None => bar.unset_length(),
        }
        bar.set_position(done);
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("stop", &self.stop).finish_non_exhaustive()
    }
}

impl Progress for Watch {
    fn tick(&self, what: &'static str, done: u64, total: Option<u64>) -> ControlFlow<()> {
        if self.shown.load(Ordering::Relaxed) {
            self.show(what, done, total);
        }
        if self.stop.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
