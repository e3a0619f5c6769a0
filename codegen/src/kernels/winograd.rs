//! Winograd's convolutions: windows that move by one, several neighbouring results of which are computed by fewer products than they
//! are sums of ([`Filter`]): 36 instead of 144 for 4 × 4 results of 3 × 3 taps.
//!
//! A tile of results is transformed in vectors of channels; tiles are taken some at a time, so that what is transformed stays in cache.
//! The products are those of a [`Contraction`] with a weight axis, one position of which is one product of all tiles, channels and
//! outputs, by the same register tiles as any other. The border is in memory. A last tile that would leave the result is moved back over
//! results of the one before, whose values it doesn't store again: an epilogue's operand may lie there.

use super::contraction::{Axis, Contraction};
use super::products::{finish, machine};
use super::schedule::{Preferences, Settings};
use super::tile::{self, Lanes, Machine};
use super::winograd_filter::Filter;
use super::{Argument, KernelWriter};
use crate::loops::{Expr, Index, Nest, Relation, Stmt, Var};
use crate::lower::view::View;
use crate::target::{LINE_BYTES, VectorSpelling};
use mlc_ir::ops::Convolution;
use mlc_ir::{DType, Diagnostic, Literal, Objective};

/// Results of a tile along an axis of several taps.
const OUTPUTS: [usize; 2] = [4, 2];
/// Where schedules stand in lists that are thought to take longer than others.
const BEHIND: usize = 100;
/// Elements of a line of cache.
const LINE: usize = LINE_BYTES / 4;

/// A convolution in tiles of some size.
struct Winograd {
    filters: [Filter; 2],
    x: Argument,
    weights: Argument,
    /// Items of the batch, and rows and columns of the result.
    items: usize,
    extents: [usize; 2],
    channels: usize,
    outputs: usize,
    machine: Machine,
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
        let outputs = own.filters.map(|filter| filter.outputs).into_iter().max().unwrap_or(1);
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
    /// A convolution in tiles of so many results along each axis of several taps, if it can be computed so: of singles, in vectors, by
    /// constant weights, by windows that move by one within the operand, where sums needn't keep their order.
    fn new(op: &Convolution, outputs: usize, kernel: &KernelWriter<'_>) -> Option<Winograd> {
        let (x, weights) = (kernel.operands[0].clone(), kernel.operands[1].clone());
        let result = &kernel.results[0].view;
        let ones = |list: &[usize]| list == [1, 1];
        let is_single = |argument: &Argument| kernel.b.element_dtype(argument.pointer) == DType::F32;
        let is_plain = ones(&op.strides)
            && ones(&op.dilations)
            && op.groups == 1
            && op.sums.is_none()
            && op.pads.iter().all(|&pads| pads == (0, 0))
            && [&x, &weights, &kernel.results[0]].into_iter().all(is_single)
            && weights.operand.is_some()
            && weights.constant.as_ref().is_some_and(|constant| constant.ty().dtype == DType::F32)
            && x.view.last_stride() == 1
            && result.elements() > 0;
        let machine = machine(DType::F32, kernel);
        let is_for_any = kernel.target.vectors == VectorSpelling::Either;
        if !is_plain || machine.lanes == 1 || is_for_any || machine.in_order || kernel.target.is_strict() {
            return None;
        }
        let taps = [weights.view.shape[0], weights.view.shape[1]];
        let along = |taps: usize| Filter::new(if taps == 1 { 1 } else { outputs }, taps);
        let filters = [along(taps[0])?, along(taps[1])?];
        let extents = [result.shape[1], result.shape[2]];
        let fits = filters.iter().zip(extents).all(|(filter, extent)| filter.outputs <= extent);
        let channels = weights.view.shape[2];
        if !fits || channels == 0 || filters.iter().all(Filter::is_identity) {
            return None;
        }
        let (items, outputs) = (result.shape[0], weights.view.shape[3]);
        Some(Winograd { filters, x, weights, items, extents, channels, outputs, machine })
    }

    /// Products of a tile.
    fn size(&self) -> usize {
        self.filters.iter().map(Filter::size).product()
    }

    /// Tiles along each axis.
    fn counts(&self) -> [usize; 2] {
        [0, 1].map(|axis| self.extents[axis].div_ceil(self.filters[axis].outputs))
    }

    /// All tiles.
    fn total(&self) -> usize {
        self.items * self.counts().iter().product::<usize>()
    }

    /// Vectors of outputs of the register tiles that the products of so many tiles are computed in.
    fn vectors(&self, tiles: usize) -> usize {
        tile::sizes(1, tiles, self.outputs, self.machine).first().copied().unwrap_or(1)
    }

    /// Elements between those of one product and the next, of so many tiles of some channels: an odd number of lines, so that those of
    /// a tile don't compete for the same places in a cache.
    fn pitch(tiles: usize, channels: usize) -> usize {
        ((tiles * channels).div_ceil(LINE) | 1) * LINE
    }

    /// Time of the register tiles of all results, in units of one vector multiply-add.
    fn direct_time(&self, kernel: &KernelWriter<'_>) -> f64 {
        let [rows, columns] = self.extents;
        let size = tile::sizes(rows, columns, self.outputs, self.machine).first().copied().unwrap_or(1);
        let taps: usize = self.filters.iter().map(|filter| filter.taps).product();
        let step = tile::time(rows, columns, self.outputs, self.machine, size);
        let weights = 4 * taps * self.channels * self.outputs;
        let computing = (self.items * taps * self.channels) as f64 * step;
        beside_fetching(kernel, computing, weights, 1)
    }

    /// Time of so many tiles at once, in units of one vector multiply-add.
    fn time(&self, tiles: usize, kernel: &KernelWriter<'_>) -> f64 {
        let costs = kernel.target.machine.tuning.winograd;
        let turns = self.total().div_ceil(tiles);
        let vectors = |elements: usize| tile::vectors(elements, self.machine).len() as f64;
        let step = tile::time(1, tiles, self.outputs, self.machine, self.vectors(tiles));
        let sums = tiles as f64 * vectors(self.outputs);
        let products = (turns * self.size()) as f64 * (costs.product * self.channels as f64 * step + costs.sum * sums);
        let moved = self.total() as f64 * self.size() as f64 * (vectors(self.channels) + vectors(self.outputs));
        let weights = 4 * self.size() * self.channels * self.outputs;
        beside_fetching(kernel, products, weights, turns) + costs.moved * moved + self.spilling(tiles, kernel)
    }

    /// Bytes of what so many tiles have transformed.
    fn transformed_bytes(&self, tiles: usize) -> usize {
        4 * self.size() * (Self::pitch(tiles, self.channels) + Self::pitch(tiles, self.outputs))
    }

    /// Time that it takes to bring what is transformed back from behind the second level of cache, if that is too small for it.
    fn spilling(&self, tiles: usize, kernel: &KernelWriter<'_>) -> f64 {
        let machine = &kernel.target.machine;
        match machine.caches.get(1) {
            Some(cache) if self.transformed_bytes(tiles) > cache.bytes / 4 * 3 => {
                let bytes = 2 * self.total().div_ceil(tiles) * self.transformed_bytes(tiles);
                bytes as f64 / cache.fill / machine.instructions.multiply_add
            }
            _ => 0.0,
        }
    }

    /// How many tiles are best taken at once, and the time that all take so. The last turn has no fewer than it must.
    fn best_tiles(&self, kernel: &KernelWriter<'_>) -> (usize, f64) {
        let total = self.total();
        let mut best = (total, f64::INFINITY);
        let mut last = 0;
        for turns in 1..=total {
            let tiles = total.div_ceil(turns);
            if tiles == last {
                continue;
            }
            last = tiles;
            let time = self.time(tiles, kernel);
            best = if time < best.1 { (tiles, time) } else { best };
            if self.transformed_bytes(tiles) < kernel.target.machine.tuning.winograd.least_bytes {
                break;
            }
        }
        best
    }

    fn write(&self, settings: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
        let (total, tiles) = (self.total(), settings.number("tiles").max(1));
        let pitches = [self.channels, self.outputs].map(|channels| Self::pitch(tiles, channels));
        let transformed = kernel.gathered("transformed", DType::F32, self.size() * pitches[0]);
        let products = kernel.gathered("products", DType::F32, self.size() * pitches[1]);
        let mut result = Ok(());
        kernel.for_range("first", Index::default(), Index::from(total), tiles as i64, |kernel, first| {
            let left = Index::from(total).plus(&first.times(-1));
            let count = match total.is_multiple_of(tiles) {
                true => Index::from(tiles),
                false => kernel.b.define_index("count", Index::from(tiles).minimum(&left)),
            };
            kernel.for_range("tile", Index::default(), count.clone(), 1, |kernel, tile| {
                let place = self.place(kernel, &first.plus(&tile));
                let to = kernel.b.pointer("vp", transformed, tile.times(self.channels as i64));
                self.elements(kernel, &place, to, pitches[0]);
            });
            result = self.multiply(kernel, settings, (transformed, pitches[0]), (products, pitches[1]), tiles);
            kernel.for_range("tile", Index::default(), count, 1, |kernel, tile| {
                let place = self.place(kernel, &first.plus(&tile));
                let from = kernel.b.pointer("mp", products, tile.times(self.outputs as i64));
                self.results(kernel, &place, from, pitches[1]);
            });
        });
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
            let (outputs, extent) = (self.filters[axis].outputs, self.extents[axis]);
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
        &self,
        kernel: &mut KernelWriter<'a>,
        channels: usize,
        body: impl Fn(&mut KernelWriter<'a>, Index, Lanes),
    ) {
        let lanes = self.machine.lanes;
        let full = channels / lanes * lanes;
        let whole = Lanes { width: lanes, valid: lanes };
        kernel.for_range("c", Index::default(), Index::from(full), lanes as i64, |kernel, c| body(kernel, c, whole));
        if let Some(rest) = tile::vectors(channels, self.machine).last().filter(|_| full < channels) {
            body(kernel, Index::from(full), *rest);
        }
    }

    /// Transforms the elements that a tile meets.
    fn elements(&self, kernel: &mut KernelWriter<'_>, place: &Place, to: Var, pitch: usize) {
        let [row, column] = place.first.clone();
        let start = self.x.address(&[place.item.clone(), row, column, Index::default()]);
        let x = Argument { pointer: kernel.b.pointer("xp", self.x.pointer, start), ..self.x.clone() };
        let sizes = self.filters.map(|filter| filter.size());
        self.for_vectors(kernel, self.channels, |kernel, channel, lanes| {
            let column = |kernel: &mut KernelWriter<'_>, column: usize| -> Vec<Expr> {
                let values = (0..sizes[0]).map(|row| {
                    let indices = [Index::default(), Index::from(row), Index::from(column), channel.clone()];
                    let value = kernel.load(&x, &indices, lanes.width, lanes.valid);
                    kernel.b.define("x", value)
                });
                let values: Vec<Expr> = values.collect();
                transform_elements(kernel, &self.filters[0], &values, lanes.width)
            };
            let columns: Vec<Vec<Expr>> = (0..sizes[1]).map(|number| column(kernel, number)).collect();
            for row in 0..sizes[0] {
                let values: Vec<Expr> = columns.iter().map(|column| column[row].clone()).collect();
                let values = transform_elements(kernel, &self.filters[1], &values, lanes.width);
                for (number, value) in values.into_iter().enumerate() {
                    let index = channel.offset(((row * sizes[1] + number) * pitch) as i64);
                    kernel.b.push(Stmt::Store { pointer: to, index, stride: 1, valid: lanes.valid, value });
                }
            }
        });
    }

    /// Multiplies what was transformed by the transformed weights.
    fn multiply(
        &self,
        kernel: &mut KernelWriter<'_>,
        settings: &Settings,
        (x, x_pitch): (Var, usize),
        (y, y_pitch): (Var, usize),
        tiles: usize,
    ) -> Result<(), Diagnostic> {
        let dense = |pointer: Var, pitch: usize, channels: usize| {
            let shape = [self.size(), tiles, channels].as_slice().into();
            let strides = [pitch as i64, channels as i64, 1].as_slice().into();
            let view = View { dtype: DType::F32, shape, strides, offset: 0 };
            Argument { pointer, view, constant: None, operand: None }
        };
        let (channels, outputs) = (self.channels as i64, self.outputs as i64);
        let contraction = Contraction {
            x: dense(x, x_pitch, self.channels),
            x_offset: 0,
            weights: self.weights.clone(),
            weights_offset: 0,
            filters: Some(self.filters),
            band: None,
            outer: vec![
                Axis { extent: self.size(), x: x_pitch as i64, weights: channels * outputs },
                Axis { extent: tiles, x: channels, weights: 0 },
            ],
            reduction: vec![Axis { extent: self.channels, x: 1, weights: outputs }],
            outputs: self.outputs,
            output_stride: 1,
        };
        let result = std::mem::replace(&mut kernel.results[0], dense(y, y_pitch, self.outputs));
        let epilogue = kernel.epilogue.take();
        let written = contraction.write(settings, kernel);
        (kernel.results[0], kernel.epilogue) = (result, epilogue);
        written
    }

    /// Transforms the products of a tile and hands its results to the epilogue.
    fn results(&self, kernel: &mut KernelWriter<'_>, place: &Place, from: Var, pitch: usize) {
        let sizes = self.filters.map(|filter| filter.size());
        let stored = |axis: usize, at: usize| {
            let own = place.first[axis].offset(at as i64);
            let is_whole = self.extents[axis].is_multiple_of(self.filters[axis].outputs);
            if is_whole { Vec::new() } else { vec![(own, Relation::GreaterEqual, place.fresh[axis].clone())] }
        };
        let view = View::dense(DType::F32, &[sizes[0] * sizes[1] * pitch]);
        let products = Argument { pointer: from, view, constant: None, operand: None };
        self.for_vectors(kernel, self.outputs, |kernel, output, lanes| {
            let column = |kernel: &mut KernelWriter<'_>, column: usize| -> Vec<Expr> {
                let values = (0..sizes[0]).map(|row| {
                    let index = output.offset(((row * sizes[1] + column) * pitch) as i64);
                    let value = kernel.load(&products, &[index], lanes.width, lanes.valid);
                    kernel.b.define("m", value)
                });
                let values: Vec<Expr> = values.collect();
                transform_products(kernel, &self.filters[0], &values, lanes.width)
            };
            let columns: Vec<Vec<Expr>> = (0..sizes[1]).map(|number| column(kernel, number)).collect();
            for row in 0..self.filters[0].outputs {
                kernel.when(stored(0, row), |kernel| {
                    let values: Vec<Expr> = columns.iter().map(|column| column[row].clone()).collect();
                    let values = transform_products(kernel, &self.filters[1], &values, lanes.width);
                    for (column, value) in values.into_iter().enumerate() {
                        kernel.when(stored(1, column), |kernel| {
                            let [first_row, first_column] = &place.first;
                            let at =
                                [place.item.clone(), first_row.offset(row as i64), first_column.offset(column as i64)];
                            let sum = kernel.b.mutable("sum", value);
                            finish(kernel, sum, &at, &output, lanes);
                        });
                    }
                });
            }
        });
    }
}

/// Time of computing, in units of one vector multiply-add, while weights of so many bytes come so many times: first from behind the level
/// of cache that holds them, since other kernels have run since, then from it.
fn beside_fetching(kernel: &KernelWriter<'_>, computing: f64, bytes: usize, turns: usize) -> f64 {
    let machine = &kernel.target.machine;
    let costs = machine.tuning.winograd;
    let level = machine.caches.iter().position(|cache| bytes <= cache.bytes).unwrap_or(machine.caches.len());
    let fill = |level: usize| machine.caches.get(level).map_or(f64::INFINITY, |cache| cache.fill);
    let first_fill = if level + 1 < machine.caches.len() { fill(level) } else { costs.memory_fill };
    let again_fill = level.checked_sub(1).map_or(f64::INFINITY, fill);
    let time = |bytes: usize, fill: f64| bytes as f64 / fill / machine.instructions.multiply_add;
    let fetching = time(bytes, first_fill) + time(bytes * (turns - 1), again_fill);
    computing.max(fetching) + costs.unhidden * computing.min(fetching)
}

/// The values behind a filter's elements.
fn transform_elements(kernel: &mut KernelWriter<'_>, filter: &Filter, values: &[Expr], lanes: usize) -> Vec<Expr> {
    if filter.is_identity() {
        return values.to_vec();
    }
    let rows = filter.elements();
    let terms = |row: &[f64], parity: Option<usize>, divisor: f64| -> Vec<(f64, Expr)> {
        let places = (0..values.len()).filter(|place| parity.is_none_or(|parity| place % 2 == parity));
        places.map(|place| (row[place] / divisor, values[place].clone())).collect()
    };
    let mut list = vec![sum(kernel, terms(&rows[0], None, 1.0), lanes)];
    for (pair, &point) in filter.points.iter().enumerate() {
        // A point's negative differs in the sign of every other term.
        let row = &rows[1 + 2 * pair];
        let odd_place = (values.len() - 1) % 2;
        let same = sum(kernel, terms(row, Some(1 - odd_place), 1.0), lanes);
        let other = sum(kernel, terms(row, Some(odd_place), point), lanes);
        for sign in [1.0, -1.0] {
            list.push(sum(kernel, vec![(1.0, same.clone()), (sign * point, other.clone())], lanes));
        }
    }
    list.push(sum(kernel, terms(&rows[rows.len() - 1], None, 1.0), lanes));
    list
}

/// The results of a filter's products.
fn transform_products(kernel: &mut KernelWriter<'_>, filter: &Filter, values: &[Expr], lanes: usize) -> Vec<Expr> {
    if filter.is_identity() {
        return values.to_vec();
    }
    let mut pairs = Vec::new();
    for pair in values[1..values.len() - 1].chunks_exact(2) {
        let of = |kernel: &mut KernelWriter<'_>, sign: f64| {
            sum(kernel, vec![(1.0, pair[0].clone()), (sign, pair[1].clone())], lanes)
        };
        pairs.push([of(kernel, 1.0), of(kernel, -1.0)]);
    }
    let mut list = Vec::new();
    for output in 0..filter.outputs {
        let mut terms = Vec::new();
        if output == 0 {
            terms.push((1.0, values[0].clone()));
        }
        if output + 1 == filter.outputs {
            terms.push((1.0, values[values.len() - 1].clone()));
        }
        let of_pairs = filter.points.iter().zip(&pairs);
        terms.extend(of_pairs.map(|(point, pair)| (point.powi(output as i32), pair[output % 2].clone())));
        list.push(sum(kernel, terms, lanes));
    }
    list
}

/// A sum of multiples, as a variable. Those that needn't be multiplied come first.
fn sum(kernel: &mut KernelWriter<'_>, terms: Vec<(f64, Expr)>, lanes: usize) -> Expr {
    let mut terms: Vec<(f64, Expr)> = terms.into_iter().filter(|(factor, _)| *factor != 0.0).collect();
    terms.sort_by_key(|(factor, _)| *factor != 1.0);
    let of = |factor: f64| Expr::splat(Literal::float(DType::F32, factor), lanes);
    let mut total: Option<Expr> = None;
    for (factor, value) in terms {
        total = Some(match total {
            None if factor == 1.0 => value,
            None => value.times(of(factor)),
            Some(total) if factor == 1.0 => total.plus(value),
            Some(total) if factor == -1.0 => total.minus(value),
            Some(total) => total.plus(value.times(of(factor))),
        });
    }
    let total = total.unwrap_or_else(|| Expr::zero(DType::F32, lanes));
    kernel.b.define("t", total)
}
