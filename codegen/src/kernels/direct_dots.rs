//! Sums of products of bytes that are read where they are, so that they take no scratch memory: by tiles of three pixels and two outputs where
//! sums are only rescaled ([`Routine::DirectDots`]), else pixel by pixel.

use super::KernelWriter;
use super::contraction::{Axis, Contraction};
use super::dots::{FEW_PIXELS, GROUP, Reach, blocks_with_weights, packed_words, runs};
use super::scales::{Scales, numbers};
use super::schedule::{Preferences, Settings};
use crate::loops::{DirectTile, Index, Nest, Routine, Stmt, Tile, Var};
use crate::target::VectorSpelling;
use mlc_ir::{Attribute, DType, Diagnostic, TensorType};

/// Bytes between pixels that a load finds beside its pointer, at most, for the last of three.
const MOST_BYTES: i64 = 4095;

const TILE: Tile = Tile::ThreeByTwo;

impl Contraction {
    /// The schedules that read the bytes of several pixels where they are, which are slower than others and take no scratch memory; none where
    /// vectors are many times as fast for a pixel's bytes of scratch memory. Weights that are words of two, `wide`, needn't be widened.
    pub fn direct_dot_schedules(&self, kernel: &KernelWriter<'_>) -> Preferences {
        let merged = self.clone().merged(kernel).0;
        let is_apart = matches!(merged.reach(), Reach::Pixel | Reach::Window);
        let is_whole = runs(&merged).0.is_multiple_of(GROUP);
        let has_vectors = kernel.target.vectors == VectorSpelling::Mve;
        if !is_apart || !is_whole || has_vectors || merged.pixels() < 2 || !merged.has_dots(Reach::Row, kernel) {
            return Preferences::new();
        }
        let three = Settings::default().with("pixels", 3);
        match kernel.target.dsp && self.has_tiles(kernel) {
            true => vec![(0, three.clone()), (0, three.with("weights", "wide"))],
            false => vec![(0, Settings::default())],
        }
    }

    /// Whether sums are only rescaled, of pixels as far apart as each other.
    fn has_tiles(&self, kernel: &KernelWriter<'_>) -> bool {
        let mut found = false;
        self.clone().in_merged_axes(&mut kernel.clone(), |merged, kernel| {
            found = DirectDots::new(merged, false, kernel).is_some();
        });
        found
    }

    /// Writes one of them.
    ///
    /// # Errors
    /// None: the types are those of [`Contraction::direct_dot_schedules`].
    pub fn write_direct_dots(self, settings: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
        if settings.number("pixels") == 0 {
            self.write_dots_of(true, kernel);
            return Ok(());
        }
        self.in_merged_axes(kernel, |merged, kernel| {
            if let Some(dots) = DirectDots::new(merged, settings.is("weights", "wide"), kernel) {
                dots.write(kernel);
            }
        });
        Ok(())
    }
}

/// A contraction whose innermost outer axis is walked in tiles, and its constants.
struct DirectDots<'c> {
    contraction: &'c Contraction,
    columns: Axis,
    x: DType,
    wide: bool,
    blocks: usize,
    /// Groups of a run, runs, and bytes from the end of one to the next.
    window: [i64; 3],
    weights: Var,
    first: Var,
    scales: Scales,
    /// Blocks without weights.
    idle: usize,
}

impl<'c> DirectDots<'c> {
    fn new(contraction: &'c Contraction, wide: bool, kernel: &mut KernelWriter<'_>) -> Option<DirectDots<'c>> {
        let columns = *contraction.outer.last()?;
        let is_near = columns.x >= 0 && columns.x * (TILE.pixels() as i64 - 1) <= MOST_BYTES;
        if columns.extent < 2 || !is_near || !contraction.outputs.is_multiple_of(TILE.outputs()) {
            return None;
        }
        let [above @ .., run] = &contraction.reduction[..] else { return None };
        let window = match above {
            [] => [1, 0],
            [rows] => [rows.extent as i64, rows.x - run.extent as i64],
            _ => return None,
        };
        let (first, scales) = contraction.rescaled_sums(contraction.outputs, kernel);
        let scales = scales?;
        let blocks = contraction.outputs / TILE.outputs();
        let taken = blocks_with_weights(blocks, TILE, &scales.idle);
        let idle = blocks - taken.len();
        let words = contraction.steps() / GROUP * TILE.outputs() * taken.len() * if wide { 2 } else { 1 };
        let (packed, constant) = (contraction.clone(), contraction.weights.constant.clone());
        let values = move || {
            let words = packed_words(&packed, constant.as_ref()?, TILE, taken.chunks(1))?;
            Some(if wide { widened(&words) } else { words })
        };
        let ty = TensorType::new(DType::I32, [words.max(1)]);
        let weights = kernel.pack(contraction.weights.operand.unwrap_or(1), "packed", ty, values);
        let x = kernel.b.element_dtype(contraction.x.pointer);
        let window = [(run.extent / GROUP) as i64, window[0], window[1]];
        Some(DirectDots { contraction, columns, x, wide, blocks, window, weights, first, scales, idle })
    }

    fn write(&self, kernel: &mut KernelWriter<'_>) {
        let rows: Vec<usize> = self.contraction.outer.iter().map(|axis| axis.extent).collect();
        let rows = &rows[..rows.len() - 1];
        let most = TILE.pixels();
        let [threes, twos] = shares(self.columns.extent);
        kernel.for_shape(&["n", "row", "line"], rows, &mut |kernel, row| {
            kernel.for_range("column", Index::default(), Index::from(threes * most), most as i64, |kernel, column| {
                self.pixels(kernel, row, &column, most);
            });
            let rest = self.columns.extent - threes * most;
            match twos {
                // The last ones of a long row are computed with some of those before once more.
                0 if rest > 0 => self.pixels(kernel, row, &Index::from(self.columns.extent - most), most),
                _ => kernel.for_each("pair", twos, |kernel, pair| {
                    self.pixels(kernel, row, &pair.times(2).offset((threes * most) as i64), 2);
                }),
            }
        });
    }

    /// All outputs of some pixels from a column on.
    fn pixels(&self, kernel: &mut KernelWriter<'_>, row: &[Index], column: &Index, pixels: usize) {
        let start = self.contraction.start_at(&[row, std::slice::from_ref(column)].concat());
        let tables = [self.weights, self.first, self.scales.table].map(|table| (table, Index::default()));
        let result = kernel.results[0].clone();
        let stored = (0..pixels as i64).map(|pixel| {
            let place: Vec<Index> = row.iter().cloned().chain([column.offset(pixel), Index::default()]).collect();
            (result.pointer, result.address(&place))
        });
        let pointers = [(self.contraction.x.pointer, start)].into_iter().chain(tables).chain(stored).collect();
        let [groups, runs, gap] = self.window;
        let mut numbers = vec![groups, self.blocks as i64, runs, gap];
        numbers.extend(self.scales.limit());
        let tile = DirectTile {
            pixels,
            distance: self.columns.x as usize,
            x: self.x,
            wide: self.wide,
            dtype: self.scales.dtype,
            limited: self.scales.limit().is_some(),
        };
        let routine = Routine::DirectDots { tile, idle: self.idle };
        kernel.b.push(Stmt::Routine { routine, pointers, numbers });
    }
}

/// How many tiles of three pixels a row has, and how many of two behind them; of long rows, some are left over instead.
fn shares(columns: usize) -> [usize; 2] {
    match columns % 3 {
        0 => [columns / 3, 0],
        _ if columns > FEW_PIXELS => [columns / 3, 0],
        2 => [columns / 3, 1],
        _ => [columns / 3 - 1, 2],
    }
}

/// Words of four bytes as two words each: the first and the third byte as numbers of 16 bits, then the others.
fn widened(words: &Attribute) -> Attribute {
    let pair = |low: u8, high: u8| i32::from(low as i8) & 0xffff | i32::from(high as i8) << 16;
    let words = words.bytes().chunks_exact(GROUP);
    numbers(words.flat_map(|word| [pair(word[0], word[2]), pair(word[1], word[3])]).map(i64::from).collect())
}
