//! Routines: inner loops of integer kernels that C compilers don't make well of single statements. Each is a function of C that a
//! file carries, with instructions of the DSP extension of Arm's cores where there are any.
//!
//! A *pair* is a word of two numbers of 16 bits, the first in its lower half. A *group* is four numbers that follow each other: they
//! are kept as two pairs, of the first and the third and of the second and the fourth, which is what one instruction widens of
//! four bytes.

use super::spelling::c_type;
use mlc_ir::DType;

/// A function of C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Routine {
    /// Of bytes (a pointer to numbers of this type, one to words; a count): makes groups of them, the last of which is filled up
    /// with zeros. Those of several pixels lie among each other: the first pairs of all pixels, then their second ones.
    Widen {
        /// What a byte is.
        dtype: DType,
        /// Pixels whose groups lie among each other.
        pixels: usize,
    },
    /// Sums of products (pointers to the groups of some pixels, to words of four weights, to the first terms of the outputs'
    /// sums, to the sums; numbers of groups and of blocks of outputs). Weights and sums are block by block: for each group
    /// the words of the block's outputs; for each pixel the sums of the block's outputs.
    Dots(Tile),
}

/// Pixels and outputs whose sums are computed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tile {
    /// Three pixels, two outputs.
    ThreeByTwo,
    /// One pixel, four outputs.
    OneByFour,
}

impl Tile {
    /// How many pixels.
    pub fn pixels(self) -> usize {
        match self {
            Tile::ThreeByTwo => 3,
            Tile::OneByFour => 1,
        }
    }

    /// How many outputs.
    pub fn outputs(self) -> usize {
        match self {
            Tile::ThreeByTwo => 2,
            Tile::OneByFour => 4,
        }
    }
}

impl Routine {
    /// The function's name.
    pub fn name(self) -> String {
        match self {
            Routine::Widen { dtype, pixels } => format!("mlc_widen_{dtype}_{pixels}"),
            Routine::Dots(tile) => format!("mlc_dots_{}x{}", tile.pixels(), tile.outputs()),
        }
    }

    /// Instructions of a call with these numbers, where the DSP extension is.
    pub fn instructions(self, numbers: &[i64]) -> f64 {
        let number = |place: usize| numbers.get(place).copied().unwrap_or(0) as f64;
        match self {
            Routine::Widen { .. } => 4.0 + 7.0 * (number(0) / 4.0).ceil(),
            Routine::Dots(Tile::ThreeByTwo) => 24.0 + number(1) * (17.0 + 19.75 * number(0)),
            Routine::Dots(Tile::OneByFour) => 24.0 + number(1) * (13.0 + 18.75 * number(0)),
        }
    }

    /// Elements that a call reads or writes behind each of its pointers.
    pub fn elements(self, numbers: &[i64]) -> Vec<usize> {
        let number = |place: usize| numbers.get(place).map_or(0, |&number| number.max(0) as usize);
        match self {
            Routine::Widen { pixels, .. } => vec![number(0), number(0).div_ceil(4) * 2 * pixels],
            Routine::Dots(tile) => {
                let (groups, blocks) = (number(0), number(1));
                let outputs = blocks * tile.outputs();
                vec![groups * 2 * tile.pixels(), groups * outputs, outputs, outputs * tile.pixels()]
            }
        }
    }

    /// The function.
    pub fn definition(self) -> String {
        match self {
            Routine::Widen { dtype, pixels } => widen(&self.name(), dtype, pixels),
            Routine::Dots(tile) => dots(&self.name(), tile),
        }
    }
}

const HAS_DSP: &str = "#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__GNUC__)\n";

fn widen(name: &str, dtype: DType, pixels: usize) -> String {
    let byte = c_type(dtype);
    let instruction = if dtype.is_signed() { "sxtb16" } else { "uxtb16" };
    let second = pixels;
    let group = 2 * pixels;
    format!(
        "static inline int32_t {name}_pair({byte} x, {byte} y) {{\n  \
           return (int32_t)((uint32_t)(uint16_t)x | (uint32_t)(uint16_t)y << 16);\n}}\n\n\
         static inline void {name}(const {byte} *restrict x, int32_t *restrict pairs, int32_t count) {{\n  \
           int32_t k = 0;\n  \
           for (; k + 4 <= count; k += 4) {{\n\
         {HAS_DSP}    \
             int32_t bytes;\n    \
             __builtin_memcpy(&bytes, x + k, 4);\n    \
             __asm__(\"{instruction} %0, %1\" : \"=r\"(pairs[0]) : \"r\"(bytes));\n    \
             __asm__(\"{instruction} %0, %1, ror #8\" : \"=r\"(pairs[{second}]) : \"r\"(bytes));\n\
         #else\n    \
             pairs[0] = {name}_pair(x[k], x[k + 2]);\n    \
             pairs[{second}] = {name}_pair(x[k + 1], x[k + 3]);\n\
         #endif\n    \
             pairs += {group};\n  \
           }}\n  \
           if (k < count) {{\n    \
             const {byte} third = ({byte})(k + 2 < count ? x[k + 2] : 0);\n    \
             const {byte} second = ({byte})(k + 1 < count ? x[k + 1] : 0);\n    \
             pairs[0] = {name}_pair(x[k], third);\n    \
             pairs[{second}] = {name}_pair(second, 0);\n  \
           }}\n}}\n"
    )
}

/// Parameters of the function, which the assembly finds by the procedure call standard.
const DOTS_PARAMETERS: [&str; 6] = [
    "const int32_t *pairs",
    "const int32_t *weights",
    "const int32_t *first",
    "int32_t *sums",
    "int32_t groups",
    "int32_t blocks",
];

fn dots(name: &str, tile: Tile) -> String {
    let (pixels, outputs) = (tile.pixels(), tile.outputs());
    let unused: Vec<String> =
        DOTS_PARAMETERS.iter().map(|parameter| format!("{parameter} __attribute__((unused))")).collect();
    let assembly: String = assembly(tile).lines().map(|line| format!("      \"{}\\n\"\n", line.trim())).collect();
    let products = format!(
        "static void {name}(\n    {}) {{\n  \
           for (int32_t block = 0; block < blocks; ++block) {{\n    \
             for (int32_t sum = 0; sum < {size}; ++sum) {{\n      \
               const int32_t output = sum % {outputs};\n      \
               const int32_t *x = pairs + sum / {outputs};\n      \
               const int32_t *w = weights + block * groups * {outputs} + output;\n      \
               int32_t total = first[block * {outputs} + output];\n      \
               for (int32_t group = 0; group < groups; ++group) {{\n        \
                 const uint32_t even = (uint32_t)x[group * {words}];\n        \
                 const uint32_t odd = (uint32_t)x[group * {words} + {pixels}];\n        \
                 const uint32_t bytes = (uint32_t)w[group * {outputs}];\n        \
                 total += (int16_t)(uint16_t)even * (int8_t)(uint8_t)bytes;\n        \
                 total += (int16_t)(uint16_t)odd * (int8_t)(uint8_t)(bytes >> 8);\n        \
                 total += (int16_t)(uint16_t)(even >> 16) * (int8_t)(uint8_t)(bytes >> 16);\n        \
                 total += (int16_t)(uint16_t)(odd >> 16) * (int8_t)(uint8_t)(bytes >> 24);\n      \
               }}\n      \
               sums[block * {size} + sum] = total;\n    \
             }}\n  \
           }}\n}}\n",
        DOTS_PARAMETERS.join(",\n    "),
        size = pixels * outputs,
        words = 2 * pixels,
    );
    format!(
        "{HAS_DSP}__attribute__((naked, noinline)) static void {name}(\n    {}) {{\n  \
           __asm__(\n{assembly}      );\n}}\n#else\n{products}#endif\n",
        unused.join(",\n    "),
    )
}

/// The loops in assembly. On the stack are the pairs, the first terms, the sums, the ends of the pairs and of those whose groups
/// are taken four at a time, and the number of blocks that are left.
fn assembly(tile: Tile) -> String {
    let (multiple, step, spread, last) = match tile {
        Tile::ThreeByTwo => (
            "add r10, r12, r12, lsl #1\nbic r11, r12, #3\nadd r11, r11, r11, lsl #1\n\
             add r10, r0, r10, lsl #3\nadd r11, r0, r11, lsl #3\n",
            "ldmia r1!, {r2, r3}\nldmia r0!, {r10, r11, r12}\nsxtb16 lr, r2\n\
             smlad r4, r10, lr, r4\nsmlad r6, r11, lr, r6\nsmlad r8, r12, lr, r8\nsxtb16 lr, r3\n\
             smlad r5, r10, lr, r5\nsmlad r7, r11, lr, r7\nsmlad r9, r12, lr, r9\nldmia r0!, {r10, r11, r12}\n\
             sxtb16 r2, r2, ror #8\nsxtb16 r3, r3, ror #8\n\
             smlad r4, r10, r2, r4\nsmlad r6, r11, r2, r6\nsmlad r8, r12, r2, r8\n\
             smlad r5, r10, r3, r5\nsmlad r7, r11, r3, r7\nsmlad r9, r12, r3, r9\n"
                .to_owned(),
            "ldmia r2!, {r4, r5}\nmov r6, r4\nmov r7, r5\nmov r8, r4\nmov r9, r5\n",
            "r9",
        ),
        Tile::OneByFour => {
            let words = ["r8", "r9", "r10", "r11"];
            let sums = ["r4", "r5", "r6", "r7"];
            let products: String = words
                .iter()
                .zip(sums)
                .map(|(word, sum)| {
                    format!(
                        "sxtb16 lr, {word}\nsxtb16 {word}, {word}, ror #8\nsmlad {sum}, r2, lr, {sum}\n\
                         smlad {sum}, r3, {word}, {sum}\n"
                    )
                })
                .collect();
            (
                "bic r11, r12, #3\nadd r10, r0, r12, lsl #3\nadd r11, r0, r11, lsl #3\n",
                format!("ldmia r1!, {{r8, r9, r10, r11}}\nldmia r0!, {{r2, r3}}\n{products}"),
                "ldmia r2!, {r4, r5, r6, r7}\n",
                "r7",
            )
        }
    };
    let four = step.repeat(4);
    format!(
        "push {{r4-r11, lr}}\nldrd r12, lr, [sp, #36]\n{multiple}push {{r0, r2, r3, r10, r11, lr}}\n\
         1:\nldr r2, [sp, #4]\n{spread}str r2, [sp, #4]\nb 3f\n2:\n{four}3:\nldr r2, [sp, #16]\ncmp r0, r2\nbne 2b\n\
         ldr r2, [sp, #12]\ncmp r0, r2\nbeq 5f\n4:\n{step}ldr r2, [sp, #12]\ncmp r0, r2\nbne 4b\n\
         5:\nldr r2, [sp, #8]\nstmia r2!, {{r4-{last}}}\nstr r2, [sp, #8]\nldr r0, [sp]\nldr r2, [sp, #20]\n\
         subs r2, r2, #1\nstr r2, [sp, #20]\nbne 1b\nadd sp, sp, #24\npop {{r4-r11, pc}}"
    )
}
