//! What routines share: where the DSP extension is, functions in assembly with their C beside them, and the rescaling of a sum.

use super::spelling::c_type;
use mlc_ir::DType;

/// Holds where a C compiler has the extension's instructions and assembly of GNU's kind.
pub const HAS_DSP: &str = "#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__GNUC__)\n";

/// A function of some parameters in assembly, which finds them by the procedure call standard, and in C where that isn't.
pub fn in_assembly(name: &str, parameters: &[String], assembly: &str, portable: &str) -> String {
    let unused: Vec<String> =
        parameters.iter().map(|parameter| format!("{parameter} __attribute__((unused))")).collect();
    let lines: String = assembly.lines().map(|line| format!("      \"{}\\n\"\n", line.trim())).collect();
    format!(
        "{HAS_DSP}__attribute__((naked, noinline)) static void {name}(\n    {}) {{\n  \
           __asm__(\n{lines}      );\n}}\n#else\n{portable}#endif\n",
        unused.join(",\n    "),
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
         #else\n  \
           int32_t value = (int32_t)(((int64_t)sum * scale[0] + 1073741824) >> 31);\n  \
           value = ((value + added) >> scale[1]) >> 1;\n  \
           value = value < {least} ? {least} : value > {most} ? {most} : value;\n\
         #endif\n  \
           return ({byte}){value};\n}}\n\n",
        saturation(dtype)
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
