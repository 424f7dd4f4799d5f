//! Which model writes the report, and with what (001-17).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{LogEvent, fold::FoldError};

/// A model, by provider and name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReportRoute {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
}

impl ReportRoute {
    /// `None` unless both are there and not empty.
    pub fn of(provider: Option<&str>, model: Option<&str>) -> Option<Self> {
        let filled = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        Some(Self { provider: filled(provider)?, model: filled(model)? })
    }
}

/// Settings of the report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReportConfig {
    /// Provider; counts only together with a model.
    pub provider: Option<String>,
    /// Model; counts only together with a provider.
    pub model: Option<String>,
    /// Most tokens of a report, at least 1.
    pub max_tokens: u64,
    /// How often an answer without text is asked for again, at most [`ReportConfig::MOST_RETRIES`].
    pub retries: u32,
}

impl Default for ReportConfig {
    fn default() -> Self {
        Self { provider: None, model: None, max_tokens: 1024, retries: 2 }
    }
}

impl ReportConfig {
    /// Largest allowed number of retries.
    pub const MOST_RETRIES: u32 = 8;

    /// Checks the ranges.
    ///
    /// # Errors
    /// [`FoldError::BadConfig`] names the setting.
    pub fn check(&self) -> Result<(), FoldError> {
        if self.max_tokens == 0 {
            return Err(FoldError::BadConfig { key: "maxTokens", why: "must be at least 1".to_owned() });
        }
        if self.retries > Self::MOST_RETRIES {
            let why = format!("must be 0 to {}", Self::MOST_RETRIES);
            return Err(FoldError::BadConfig { key: "retries", why });
        }
        Ok(())
    }
}

/// What the session's last request to a model was made with.
#[derive(Clone, Debug)]
pub struct RoutedRequest {
    /// Whom it went to.
    pub route: ReportRoute,
    /// The system prompt, as it was written.
    pub system: Option<Arc<RawValue>>,
    /// The tools, as they were written.
    pub tools: Option<Arc<RawValue>>,
}

#[derive(Deserialize)]
struct Logged {
    header: Header,
}

#[derive(Deserialize)]
struct Header {
    config: Config,
    system: Option<Box<RawValue>>,
    tools: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Config {
    provider: Option<String>,
    model: Option<String>,
}

/// The last request of a log that says where it went.
pub fn last_request(events: &[LogEvent]) -> Option<RoutedRequest> {
    events.iter().rev().filter(|event| &*event.kind == "request/header").find_map(|event| {
        let header = event.read::<Logged>().ok()?.header;
        Some(RoutedRequest {
            route: ReportRoute::of(header.config.provider.as_deref(), header.config.model.as_deref())?,
            system: header.system.map(Into::into),
            tools: header.tools.map(Into::into),
        })
    })
}

/// Chooses the model: as configured, else where the last request went, else the agent's own, else none (001-17).
pub fn choose_route(
    config: &ReportConfig,
    last: Option<&RoutedRequest>,
    agent: Option<&ReportRoute>,
) -> Result<ReportRoute, FoldError> {
    let agent = agent.and_then(|route| ReportRoute::of(Some(&route.provider), Some(&route.model)));
    ReportRoute::of(config.provider.as_deref(), config.model.as_deref())
        .or_else(|| last.map(|request| request.route.clone()))
        .or(agent)
        .ok_or(FoldError::NoRoute)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::test_log::Log;
    use serde_json::json;

    fn route(provider: &str, model: &str) -> ReportRoute {
        ReportRoute { provider: provider.into(), model: model.into() }
    }

    #[test]
    fn c001_17_configured_then_logged_then_the_agents_own() {
        let mut log = Log::default();
        log.push("request/header", json!({"header": {"config": {"provider": "lp", "model": "old"}}}));
        log.push("request/header", json!({"header": {"config": {"provider": "lp", "model": "lm"}}}));
        log.push("request/header", json!({"header": {"config": {"provider": "", "model": "x"}}}));
        let last = last_request(log.events());
        let agent = route("ap", "am");
        let mut config =
            ReportConfig { provider: Some("cp".into()), model: Some("cm".into()), ..ReportConfig::default() };
        assert_eq!(choose_route(&config, last.as_ref(), Some(&agent)).unwrap(), route("cp", "cm"));
        // Both are needed.
        config.model = None;
        assert_eq!(choose_route(&config, last.as_ref(), Some(&agent)).unwrap(), route("lp", "lm"));
    }

    #[test]
    fn tm31_the_agents_options_come_last_and_need_both() {
        let none = ReportConfig::default();
        assert_eq!(choose_route(&none, None, Some(&route("ap", "am"))).unwrap(), route("ap", "am"));
        for agent in [None, Some(route("", "am")), Some(route("ap", ""))] {
            assert_eq!(choose_route(&none, None, agent.as_ref()).unwrap_err().code(), "NO_MODEL");
        }
    }

    #[test]
    fn c001_17_ranges_are_checked_and_the_setting_is_named() {
        let good = ReportConfig::default();
        assert_eq!((good.max_tokens, good.retries), (1024, 2));
        for retries in [0, 8] {
            ReportConfig { retries, ..good.clone() }.check().unwrap();
        }
        let bad = ReportConfig { retries: 9, ..good.clone() }.check().unwrap_err();
        assert!(bad.code() == "BAD_CONFIG" && bad.to_string().contains("retries"), "{bad}");
        let bad = ReportConfig { max_tokens: 0, ..good }.check().unwrap_err();
        assert!(bad.code() == "BAD_CONFIG" && bad.to_string().contains("maxTokens"), "{bad}");
    }
}
