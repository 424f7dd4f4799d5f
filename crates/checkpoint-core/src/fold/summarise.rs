//! Asking a model for the report (001-17). The model is the caller's.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::value::RawValue;

use crate::{BoxError, LogEvent, Mark};

use super::{
    FoldError, Region, ReportConfig, ReportLanguage, ReportRoute, Role, choose_route, instruction, last_request,
};

/// Tells work that it is no longer wanted. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Says so. Cannot be taken back.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// True once it was said.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// One message of the region.
#[derive(Clone, Debug)]
pub struct ReportMessage {
    /// Who speaks.
    pub role: Role,
    /// The message as plain text.
    pub text: String,
    /// The payload as it is in the log, for a caller that speaks the host's own format.
    pub data: Arc<RawValue>,
}

/// What a model is asked. The instruction is the last message, from the user, after the region's messages; system
/// prompt and tools are those of the session, so that the provider's prefix cache still fits.
#[derive(Clone, Debug)]
pub struct ReportRequest {
    /// Which model.
    pub route: ReportRoute,
    /// The session's system prompt.
    pub system: Option<Arc<RawValue>>,
    /// The session's tools.
    pub tools: Option<Arc<RawValue>>,
    /// The region's messages; empty ones are left out.
    pub messages: Vec<ReportMessage>,
    /// What to write.
    pub instruction: String,
    /// The language asked for.
    pub language: ReportLanguage,
    /// What the exploration was for.
    pub objective: Option<String>,
    /// Most tokens of the answer.
    pub max_tokens: u64,
    /// Set the reasoning effort `off`: the model has that, and thinking would use the answer's tokens up.
    pub thinking_off: bool,
}

/// What a model answered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Completion {
    /// The text; blank when there was none.
    pub text: String,
    /// Why it ended.
    pub finish: Option<String>,
    /// Tokens of the answer.
    pub output_tokens: Option<u64>,
    /// Those it thought with.
    pub reasoning_tokens: Option<u64>,
}

/// Why a model did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummariserError {
    /// The caller stopped it.
    #[error("stopped")]
    Aborted,
    /// The stream broke or the provider refused.
    #[error("the model failed")]
    Failed {
        /// How.
        #[source]
        source: BoxError,
    },
}

/// A model that can write a report. Supplied by the host; rwd speaks to no model itself.
pub trait Summariser: fmt::Debug + Send + Sync {
    /// True when this route has the reasoning effort `off`.
    fn can_turn_thinking_off(&self, _route: &ReportRoute) -> bool {
        false
    }

    /// Asks once. Blocks until the answer is complete; returns early with [`SummariserError::Aborted`] when `cancel`
    /// says so. An answer without text is no error here.
    fn summarise(&self, request: &ReportRequest, cancel: &Cancel) -> Result<Completion, SummariserError>;
}

/// What a report is about.
#[derive(Clone, Copy, Debug)]
pub struct Explored<'a> {
    /// The log.
    pub events: &'a [LogEvent],
    /// What of it is to be replaced.
    pub region: &'a Region,
    /// The mark that it follows.
    pub mark: &'a Mark,
    /// The language to report in.
    pub language: ReportLanguage,
}

/// Asks for the report of a region: again while the answer has no text, never after an error (001-17).
pub fn summarise(
    summariser: &dyn Summariser,
    config: &ReportConfig,
    agent: Option<&ReportRoute>,
    of: &Explored<'_>,
    cancel: &Cancel,
) -> Result<String, FoldError> {
    let Explored { events, region, mark, language } = *of;
    config.check()?;
    let last = last_request(events);
    let route = choose_route(config, last.as_ref(), agent)?;
    let (system, tools) = last.map_or((None, None), |request| (request.system, request.tools));
    let said = region.messages(events).filter(|(_, message)| !message.is_empty());
    let request = ReportRequest {
        thinking_off: summariser.can_turn_thinking_off(&route),
        route,
        system,
        tools,
        messages: said
            .map(|(event, message)| ReportMessage {
                role: message.role,
                text: message.text(),
                data: Arc::clone(&event.data),
            })
            .collect(),
        instruction: instruction(language, mark.objective.as_deref()),
        language,
        objective: mark.objective.clone(),
        max_tokens: config.max_tokens,
    };
    let attempts = config.retries + 1;
    let mut answer = Completion::default();
    for _ in 0..attempts {
        if cancel.is_cancelled() {
            return Err(FoldError::Aborted);
        }
        answer = summariser.summarise(&request, cancel).map_err(|error| match error {
            SummariserError::Aborted => FoldError::Aborted,
            SummariserError::Failed { source } => FoldError::Summariser { source },
        })?;
        if !answer.text.trim().is_empty() {
            return Ok(answer.text);
        }
    }
    Err(FoldError::NoReport {
        attempts,
        finish: answer.finish,
        output_tokens: answer.output_tokens,
        reasoning_tokens: answer.reasoning_tokens,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;

    use super::*;
    use crate::fold::test_log::Log;
    use crate::fold::{RegionEnd, Surface, select_region};
    use crate::{SessionKey, Timestamp};

    type Answer = Result<Completion, SummariserError>;

    /// Answers from a list; the last answer stays.
    #[derive(Debug, Default)]
    struct Scripted {
        answers: Mutex<Vec<Answer>>,
        asked: Mutex<Vec<ReportRequest>>,
        off: bool,
    }

    impl Scripted {
        fn new(answers: Vec<Answer>) -> Self {
            Self { answers: Mutex::new(answers), ..Self::default() }
        }
    }

    impl Summariser for Scripted {
        fn can_turn_thinking_off(&self, route: &ReportRoute) -> bool {
            self.off && route.provider == "p"
        }
        fn summarise(&self, request: &ReportRequest, _: &Cancel) -> Answer {
            self.asked.lock().unwrap().push(request.clone());
            self.answers.lock().unwrap().remove(0)
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "an answer among others that are errors")]
    fn text(text: &str) -> Answer {
        Ok(Completion { text: text.into(), ..Completion::default() })
    }

    fn ask(model: &Scripted, config: &ReportConfig, cancel: &Cancel) -> Result<String, FoldError> {
        let mut log = Log::default();
        log.push(
            "request/header",
            json!({"header": {"config": {"provider": "p", "model": "m"}, "system": "be good", "tools": [{"name": "read"}]}}),
        );
        let anchor = log.user("one");
        log.assistant("", &[]);
        log.assistant("two", &[]);
        let surface = Surface::fold(log.events()).unwrap();
        let region = select_region(log.events(), &surface, anchor, &RegionEnd::Tail).unwrap();
        let mark = Mark {
            id: 1,
            session: SessionKey::local(),
            log_length: 1,
            turn: None,
            objective: Some("learn".into()),
            folded: None,
            at: Timestamp(0),
        };
        let of = Explored { events: log.events(), region: &region, mark: &mark, language: ReportLanguage::Zh };
        summarise(model, config, None, &of, cancel)
    }

    #[test]
    fn tm15_configured_route_language_and_tokens_reach_the_model() {
        let model = Scripted::new(vec![text("report")]);
        let config = ReportConfig {
            provider: Some("cp".into()),
            model: Some("cm".into()),
            max_tokens: 77,
            ..ReportConfig::default()
        };
        assert_eq!(ask(&model, &config, &Cancel::default()).unwrap(), "report");
        let asked = model.asked.lock().unwrap();
        assert_eq!(asked[0].route, ReportRoute { provider: "cp".into(), model: "cm".into() });
        assert_eq!((asked[0].max_tokens, asked[0].language), (77, ReportLanguage::Zh));
        assert!(asked[0].instruction.contains("发现") && asked[0].instruction.contains("learn"));
    }

    #[test]
    fn tm19_empty_messages_of_the_model_are_not_sent() {
        let model = Scripted::new(vec![text("report")]);
        ask(&model, &ReportConfig::default(), &Cancel::default()).unwrap();
        let asked = model.asked.lock().unwrap();
        let said: Vec<(Role, &str)> = asked[0].messages.iter().map(|m| (m.role, m.text.as_str())).collect();
        assert_eq!(said, [(Role::User, "one"), (Role::Assistant, "two")]);
    }

    #[test]
    fn tm22_an_answer_without_text_is_asked_for_again() {
        let model = Scripted::new(vec![text(""), text(" \n"), text("report")]);
        assert_eq!(ask(&model, &ReportConfig::default(), &Cancel::default()).unwrap(), "report");
        assert_eq!(model.asked.lock().unwrap().len(), 3, "one and two retries by default");
        let model = Scripted::new(vec![text("")]);
        let once = ReportConfig { retries: 0, ..ReportConfig::default() };
        assert_eq!(ask(&model, &once, &Cancel::default()).unwrap_err().code(), "NO_REPORT");
        assert_eq!(model.asked.lock().unwrap().len(), 1);
    }

    /// K-14: thinking used the tokens up, and nothing said so.
    #[test]
    fn c001_17_the_error_says_how_the_last_answer_ended() {
        let empty = Completion {
            text: String::new(),
            finish: Some("max-tokens".into()),
            output_tokens: Some(1024),
            reasoning_tokens: Some(1000),
        };
        let config = ReportConfig { retries: 1, ..ReportConfig::default() };
        let model = Scripted::new(vec![text(""), Ok(empty)]);
        let error = ask(&model, &config, &Cancel::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the model wrote no report in 2 attempts (finish reason max-tokens, 1024 output tokens, 1000 of them \
             reasoning)"
        );
    }

    #[test]
    fn tm24_the_error_without_reasoning_tokens() {
        let empty =
            |output| Ok(Completion { finish: Some("stop".into()), output_tokens: output, ..Completion::default() });
        let config = ReportConfig { retries: 0, ..ReportConfig::default() };
        for (output, said) in [(Some(3), " (finish reason stop, 3 output tokens)"), (None, " (finish reason stop)")] {
            let error = ask(&Scripted::new(vec![empty(output)]), &config, &Cancel::default()).unwrap_err();
            assert_eq!(error.to_string(), format!("the model wrote no report in 1 attempt{said}"));
        }
    }

    #[test]
    fn tm25_thinking_is_off_where_the_route_has_that() {
        for off in [true, false] {
            let model = Scripted { off, ..Scripted::new(vec![text("report")]) };
            ask(&model, &ReportConfig::default(), &Cancel::default()).unwrap();
            assert_eq!(model.asked.lock().unwrap()[0].thinking_off, off);
        }
    }

    #[test]
    fn tm27_an_error_is_not_tried_again() {
        let broken = Err(SummariserError::Failed { source: "stream broke".into() });
        let model = Scripted::new(vec![broken, text("report")]);
        assert_eq!(ask(&model, &ReportConfig::default(), &Cancel::default()).unwrap_err().code(), "REPORT_FAILED");
        assert_eq!(model.asked.lock().unwrap().len(), 1);
    }

    #[test]
    fn tm28_a_stop_before_and_during_the_request() {
        let cancel = Cancel::default();
        let model = Scripted::new(vec![Err(SummariserError::Aborted)]);
        assert_eq!(ask(&model, &ReportConfig::default(), &cancel).unwrap_err().code(), "ABORTED");
        cancel.cancel();
        let model = Scripted::new(vec![text("report")]);
        assert_eq!(ask(&model, &ReportConfig::default(), &cancel).unwrap_err().code(), "ABORTED");
        assert!(model.asked.lock().unwrap().is_empty());
    }

    #[test]
    fn tm30_system_prompt_and_tools_of_the_session_are_passed_on() {
        let model = Scripted::new(vec![text("report")]);
        ask(&model, &ReportConfig::default(), &Cancel::default()).unwrap();
        let asked = model.asked.lock().unwrap();
        assert_eq!(asked[0].system.as_ref().unwrap().get(), "\"be good\"");
        assert_eq!(asked[0].tools.as_ref().unwrap().get(), "[{\"name\":\"read\"}]");
        assert_eq!(asked[0].route.provider, "p", "of the last request");
    }
}
