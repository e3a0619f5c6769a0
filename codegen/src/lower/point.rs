//! [`Point`]: a program as a choice between memory and time, and which of them are worth a choice: [`front`].

/// A program as a choice between memory and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Point {
    /// Bytes of the arena.
    pub arena_bytes: usize,
    /// Predicted time, in the unit of the target's prices.
    pub time: u64,
    /// Operations that patches of rows compute twice.
    pub twice: u64,
}

/// The points of which none has both a smaller arena and less time than another one, those of least memory first.
pub fn front(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_unstable();
    let mut least = u64::MAX;
    points.retain(|point| {
        let is_faster = point.time < least;
        least = least.min(point.time);
        is_faster
    });
    points
}
