//! Sums of products as C, with assembly where the DSP extension is.

use super::dsp_text::{in_assembly, in_both_assemblies, limit, rescale_one, saturation};
use super::routine::Tile;
use super::spelling::c_type;
use mlc_ir::DType;

/// Where the sums of two outputs are, of each three pixels.
pub(super) const SUMS: [[&str; 3]; 2] = [["r4", "r5", "r6"], ["r7", "r8", "r9"]];

/// A group of some pixels, three at most, and two outputs.
fn group_by_two(pixels: usize) -> String {
    let pairs = &["r10", "r11", "r12"][..pixels];
    let load = format!("ldmia r0!, {{{}}}\n", pairs.join(", "));
    let products = |output: usize, weights: &str| -> String {
        let own = SUMS[output].iter().zip(pairs);
        own.map(|(sum, pair)| format!("smlad {sum}, {pair}, {weights}, {sum}\n")).collect()
    };
    format!(
        "ldmia r1!, {{r2, r3}}\n{load}sxtb16 lr, r2\n{}sxtb16 lr, r3\n{}{load}\
         sxtb16 r2, r2, ror #8\nsxtb16 r3, r3, ror #8\n{}{}",
        products(0, "lr"),
        products(1, "lr"),
        products(0, "r2"),
        products(1, "r3"),
    )
}

/// Parameters of the function, which the assembly finds by the procedure call standard.
const DOTS_PARAMETERS: [&str; 5] =
    ["const int32_t *weights", "const int32_t *first", "int32_t *sums", "int32_t groups", "int32_t blocks"];

/// The function of a [`Dots`](super::routine::Routine::Dots).
pub fn dots(name: &str, tile: Tile, bytes: Option<DType>) -> String {
    let (pixels, outputs) = (tile.pixels(), tile.outputs());
    let source = format!("const {} *source", c_type(bytes.unwrap_or(DType::I32)));
    let parameters: Vec<String> = std::iter::once(source.as_str()).chain(DOTS_PARAMETERS).map(String::from).collect();
    let factors = match bytes {
        Some(_) => ["x[group * 4]", "x[group * 4 + 1]", "x[group * 4 + 2]", "x[group * 4 + 3]"].map(String::from),
        None => {
            let half = |place: usize, shift: usize| {
                format!("(int16_t)(uint16_t)((uint32_t)x[group * {} + {place}] >> {shift})", 2 * pixels)
            };
            [half(0, 0), half(pixels, 0), half(0, 16), half(pixels, 16)]
        }
    };
    let terms: String = factors
        .iter()
        .enumerate()
        .map(|(place, factor)| format!("        total += {factor} * (int8_t)(uint8_t)(word >> {});\n", 8 * place))
        .collect();
    let products = format!(
        "static void {name}(\n    {}) {{\n  \
           for (int32_t block = 0; block < blocks; ++block) {{\n    \
             for (int32_t sum = 0; sum < {size}; ++sum) {{\n      \
               const int32_t output = sum / {pixels};\n      \
               const {element} *x = source + sum % {pixels};\n      \
               const int32_t *w = weights + block * groups * {outputs} + output;\n      \
               int32_t total = first[block * {outputs} + output];\n      \
               for (int32_t group = 0; group < groups; ++group) {{\n        \
                 const uint32_t word = (uint32_t)w[group * {outputs}];\n\
         {terms}      \
               }}\n      \
               sums[block * {size} + sum] = total;\n    \
             }}\n  \
           }}\n}}\n",
        parameters.join(",\n    "),
        size = pixels * outputs,
        element = c_type(bytes.unwrap_or(DType::I32)),
    );
    let dsp = assembly(tile, bytes);
    match bytes.filter(|_| tile == Tile::OneByFour) {
        Some(dtype) => in_both_assemblies(name, &parameters, [&dsp, &small_assembly(dtype)], &products),
        None => in_assembly(name, &parameters, &dsp, &products),
    }
}

/// The loops in assembly. On the stack are the pairs, the first terms, the sums, the ends of the pairs and of those whose groups
/// are taken four at a time, and the number of blocks that are left.
fn assembly(tile: Tile, bytes: Option<DType>) -> String {
    let (multiple, step, spread, last) = match tile {
        Tile::ThreeByTwo => (
            "add r10, r12, r12, lsl #1\nbic r11, r12, #3\nadd r11, r11, r11, lsl #1\n\
             add r10, r0, r10, lsl #3\nadd r11, r0, r11, lsl #3\n",
            group_by_two(tile.pixels()),
            "ldmia r2!, {r4, r7}\nmov r5, r4\nmov r6, r4\nmov r8, r7\nmov r9, r7\n",
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
            let (ends, load) = match bytes {
                Some(dtype) => {
                    let widen = if dtype.is_signed() { "sxtb16" } else { "uxtb16" };
                    let load = format!("ldr r2, [r0], #4\n{widen} r3, r2, ror #8\n{widen} r2, r2");
                    ("bic r11, r12, #3\nadd r10, r0, r12, lsl #2\nadd r11, r0, r11, lsl #2\n", load)
                }
                None => (
                    "bic r11, r12, #3\nadd r10, r0, r12, lsl #3\nadd r11, r0, r11, lsl #3\n",
                    "ldmia r0!, {r2, r3}".to_owned(),
                ),
            };
            (
                ends,
                format!("ldmia r1!, {{r8, r9, r10, r11}}\n{load}\n{products}"),
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

/// The function of a [`RescaledDots`](super::routine::Routine::RescaledDots).
pub fn rescaled_dots(name: &str, pixels: usize, dtype: DType, limited: bool) -> String {
    let byte = c_type(dtype);
    let mut parameters: Vec<String> =
        ["pairs", "weights", "first", "scales"].map(|of| format!("const int32_t *{of}")).to_vec();
    parameters.extend((0..pixels).map(|pixel| format!("{byte} *y{pixel}")));
    parameters.extend(["int32_t groups", "int32_t blocks"].map(String::from));
    parameters.extend(limited.then(|| "int32_t low".to_owned()));
    let [_, low, _] = limit(limited);
    let portable = format!(
        "{}static int32_t {name}_sum(const int32_t *pairs, const int32_t *weights, int32_t total, int32_t groups) {{\n  \
           for (int32_t group = 0; group < groups; ++group) {{\n    \
             for (int32_t step = 0; step < 4; ++step) {{\n      \
               const uint32_t pair = (uint32_t)pairs[group * {group} + step % 2 * {pixels}];\n      \
               const uint32_t word = (uint32_t)weights[group * 2];\n      \
               total += (int16_t)(uint16_t)(pair >> (step / 2 * 16)) * (int8_t)(uint8_t)(word >> (step * 8));\n    \
             }}\n  \
           }}\n  \
           return total;\n}}\n\n{}",
        rescale_one(name, dtype, limited),
        blocks_in_c(
            name,
            &parameters,
            pixels,
            dtype,
            &Sum { x: "pairs + pixel", words: 2, groups: "groups", arguments: "groups", low }
        ),
        group = 2 * pixels,
    );
    in_assembly(name, &parameters, &rescaled_assembly(pixels, dtype, limited), &portable)
}

/// How C that rescales blocks calls the function of a sum.
pub(super) struct Sum<'a> {
    /// What a pixel's sum is made of.
    pub x: &'a str,
    /// Words of a group's weights, of two outputs.
    pub words: usize,
    /// The number of groups of an output.
    pub groups: &'a str,
    /// What the function takes behind the first term.
    pub arguments: &'a str,
    /// The lower limit as an argument.
    pub low: &'a str,
}

/// The function of such blocks in C.
pub(super) fn blocks_in_c(name: &str, parameters: &[String], pixels: usize, dtype: DType, sum: &Sum<'_>) -> String {
    let results: Vec<String> = (0..pixels).map(|pixel| format!("y{pixel}")).collect();
    let Sum { x, words, groups, arguments, low } = sum;
    format!(
        "static void {name}(\n    {}) {{\n  \
           {byte} *const results[{pixels}] = {{{results}}};\n  \
           for (int32_t output = 0; output < blocks * 2; ++output) {{\n    \
             const int32_t is_taken = (scales[output / 2 * 6] | scales[output / 2 * 6 + 3]) != 0;\n    \
             const int32_t *w = weights + output % 2{half};\n    \
             weights += is_taken ? output % 2 * {groups} * {words} : 0;\n    \
             for (int32_t pixel = {last}; pixel >= 0; --pixel) {{\n      \
               const int32_t sum = is_taken ? {name}_sum({x}, w, first[output], {arguments}) : 0;\n      \
               results[pixel][output] = {name}_one(sum, scales + output * 3{low});\n    \
             }}\n  \
           }}\n}}\n",
        parameters.join(",\n    "),
        byte = c_type(dtype),
        half = if *words > 2 { format!(" * {}", words / 2) } else { String::new() },
        last = pixels - 1,
        results = results.join(", "),
    )
}

/// Where the first terms and the scales are on the stack of functions that rescale blocks.
pub(super) const TERMS: [usize; 2] = [0, 4];

/// Where else on their stack is what a block is stored by.
pub(super) struct Places {
    /// Each pixel's results.
    pub results: usize,
    /// The number of blocks that are left.
    pub blocks: usize,
    /// The lower limit.
    pub low: usize,
}

/// Begins the sums of a block, or goes on to label 34 where its multipliers are 0, so that it has no weights.
pub(super) fn begin_block(pixels: usize) -> String {
    let [first, scales] = TERMS;
    let copies: String = SUMS
        .iter()
        .flat_map(|[first, others @ ..]| others[..pixels - 1].iter().map(move |sum| format!("mov {sum}, {first}\n")))
        .collect();
    format!(
        "ldr r2, [sp, #{first}]\nldmia r2!, {{r4, r7}}\nstr r2, [sp, #{first}]\nldr lr, [sp, #{scales}]\nldr r2, [lr]\n\
         ldr r3, [lr, #12]\norrs r2, r2, r3\nbeq 34f\n{copies}"
    )
}

/// Rescales and stores the sums of a block; whether another one is left is in the flags then.
pub(super) fn end_block(pixels: usize, dtype: DType, limited: bool, places: &Places) -> String {
    let saturate = saturation(dtype);
    let Places { results: place, blocks, low } = places;
    let [_, scales] = TERMS;
    let of_output = |output: usize| {
        let sums = &SUMS[output][..pixels];
        let rescaled: String = sums
            .iter()
            .map(|sum| {
                format!(
                    "add r11, r10, {sum}, asr #31\nlsl {sum}, {sum}, #1\nsmmlar {sum}, {sum}, r2, r11\n\
                     asr {sum}, {sum}, r3\n{saturate} {sum}, #8, {sum}, asr #1\n"
                )
            })
            .collect();
        let limits: String = sums.iter().map(|sum| format!("cmp {sum}, r11\nit lt\nmovlt {sum}, r11\n")).collect();
        let limits = if limited { format!("ldr r11, [sp, #{low}]\n{limits}") } else { String::new() };
        format!("ldmia lr!, {{r2, r3, r10}}\n{rescaled}{limits}")
    };
    let results = &["r2", "r3", "r10"][..pixels];
    let list = results.join(", ");
    let stores: String = (0..pixels)
        .rev()
        .flat_map(|pixel| SUMS.map(|sums| format!("strb {}, [{}], #1\n", sums[pixel], results[pixel])))
        .collect();
    format!(
        "34:\nldr lr, [sp, #{scales}]\n{}{}str lr, [sp, #{scales}]\n\
         add r0, sp, #{place}\nldmia r0, {{{list}}}\n{stores}stmia r0, {{{list}}}\n\
         ldr lr, [sp, #{blocks}]\nsubs lr, lr, #1\nstr lr, [sp, #{blocks}]\n",
        of_output(0),
        of_output(1),
    )
}

/// Four steps, the first time from the one on whose number is in r12: as many of them as are left over.
pub(super) fn four_steps(step: &str) -> String {
    let steps: String = (0..4).map(|number| format!("3{number}:\n{step}")).collect();
    format!("tbb [pc, r12]\n20:\n.byte (30f-20b)/2\n.byte (31f-20b)/2\n.byte (32f-20b)/2\n.byte (33f-20b)/2\n{steps}")
}

/// The same in assembly. Blocks whose multipliers are 0 are only rescaled. Groups are taken four at a time, the first time only as many as are left over. On the stack are the first terms,
/// the scales, the pairs and their end, how many groups are skipped the first time; behind what is saved there are the results,
/// the numbers of groups and of blocks that are left, the lower limit.
fn rescaled_assembly(pixels: usize, dtype: DType, limited: bool) -> String {
    let [groups, blocks, low] = [0, 4, 8].map(|behind| 56 + 4 * pixels + behind);
    // Of a group there are as many bytes of pairs as eight times the pixels.
    let end = match pixels {
        2 => "add lr, r0, r12, lsl #4\n",
        _ => "add lr, r12, r12, lsl #1\nadd lr, r0, lr, lsl #3\n",
    };
    format!(
        "push {{r4-r11, lr}}\nsub sp, sp, #20\nldr r12, [sp, #{groups}]\nstrd r2, r3, [sp]\n{end}\
         strd r0, lr, [sp, #8]\nrsb r12, r12, #0\nand r12, r12, #3\nstr r12, [sp, #16]\n\
         1:\n{}ldr r0, [sp, #8]\nldr r12, [sp, #16]\n{}ldr lr, [sp, #12]\ncmp r0, lr\nbne 30b\n\
         {}bne 1b\nadd sp, sp, #20\npop {{r4-r11, pc}}",
        begin_block(pixels),
        four_steps(&group_by_two(pixels)),
        end_block(pixels, dtype, limited, &Places { results: 56, blocks, low }),
    )
}

/// The loops of one pixel and four outputs for a Cortex-M0. On the stack are the bytes of x, the first terms and the sums; behind what is
/// saved there are the numbers of groups and of blocks that are left.
fn small_assembly(dtype: DType) -> String {
    let bytes: String = ["r2", "r3", "r4", "r5"]
        .iter()
        .enumerate()
        .map(|(place, x)| {
            let widened = if dtype.is_signed() { format!("sxtb {x}, {x}\n") } else { String::new() };
            format!("ldrb {x}, [r0, #{place}]\n{widened}")
        })
        .collect();
    let products: String = ["r8", "r9", "r10", "r11"]
        .iter()
        .map(|sum| {
            format!(
                "ldmia r1!, {{r6}}\nsxtb r7, r6\nmuls r7, r2, r7\nadd {sum}, {sum}, r7\n\
                 lsls r7, r6, #16\nasrs r7, r7, #24\nmuls r7, r3, r7\nadd {sum}, {sum}, r7\n\
                 lsls r7, r6, #8\nasrs r7, r7, #24\nmuls r7, r4, r7\nadd {sum}, {sum}, r7\n\
                 asrs r6, r6, #24\nmuls r6, r5, r6\nadd {sum}, {sum}, r6\n"
            )
        })
        .collect();
    format!(
        "sub sp, sp, #12\nstr r0, [sp]\nstr r2, [sp, #4]\nstr r3, [sp, #8]\nldr r4, [sp, #48]\nlsls r4, r4, #2\nadds r4, r0, r4\n\
         mov r12, r4\n\
         1:\nldr r2, [sp, #4]\nldmia r2!, {{r4, r5, r6, r7}}\nstr r2, [sp, #4]\nmov r8, r4\nmov r9, r5\nmov r10, r6\n\
         mov r11, r7\nldr r0, [sp]\n\
         2:\n{bytes}adds r0, r0, #4\n{products}cmp r0, r12\nbne 2b\n\
         ldr r2, [sp, #8]\nmov r4, r8\nmov r5, r9\nmov r6, r10\nmov r7, r11\nstmia r2!, {{r4, r5, r6, r7}}\nstr r2, [sp, #8]\n\
         ldr r4, [sp, #52]\nsubs r4, r4, #1\nstr r4, [sp, #52]\nbne 1b\nadd sp, sp, #12"
    )
}
