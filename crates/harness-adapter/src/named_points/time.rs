//! Times as JavaScript writes them.

use checkpoint_core::Timestamp;

const DAY: i64 = 24 * 60 * 60 * 1000;

/// A UTC time as `2026-11-30T14:05:00.000Z`. Years outside 0 to 9999 are written with as many digits as they need.
pub fn iso(time: Timestamp) -> String {
    let (days, ms) = (time.0.div_euclid(DAY), time.0.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    let (hour, minute, second, ms) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar. Years are counted from March on
/// within cycles of 400, so that the day that leap years add is the last one of a year.
const fn civil(days: i64) -> (i64, i64, i64) {
    const CYCLE: i64 = 146_097;
    let shifted = days + 719_468;
    let (cycle, day_of_cycle) = (shifted.div_euclid(CYCLE), shifted.rem_euclid(CYCLE));
    let leaps = day_of_cycle / 1460 - day_of_cycle / 36_524 + day_of_cycle / 146_096;
    let year_of_cycle = (day_of_cycle - leaps) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = cycle * 400 + year_of_cycle + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// True for what [`iso`] writes, with or without a fraction of a second.
pub(super) fn is_iso(text: &str) -> bool {
    let Some((date, time)) = text.strip_suffix('Z').and_then(|text| text.split_once('T')) else { return false };
    let (clock, fraction) = time.split_once('.').map_or((time, None), |(clock, fraction)| (clock, Some(fraction)));
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|b| b.is_ascii_digit());
    let shaped = |text: &str, separator: char, counts: [usize; 3]| {
        let parts: Vec<&str> = text.split(separator).collect();
        parts.len() == 3 && parts.iter().zip(counts).all(|(part, count)| digits(part, count))
    };
    shaped(date, '-', [4, 2, 2])
        && shaped(clock, ':', [2, 2, 2])
        && fraction.is_none_or(|part| (1..=9).contains(&part.len()) && digits(part, part.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_javascript() {
        let known = [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_827_696_789, "2000-02-29T12:34:56.789Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00.000Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_796_063_305_215, "2026-11-30T18:28:25.215Z"),
        ];
        for (ms, text) in known {
            assert_eq!(iso(Timestamp(ms)), text);
            assert!(is_iso(text));
        }
        for bad in
            ["", "2026-11-30", "2026-11-30T16:28:25", "2026-11-30T16:28Z", "26-11-30T16:28:25Z", "x2026-11-30T1:2:3Z"]
        {
            assert!(!is_iso(bad), "{bad}");
        }
        assert!(is_iso("2026-11-30T16:28:25Z"));
    }
}
