//! Work that is shared out among threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// What becomes of each item, in the items' order. Each of at most `threads` threads takes the next item when it is free; a
/// panic in one of them is one of the caller's.
pub fn map<T: Sync, R: Send>(items: &[T], threads: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
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

#[cfg(test)]
mod tests {
    use super::map;

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
}
