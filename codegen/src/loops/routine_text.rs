//! [`Routine`]s as C, with assembly where the DSP extension is. The same text without it is C for any machine.

use super::routine::{Routine, Tile};
use super::spelling::c_type;
use mlc_ir::DType;

/// The function of a routine.
pub fn definition(routine: Routine) -> String {
    let name = routine.name();
    match routine {
        Routine::Copy { dtype } => format!(
            "static inline void {name}(const {} *x, int16_t *y) {{\n  *(volatile int16_t *)y = (int16_t)*x;\n}}\n",
            c_type(dtype)
        ),
        Routine::Widen { dtype, pixels } => widen(&name, dtype, pixels),
        Routine::Dots { tile, bytes } => dots(&name, tile, bytes),
        Routine::Rescale { tile, dtype, limited } => rescale(&name, tile, dtype, limited),
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
         {HAS_DSP}__attribute__((noinline))\n#endif\n\
         static void {name}(const {byte} *restrict x, int32_t *restrict pairs, int32_t count) {{\n  \
           int32_t k = 0;\n\
         {HAS_DSP}#pragma GCC unroll 4\n#endif\n  \
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
const DOTS_PARAMETERS: [&str; 5] =
    ["const int32_t *weights", "const int32_t *first", "int32_t *sums", "int32_t groups", "int32_t blocks"];

fn dots(name: &str, tile: Tile, bytes: Option<DType>) -> String {
    let (pixels, outputs) = (tile.pixels(), tile.outputs());
    let source = format!("const {} *source", c_type(bytes.unwrap_or(DType::I32)));
    let parameters: Vec<&str> = std::iter::once(source.as_str()).chain(DOTS_PARAMETERS).collect();
    let unused: Vec<String> =
        parameters.iter().map(|parameter| format!("{parameter} __attribute__((unused))")).collect();
    let assembly: String =
        assembly(tile, bytes).lines().map(|line| format!("      \"{}\\n\"\n", line.trim())).collect();
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
    format!(
        "{HAS_DSP}__attribute__((naked, noinline)) static void {name}(\n    {}) {{\n  \
           __asm__(\n{assembly}      );\n}}\n#else\n{products}#endif\n",
        unused.join(",\n    "),
    )
}

fn rescale(name: &str, tile: Tile, dtype: DType, limited: bool) -> String {
    let (pixels, outputs, byte) = (tile.pixels(), tile.outputs(), c_type(dtype));
    let results: Vec<String> = (0..pixels).map(|pixel| format!("{byte} *y{pixel}")).collect();
    let instruction = if dtype.is_signed() { "ssat" } else { "usat" };
    let (least, most) = dtype.integer_range(8);
    let (low, low_parameter) = if limited { (", low", ", int32_t low") } else { ("", "") };
    let limit = if limited { "(value < low ? low : value)" } else { "value" };
    let stores: String = (0..outputs)
        .map(|output| {
            let of_output: String = (0..pixels)
                .rev()
                .map(|pixel| {
                    let sum = output * pixels + pixel;
                    format!(
                        "    y{pixel}[{output}] = {name}_one(sums[{sum}], scales[{}], scales[{}], added{low});\n",
                        2 * output,
                        2 * output + 1
                    )
                })
                .collect();
            of_output
        })
        .collect();
    let moved: String = (0..pixels).map(|pixel| format!("    y{pixel} += {outputs};\n")).collect();
    let portable = format!(
        "static inline {byte} {name}_one(int32_t sum, int32_t multiplier, int32_t shift, int32_t added{low_parameter}) {{\n\
             {HAS_DSP}  \
               int32_t value;\n  \
               __asm__(\"smmulr %0, %1, %2\" : \"=r\"(value) : \"r\"(sum * 2), \"r\"(multiplier));\n  \
               value -= value < 0;\n  \
               value = ((value >> shift) + added) >> 1;\n  \
               __asm__(\"{instruction} %0, #8, %1\" : \"=r\"(value) : \"r\"(value));\n\
             #else\n  \
               int32_t value = (int32_t)(((int64_t)sum * multiplier + 1073741824) >> 31);\n  \
               value -= value < 0;\n  \
               value = ((value >> shift) + added) >> 1;\n  \
               value = value < {least} ? {least} : value > {most} ? {most} : value;\n\
             #endif\n  \
               return ({byte}){limit};\n}}\n\n\
             static void {name}(\n    const int32_t *sums, const int32_t *scales, {}, int32_t blocks, int32_t added{low_parameter}) {{\n  \
               for (int32_t block = 0; block < blocks; ++block) {{\n\
             {stores}    \
                 sums += {};\n    \
                 scales += {};\n\
             {moved}  \
               }}\n}}\n",
        results.join(", "),
        pixels * outputs,
        2 * outputs,
    );
    if tile != Tile::ThreeByTwo {
        return portable;
    }
    let assembly: String = rescaling_assembly(instruction, limited)
        .lines()
        .map(|line| format!("      \"{}\\n\"\n", line.trim()))
        .collect();
    let low_unused = if limited { ", int32_t low __attribute__((unused))" } else { "" };
    let unused = "__attribute__((unused))";
    format!(
        "{HAS_DSP}__attribute__((naked, noinline)) static void {name}(\n    const int32_t *sums {unused}, \
         const int32_t *scales {unused}, {byte} *y0 {unused}, {byte} *y1 {unused}, {byte} *y2 {unused}, int32_t blocks {unused}, \
         int32_t added {unused}{low_unused}) {{\n  __asm__(\n{assembly}      );\n}}\n#else\n{portable}#endif\n"
    )
}

/// The loop of a rescaling of three pixels in assembly, an output a turn.
fn rescaling_assembly(saturate: &str, limited: bool) -> String {
    let limit =
        |value: &str| if limited { format!("cmp {value}, lr\nit lt\nmovlt {value}, lr\n") } else { String::new() };
    let pixels: String = [("r11", "r4"), ("r10", "r3"), ("r9", "r2")]
        .iter()
        .map(|(value, result)| {
            format!(
                "lsl {value}, {value}, #1\nsmmulr {value}, {value}, r7\nsub {value}, {value}, {value}, lsr #31\n\
                 asr {value}, {value}, r8\nadd {value}, {value}, r5\nasr {value}, {value}, #1\n\
                 {saturate} {value}, #8, {value}\n{}strb {value}, [{result}], #1\n",
                limit(value)
            )
        })
        .collect();
    let low = if limited { "ldr lr, [sp, #48]\n" } else { "" };
    format!(
        "push {{r4-r11, lr}}\nldr r4, [sp, #36]\nldr r6, [sp, #40]\nldr r5, [sp, #44]\n{low}lsl r6, r6, #1\n\
         1:\nldmia r1!, {{r7, r8}}\nldmia r0!, {{r9, r10, r11}}\n{pixels}subs r6, r6, #1\nbne 1b\npop {{r4-r11, pc}}"
    )
}

/// The loops in assembly. On the stack are the pairs, the first terms, the sums, the ends of the pairs and of those whose groups
/// are taken four at a time, and the number of blocks that are left.
fn assembly(tile: Tile, bytes: Option<DType>) -> String {
    let (multiple, step, spread, last) = match tile {
        Tile::ThreeByTwo => (
            "add r10, r12, r12, lsl #1\nbic r11, r12, #3\nadd r11, r11, r11, lsl #1\n\
             add r10, r0, r10, lsl #3\nadd r11, r0, r11, lsl #3\n",
            "ldmia r1!, {r2, r3}\nldmia r0!, {r10, r11, r12}\nsxtb16 lr, r2\n\
             smlad r4, r10, lr, r4\nsmlad r5, r11, lr, r5\nsmlad r6, r12, lr, r6\nsxtb16 lr, r3\n\
             smlad r7, r10, lr, r7\nsmlad r8, r11, lr, r8\nsmlad r9, r12, lr, r9\nldmia r0!, {r10, r11, r12}\n\
             sxtb16 r2, r2, ror #8\nsxtb16 r3, r3, ror #8\n\
             smlad r4, r10, r2, r4\nsmlad r5, r11, r2, r5\nsmlad r6, r12, r2, r6\n\
             smlad r7, r10, r3, r7\nsmlad r8, r11, r3, r8\nsmlad r9, r12, r3, r9\n"
                .to_owned(),
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

/// Two neighbouring numbers of 16 bits as a word, the first in its lower half.
pub fn pair(name: &str) -> String {
    format!(
        "{HAS_DSP}typedef int32_t {name}_word __attribute__((may_alias, aligned(2)));\n#endif\n\n\
         static inline int32_t {name}(const int16_t *x) {{\n\
         {HAS_DSP}  \
           int32_t word;\n  \
           __asm__(\"ldr %0, %1\" : \"=r\"(word) : \"m\"(*(const {name}_word *)x));\n  \
           return word;\n\
         #else\n  \
           return (int32_t)((uint32_t)(uint16_t)x[0] | (uint32_t)(uint16_t)x[1] << 16);\n\
         #endif\n}}\n"
    )
}

/// A sum and the products of the halves of two words.
pub fn dot(name: &str) -> String {
    format!(
        "static inline int32_t {name}(int32_t sum, int32_t x, int32_t y) {{\n\
         {HAS_DSP}  \
           int32_t total;\n  \
           __asm__(\"smlad %0, %1, %2, %3\" : \"=r\"(total) : \"r\"(x), \"r\"(y), \"r\"(sum));\n  \
           return total;\n\
         #else\n  \
           const uint32_t u = (uint32_t)x;\n  \
           const uint32_t v = (uint32_t)y;\n  \
           const int32_t first = (int16_t)(uint16_t)u * (int16_t)(uint16_t)v;\n  \
           const int32_t second = (int16_t)(uint16_t)(u >> 16) * (int16_t)(uint16_t)(v >> 16);\n  \
           return (int32_t)((uint32_t)sum + (uint32_t)first + (uint32_t)second);\n\
         #endif\n}}\n"
    )
}
