//! Marks and folds (001): an exploration is replaced, on the model's surface, by a report of it. Pure: reads events,
//! decides, builds the replacement. Who holds the log appends it ([`FoldHost`]); marks live in the index.
//!
//! ```
//! use checkpoint_core::fold::{ReportLanguage, TurnGuard};
//! use checkpoint_core::Turn;
//!
//! assert_eq!(ReportLanguage::En.sections()[0], "Findings");
//! let mut guard = TurnGuard::default();
//! assert!(guard.at_turn_stop("main", Turn(1), Ok(true)).is_some());
//! assert!(guard.at_turn_stop("main", Turn(1), Ok(true)).is_none(), "once per turn");
//! ```

mod error;
mod extract;
mod guard;
mod host;
mod message;
mod region;
mod report;
mod route;
mod summarise;
mod surface;
#[cfg(test)]
mod test_log;
mod tool;

pub use error::FoldError;
pub use extract::extract;
pub use guard::TurnGuard;
pub use host::{FoldHost, FoldLocks, FoldOutcome, FoldRequest, Folded, LocalFolds, ReportSource};
pub use message::{Block, Message, Role, char_count};
pub use region::{Region, RegionEnd, find_report, select_region};
pub use report::{REPORT_PLUGIN, Replacement, ReportLanguage, instruction, is_fold_report};
pub use route::{ReportConfig, ReportRoute, RoutedRequest, choose_route, last_request};
pub use summarise::{
    Cancel, Completion, Explored, ReportMessage, ReportRequest, Summariser, SummariserError, summarise,
};
pub use surface::{Replaced, Surface, SurfaceError, SurfaceNode, log_length, open_turn};
pub use tool::{CHECKPOINT_TOOL, PROMPT_ORDER, PROMPT_SECTION, REWIND_TOOL, prompt_section, session_of};
