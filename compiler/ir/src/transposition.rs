//! [`transposed`]: the elements of a tensor under permuted axes, moved as bytes.

use crate::types::row_major_strides;

/// Elements along each of two axes that are moved together, so that what is read and what is written both stay in the cache.
const TILE: usize = 16;

/// An axis of the result.
#[derive(Clone, Copy)]
struct Axis {
    extent: usize,
    /// Elements between neighbours of the operand.
    from: usize,
    /// Elements between neighbours of the result.
    to: usize,
}

/// The elements, each of `size` bytes, of a row-major tensor of a shape, with axis `permutation[i]` as axis `i`.
pub fn transposed(bytes: &[u8], size: usize, shape: &[usize], permutation: &[usize]) -> Vec<u8> {
    match size {
        1 => of_elements::<1>(bytes, shape, permutation),
        2 => of_elements::<2>(bytes, shape, permutation),
        4 => of_elements::<4>(bytes, shape, permutation),
        _ => of_elements::<8>(bytes, shape, permutation),
    }
}

fn of_elements<const SIZE: usize>(bytes: &[u8], shape: &[usize], permutation: &[usize]) -> Vec<u8> {
    let mut result = vec![0; bytes.len()];
    let (from, _) = bytes.as_chunks::<SIZE>();
    let (to, _) = result.as_chunks_mut::<SIZE>();
    let mut outer = axes(shape, permutation);
    // What is written side by side, and what is read side by side.
    let inner = outer.pop();
    let neighbours = outer.iter().position(|axis| axis.from == 1).map(|place| outer.remove(place));
    let one = Axis { extent: 1, from: 0, to: 0 };
    let pair = (neighbours.unwrap_or(one), inner.unwrap_or(one));
    let mut index = vec![0; outer.len()];
    let mut place = (0, 0);
    loop {
        move_pair(from, to, place, pair);
        if !advance(&mut index, &mut place, &outer) {
            return result;
        }
    }
}

/// Goes to the next index of some axes, and to its places in the operand and the result; `false` behind the last one.
fn advance(index: &mut [usize], place: &mut (usize, usize), axes: &[Axis]) -> bool {
    for (at, axis) in index.iter_mut().zip(axes).rev() {
        *at += 1;
        place.0 += axis.from;
        place.1 += axis.to;
        if *at < axis.extent {
            return true;
        }
        place.0 -= axis.from * axis.extent;
        place.1 -= axis.to * axis.extent;
        *at = 0;
    }
    false
}

/// The axes of the result that have more than one element, neighbours that stay neighbours as one.
fn axes(shape: &[usize], permutation: &[usize]) -> Vec<Axis> {
    let moved: Vec<usize> = permutation.iter().map(|&axis| shape[axis]).collect();
    let (from, to) = (row_major_strides(shape), row_major_strides(&moved));
    let mut axes: Vec<Axis> = Vec::new();
    for (place, &axis) in permutation.iter().enumerate().filter(|&(place, _)| moved[place] != 1) {
        let own = Axis { extent: moved[place], from: from[axis], to: to[place] };
        match axes.last_mut() {
            Some(last) if last.from == own.from * own.extent => {
                *last = Axis { extent: last.extent * own.extent, ..own }
            }
            _ => axes.push(own),
        }
    }
    axes
}

/// Moves the elements of two axes from a place of the operand to one of the result.
fn move_pair<T: Copy>(from: &[T], to: &mut [T], place: (usize, usize), (outer, inner): (Axis, Axis)) {
    if inner.from == 1 {
        for number in 0..outer.extent {
            let (read, written) = (place.0 + number * outer.from, place.1 + number * outer.to);
            to[written..written + inner.extent].copy_from_slice(&from[read..read + inner.extent]);
        }
        return;
    }
    for first in (0..outer.extent).step_by(TILE) {
        for start in (0..inner.extent).step_by(TILE) {
            for number in first..outer.extent.min(first + TILE) {
                let (read, written) = (place.0 + number * outer.from, place.1 + number * outer.to);
                for at in start..inner.extent.min(start + TILE) {
                    to[written + at * inner.to] = from[read + at * inner.from];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Generator;

    #[test]
    fn each_element_comes_to_its_place() {
        let mut generator = Generator::new(3);
        for _ in 0..300 {
            let size = generator.choose(&[1, 2, 4, 8]);
            let shape: Vec<usize> =
                (0..generator.range(0, 5)).map(|_| generator.choose(&[1, 2, 3, 5, 17, 20])).collect();
            let mut permutation: Vec<usize> = (0..shape.len()).collect();
            for place in (1..shape.len()).rev() {
                permutation.swap(place, generator.range(0, place));
            }
            let elements: usize = shape.iter().product();
            let bytes: Vec<u8> =
                (0..elements * size).map(|number| (number.wrapping_mul(2_654_435_761) >> 7) as u8).collect();
            let result = transposed(&bytes, size, &shape, &permutation);
            assert_eq!(result.len(), bytes.len());
            let moved: Vec<usize> = permutation.iter().map(|&axis| shape[axis]).collect();
            let (from, to) = (row_major_strides(&shape), row_major_strides(&moved));
            for (number, element) in result.chunks_exact(size).enumerate() {
                let at = |place: usize| number / to[place] % moved[place];
                let source: usize = (0..shape.len()).map(|place| at(place) * from[permutation[place]]).sum();
                assert_eq!(element, &bytes[source * size..][..size], "{shape:?} {permutation:?} {number}");
            }
        }
    }
}
