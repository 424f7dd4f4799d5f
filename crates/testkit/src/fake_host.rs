//! A host whose configuration is a text, and that can be told to fail.

use std::sync::{Mutex, MutexGuard, PoisonError};

use checkpoint_core::{BoxError, HostKept, HostState};

#[derive(Debug, Default)]
struct Inner {
    config: String,
    fails: bool,
    forgets: bool,
    restored: u32,
}

/// A host with a configuration; while that is empty there is nothing to keep.
#[derive(Debug, Default)]
pub struct FakeHost(Mutex<Inner>);

impl FakeHost {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes its configuration.
    pub fn set(&self, config: &str) {
        config.clone_into(&mut self.inner().config);
    }

    /// Its configuration, and how often one was restored.
    pub fn get(&self) -> (String, u32) {
        let inner = self.inner();
        (inner.config.clone(), inner.restored)
    }

    /// Whether what it takes holds only until it ends.
    pub fn forget(&self, forgets: bool) {
        self.inner().forgets = forgets;
    }

    /// Whether it fails from now on.
    pub fn fail(&self, fails: bool) {
        self.inner().fails = fails;
    }
}

impl HostState for FakeHost {
    fn save(&self) -> Result<Option<Vec<u8>>, BoxError> {
        let inner = self.inner();
        if inner.fails {
            return Err("the host keeps nothing".into());
        }
        Ok(Some(inner.config.clone().into_bytes()).filter(|config| !config.is_empty()))
    }

    fn restore(&self, state: &[u8]) -> Result<HostKept, BoxError> {
        let mut inner = self.inner();
        if inner.fails {
            return Err("the host takes nothing".into());
        }
        inner.config = String::from_utf8(state.to_vec())?;
        inner.restored += 1;
        Ok(if inner.forgets { HostKept::ThisProcess } else { HostKept::Durable })
    }
}
