//! Made-up transcripts in the shapes that Claude Code, Codex and Gemini CLI write.

use serde_json::{Value, json};

/// What one turn of a transcript holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// What the user asks.
    pub prompt: String,
    /// Batches of tools, each with so many calls at once.
    pub batches: Vec<usize>,
    /// False: the last batch has no result yet, or the model has not answered.
    pub ended: bool,
}

impl Told {
    /// A turn with one call of a tool, which has ended.
    pub fn plain(prompt: &str) -> Self {
        Self { prompt: prompt.to_owned(), batches: vec![1], ended: true }
    }
}

/// A UUID that says which of something it is.
pub fn id_of(kind: u8, number: usize) -> String {
    format!("{kind:02x}{number:06x}-0000-4000-8000-{number:012x}")
}

/// The key of turn `number`, from 1, in every kind of transcript.
pub fn key_of(number: usize) -> String {
    id_of(0xee, number)
}

fn time(at: usize) -> String {
    format!("2026-03-01T10:{:02}:{:02}.000Z", at / 60 % 60, at % 60)
}

/// The lines of a Claude Code transcript: rows of the conversation among the client's own notes.
///
/// # Panics
/// Never: rows are objects.
pub fn claude(session: &str, cwd: &str, turns: &[Told]) -> Vec<String> {
    let mut rows: Vec<Value> = vec![
        json!({"type":"queue-operation","operation":"enqueue","timestamp":time(0),"sessionId":session,"content":"x"}),
        json!({"type":"api-request-blob","sessionId":session,"hash":"00","message":{"role":"user","content":"secret"}}),
    ];
    let mut made = 0;
    let mut parent: Option<String> = None;
    let mut push = |rows: &mut Vec<Value>, parent: &mut Option<String>, hang: Option<String>, more: Value| {
        made += 1;
        let uuid = id_of(0xcc, made);
        let up = hang.or_else(|| parent.clone());
        let mut row = json!({"parentUuid":up,"isSidechain":false,"uuid":uuid,"timestamp":time(made),"cwd":cwd,"sessionId":session,"version":"2.1.332","gitBranch":"main"});
        for (name, value) in more.as_object().expect("an object") {
            row[name] = value.clone();
        }
        rows.push(row);
        *parent = Some(uuid.clone());
        uuid
    };
    for (turn, number) in turns.iter().zip(1..) {
        let key = key_of(number);
        push(
            &mut rows,
            &mut parent,
            None,
            json!({"type":"user","promptId":key,"message":{"role":"user","content":turn.prompt}}),
        );
        if number == 1 {
            push(
                &mut rows,
                &mut parent,
                None,
                json!({"type":"attachment","attachment":{"type":"date","date":"2026-03-01"}}),
            );
        }
        for (size, batch) in turn.batches.iter().zip(1..) {
            let last = batch == turn.batches.len() && !turn.ended;
            let calls: Vec<(String, String)> = (0..*size)
                .map(|at| {
                    let call = format!("toolu_{number}_{batch}_{at}");
                    let block = json!({"type":"tool_use","id":call,"name":"Write","input":{"file_path":"a","content":"x"}});
                    let message = json!({"id":format!("msg_{number}_{batch}"),"role":"assistant","content":[block],"stop_reason":"tool_use"});
                    let uuid = push(&mut rows, &mut parent, None, json!({"type":"assistant","message":message}));
                    (call, uuid)
                })
                .collect();
            rows.push(json!({"type":"last-prompt","lastPrompt":turn.prompt,"leafUuid":parent,"sessionId":session}));
            if last {
                continue;
            }
            for (call, uuid) in calls {
                let block = json!({"type":"tool_result","tool_use_id":call,"content":"done"});
                let row = json!({"type":"user","promptId":key,"message":{"role":"user","content":[block]},"sourceToolAssistantUUID":uuid});
                push(&mut rows, &mut parent, Some(uuid), row);
            }
        }
        if turn.ended {
            let message = json!({"id":format!("end_{number}"),"role":"assistant","content":[{"type":"text","text":format!("done {number}")}],"stop_reason":"end_turn"});
            push(&mut rows, &mut parent, None, json!({"type":"assistant","message":message}));
            push(&mut rows, &mut parent, None, json!({"type":"system","subtype":"stop_hook_summary"}));
        }
        rows.push(json!({"type":"cost-state","sessionId":session,"cost":0}));
    }
    rows.iter().map(Value::to_string).collect()
}

/// The lines of a Codex rollout with a paginated history.
pub fn codex(thread: &str, cwd: &str, turns: &[Told]) -> Vec<String> {
    let mut rows = vec![json!({"type":"session_meta","payload":{
        "session_id":thread,"id":thread,"timestamp":time(0),"cwd":cwd,"originator":"codex_exec","cli_version":"0.171.0",
        "source":"exec","model_provider":"mock","history_mode":"paginated"}})];
    let event = |rows: &mut Vec<Value>, kind: &str, payload: Value| rows.push(json!({"type":kind,"payload":payload}));
    for (turn, number) in turns.iter().zip(1..) {
        let key = key_of(number);
        let message = |role: &str, text: &str, kind: &str| json!({"type":"message","role":role,"content":[{"type":kind,"text":text}],"internal":{"turn_id":key}});
        event(&mut rows, "event_msg", json!({"type":"task_started","turn_id":key,"started_at":number}));
        if number == 1 {
            let context = message("user", "<environment_context>\n  <cwd>/x</cwd></environment_context>", "input_text");
            event(&mut rows, "response_item", context);
        }
        event(&mut rows, "turn_context", json!({"turn_id":key,"cwd":cwd}));
        event(&mut rows, "event_msg", json!({"type":"thread_settings_applied","thread_id":thread}));
        event(&mut rows, "response_item", message("user", &turn.prompt, "input_text"));
        for (size, batch) in turn.batches.iter().zip(1..) {
            let calls: Vec<String> = (0..*size).map(|at| format!("call_{number}_{batch}_{at}")).collect();
            for call in &calls {
                event(
                    &mut rows,
                    "response_item",
                    json!({"type":"function_call","name":"exec_command","arguments":"{}","call_id":call}),
                );
            }
            event(&mut rows, "token_usage_record", json!({"thread_id":thread,"turn_id":key,"session_id":thread}));
            if batch == turn.batches.len() && !turn.ended {
                continue;
            }
            for call in &calls {
                event(
                    &mut rows,
                    "response_item",
                    json!({"type":"function_call_output","call_id":call,"output":"done"}),
                );
            }
        }
        if turn.ended {
            event(&mut rows, "response_item", message("assistant", &format!("done {number}"), "output_text"));
            event(&mut rows, "event_msg", json!({"type":"task_complete","turn_id":key}));
        }
    }
    for (at, row) in rows.iter_mut().enumerate() {
        row["timestamp"] = json!(time(at));
        row["ordinal"] = json!(at);
    }
    rows.iter().map(Value::to_string).collect()
}

/// The lines of a Gemini CLI journal. Before each turn in `resumed`, from 1, the session was left and resumed: a second
/// head, and all messages anew in the other shape.
///
/// # Panics
/// Never: messages are objects.
pub fn gemini(session: &str, turns: &[Told], resumed: &[usize]) -> Vec<String> {
    let head = |at: usize| json!({"sessionId":session,"projectHash":"00ff","startTime":time(at),"lastUpdated":time(at),"kind":"main"});
    let context = json!({"id":"context","timestamp":time(0),"type":"user","content":[{"text":"<session_context>\nThis is the preamble.\n</session_context>"}]});
    let mut rows = vec![head(0), json!({"$set":{"messages":[context.clone()],"lastUpdated":time(0)}})];
    let mut messages = vec![context.clone()];
    let mut made = 0;
    let push = |rows: &mut Vec<Value>, messages: &mut Vec<Value>, mut message: Value| {
        message["timestamp"] = json!(time(rows.len()));
        rows.push(message.clone());
        rows.push(json!({"$set":{"lastUpdated":time(rows.len())}}));
        match messages.iter_mut().find(|known| known["id"] == message["id"]) {
            Some(known) => *known = message,
            None => messages.push(message),
        }
    };
    for (turn, number) in turns.iter().zip(1..) {
        if resumed.contains(&number) {
            rows.push(head(rows.len()));
            rows.push(json!({"$set":{"messages":[context]}}));
            rows.push(json!({"$set":{"sessionId":session}}));
            for message in &mut messages {
                message["timestamp"] = json!(time(rows.len()));
                if message["type"] == "gemini" {
                    let mut parts = vec![json!({"text":message["content"].as_str().unwrap_or_default()})];
                    if message["content"].is_array() {
                        parts.clone_from(message["content"].as_array().expect("a list"));
                    }
                    for call in message["toolCalls"].as_array().unwrap_or(&Vec::new()) {
                        parts.push(json!({"functionCall":{"id":call["id"],"name":call["name"],"args":{}}}));
                    }
                    message["content"] = json!(parts);
                    message.as_object_mut().expect("an object").remove("toolCalls");
                }
            }
            rows.push(json!({"$set":{"messages":messages}}));
        }
        push(&mut rows, &mut messages, json!({"id":key_of(number),"type":"user","content":[{"text":turn.prompt}]}));
        for (size, batch) in turn.batches.iter().zip(1..) {
            made += 1;
            let id = id_of(0xaa, made);
            push(
                &mut rows,
                &mut messages,
                json!({"id":id,"type":"gemini","content":format!("step {batch}"),"thoughts":[]}),
            );
            if batch == turn.batches.len() && !turn.ended {
                // What a killed client leaves: the text, and no trace of the call.
                push(
                    &mut rows,
                    &mut messages,
                    json!({"id":id,"type":"gemini","content":"","toolCalls":[{"id":"c","name":"shell"}]}),
                );
                continue;
            }
            let calls: Vec<Value> =
                (0..*size).map(|at| json!({"id":format!("{id}_{at}"),"name":"write_file"})).collect();
            push(
                &mut rows,
                &mut messages,
                json!({"id":id,"type":"gemini","content":format!("step {batch}"),"toolCalls":calls}),
            );
            let results: Vec<Value> = calls
                .iter()
                .map(
                    |call| json!({"functionResponse":{"id":call["id"],"name":"write_file","response":{"output":"ok"}}}),
                )
                .collect();
            made += 1;
            push(&mut rows, &mut messages, json!({"id":id_of(0xbb, made),"type":"user","content":results}));
        }
        if turn.ended {
            made += 1;
            push(
                &mut rows,
                &mut messages,
                json!({"id":id_of(0xaa, made),"type":"gemini","content":format!("done {number}")}),
            );
        }
    }
    rows.iter().map(Value::to_string).collect()
}
