//! What a client lives in: an empty home, a git repository, a scripted model, and nothing of the machine's user.

use std::{
    cell::Cell,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use super::{
    Client, Model, Node,
    disk::{Files, files_below, tail},
    scenario,
};
use crate::{
    Result,
    process::{End, Running, command},
    repo,
};

/// A turn of a client; a few seconds are usual.
const PATIENCE: Duration = Duration::from_mins(4);
pub(super) struct World {
    pub(super) client: &'static Client,
    pub(super) home: PathBuf,
    /// The workspace.
    pub(super) shop: PathBuf,
    pub(super) model: Model,
    /// Stops the third turn.
    pub(super) interrupt: Signal,
    scratch: PathBuf,
    requests: PathBuf,
    node: Node,
    /// For `PATH`: where rwd is, the client, Node.js.
    bins: Vec<PathBuf>,
    /// Programs started so far; the outputs of each are files with its number.
    count: Cell<u32>,
}

impl World {
    pub(super) fn set(client: &'static Client, rwd: &Path, scratch: &Path, interrupt: Signal) -> Result<Self> {
        let node = Node::install()?;
        let (home, bin) = (scratch.join("home"), scratch.join("bin"));
        let shop = home.join("shop");
        for dir in [&shop, &bin] {
            fs::create_dir_all(dir)?;
        }
        std::os::unix::fs::symlink(rwd, bin.join("rwd"))?;
        let mut bins = vec![bin];
        for (package, version) in client.packages {
            bins.push(node.add_with_scripts(package, version)?);
        }
        bins.extend(node.bins().iter().cloned());
        let scripts = scratch.join("scripts.json");
        super::super::write(&scripts, &json!({ "root": shop, "scripts": scenario::scripts() }).to_string())?;
        let requests = scratch.join("requests.jsonl");
        let mock = repo::root().join("xtask/e2e/agents/mock.mjs");
        let model = Model::start(&node, &mock, &requests, &[&scripts])?;
        let scratch = scratch.to_owned();
        let world = Self { client, home, shop, model, interrupt, scratch, requests, node, bins, count: Cell::new(0) };
        (client.prepare)(&world)?;
        Ok(world)
    }

    /// A program with the world's environment and nothing else.
    fn command(&self, program: &str) -> Result<Command> {
        let mut made = command(program);
        let system = std::env::split_paths("/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        let path = std::env::join_paths(self.bins.iter().cloned().chain(system))?;
        made.env_clear().current_dir(&self.shop);
        made.env("PATH", &path).env("HOME", &self.home).env("USER", "user").env("SHELL", "/bin/bash");
        made.env("LANG", "C.UTF-8").env("TZ", "UTC").env("TERM", "xterm");
        for who in ["AUTHOR", "COMMITTER"] {
            made.env(format!("GIT_{who}_NAME"), "user").env(format!("GIT_{who}_EMAIL"), "user@example.com");
        }
        // The program is looked for along the new path, not ours.
        let found = std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.exists());
        let mut whole = command(found.ok_or_else(|| format!("{program} is not there"))?);
        whole
            .env_clear()
            .envs(made.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .current_dir(&self.shop);
        Ok(whole)
    }

    fn client_command(&self, arguments: &[String]) -> Result<Command> {
        let mut made = self.command(self.client.name)?;
        made.args(arguments).envs((self.client.environment)(self));
        Ok(made)
    }

    /// Files for the output and the complaints of the next program.
    fn outputs(&self, what: &str) -> (PathBuf, PathBuf) {
        let number = self.count.get() + 1;
        self.count.set(number);
        let file = |kind| self.scratch.join(format!("{number:02}-{what}.{kind}"));
        (file("out"), file("err"))
    }

    fn finish(&self, made: Command, what: &str) -> Result<Vec<u8>> {
        let (end, out, err) = self.started(made, what)?;
        match end.failure() {
            None => Ok(fs::read(&out)?),
            Some(why) => Err(format!("{what}: {why}\n{}\n{}", tail(&out), tail(&err)).into()),
        }
    }

    fn started(&self, mut made: Command, what: &str) -> Result<(End, PathBuf, PathBuf)> {
        let (out, err) = self.outputs(what);
        made.stdout(File::create(&out)?).stderr(File::create(&err)?);
        Ok((Running::start(&mut made, PATIENCE, None)?.wait()?, out, err))
    }

    /// Plays one turn to its end and gives back what the client printed.
    pub(super) fn turn(&self, what: &str, arguments: &[String]) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.finish(self.client_command(arguments)?, what)?).into_owned())
    }

    /// What the client prints for other arguments.
    pub(super) fn client_says(&self, what: &str, arguments: &[&str]) -> Result<Vec<u8>> {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        self.finish(self.client_command(&arguments)?, what)
    }

    /// The same with what it prints as complaints, where some clients print answers too.
    pub(super) fn client_tells(&self, what: &str, arguments: &[&str]) -> Result<String> {
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let (end, out, err) = self.started(self.client_command(&arguments)?, what)?;
        let told = [fs::read(out)?, fs::read(err)?].concat();
        let told = String::from_utf8_lossy(&told).into_owned();
        end.failure().map_or(Ok(told.clone()), |why| Err(format!("{what}: {why}\n{told}").into()))
    }

    /// Begins a turn, stops the client by its signal once `sign` is there, and ends what it left running.
    pub(super) fn turn_until(&self, what: &str, arguments: &[String], sign: &Path) -> Result {
        let (out, err) = self.outputs(what);
        let mut made = self.client_command(arguments)?;
        made.stdout(File::create(&out)?).stderr(File::create(&err)?);
        let mut running = Running::start(&mut made, PATIENCE, None)?;
        while !sign.exists() {
            if let Some(end) = running.poll()? {
                let why = end.failure().unwrap_or_else(|| "ended".to_owned());
                return Err(format!("{what}: {why} before its command was begun\n{}", tail(&err)).into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        // The command has begun; let it write what it writes before it waits.
        thread::sleep(Duration::from_millis(300));
        running.signal(self.interrupt)?;
        running.wait()?;
        self.end_strays();
        Ok(())
    }

    /// `rwd` with `--json`; its answer.
    pub(super) fn rwd(&self, arguments: &[&str]) -> Result<Value> {
        let what = format!("rwd-{}", arguments.first().unwrap_or(&""));
        let mut made = self.command("rwd")?;
        made.args(arguments).arg("--json");
        let said = self.finish(made, &what)?;
        serde_json::from_slice(&said)
            .map_err(|error| format!("{what}: {error}: {}", String::from_utf8_lossy(&said)).into())
    }

    /// `rwd` that must refuse with exit 3 and this code.
    pub(super) fn rwd_refuses(&self, arguments: &[&str], code: &str) -> Result {
        let mut made = self.command("rwd")?;
        made.args(arguments).arg("--json");
        let (end, out, _) = self.started(made, "rwd-refuses")?;
        let answer: Value = serde_json::from_slice(&fs::read(&out)?)?;
        match end.failure().as_deref() {
            Some("exit 3") if answer["error"]["code"] == code => Ok(()),
            how => Err(format!("no {code}, but {how:?}: {answer}").into()),
        }
    }

    pub(super) fn git(&self, arguments: &[&str]) -> Result<String> {
        let mut made = self.command("git")?;
        made.args(arguments);
        Ok(String::from_utf8_lossy(&self.finish(made, "git")?).into_owned())
    }

    /// Takes rwd from the path, plays, and puts it back.
    pub(super) fn without_rwd<T>(&self, play: impl FnOnce() -> Result<T>) -> Result<T> {
        let (here, away) = (self.scratch.join("bin/rwd"), self.scratch.join("rwd-away"));
        fs::rename(&here, &away)?;
        let played = play();
        fs::rename(&away, &here)?;
        played
    }

    pub(super) fn write_home(&self, path: &str, text: &str) -> Result {
        let path = self.home.join(path);
        fs::create_dir_all(path.parent().ok_or("no parent")?)?;
        super::super::write(&path, text)
    }

    pub(super) fn write_shop(&self, path: &str, text: &str) -> Result {
        super::super::write(&self.shop.join(path), text)
    }

    /// Makes an installed package one that was installed in `dir` of the home.
    pub(super) fn link_package(&self, (name, version): (&str, &str), dir: &str) -> Result {
        let bins = self.node.add_with_scripts(name, version)?;
        let from = bins.ancestors().nth(2).ok_or("no package")?;
        for file in ["package.json", "package-lock.json"] {
            self.write_home(&format!("{dir}/{file}"), &fs::read_to_string(from.join(file))?)?;
        }
        Ok(std::os::unix::fs::symlink(from.join("node_modules"), self.home.join(dir).join("node_modules"))?)
    }

    /// Every file of the workspace with its bytes; git's own apart.
    pub(super) fn files(&self) -> Result<Files> {
        let mut files = Files::new();
        for path in files_below(&self.shop)? {
            let name = path.strip_prefix(&self.shop)?.to_owned();
            if !name.starts_with(".git") {
                files.insert(name, fs::read(&path)?);
            }
        }
        Ok(files)
    }

    /// Ends what still works in the world's home: a client that is killed leaves its shell command running.
    pub(super) fn end_strays(&self) {
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            let strays = self.strays();
            if strays.is_empty() || Instant::now() > deadline {
                return;
            }
            for pid in strays {
                // One that has just ended by itself is no error.
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn strays(&self) -> Vec<Pid> {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let here = processes
            .filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&self.home)));
        here.filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)).collect()
    }

    /// The ends of the logs, for a failure.
    pub(super) fn last_words(&self) -> String {
        let newest = format!("{:02}-", self.count.get());
        let mut told = Vec::new();
        for path in files_below(&self.scratch).unwrap_or_default() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.parent() == Some(&self.scratch) && name.starts_with(&newest) {
                told.push(format!("--- {name}\n{}", tail(&path)));
            }
        }
        told.push("--- the model's last requests".to_owned());
        let requests = fs::read_to_string(&self.requests).unwrap_or_default();
        let all: Vec<&str> = requests.lines().collect();
        for line in all.iter().skip(all.len().saturating_sub(3)) {
            let request: Value = serde_json::from_str(line).unwrap_or_default();
            let talk = request["talk"].as_array().map_or(&[][..], Vec::as_slice);
            told.push(format!("{} {}", request["about"], request["url"]));
            let last = talk.iter().skip(talk.len().saturating_sub(6));
            told.extend(last.map(|item| format!("    {}", item.to_string().chars().take(300).collect::<String>())));
        }
        told.join("\n")
    }
}
