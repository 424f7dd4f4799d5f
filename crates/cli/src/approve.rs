//! Who says yes to a restore (design § 7, step 0). Enter never destroys.

use std::sync::Arc;

use checkpoint_core::{Approver, Decision, Preview};

use crate::config::{Confirm, MayRestore, Settings};
use crate::output::Output;
use crate::run::Run;
use crate::signals::Stop;

/// How a restore gets its yes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Consent {
    /// It was given beforehand.
    Given,
    /// Somebody at a terminal is asked.
    Ask,
    /// There is nobody.
    Nobody,
}

/// Decides how consent comes about.
///
/// `planned`: `--plan` names what is agreed to. An agent's own `--yes` counts only under `agent.may_restore = allow`.
pub(crate) fn consent(run: &Run, settings: &Settings, planned: bool, by_agent: bool) -> Consent {
    let given = match settings.confirm() {
        Confirm::Never => true,
        Confirm::Ask => run.global.yes,
        Confirm::Plan => run.global.yes && planned,
    };
    if given && (!by_agent || settings.may_restore() == MayRestore::Allow) {
        Consent::Given
    } else if run.may_ask() {
        Consent::Ask
    } else {
        Consent::Nobody
    }
}

/// The engine's approver.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) out: Arc<Output>,
    pub(crate) consent: Consent,
    pub(crate) stop: StopOnYes,
}

/// From the yes on, signals are caught: before, nothing is written and a signal may end the process at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopOnYes(pub(crate) Stop);

impl Approver for Asker {
    fn decide(&self, preview: &Preview) -> Decision {
        match self.consent {
            Consent::Given => Decision::Approved,
            Consent::Nobody => Decision::Unavailable,
            Consent::Ask => {
                self.out.note(crate::verbs::plan_text::preview_text(preview, self.out.below()).trim_end());
                match self.out.ask("Go on? [y/N] ").as_deref() {
                    Some("y" | "yes") => {
                        self.out.agree();
                        self.stop.0.listen();
                        Decision::Approved
                    }
                    _ => Decision::Rejected,
                }
            }
        }
    }

    fn is_settled(&self) -> bool {
        self.consent == Consent::Given
    }
}
