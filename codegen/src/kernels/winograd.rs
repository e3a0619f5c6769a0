//! Winograd's convolutions: windows, several neighbouring results of which are computed by fewer products than they are sums of
//! ([`Windows`]): 36 instead of 144 for 4 × 4 results of 3 × 3 taps, 49 instead of 81 for 3 × 3 results where the window moves by two.
//!
//! A tile of results is transformed in vectors of channels; tiles are taken some at a time, so that what is transformed stays in cache.
//! The products are those of a [`Contraction`] for each [`Group`] with a weight axis, one position of which is one product of all tiles,
//! channels of all phases and outputs, by the same register tiles as any other. The border is in memory. A last tile that would leave the result is moved back over
//! results of the one before, whose values it doesn't store again: an epilogue's operand may lie there.
//!
//! Bytes are transformed to numbers of 16 bits, exactly, where transforms are of integers and the machine multiplies two such numbers at once:
//! sums are those of all products, modulo what 32 bits hold, and weights are doubled where they are halves.

use super::contraction::{Axis, Contraction};
use super::grain::Grain;
use super::products::{finish, machine};
use super::schedule::{Preferences, Settings};
use super::tile::{self, Lanes, Machine};
use super::vector_quads::grain_machine;
use super::winograd_numbers::{Ends, MOST_PRODUCTS, Numbers};
use super::winograd_transforms::{transform_elements, transform_products};
use super::winograd_windows::{Group, Windows};
use super::{Argument, KernelWriter};
use crate::loops::{Expr, Index, Nest, Relation, Stmt, Var};
use crate::lower::view::View;
use crate::target::{LINE_BYTES, VectorSpelling};
use mlc_ir::ops::Convolution;
use mlc_ir::{DType, Diagnostic, Objective};

/// Results of a tile along an axis of several taps; a window has filters for odd numbers or for even ones.
const OUTPUTS: [usize; 4] = [5, 4, 3, 2];
/// Elements that windows move by at most.
const MOST_STRIDE: usize = 2;
/// Where schedules stand in lists that are thought to take longer than others.
const BEHIND: usize = 100;

/// A convolution in tiles of some size.
pub(super) struct Winograd {
    pub(super) numbers: Numbers,
    pub(super) windows: Windows,
    pub(super) groups: Vec<Group>,
    x: Argument,
    weights: Argument,
    /// Items of the batch, and rows and columns of the result.
    pub(super) items: usize,
    pub(super) extents: [usize; 2],
    pub(super) channels: usize,
    pub(super) outputs: usize,
    /// The machine as it is for sums, and as it is for elements.
    pub(super) machine: Machine,
    pub(super) elements: Machine,
}

/// Where a tile lies: the item, and along each axis the first result that nobody else stores and the first one that is computed.
struct Place {
    item: Index,
    fresh: [Index; 2],
    first: [Index; 2],
}

/// The schedules for a kernel; that which is thought to be the fastest of all comes before those of other kinds.
pub fn list(op: &Convolution, kernel: &KernelWriter<'_>) -> Preferences {
    let is_fast = |settings: &Winograd, time: f64| {
        matches!(kernel.target.objective, Objective::Speed | Objective::Balanced)
            && time < kernel.target.machine.tuning.winograd.least_gain * settings.direct_time(kernel)
    };
    let all = OUTPUTS.iter().filter_map(|&outputs| Winograd::new(op, outputs, kernel));
    let mut timed: Vec<(f64, Preferences)> = Vec::new();
    for own in all {
        let (tiles, time) = own.best_tiles(kernel);
        let place = if is_fast(&own, time) { 0 } else { BEHIND };
        let outputs = own.windows.filters.map(|filter| filter.outputs).into_iter().max().unwrap_or(1);
        let vectors = own.vectors(tiles);
        let settings = Settings::default().with("outputs", outputs).with("tiles", tiles).with("vectors", vectors);
        timed.push((time, vec![(place, settings.with("weights", "packed"))]));
    }
    timed.sort_by(|left, right| left.0.total_cmp(&right.0));
    timed.into_iter().flat_map(|(_, list)| list).collect()
}

/// Writes one of them.
///
/// # Errors
/// None: the types are those of [`list`].
pub fn write(op: &Convolution, settings: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    match Winograd::new(op, settings.number("outputs"), kernel) {
        Some(own) => own.write(settings, kernel),
        None => Ok(()),
    }
}

impl Winograd {
    /// A convolution in tiles of so many results along each axis of several taps, if it can be computed so: of singles or bytes, in vectors, by
    /// constant weights, by windows that move by one or two within the operand, where sums of singles needn't keep their order.
    fn new(op: &Convolution, outputs: usize, kernel: &KernelWriter<'_>) -> Option<Winograd> {
        let (x, weights) = (kernel.operands[0].clone(), kernel.operands[1].clone());
        let result = &kernel.results[0].view;
        let ones = |list: &[usize]| list == [1, 1];
        let strides = <[usize; 2]>::try_from(op.strides.as_slice()).ok()?;
        let is_plain = ones(&op.dilations)
            && strides.iter().all(|stride| (1..=MOST_STRIDE).contains(stride))
            && op.groups == 1
            && op.pads.iter().all(|&pads| pads == (0, 0))
            && x.view.last_stride() == 1
            && result.elements() > 0;
        let numbers = Numbers::of(op, kernel)?;
        let elements = machine(numbers.elements(), kernel);
        let is_for_any = kernel.target.vectors == VectorSpelling::Either;
        if !is_plain || elements.lanes == 1 || is_for_any || elements.in_order {
            return None;
        }
        let machine = if numbers == Numbers::Words { grain_machine(Grain::Words, kernel) } else { elements };
        let taps = [weights.view.shape[0], weights.view.shape[1]];
        let windows = Windows::new(taps, strides, outputs)?;
        let extents = [result.shape[1], result.shape[2]];
        let channels = weights.view.shape[2];
        let is_exact = windows.doublings().is_some()
            && channels.is_multiple_of(elements.narrowest)
            && windows.taps() * channels <= MOST_PRODUCTS;
        if numbers == Numbers::Words && !is_exact {
            return None;
        }
        let fits = windows.filters.iter().zip(extents).all(|(filter, extent)| filter.outputs <= extent);
        if !fits || channels == 0 {
            return None;
        }
        let (items, outputs) = (result.shape[0], weights.view.shape[3]);
        let groups = windows.groups();
        Some(Winograd { numbers, windows, groups, x, weights, items, extents, channels, outputs, machine, elements })
    }

    /// Channels of all phases that take part in a group's products.
    pub(super) fn depth(&self, group: &Group) -> usize {
        group.phases * self.channels
    }

    /// Tiles along each axis.
    fn counts(&self) -> [usize; 2] {
        [0, 1].map(|axis| self.extents[axis].div_ceil(self.windows.filters[axis].outputs))
    }

    /// All tiles.
    pub(super) fn total(&self) -> usize {
        self.items * self.counts().iter().product::<usize>()
    }

    /// Vectors of outputs of the register tiles that the products of so many tiles are computed in.
    pub(super) fn vectors(&self, tiles: usize) -> usize {
        tile::sizes(1, tiles, self.outputs, self.machine).first().copied().unwrap_or(1)
    }

    /// Elements between those of one product and the next, of so many tiles of some channels: an odd number of lines, so that those of
    /// a tile don't compete for the same places in a cache.
    fn pitch(dtype: DType, tiles: usize, channels: usize) -> usize {
        let line = LINE_BYTES / dtype.size();
        ((tiles * channels).div_ceil(line) | 1) * line
    }

    /// The same of transformed elements of a group.
    fn element_pitch(&self, tiles: usize, group: &Group) -> usize {
        Self::pitch(self.numbers.elements(), tiles, self.depth(group))
    }

    /// The same of sums.
    fn sum_pitch(&self, tiles: usize) -> usize {
        Self::pitch(self.numbers.sums(), tiles, self.outputs)
    }

    /// Elements of what so many tiles have transformed, those in front of each group's first.
    fn transformed(&self, tiles: usize) -> (usize, Vec<usize>) {
        let mut total = 0;
        let mut starts = Vec::new();
        for group in &self.groups {
            starts.push(total);
            total += group.products.len() * self.element_pitch(tiles, group);
        }
        (total, starts)
    }

    /// Bytes of what so many tiles have transformed, and of their products.
    pub(super) fn transformed_bytes(&self, tiles: usize) -> usize {
        let elements = self.numbers.elements().size() * self.transformed(tiles).0;
        elements + self.numbers.sums().size() * self.windows.size() * self.sum_pitch(tiles)
    }

    fn write(&self, settings: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
        let (total, tiles) = (self.total(), settings.number("tiles").max(1));
        let pitch = self.sum_pitch(tiles);
        let (elements, starts) = self.transformed(tiles);
        let transformed = kernel.gathered("transformed", self.numbers.elements(), elements);
        let products = kernel.gathered("products", self.numbers.sums(), self.windows.size() * pitch);
        let old = (kernel.epilogue.clone(), kernel.bounds.clone());
        let doublings = self.windows.doublings().filter(|_| self.numbers == Numbers::Words);
        let ends = doublings.and_then(|doublings| Ends::take(kernel, doublings, self.outputs, self.machine.lanes));
        let mut result = Ok(());
        kernel.for_range("first", Index::default(), Index::from(total), tiles as i64, |kernel, first| {
            let left = Index::from(total).plus(&first.times(-1));
            let count = match total.is_multiple_of(tiles) {
                true => Index::from(tiles),
                false => kernel.b.define_index("count", Index::from(tiles).minimum(&left)),
            };
            kernel.for_range("tile", Index::default(), count.clone(), 1, |kernel, tile| {
                let place = self.place(kernel, &first.plus(&tile));
                let to = |(group, &start): (&Group, &usize)| {
                    let place = tile.times(self.depth(group) as i64).offset(start as i64);
                    kernel.b.pointer("vp", transformed, place)
                };
                let to: Vec<Var> = self.groups.iter().zip(&starts).map(to).collect();
                self.elements(kernel, &place, &to, tiles);
            });
            result = self.groups.iter().zip(&starts).try_for_each(|(group, &start)| {
                let x = kernel.b.pointer("gp", transformed, Index::from(start));
                let y = kernel.b.pointer("gp", products, Index::from(group.first * pitch));
                self.multiply(kernel, settings, group, (x, y), tiles)
            });
            kernel.for_range("tile", Index::default(), count, 1, |kernel, tile| {
                let place = self.place(kernel, &first.plus(&tile));
                let from = kernel.b.pointer("mp", products, tile.times(self.outputs as i64));
                self.results(kernel, &place, (from, pitch), ends.as_ref());
            });
        });
        (kernel.epilogue, kernel.bounds) = old;
        result
    }

    /// Where a tile lies, by its number.
    fn place(&self, kernel: &mut KernelWriter<'_>, number: &Index) -> Place {
        let counts = self.counts();
        let number = kernel.b.define_index("number", number.clone());
        let line = number.divided_by(counts[1] as i64);
        let item = match self.items {
            1 => Index::default(),
            _ => kernel.b.define_index("item", line.divided_by(counts[0] as i64)),
        };
        let row = if self.items == 1 { line } else { line.modulo(counts[0] as i64) };
        let steps = [row, number.modulo(counts[1] as i64)];
        let names = [("row", "from_row"), ("column", "from_column")];
        let along = |kernel: &mut KernelWriter<'_>, axis: usize| {
            let (outputs, extent) = (self.windows.filters[axis].outputs, self.extents[axis]);
            let fresh = match self.counts()[axis] {
                1 => Index::default(),
                _ => kernel.b.define_index(names[axis].0, steps[axis].times(outputs as i64)),
            };
            let first = match extent.is_multiple_of(outputs) {
                true => fresh.clone(),
                false => kernel.b.define_index(names[axis].1, fresh.minimum(&Index::from(extent - outputs))),
            };
            (fresh, first)
        };
        let (rows, columns) = (along(kernel, 0), along(kernel, 1));
        Place { item, fresh: [rows.0, columns.0], first: [rows.1, columns.1] }
    }

    /// Loops over vectors of channels.
    fn for_vectors<'a>(
        kernel: &mut KernelWriter<'a>,
        machine: Machine,
        channels: usize,
        body: impl Fn(&mut KernelWriter<'a>, Index, Lanes),
    ) {
        let lanes = machine.lanes;
        let full = channels / lanes * lanes;
        let whole = Lanes { width: lanes, valid: lanes };
        kernel.for_range("c", Index::default(), Index::from(full), lanes as i64, |kernel, c| body(kernel, c, whole));
        if let Some(rest) = tile::vectors(channels, machine).last().filter(|_| full < channels) {
            body(kernel, Index::from(full), *rest);
        }
    }

    /// Transforms the elements that a tile meets, to where those of each group are.
    fn elements(&self, kernel: &mut KernelWriter<'_>, place: &Place, to: &[Var], tiles: usize) {
        let strides = self.windows.strides;
        let [row, column] = [0, 1].map(|axis| place.first[axis].times(strides[axis] as i64));
        let start = self.x.address(&[place.item.clone(), row, column, Index::default()]);
        let view = View { dtype: kernel.b.element_dtype(self.x.pointer), ..self.x.view.clone() };
        let x = Argument { pointer: kernel.b.pointer("xp", self.x.pointer, start), view, ..self.x.clone() };
        let phases = self.windows.phases();
        Self::for_vectors(kernel, self.elements, self.channels, |kernel, channel, lanes| {
            for &phase in &phases {
                let sizes = [0, 1].map(|axis| self.windows.reach(phase, axis));
                let column = |kernel: &mut KernelWriter<'_>, column: usize| -> Vec<Expr> {
                    let values = (0..sizes[0]).map(|row| {
                        let [row, column] =
                            [(0, row), (1, column)].map(|(axis, at)| Index::from(at * strides[axis] + phase[axis]));
                        let value = kernel.load(
                            &x,
                            &[Index::default(), row, column, channel.clone()],
                            lanes.width,
                            lanes.valid,
                        );
                        let value = match self.numbers {
                            Numbers::Singles => value,
                            Numbers::Words => Expr::Cast(self.numbers.elements(), Box::new(value)),
                        };
                        kernel.b.define("x", value)
                    });
                    let values: Vec<Expr> = values.collect();
                    transform_elements(kernel, &self.windows.filters[0], &values, lanes.width)
                };
                let columns: Vec<Vec<Expr>> = (0..sizes[1]).map(|number| column(kernel, number)).collect();
                for row in 0..sizes[0] {
                    let values: Vec<Expr> = columns.iter().map(|column| column[row].clone()).collect();
                    let values = transform_elements(kernel, &self.windows.filters[1], &values, lanes.width);
                    for (number, value) in values.into_iter().enumerate() {
                        let Some((group, place)) = self.transformed_place([row, number], phase, tiles) else {
                            continue;
                        };
                        let (pointer, index) = (to[group], channel.offset(place as i64));
                        kernel.b.push(Stmt::Store { pointer, index, stride: 1, valid: lanes.valid, value });
                    }
                }
            }
        });
    }

    /// Where a product has what a phase brings to it, of the first channel and tile: the group, and elements behind its first.
    fn transformed_place(&self, product: [usize; 2], phase: [usize; 2], tiles: usize) -> Option<(usize, usize)> {
        let turn = self.windows.turn(product, phase)?;
        let (group, place) = self.place_in_group(product)?;
        Some((group, place * self.element_pitch(tiles, &self.groups[group]) + turn * self.channels))
    }

    /// The group of a product, and the products in front of it there.
    fn place_in_group(&self, product: [usize; 2]) -> Option<(usize, usize)> {
        let places = self.groups.iter().map(|group| group.products.iter().position(|own| *own == product));
        places.enumerate().find_map(|(number, place)| Some((number, place?)))
    }

    /// The number of a product.
    fn number(&self, product: [usize; 2]) -> usize {
        self.place_in_group(product).map_or(0, |(group, place)| self.groups[group].first + place)
    }

    /// Multiplies what was transformed for a group's products by the transformed weights.
    fn multiply(
        &self,
        kernel: &mut KernelWriter<'_>,
        settings: &Settings,
        group: &Group,
        (x, y): (Var, Var),
        tiles: usize,
    ) -> Result<(), Diagnostic> {
        let count = group.products.len();
        let depth = self.depth(group);
        let dense = |pointer: Var, dtype: DType, channels: usize| {
            let shape = [count, tiles, channels].as_slice().into();
            let strides = [Self::pitch(dtype, tiles, channels) as i64, channels as i64, 1].as_slice().into();
            let view = View { dtype, shape, strides, offset: 0 };
            Argument { pointer, view, constant: None, operand: None }
        };
        let x = dense(x, self.numbers.elements(), depth);
        let contraction = Contraction {
            x_offset: 0,
            weights: self.weights.clone(),
            weights_offset: 0,
            transform: Some((self.windows, group.clone())),
            band: None,
            outer: vec![
                Axis { extent: count, x: x.view.strides[0], weights: (depth * self.outputs) as i64 },
                Axis { extent: tiles, x: depth as i64, weights: 0 },
            ],
            x,
            reduction: vec![Axis { extent: depth, x: 1, weights: self.outputs as i64 }],
            outputs: self.outputs,
            output_stride: 1,
        };
        let result = std::mem::replace(&mut kernel.results[0], dense(y, self.numbers.sums(), self.outputs));
        let epilogue = kernel.epilogue.take();
        let written = match self.numbers {
            Numbers::Singles => contraction.write(settings, kernel),
            Numbers::Words => contraction.write_words(settings, kernel),
        };
        (kernel.results[0], kernel.epilogue) = (result, epilogue);
        written
    }

    /// Transforms the products of a tile and hands its results to the epilogue.
    fn results(&self, kernel: &mut KernelWriter<'_>, place: &Place, (from, pitch): (Var, usize), ends: Option<&Ends>) {
        let sizes = self.windows.sizes();
        let stored = |axis: usize, at: usize| {
            let own = place.first[axis].offset(at as i64);
            let is_whole = self.extents[axis].is_multiple_of(self.windows.filters[axis].outputs);
            if is_whole { Vec::new() } else { vec![(own, Relation::GreaterEqual, place.fresh[axis].clone())] }
        };
        let view = View::dense(self.numbers.sums(), &[self.windows.size() * pitch]);
        let products = Argument { pointer: from, view, constant: None, operand: None };
        Self::for_vectors(kernel, self.machine, self.outputs, |kernel, output, lanes| {
            let column = |kernel: &mut KernelWriter<'_>, column: usize| -> Vec<Expr> {
                let values = (0..sizes[0]).map(|row| {
                    let index = output.offset((self.number([row, column]) * pitch) as i64);
                    let value = kernel.load(&products, &[index], lanes.width, lanes.valid);
                    kernel.b.define("m", value)
                });
                let values: Vec<Expr> = values.collect();
                transform_products(kernel, &self.windows.filters[0], &values, lanes.width)
            };
            let columns: Vec<Vec<Expr>> = (0..sizes[1]).map(|number| column(kernel, number)).collect();
            for row in 0..self.windows.filters[0].outputs {
                kernel.when(stored(0, row), |kernel| {
                    let values: Vec<Expr> = columns.iter().map(|column| column[row].clone()).collect();
                    let values = transform_products(kernel, &self.windows.filters[1], &values, lanes.width);
                    for (column, value) in values.into_iter().enumerate() {
                        kernel.when(stored(1, column), |kernel| {
                            let [first_row, first_column] = &place.first;
                            let at =
                                [place.item.clone(), first_row.offset(row as i64), first_column.offset(column as i64)];
                            let value =
                                ends.map_or(value.clone(), |ends| ends.value(kernel, value, &output, lanes.width));
                            let sum = kernel.b.mutable("sum", value);
                            finish(kernel, sum, &at, &output, lanes);
                        });
                    }
                });
            }
        });
    }
}
