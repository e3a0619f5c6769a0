//! Depthwise windows over planes of pairs as C, with assembly where the DSP extension is.

use super::dsp_text::{in_assembly, rescale_one, saturation};
use super::spelling::c_type;
use mlc_ir::DType;

/// The function of a [`RowPairs`](super::routine::Routine::RowPairs).
pub fn row_pairs(name: &str, dtype: DType) -> String {
    let byte = c_type(dtype);
    let numbers = ["rows", "columns", "row_step", "step", "pitch", "top"].map(|of| format!("int32_t {of}"));
    let mut parameters = vec![format!("const {byte} *x"), "int16_t *plane".to_owned()];
    parameters.extend(numbers);
    let portable = format!(
        "static void {name}(\n    {}) {{\n  \
           for (int32_t row = 0; row < rows; ++row) {{\n    \
             int16_t *y = plane + (row + top) / 2 * pitch * 2 + (row + top) % 2;\n    \
             for (int32_t column = 0; column < columns; ++column) {{\n      \
               y[column * 2] = x[row * row_step + column * step];\n    \
             }}\n  \
           }}\n}}\n",
        parameters.join(",\n    "),
    );
    let load = if dtype.is_signed() { "ldrsb" } else { "ldrb" };
    // Two rows at once; one that has no other half in the channel is stored by halves.
    let assembly = format!(
        "push {{r4-r11, lr}}\nldrd r4, r5, [sp, #36]\nldrd r6, r7, [sp, #44]\nlsl r6, r6, #2\n\
         lsr r8, r7, #1\nmla r1, r8, r6, r1\ntst r7, #1\nbeq 1f\nadd r9, r1, #2\nbl 6f\nadd r1, r1, r6\nadd r0, r0, r4\n\
         subs r2, r2, #1\n1:\nadd r7, r4, r5\n\
         2:\nsubs r2, r2, #2\nblt 5f\nmov r8, r0\nmov r9, r1\nlsrs r10, r3, #1\nbeq 4f\n\
         3:\n{load} r11, [r8]\n{load} r12, [r8, r4]\npkhbt r11, r11, r12, lsl #16\n{load} r12, [r8, r5]\n\
         {load} lr, [r8, r7]\npkhbt r12, r12, lr, lsl #16\nstrd r11, r12, [r9], #8\nadd r8, r8, r5, lsl #1\n\
         subs r10, r10, #1\nbne 3b\n\
         4:\ntst r3, #1\nitttt ne\n{load}ne r11, [r8]\n{load}ne r12, [r8, r4]\npkhbtne r11, r11, r12, lsl #16\n\
         strne r11, [r9]\nadd r0, r0, r4, lsl #1\nadd r1, r1, r6\nb 2b\n\
         5:\nadds r2, r2, #2\nbeq 8f\nmov r9, r1\nbl 6f\nb 8f\n\
         6:\nmov r8, r0\nmov r10, r3\n7:\n{load} r11, [r8]\nadd r8, r8, r5\nstrh r11, [r9], #4\nsubs r10, r10, #1\n\
         bne 7b\nbx lr\n8:\npop {{r4-r11, pc}}"
    );
    in_assembly(name, &parameters, &assembly, &portable)
}

/// The function of a [`Depthwise`](super::routine::Routine::Depthwise).
pub fn depthwise(name: &str, stride: usize, dtype: DType) -> String {
    let byte = c_type(dtype);
    let mut parameters = vec!["const int16_t *plane".to_owned()];
    parameters.extend(["weights", "first", "scales"].map(|of| format!("const int32_t *{of}")));
    parameters.push(format!("{byte} *y"));
    parameters.extend(["rows", "columns", "row_step", "step", "pitch"].map(|of| format!("int32_t {of}")));
    // Sums are twice what is rescaled, and whole numbers.
    let portable = format!(
        "{}static void {name}(\n    {}) {{\n  \
           for (int32_t row = 0; row < rows; ++row) {{\n    \
             for (int32_t column = 0; column < columns; ++column) {{\n      \
               int32_t sum = first[0];\n      \
               for (int32_t tap = 0; tap < 9; ++tap) {{\n        \
                 const int32_t from = row * {stride} + tap / 3;\n        \
                 const int32_t place = from / 2 * pitch + column * {stride} + tap % 3;\n        \
                 const uint32_t pair = (uint32_t)weights[(tap < 6 ? 0 : 3) + tap % 3];\n        \
                 sum += plane[place * 2 + from % 2] * (int16_t)(uint16_t)(pair >> (tap < 3 ? 0 : 16));\n      \
               }}\n      \
               y[row * row_step + column * step] = {name}_one(sum / 2, scales);\n    \
             }}\n  \
           }}\n}}\n",
        rescale_one(name, dtype, false),
        parameters.join(",\n    "),
    );
    in_assembly(name, &parameters, &depthwise_assembly(stride, dtype), &portable)
}

/// The same in assembly, two columns at once, and two rows of neighbouring windows. On the stack are the first term, the weights and the
/// scales, the steps, the end of the columns, the rows that are left, the starts of the row in the result and in the plane; then
/// what is saved, and the parameters from the result on. A last row or column that has no other one is computed with one behind it, which is
/// stored before it in its place: the step is 0.
fn depthwise_assembly(stride: usize, dtype: DType) -> String {
    let (tile, stores, shift, rows) = match stride {
        1 => (adjacent_windows(), "add lr, r2, r8\nstrb r7, [lr, r9]\nstrb r6, [lr]\n", 2, 2),
        _ => (spread_windows(), "", 3, 1),
    };
    let saturate = saturation(dtype);
    let sums = if stride == 1 { &["r4", "r5", "r6", "r7"][..] } else { &["r4", "r5"] };
    let rescaled: String = sums
        .iter()
        .map(|sum| {
            format!(
                "add lr, r12, {sum}, asr #31\nsmmlar {sum}, {sum}, r10, lr\nasr {sum}, {sum}, r11\n\
                 {saturate} {sum}, #8, {sum}, asr #1\n"
            )
        })
        .collect();
    format!(
        "push {{r4-r11, lr}}\nsub sp, sp, #64\nldr r2, [r2]\nldmia r1, {{r4-r9}}\nldmia r3, {{r10-r12}}\n\
         stmia sp, {{r2, r4-r12}}\nldr r2, [sp, #100]\nmov r1, sp\nldr r4, [sp, #104]\n\
         1:\nstrd r2, r0, [sp, #56]\nstr r4, [sp, #52]\nldrd r8, r9, [sp, #112]\nldr r10, [sp, #120]\n\
         ldr r5, [sp, #108]\nadd r3, r0, r10, lsl #2\ncmp r4, #1\nit eq\nmoveq r8, #0\nstrd r8, r9, [sp, #40]\n\
         bic r5, r5, #1\nadd lr, r0, r5, lsl #{shift}\nstr lr, [sp, #48]\ncmp r0, lr\nbeq 3f\n\
         2:\n{tile}ldmia r1, {{r10, r11, r12}}\nsub r1, r1, #28\nldrd r8, r9, [sp, #40]\n{rescaled}\
         {stores}strb r5, [r2, r9]\nstrb r4, [r2]\nadd r2, r2, r9, lsl #1\n\
         ldr lr, [sp, #48]\ncmp r0, lr\nbne 2b\n\
         3:\nldr r5, [sp, #108]\ntst r5, #1\nbeq 4f\nldr r9, [sp, #44]\ncmp r9, #0\nbeq 4f\nmov r9, #0\nstr r9, [sp, #44]\n\
         add lr, lr, #{}\nstr lr, [sp, #48]\nb 2b\n\
         4:\nldrd r2, r0, [sp, #56]\nldr r10, [sp, #120]\nadd r0, r0, r10, lsl #2\nldr r8, [sp, #112]\n\
         add r2, r2, r8, lsl #{}\nldr r4, [sp, #52]\nsubs r4, r4, #{rows}\nbgt 1b\nadd sp, sp, #64\npop {{r4-r11, pc}}",
        2 << shift,
        rows - 1,
    )
}

/// Two rows and two columns of windows next to each other: sums r4 and r5 of the first row, r6 and r7 of the second. A pair is in
/// the first two rows of windows of the one and half in those of the other.
fn adjacent_windows() -> String {
    let half = |[first, second]: [&str; 2], pointer: &str, weights: [&str; 3], start: &str| {
        let taps = |word: &str, sums: [&str; 2], tap: usize| {
            let weight = weights[tap];
            let from = |sum: &str| if tap == 0 && !start.is_empty() { start.to_owned() } else { sum.to_owned() };
            let [upper, lower] = sums;
            format!(
                "{first} {upper}, {word}, {weight}, {}\n{second} {lower}, {word}, {weight}, {}\n",
                from(upper),
                from(lower)
            )
        };
        let (left, right) = (["r4", "r6"], ["r5", "r7"]);
        format!(
            "ldrd r8, r9, [{pointer}], #8\n{}{}{}ldrd r8, r9, [{pointer}]\n{}{}{}",
            taps("r8", left, 0),
            taps("r9", left, 1),
            taps("r9", right, 0),
            taps("r8", left, 2),
            taps("r8", right, 1),
            taps("r9", right, 2),
        )
    };
    format!(
        "ldmia r1!, {{r10, r11, r12, lr}}\n{}ldmia r1!, {{r10, r11, r12}}\n{}",
        half(["smlad", "smlatb"], "r0", ["r11", "r12", "lr"], "r10"),
        half(["smlabt", "smlad"], "r3", ["r10", "r11", "r12"], ""),
    )
}

/// Two windows of a row with a column between them: sums r4 and r5.
fn spread_windows() -> String {
    let half = |product: &str, pointer: &str, [a, b, c]: [&str; 3], start: [&str; 2]| {
        format!(
            "ldrd r8, r9, [{pointer}], #8\n{product} r4, r8, {a}, {}\n{product} r4, r9, {b}, r4\n\
             ldrd r8, r9, [{pointer}], #8\n{product} r4, r8, {c}, r4\n{product} r5, r8, {a}, {}\n\
             {product} r5, r9, {b}, r5\nldr r8, [{pointer}]\n{product} r5, r8, {c}, r5\n",
            start[0], start[1],
        )
    };
    format!(
        "ldmia r1!, {{r10, r11, r12, lr}}\n{}ldmia r1!, {{r10, r11, r12}}\n{}",
        half("smlad", "r0", ["r11", "r12", "lr"], ["r10", "r10"]),
        half("smlabt", "r3", ["r10", "r11", "r12"], ["r4", "r5"]),
    )
}
