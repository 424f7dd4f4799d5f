//! The same for many things, several at a time.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// For work that mostly waits for the disk: waiting together is faster than in turn.
pub const FOR_DISK: usize = 8;

/// For work that mostly reads what is in memory: as many as there are processors, up to eight.
pub fn for_processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get).min(8)
}

/// With fewer things than this a thread costs more than it saves.
const WORTH_A_THREAD: usize = 16;

/// Does something with each of `all`, by at most `workers` threads, this one among them.
///
/// Nobody may count on an order, but each is begun in its turn: when `each` of one has returned, all before it were
/// begun. A panic of one is the caller's.
pub fn each_in_parallel<T: Sync>(all: &[T], workers: usize, each: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(item) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            each(item);
        }
    };
    thread::scope(|scope| {
        let helpers: Vec<_> = (1..workers.min(all.len())).map(|_| scope.spawn(work)).collect();
        work();
        for helper in helpers {
            helper.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload));
        }
    });
}

/// What `of` says of each of `all`, in their order. For work that reads.
pub fn map_in_parallel<T: Sync, R: Send>(all: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if all.len() < WORTH_A_THREAD { all.iter().map(of).collect() } else { map_each_in_parallel(all, of) }
}

/// The same where each is much work by itself: even two are worth a thread.
pub fn map_each_in_parallel<T: Sync, R: Send>(all: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let said = Mutex::new(Vec::with_capacity(all.len()));
    let numbered: Vec<(usize, &T)> = all.iter().enumerate().collect();
    each_in_parallel(&numbered, for_processors(), |(n, item)| {
        let answer = of(item);
        said.lock().unwrap_or_else(PoisonError::into_inner).push((*n, answer));
    });
    let mut said = said.into_inner().unwrap_or_else(PoisonError::into_inner);
    said.sort_by_key(|(n, _)| *n);
    said.into_iter().map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_comes_in_its_place() {
        for len in [0_usize, 1, 15, 16, 1000] {
            let all: Vec<usize> = (0..len).collect();
            let doubled: Vec<usize> = all.iter().map(|n| n * 2).collect();
            assert_eq!(map_in_parallel(&all, |n| n * 2), doubled);
            assert_eq!(map_each_in_parallel(&all, |n| n * 2), doubled);
        }
    }

    #[test]
    #[should_panic(expected = "seven")]
    fn a_panic_of_one_is_the_callers() {
        let all: Vec<usize> = (0..100).collect();
        each_in_parallel(&all, 4, |n| assert!(*n != 7, "seven"));
    }
}
