//! Running `opencode export` and `opencode import`: with a time limit and bounded output, and nothing that its plugins do.

use std::{
    fmt,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::{
        fs::{DirBuilderExt as _, OpenOptionsExt as _},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use data_encoding::HEXLOWER;

use super::super::child::random;

/// Why the program gave no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// It says that there is no such session.
    #[error("there is no such session")]
    NoSession,
    /// It is not installed, or not on the path.
    #[error("the program {0:?} is not there: put it on PATH, or its file into $OPENCODE_BIN")]
    Absent(String),
    /// It did not end in time, said more than can be held, or failed. In words.
    #[error("{0}")]
    Failed(String),
}

/// The commands of opencode that conversations are found by and go through.
pub trait Transfer: fmt::Debug + Send + Sync {
    /// The session as JSON.
    fn export(&self, session: &str) -> Result<Vec<u8>, ProgramError>;
    /// The sessions of the project that has the directory `within`, as a JSON list of objects with `id`, `directory` and
    /// `updated`; nothing where there are none.
    fn list(&self, within: &Path) -> Result<Vec<u8>, ProgramError>;
    /// Makes a session out of JSON, in a project that has the directory `within`. What it says of its success counts for
    /// nothing: ask for the session.
    fn import(&self, json: &[u8], within: &Path) -> Result<(), ProgramError>;
}

/// The program itself.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its file, or its name for `PATH`.
    pub program: PathBuf,
    /// Where it keeps its data: the directory that holds `opencode/`. `None`: wherever its own environment says.
    pub data: Option<PathBuf>,
    /// So long one command may take. It starts in one to five seconds.
    pub patience: Duration,
    /// So many bytes it may say.
    pub most: u64,
}

impl Program {
    /// `$OPENCODE_BIN`, else `opencode` on `PATH`, with the usual limits: a minute, 256 MiB.
    pub fn of_environment() -> Self {
        let named = std::env::var_os("OPENCODE_BIN").filter(|named| !named.is_empty());
        Self {
            program: named.map_or_else(|| PathBuf::from("opencode"), PathBuf::from),
            data: None,
            patience: Duration::from_mins(1),
            most: 256 << 20,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a conversation of opencode goes through its program alone")]
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // Without plugins: ours would be called back while we hold the store, and others make each start wait for npm.
        command.env("OPENCODE_PURE", "1");
        for what in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD"] {
            command.env(format!("OPENCODE_DISABLE_{what}"), "1");
        }
        if let Some(data) = &self.data {
            command.env("XDG_DATA_HOME", data);
        }
        // A group of its own, so that what it starts ends with it.
        command.stdin(Stdio::null()).process_group(0);
        command
    }

    /// Runs a command to its end; what it wrote.
    fn run(&self, what: &str, words: &[&Path], within: &Path, scratch: &Scratch) -> Result<Said, ProgramError> {
        let failed = |why: String| ProgramError::Failed(format!("opencode {what}: {why}"));
        let broken = |error: io::Error| failed(error.to_string());
        // Into files: the program was seen to lose what a full pipe did not take when it ends.
        let (out, err) = (scratch.file("out").map_err(broken)?, scratch.file("err").map_err(broken)?);
        let mut command = self.command();
        command.arg(what).args(words).current_dir(within);
        command.stdout(out.try_clone().map_err(broken)?).stderr(err.try_clone().map_err(broken)?);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if within.is_dir() => ProgramError::Absent(self.program.display().to_string()),
            _ => failed(format!("cannot start in {}: {error}", within.display())),
        })?;
        let ended = self.wait(&mut child, &[&out, &err]);
        let status = match ended {
            Ok(status) => status,
            Err(why) => {
                end(&mut child);
                return Err(failed(why));
            }
        };
        let complaint = scratch.read("err", 1 << 16).map_err(broken)?;
        Ok(Said { good: status, complaint: String::from_utf8_lossy(&complaint).into_owned() })
    }

    /// What it wrote to its standard output.
    fn said(&self, what: &str, scratch: &Scratch) -> Result<Vec<u8>, ProgramError> {
        let failed = |why: String| ProgramError::Failed(format!("opencode {what}: {why}"));
        let text = scratch.read("out", self.most).map_err(|error| failed(error.to_string()))?;
        if text.len() as u64 > self.most {
            return Err(failed(format!("it said more than {} bytes", self.most)));
        }
        Ok(text)
    }

    /// True when it ended well; in words why it was not waited for any longer.
    fn wait(&self, child: &mut Child, outputs: &[&File]) -> Result<bool, String> {
        let begun = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status.success()),
                Ok(None) => {}
                Err(error) => return Err(error.to_string()),
            }
            if begun.elapsed() > self.patience {
                return Err(format!("it did not end within {} ms", self.patience.as_millis()));
            }
            if outputs.iter().any(|file| file.metadata().is_ok_and(|meta| meta.len() > self.most)) {
                return Err(format!("it said more than {} bytes", self.most));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Ends a program with what it started.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    // One that has just ended by itself is no error.
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    drop(child.kill());
    drop(child.wait());
}

struct Said {
    good: bool,
    complaint: String,
}

impl Said {
    /// Its last words, on one line and without colours.
    fn last_words(&self) -> String {
        let line = self.complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        let mut plain = String::new();
        let mut coloured = false;
        for c in line.chars().take(400) {
            match c {
                '\u{1b}' => coloured = true,
                'm' if coloured => coloured = false,
                c if !coloured && !c.is_control() => plain.push(c),
                _ => {}
            }
        }
        plain
    }
}

impl Transfer for Program {
    fn export(&self, session: &str) -> Result<Vec<u8>, ProgramError> {
        let scratch = Scratch::new()?;
        let said = self.run("export", &[Path::new(session)], &scratch.dir, &scratch)?;
        if !said.good {
            let missing = said.complaint.contains("Session not found");
            let why = format!("opencode export: {}", said.last_words());
            return Err(if missing { ProgramError::NoSession } else { ProgramError::Failed(why) });
        }
        self.said("export", &scratch)
    }

    fn list(&self, within: &Path) -> Result<Vec<u8>, ProgramError> {
        let scratch = Scratch::new()?;
        let words = ["list", "--format", "json"].map(Path::new);
        let said = self.run("session", &words, within, &scratch)?;
        if !said.good {
            return Err(ProgramError::Failed(format!("opencode session list: {}", said.last_words())));
        }
        self.said("session list", &scratch)
    }

    fn import(&self, json: &[u8], within: &Path) -> Result<(), ProgramError> {
        let scratch = Scratch::new()?;
        let write = || scratch.file("session.json").and_then(|mut file| file.write_all(json));
        write().map_err(|error| ProgramError::Failed(format!("cannot write a file for opencode: {error}")))?;
        let said = self.run("import", &[&scratch.dir.join("session.json")], within, &scratch)?;
        if said.good { Ok(()) } else { Err(ProgramError::Failed(format!("opencode import: {}", said.last_words()))) }
    }
}

/// A directory that nobody else can look into, gone with its files when it is dropped.
struct Scratch {
    dir: PathBuf,
}

impl Scratch {
    fn new() -> Result<Self, ProgramError> {
        let name = format!("rwd-opencode-{}", HEXLOWER.encode(&random()));
        let dir = std::env::temp_dir().join(name);
        match DirBuilder::new().mode(0o700).create(&dir) {
            Ok(()) => Ok(Self { dir }),
            Err(error) => Err(ProgramError::Failed(format!("cannot make {}: {error}", dir.display()))),
        }
    }

    fn file(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.dir.join(name))
    }

    /// At most one byte more than `most`.
    fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.dir.join(name))?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for name in ["out", "err", "session.json"] {
            drop(fs::remove_file(self.dir.join(name)));
        }
        drop(fs::remove_dir(&self.dir));
    }
}
