//! A thread that writes what is due.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use super::{EventLogStore, JsonlStore};

/// How often the thread looks while nothing waits.
const PAUSE: Duration = Duration::from_millis(20);

/// Writes what a store has due, until dropped; then everything that waits, due or not.
#[derive(Debug)]
pub struct Writer {
    store: JsonlStore,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start(store: &JsonlStore) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (theirs, watched) = (store.clone(), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("event-log".to_owned()).spawn(move || {
            while !watched.load(Ordering::SeqCst) {
                for (id, error) in theirs.tend() {
                    tracing::warn!(session = id, %error, "events wait: their log cannot be written");
                }
                theirs.clock().sleep(PAUSE);
            }
        })?;
        Ok(Self { store: store.clone(), stop, thread: Some(thread) })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::warn!("the writer of event logs had panicked");
        }
        for (id, error) in self.store.flush_all() {
            tracing::warn!(session = id, %error, "events are lost: their log could not be written");
        }
    }
}
