//! Work that is shared out among threads. What comes out doesn't depend on how many there are.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Threads at most that mlc starts for its own work.
const MOST_THREADS: usize = 8;

/// Bytes from which on threads are worth starting.
const LARGE: usize = 1 << 20;

/// How many threads this machine has for work on so many bytes.
pub fn threads(bytes: usize) -> usize {
    if bytes < LARGE { 1 } else { thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS) }
}

/// What becomes of each item, in the items' order. Each of at most `threads` threads takes the next item when it is free; a
/// panic in one of them is one of the caller's.
pub fn map<T: Sync, R: Send>(items: &[T], threads: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = threads.min(items.len());
    if threads < 2 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let sender = sender.clone();
            scope.spawn(|| {
                let sender = sender;
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    // The receiver outlives the threads.
                    let _ = sender.send((index, work(item)));
                }
            });
        }
    });
    drop(sender);
    let mut results: Vec<(usize, R)> = receiver.into_iter().collect();
    results.sort_by_key(|&(index, _)| index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Hands what becomes of each item to `take`, in the items' order, while `threads` other threads work on the next ones. Two results
/// for each thread wait at most.
///
/// # Errors
/// The first one of `take`; what follows isn't taken then. A panic of a thread is one of the caller's.
pub fn in_order<T: Sync, R: Send, E>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
    mut take: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let threads = threads.min(items.len());
    if threads < 2 {
        return items.iter().try_for_each(|item| take(work(item)));
    }
    thread::scope(|scope| {
        let work = &work;
        // Every so-many-th item is one thread's, so that each channel is in order.
        let results = (0..threads).map(|first| {
            let (sender, receiver) = mpsc::sync_channel(1);
            scope.spawn(move || {
                // Nobody receives once `take` has failed.
                items.iter().skip(first).step_by(threads).try_for_each(|item| sender.send(work(item)))
            });
            receiver
        });
        let results: Vec<_> = results.collect();
        // Nothing comes of a thread that has panicked.
        (0..items.len()).map_while(|number| results[number % threads].recv().ok()).try_for_each(take)
    })
}

#[cfg(test)]
mod tests {
    use super::{in_order, map};

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..100).collect();
        for threads in [0, 1, 2, 200] {
            let squares = map(&items, threads, |&item| {
                if item % 7 == 0 {
                    std::thread::yield_now();
                }
                item * item
            });
            assert_eq!(squares, items.iter().map(|item| item * item).collect::<Vec<_>>(), "{threads} threads");
        }
        assert!(map(&[] as &[usize], 2, |&item| item).is_empty());
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let caught = std::panic::catch_unwind(|| map(&[1, 2, 3], 2, |&item| assert!(item != 2, "two")));
        assert!(caught.is_err());
    }

    #[test]
    fn results_are_taken_in_order_until_one_is_refused() {
        let items: Vec<usize> = (0..100).collect();
        for threads in [0, 1, 2, 3, 200] {
            let mut taken = Vec::new();
            let all = in_order(
                &items,
                threads,
                |&item| item * item,
                |square| {
                    taken.push(square);
                    Ok::<(), ()>(())
                },
            );
            assert_eq!((all, taken), (Ok(()), items.iter().map(|item| item * item).collect()), "{threads} threads");
            let mut taken = 0;
            let refused = in_order(
                &items,
                threads,
                |&item| item,
                |item| {
                    taken += 1;
                    if item == 40 { Err(item) } else { Ok(()) }
                },
            );
            assert_eq!((refused, taken), (Err(40), 41), "{threads} threads");
        }
    }

    #[test]
    fn a_panic_ends_what_is_taken() {
        let work = |&item: &i32| assert!(item != 20, "twenty");
        let items: Vec<i32> = (0..50).collect();
        assert!(std::panic::catch_unwind(|| in_order(&items, 2, work, |()| Ok::<(), ()>(()))).is_err());
    }
}
