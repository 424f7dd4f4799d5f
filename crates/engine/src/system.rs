//! The real clock, the real randomness, the real process table: what the core asks for and must not take itself.

use std::time::Duration;

use checkpoint_core::{Clock, IdSource, ProcessId, Processes, Timestamp};

/// The system's clock and time zone.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(jiff::Timestamp::now().as_millisecond())
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn read_local(&self, text: &str) -> Option<Timestamp> {
        read_local(text, &jiff::ZonedDateTime::now())
    }
}

/// The newest instant that `text` can mean and that is not after `now`.
fn read_local(text: &str, now: &jiff::ZonedDateTime) -> Option<Timestamp> {
    let zone = now.time_zone().clone();
    if let Ok(full) = text.parse::<jiff::civil::DateTime>() {
        let at = full.to_zoned_datetime(zone).ok()?;
        return (at <= *now).then(|| Timestamp(at.timestamp().as_millisecond()));
    }
    let time: jiff::civil::Time = text.parse().ok()?;
    let mut date = now.date();
    for _ in 0..2 {
        let at = date.to_datetime(time).to_zoned_datetime(zone.clone()).ok()?;
        if at <= *now {
            return Some(Timestamp(at.timestamp().as_millisecond()));
        }
        date = date.yesterday().ok()?;
    }
    None
}

/// Randomness of the operating system.
#[derive(Debug, Clone, Copy)]
pub struct SystemIds;

impl IdSource for SystemIds {
    fn next(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system has randomness");
        bytes
    }
}

/// The process table of this machine.
#[derive(Debug, Clone, Copy)]
pub struct SystemProcesses;

impl Processes for SystemProcesses {
    fn is_alive(&self, process: &ProcessId) -> bool {
        let known = durable_fs::Process { pid: process.pid, start: process.started, boot: process.boot.clone() };
        known.is_alive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, now: &str) -> Option<String> {
        let now: jiff::ZonedDateTime = now.parse().unwrap();
        let found = read_local(text, &now)?;
        Some(
            jiff::Timestamp::from_millisecond(found.0)
                .unwrap()
                .to_zoned_datetime(now.time_zone().clone())
                .datetime()
                .to_string(),
        )
    }

    /// TA17: a time of day is the newest such instant that is not in the future.
    #[test]
    fn local_times() {
        let now = "2026-11-30T13:00:00+01:00[+01:00]";
        assert_eq!(at("12:30", now).as_deref(), Some("2026-11-30T12:30:00"));
        assert_eq!(at("14:05", now).as_deref(), Some("2026-11-29T14:05:00"));
        assert_eq!(at("2026-11-28T14:05", now).as_deref(), Some("2026-11-28T14:05:00"));
        assert_eq!(at("2026-12-28T14:05", now), None);
        assert_eq!(at("25:00", now), None);
        assert_eq!(at("a-b", now), None);
    }
}
