//! [`Partition`]: a box of an array, cut up by what was written last to each part of it.

use super::area::Area;

/// Most parts that one box is cut into.
const MOST_PARTS: usize = 1 << 14;

/// What a box of an array holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Partition {
    /// Nothing was written there.
    Untouched(Area),
    /// A part of what one write wrote.
    Written {
        /// The write, by its place in the list.
        write: usize,
        /// The box.
        area: Area,
    },
    /// Parts side by side.
    Joined {
        /// The axis along which they lie.
        axis: usize,
        /// The parts, in order.
        parts: Vec<Partition>,
    },
}

impl Partition {
    /// Cuts up a box by writes to boxes of the same array, the latest first; `None` when there would be too many parts.
    pub fn of(area: &Area, writes: &[Area]) -> Option<Partition> {
        cut(area, writes, &mut MOST_PARTS.to_owned())
    }

    /// Whether everything was written.
    pub fn is_written(&self) -> bool {
        match self {
            Partition::Untouched(_) => false,
            Partition::Written { .. } => true,
            Partition::Joined { parts, .. } => parts.iter().all(Partition::is_written),
        }
    }

    /// This part and the next one along an axis as one, if they come from the same place.
    fn extended(&self, axis: usize, next: &Partition) -> Option<Partition> {
        match (self, next) {
            (Partition::Untouched(area), Partition::Untouched(next)) => {
                Some(Partition::Untouched(area.with_axis(axis, area.starts[axis]..next.end(axis))))
            }
            (Partition::Written { write, area }, Partition::Written { write: other, area: next }) if write == other => {
                let area = area.with_axis(axis, area.starts[axis]..next.end(axis));
                Some(Partition::Written { write: *write, area })
            }
            _ => None,
        }
    }
}

fn cut(area: &Area, writes: &[Area], budget: &mut usize) -> Option<Partition> {
    *budget = budget.checked_sub(1)?;
    // A write that holds all of the box hides those before it.
    let mut visible = Vec::new();
    for (write, written) in writes.iter().enumerate() {
        let Some(common) = written.intersection(area) else { continue };
        let hides = common == *area;
        visible.push((write, common));
        if hides {
            break;
        }
    }
    match &visible[..] {
        [] => return Some(Partition::Untouched(area.clone())),
        [(write, common), ..] if common == area => {
            return Some(Partition::Written { write: *write, area: area.clone() });
        }
        _ => {}
    }
    let borders = |axis: usize| {
        let ends = visible.iter().flat_map(|(_, common)| [common.starts[axis], common.end(axis)]);
        let mut borders: Vec<usize> = ends.chain([area.starts[axis], area.end(axis)]).collect();
        borders.sort_unstable();
        borders.dedup();
        borders
    };
    let cuts = (0..area.starts.len()).map(|axis| (axis, borders(axis)));
    let (axis, borders) = cuts.filter(|(_, borders)| borders.len() > 2).min_by_key(|(_, borders)| borders.len())?;
    let mut parts: Vec<Partition> = Vec::new();
    for border in borders.windows(2) {
        let part = cut(&area.with_axis(axis, border[0]..border[1]), writes, budget)?;
        match parts.last().and_then(|last| last.extended(axis, &part)) {
            Some(longer) => *parts.last_mut()? = longer,
            None => parts.push(part),
        }
    }
    match parts.len() {
        1 => parts.pop(),
        _ => Some(Partition::Joined { axis, parts }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(starts: &[usize], sizes: &[usize]) -> Area {
        Area { starts: starts.into(), sizes: sizes.into() }
    }

    fn written(write: usize, starts: &[usize], sizes: &[usize]) -> Partition {
        Partition::Written { write, area: area(starts, sizes) }
    }

    #[test]
    fn tiles_are_joined_along_their_axis() {
        let tiles = [area(&[0, 4], &[3, 2]), area(&[0, 0], &[3, 4])];
        let parts = vec![written(1, &[0, 0], &[3, 4]), written(0, &[0, 4], &[3, 2])];
        let whole = Partition::of(&area(&[0, 0], &[3, 6]), &tiles).unwrap();
        assert_eq!(whole, Partition::Joined { axis: 1, parts });
        assert!(whole.is_written());
        assert_eq!(Partition::of(&area(&[1, 1], &[2, 3]), &tiles), Some(written(1, &[1, 1], &[2, 3])));
    }

    #[test]
    fn a_later_write_hides_a_part_of_an_earlier_one() {
        let writes = [area(&[2, 0], &[1, 4]), area(&[0, 0], &[8, 4])];
        let whole = Partition::of(&area(&[0, 0], &[8, 4]), &writes).unwrap();
        let parts = vec![written(1, &[0, 0], &[2, 4]), written(0, &[2, 0], &[1, 4]), written(1, &[3, 0], &[5, 4])];
        assert_eq!(whole, Partition::Joined { axis: 0, parts });
    }

    #[test]
    fn what_nothing_wrote_is_told() {
        let writes = [area(&[1, 1], &[2, 2])];
        let whole = Partition::of(&area(&[0, 0], &[4, 4]), &writes).unwrap();
        assert!(!whole.is_written());
        let Partition::Joined { axis: 0, parts } = whole else { panic!("{whole:?}") };
        assert_eq!(parts.len(), 3);
        assert_eq!(parts[0], Partition::Untouched(area(&[0, 0], &[1, 4])));
    }

    #[test]
    fn too_many_parts_are_refused() {
        let writes: Vec<Area> = (0..200).map(|place| area(&[place * 2, place * 2], &[1, 1])).collect();
        assert_eq!(Partition::of(&area(&[0, 0], &[400, 400]), &writes).map(|whole| whole.is_written()), Some(false));
        let crossing: Vec<Area> = (0..300)
            .map(|place| area(&[place, 300 - place, place], &[600 - 2 * place, 1 + 2 * place, 600 - place]))
            .collect();
        assert_eq!(Partition::of(&area(&[0, 0, 0], &[600, 600, 600]), &crossing), None);
    }
}
