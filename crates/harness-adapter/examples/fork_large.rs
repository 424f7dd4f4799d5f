//! How long a child of a large log takes, against the least that anybody must do with its bytes: decode and encode them.
//!
//! ```text
//! cargo run --release -p harness-adapter --example fork_large [EVENTS] [BYTES PER EVENT]
//! ```
//!
//! Makes a log of 100,000 events and 200 MiB in a temporary directory, then measures both in turns, and prints the ratio
//! of the medians and the most memory that a fork had. Each measurement runs in a process of its own.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a tool that prints what it measured")]

use std::{
    error::Error,
    fs::File,
    io::{BufReader, BufWriter, Write, copy},
    path::Path,
    process::Command,
    time::Instant,
};

use checkpoint_core::Seq;
use harness_adapter::sessions::dsh::DshLogs;

type Done = Result<(), Box<dyn Error>>;

/// Rows per frame: what a host writes in one batch.
const BATCH: u64 = 40;
const TURN: u64 = 100;

/// Text that compresses about as well as source code does.
fn prose(state: &mut u64, bytes: usize) -> String {
    const WORDS: &[&str] =
        &["let", "value", "return", "self", "the", "error", "path", "match", "index", "of", "turn", "0x"];
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = usize::try_from(*state >> 33).unwrap_or(0);
        text.push_str(WORDS[at % WORDS.len()]);
        text.push(' ');
        if at % 5 == 0 {
            text.push_str(&(at % 9973).to_string());
        }
    }
    text
}

fn row(seq: u64, state: &mut u64, bytes: usize) -> String {
    let turn = seq / TURN;
    let (kind, data, more) = match seq % TURN {
        0 => ("turn/start", format!(r#"{{"turn":{turn}}}"#), ""),
        99 => ("turn/end", format!(r#"{{"turn":{turn},"reason":{{"kind":"completed"}}}}"#), ""),
        at if at % 10 == 5 => {
            let text = prose(state, bytes * 3);
            let content = format!(
                r#"{{"type":"tool-result","toolCallId":"c{seq}","content":[{{"type":"text","text":"{text}"}}],"isError":false}}"#
            );
            let data = format!(
                r#"{{"turn":{turn},"step":1,"message":{{"source":{{"kind":"tool","callId":"c{seq}"}},"content":[{content}],"role":"user","id":"r{seq}"}}}}"#
            );
            ("tool/result", data, r#","surfaceOp":"append""#)
        }
        at if at % 10 == 7 => {
            let content = format!(r#"{{"type":"text","text":"{}"}}"#, prose(state, bytes));
            let data = format!(
                r#"{{"turn":{turn},"step":1,"message":{{"role":"assistant","content":[{content}],"source":{{"kind":"model","provider":"p","model":"m"}},"id":"a{seq}"}}}}"#
            );
            ("assistant/message", data, r#","sourceEventSeqs":[],"surfaceOp":"append""#)
        }
        _ => {
            let text = prose(state, bytes * 3 / 4);
            let chunk = format!(r#"{{"type":"text-delta","index":0,"text":"{text}"}}"#);
            ("assistant/chunk", format!(r#"{{"turn":{turn},"step":1,"chunk":{chunk}}}"#), "")
        }
    };
    format!(r#"{{"type":"{kind}","seq":{seq},"time":{seq},"data":{data}{more}}}"#) + "\n"
}

fn frame(out: &mut impl Write, text: &[u8]) -> Done {
    let mut encoder = zstd::Encoder::new(out, 3)?;
    encoder.include_checksum(true)?;
    encoder.write_all(text)?;
    encoder.finish()?;
    Ok(())
}

fn generate(home: &Path, events: u64, bytes: usize) -> Result<u64, Box<dyn Error>> {
    let folder = home.join("sessions/--w--/large");
    std::fs::create_dir_all(&folder)?;
    let mut out = BufWriter::new(File::create(folder.join("session.jsonl.zstd"))?);
    let header = r#"{"type":"session","version":0,"id":"large","createdAt":1,"cwd":"/w","delegationDepth":0}"#;
    frame(&mut out, format!("{header}\n").as_bytes())?;
    let (mut batch, mut decoded, mut state) = (String::new(), 0, 7);
    for seq in 0..events {
        batch.push_str(&row(seq, &mut state, bytes));
        if seq % BATCH == BATCH - 1 || seq + 1 == events {
            decoded += batch.len() as u64;
            frame(&mut out, batch.as_bytes())?;
            batch.clear();
        }
    }
    out.flush()?;
    Ok(decoded)
}

/// Decodes and encodes everything, as anybody must who makes a new log of the old one's text.
fn yardstick(home: &Path) -> Done {
    let input = BufReader::new(File::open(home.join("sessions/--w--/large/session.jsonl.zstd"))?);
    let mut encoder = zstd::Encoder::new(BufWriter::new(File::create(home.join("yardstick"))?), 3)?;
    encoder.include_checksum(true)?;
    copy(&mut zstd::Decoder::new(input)?, &mut encoder)?;
    encoder.finish()?.into_inner()?.sync_all()?;
    Ok(())
}

fn fork(home: &Path, cut: u64, child: &str) -> Done {
    DshLogs::open(home).fork_at("large", Some(Seq(cut)), Some(child), None)?;
    Ok(())
}

/// The most memory the process had, in KiB.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "?".to_owned(), |line| line.trim().trim_end_matches(" kB").to_owned())
}

/// One measurement in a process of its own: milliseconds, KiB.
fn measure(args: &[&str]) -> Result<(u128, String), Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?).args(args).output()?;
    let text = String::from_utf8(output.stdout)?;
    let (time, memory) = text.trim().split_once(' ').ok_or("the measurement failed")?;
    Ok((time.parse()?, memory.to_owned()))
}

fn median(mut times: Vec<u128>) -> u128 {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() -> Done {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let ["only", what, home, cut, child] = args[..] {
        let begun = Instant::now();
        if what == "fork" {
            fork(Path::new(home), cut.parse()?, child)?;
        } else {
            yardstick(Path::new(home))?;
        }
        println!("{} {}", begun.elapsed().as_millis(), peak());
        return Ok(());
    }
    let events: u64 = args.first().map_or(Ok(100_000), |text| text.parse())?;
    let bytes: usize = args.get(1).map_or(Ok(2_150), |text| text.parse())?;
    let dir = tempfile::tempdir()?;
    let home = dir.path().to_str().ok_or("the temporary directory has no plain name")?;
    let decoded = generate(dir.path(), events, bytes)?;
    println!("{events} events, {} MiB decoded", decoded >> 20);
    // The end of the last turn but one: the frame with the cut is made anew.
    let cut = (events / TURN - 1) * TURN - 1;
    let (mut forks, mut yardsticks) = (Vec::new(), Vec::new());
    let mut memory = String::new();
    for round in 0..7 {
        yardsticks.push(measure(&["only", "yardstick", home, "0", "-"])?.0);
        let (time, most) = measure(&["only", "fork", home, &cut.to_string(), &format!("child{round}")])?;
        forks.push(time);
        memory = most;
    }
    println!("decode and encode: {yardsticks:?} ms\nfork: {forks:?} ms");
    let (fork, yardstick) = (median(forks), median(yardsticks));
    println!("medians {fork} and {yardstick} ms, ratio {}.{:02}", fork / yardstick, fork * 100 / yardstick % 100);
    println!("most memory of a fork: {memory} KiB");
    Ok(())
}
