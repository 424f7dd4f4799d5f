//! A home of DeepSeek Harness beside a sandbox. What was in it at first, no test may change.

use std::fs;
use std::path::{Path, PathBuf};

use checkpoint_core::{Beat, JsonText, LogEvent, Seq, SessionKey, SessionLog};
use harness_adapter::sessions::dsh::{DshLogs, encode_segment, project_key, row_of};
use testkit::dsh_logs::{self, Between, Call, Encoding, Header, Layout, Session, Step, Turn, TurnEnd};

use crate::sandbox::{Sandbox, Tree, tree};

/// A home and the sandbox whose `DSH_HOME` it is. Dropping it fails the test when a log that was there has changed.
pub(crate) struct DshHome {
    pub(crate) sandbox: Sandbox,
    first: Tree,
}

/// Recorded sessions of the real host.
pub(crate) fn cases(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../harness-adapter/tests/fixtures/dsh/cases").join(case)
}

impl DshHome {
    /// An empty home.
    pub(crate) fn new() -> Self {
        let sandbox = Sandbox::new();
        let home = sandbox.top().join("dsh");
        fs::create_dir_all(home.join("sessions")).unwrap();
        let sandbox = sandbox.with("DSH_HOME", home.to_str().unwrap());
        Self { sandbox, first: Tree::new() }
    }

    /// A home with the sessions that the host recorded in a case.
    pub(crate) fn of(case: &str) -> Self {
        let mut home = Self::new();
        home.add(&cases(case).join("sessions"));
        home
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.sandbox.top().join("dsh")
    }

    pub(crate) fn logs(&self) -> DshLogs {
        DshLogs::open(self.path())
    }

    /// Adds what is below `folder` to the sessions.
    pub(crate) fn add(&mut self, folder: &Path) {
        copy(folder, &self.path().join("sessions"));
        self.settle();
    }

    /// Writes a session that works in the sandbox's workspace, as the host does.
    pub(crate) fn put(&mut self, id: &str, events: &[LogEvent], encoding: Encoding) {
        let cwd = self.sandbox.work().to_str().unwrap().to_owned();
        let text = |text: &str| JsonText::from(text);
        let dir = self.path().join("sessions").join(project_key(&text(&cwd)).unwrap());
        let dir = dir.join(encode_segment(&text(id)).unwrap());
        fs::create_dir_all(&dir).unwrap();
        let head = Header { id: id.to_owned(), cwd, created_at: 1_796_000_000_000, parent: None };
        let layout = Layout { encoding, packed: true, batches: vec![7, 3] };
        let name = if encoding == Encoding::Plain { "session.jsonl" } else { "session.jsonl.zstd" };
        fs::write(dir.join(name), dsh_logs::file(&head, events, &layout)).unwrap();
        self.settle();
    }

    /// From here on everything that is there must stay as it is.
    pub(crate) fn settle(&mut self) {
        self.first = tree(&self.path());
    }

    /// Logs that were not there at first.
    pub(crate) fn new_logs(&self) -> Vec<PathBuf> {
        let now = tree(&self.path());
        let new = now.iter().filter(|(path, entry)| entry.0 == 'f' && !self.first.contains_key(*path));
        new.map(|(path, _)| self.path().join(String::from_utf8(path.clone()).unwrap())).collect()
    }

    /// Fails when a log that was there at first is not as it was.
    pub(crate) fn unchanged(&self) {
        let now = tree(&self.path());
        for (path, entry) in &self.first {
            assert!(now.get(path) == Some(entry), "{} was changed", String::from_utf8_lossy(path));
        }
    }

    /// The end of a turn.
    pub(crate) fn end_of(&self, id: &str, turn: u32) -> u64 {
        let beats = self.logs().beats(&SessionKey::new("dsh", id).unwrap(), Seq(0)).unwrap();
        let end = Beat::TurnEnd(checkpoint_core::Turn(turn));
        beats.iter().find(|(_, beat)| *beat == end).unwrap().0.0
    }
}

impl Drop for DshHome {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.unchanged();
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::write(to, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// Rows of a log, without its head.
pub(crate) fn rows(path: &Path) -> Vec<String> {
    DshLogs::events_of_file(path).unwrap().iter().map(row_of).collect()
}

/// Six turns, each of which calls a tool, and a summary of the user's after turn 4.
pub(crate) fn six_turns() -> Vec<LogEvent> {
    let turn = |n: usize| Turn {
        prompt: format!("do part {n}"),
        context: n == 1,
        header: false,
        todos: None,
        compaction: None,
        steps: vec![
            Step {
                text: vec!["I ".into(), "begin ".into(), "now.".into()],
                calls: vec![Call { pieces: vec!["{}".into()], nested: 0, answer: dsh_logs::Answer::Fine }],
                ..Step::default()
            },
            Step { text: vec![format!("part {n} is done")], ..Step::default() },
        ],
        end: TurnEnd::Completed,
    };
    let mut between = vec![Vec::new(); 7];
    between[4] = vec![Between::Compact(4)];
    dsh_logs::events(&Session { between, turns: (1..=6).map(turn).collect(), ticks: Vec::new() })
}
