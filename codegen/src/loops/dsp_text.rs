//! What routines share: functions in assembly with their C beside them, and the rescaling of a sum.

use super::spelling::c_type;
use mlc_ir::DType;

/// Holds where a C compiler has the extension's instructions and assembly of GNU's kind.
pub const HAS_DSP: &str = "#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__GNUC__)\n";

/// Holds where a C compiler has the instructions of a Cortex-M0 and assembly of GNU's kind.
const IS_SMALL: &str = "#if defined(__ARM_ARCH_6M__) && defined(__GNUC__)\n";

/// A function of some parameters in assembly where the DSP extension is, which finds them by the procedure call standard, and in C
/// where it isn't.
pub fn in_assembly(name: &str, parameters: &[String], assembly: &str, portable: &str) -> String {
    format!("{HAS_DSP}{}#else\n{portable}#endif\n", naked(name, parameters, assembly))
}

/// The same in assembly for a Cortex-M0.
pub fn in_small_assembly(name: &str, parameters: &[String], assembly: &str, portable: &str) -> String {
    format!("{IS_SMALL}{}#else\n{portable}#endif\n", naked(name, parameters, &small(assembly)))
}

/// The same with assembly for both.
pub fn in_both_assemblies(name: &str, parameters: &[String], [dsp, other]: [&str; 2], portable: &str) -> String {
    let is_small = IS_SMALL.replacen("#if", "#elif", 1);
    let (dsp, other) = (naked(name, parameters, dsp), naked(name, parameters, &small(other)));
    format!("{HAS_DSP}{dsp}{is_small}{other}#else\n{portable}#endif\n")
}

/// Between what saves and restores registers. GCC takes assembly for these cores in an old spelling unless it is told.
fn small(assembly: &str) -> String {
    format!(
        ".syntax unified\npush {{r4-r7, lr}}\nmov r4, r8\nmov r5, r9\nmov r6, r10\nmov r7, r11\npush {{r4-r7}}\n{assembly}\n\
         pop {{r4-r7}}\nmov r8, r4\nmov r9, r5\nmov r10, r6\nmov r11, r7\npop {{r4-r7, pc}}"
    )
}

fn naked(name: &str, parameters: &[String], assembly: &str) -> String {
    let unused: Vec<String> =
        parameters.iter().map(|parameter| format!("{parameter} __attribute__((unused))")).collect();
    let lines: String = assembly.lines().map(|line| format!("      \"{}\\n\"\n", line.trim())).collect();
    format!(
        "__attribute__((naked, noinline)) static void {name}(\n    {}) {{\n  __asm__(\n{lines}      );\n}}\n",
        unused.join(",\n    "),
    )
}

/// The upper 33 bits of a product, rounded: as C, whose compilers do better by four products of 16 bits where a word is all that there is.
/// |x| is below 2^30, and the multiplier isn't negative.
pub fn high_product(x: &str, multiplier: &str) -> String {
    format!(
        "#if defined(__ARM_ARCH_6M__)\n  \
           const uint32_t lower = (uint32_t){x} & 65535U;\n  \
           const int32_t upper = {x} >> 16;\n  \
           const uint32_t below = (uint32_t){multiplier} & 65535U;\n  \
           const uint32_t above = (uint32_t){multiplier} >> 16;\n  \
           const uint32_t middle = lower * above + (lower * below >> 16);\n  \
           const int32_t inner = upper * (int32_t)below + (int32_t)(middle & 65535U);\n  \
           const int32_t outer = upper * (int32_t)above + (int32_t)(middle >> 16);\n  \
           int32_t value = (outer * 4 + (inner >> 14) + 1) >> 1;\n\
         #else\n  \
           int32_t value = (int32_t)(((int64_t){x} * {multiplier} + 1073741824) >> 31);\n\
         #endif\n"
    )
}

/// The parameter of a lower limit, what it is called with, and a value that has been limited.
pub fn limit(limited: bool) -> [&'static str; 3] {
    if limited { [", int32_t low", ", low", "(value < low ? low : value)"] } else { ["", "", "value"] }
}

/// Instruction by which a number is brought into the range of a byte.
pub fn saturation(dtype: DType) -> &'static str {
    if dtype.is_signed() { "ssat" } else { "usat" }
}

/// A function that rescales one sum.
pub fn rescale_one(name: &str, dtype: DType, limited: bool) -> String {
    let byte = c_type(dtype);
    let (least, most) = dtype.integer_range(8);
    let [parameter, _, value] = limit(limited);
    format!(
        "static inline {byte} {name}_one(int32_t sum, const int32_t *scale{parameter}) {{\n  \
           const int32_t added = scale[2] + (sum >> 31);\n\
         {HAS_DSP}  \
           int32_t value;\n  \
           __asm__(\"smmlar %0, %1, %2, %3\" : \"=r\"(value) : \"r\"(sum * 2), \"r\"(scale[0]), \"r\"(added));\n  \
           __asm__(\"{} %0, #8, %1, asr #1\" : \"=r\"(value) : \"r\"(value >> scale[1]));\n\
         #else\n{}  \
           value = ((value + added) >> scale[1]) >> 1;\n  \
           value = value < {least} ? {least} : value > {most} ? {most} : value;\n\
         #endif\n  \
           return ({byte}){value};\n}}\n\n",
        saturation(dtype),
        high_product("sum", "scale[0]"),
    )
}

/// The function of a [`Rescale`](super::routine::Routine::Rescale).
pub fn rescale(name: &str, dtype: DType, limited: bool) -> String {
    let [parameter, low, _] = limit(limited);
    format!(
        "{}static void {name}(const int32_t *sums, const int32_t *scales, {} *y, int32_t outputs{parameter}) {{\n  \
           for (int32_t output = 0; output < outputs; ++output) {{\n    \
             y[output] = {name}_one(sums[output], scales + output * 3{low});\n  \
           }}\n}}\n",
        rescale_one(name, dtype, limited),
        c_type(dtype),
    )
}
