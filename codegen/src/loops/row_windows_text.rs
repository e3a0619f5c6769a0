//! Depthwise windows that make one row as C, with assembly where the DSP extension is.

use super::dsp_text::{in_assembly, rescale_one, saturation};
use super::spelling::c_type;
use mlc_ir::DType;

/// The function of a [`RowWindows`](super::routine::Routine::RowWindows).
pub fn row_windows(name: &str, stride: usize, x: DType, result: DType) -> String {
    let byte = c_type(result);
    let mut parameters = vec![format!("const {} *x", c_type(x))];
    parameters.extend(["weights", "scales"].map(|of| format!("const int32_t *{of}")));
    parameters.push(format!("{byte} *y"));
    let numbers = ["channels", "columns", "left", "right", "row_step", "step"];
    parameters.extend(numbers.map(|of| format!("int32_t {of}")));
    // Sums are twice what is rescaled, and whole numbers.
    let portable = format!(
        "{}static void {name}(\n    {}) {{\n  \
           const int32_t results = (columns + left + right - 3) / {stride} + 1;\n  \
           for (int32_t channel = 0; channel < channels; ++channel) {{\n    \
             const int32_t *w = weights + channel * 8;\n    \
             for (int32_t number = 0; number < results; ++number) {{\n      \
               int32_t sum = w[number == 0 && left != 0 ? 7 : 5];\n      \
               sum += number == results - 1 && right != 0 ? w[6] : 0;\n      \
               for (int32_t tap = 0; tap < 3; ++tap) {{\n        \
                 const int32_t column = number * {stride} + tap - left;\n        \
                 const uint32_t last = (uint32_t)w[tap == 2 ? 4 : 3];\n        \
                 const uint32_t pairs[2] = {{(uint32_t)w[tap], tap == 1 ? last >> 16 : last}};\n        \
                 for (int32_t row = 0; row < 3 && column >= 0 && column < columns; ++row) {{\n          \
                   const int16_t weight = (int16_t)(uint16_t)(pairs[row / 2] >> (row % 2 * 16));\n          \
                   sum += x[row * row_step + column * step + channel] * weight;\n        \
                 }}\n      \
               }}\n      \
               y[number * step + channel] = {name}_one(sum / 2, scales + channel * 3);\n    \
             }}\n  \
           }}\n}}\n",
        rescale_one(name, result, false),
        parameters.join(",\n    "),
    );
    let columns = if stride == 1 { adjacent_columns(x, result) } else { alternate_columns(x, result) };
    in_assembly(name, &parameters, &assembly(&columns), &portable)
}

/// What is done with the columns of a channel, and where results go.
struct Columns {
    /// Before the first channel, with x in r0, the results in r3, the number of columns in r4, whether there is a border on the left in r5 and on the
    /// right in r6; leaves in r1 what `store` goes by.
    enter: &'static str,
    /// Where there is no border on the left.
    first: String,
    /// The column before the one that makes the first sum.
    second: String,
    /// A column that makes a sum, r6.
    each: String,
    /// Stores r6 once it is rescaled.
    store: &'static str,
    /// Behind that.
    between: String,
    /// Where there is a border on the right, whose term is r2, it makes the last sum.
    last: &'static str,
    /// Goes back to the first result of the next channel.
    leave: &'static str,
    rescale: String,
}

/// The loop over the channels. Weights are in r7 to r11, r12 is the step between rows and lr the one between columns, r0 is the place in x.
/// On the stack are the end of the channels in the first column, the weights, the scales, what the end of a channel is behind the next one, the
/// end of x, the same of results, the terms of a sum without a border and of one on the right, a multiplier, a shift and what is added.
fn assembly(columns: &Columns) -> String {
    let Columns { enter, first, second, each, store, between, last, leave, rescale } = columns;
    format!(
        "push {{r4-r11, lr}}\nsub sp, sp, #44\nstrd r1, r2, [sp, #4]\nldrd r12, lr, [sp, #96]\n\
         ldr r4, [sp, #80]\nadd r4, r0, r4\nstr r4, [sp]\nldrd r4, r5, [sp, #84]\nmla r6, r4, lr, r0\nstr r6, [sp, #16]\n\
         ldr r6, [sp, #92]\nadd r7, r4, r6\nmul r7, r7, lr\nsub r7, r7, #1\nstr r7, [sp, #12]\n{enter}\
         1:\nldr r6, [sp, #4]\nldmia r6!, {{r7, r8, r9, r10, r11}}\nldmia r6!, {{r2, r4, r5}}\nstr r6, [sp, #4]\n\
         strd r2, r4, [sp, #24]\n\
         ldr r6, [sp, #8]\nldmia r6!, {{r2, r3, r4}}\nstr r6, [sp, #8]\nstrd r2, r3, [sp, #32]\nstr r4, [sp, #40]\n\
         ldr r2, [sp, #88]\ncmp r2, #0\nbne 2f\n{first}2:\n{second}b 5f\n\
         3:\n{each}{rescale}{store}{between}5:\nldr r2, [sp, #16]\ncmp r0, r2\nbne 3b\n\
         ldr r3, [sp, #92]\ncmp r3, #0\nbeq 6f\nldr r2, [sp, #28]\n{last}\n{rescale}add r0, r0, lr\n{store}\
         6:\nldr r3, [sp, #12]\nsub r0, r0, r3\n{leave}ldr r2, [sp, #16]\nadd r2, r2, #1\nstr r2, [sp, #16]\n\
         ldr r3, [sp]\ncmp r0, r3\nbne 1b\nadd sp, sp, #44\npop {{r4-r11, pc}}"
    )
}

/// Loads a column: its first two rows as a pair, its third one by itself.
fn column(x: DType) -> String {
    let load = if x.is_signed() { "ldrsb" } else { "ldrb" };
    format!(
        "{load} r2, [r0]\n{load} r3, [r0, r12]\npkhbt r2, r2, r3, lsl #16\n{load} r3, [r0, r12, lsl #1]\nadd r0, r0, lr\n"
    )
}

/// Rescales the sum r6.
fn rescaled(result: DType) -> String {
    format!(
        "ldr r2, [sp, #40]\nadd r2, r2, r6, asr #31\nldr r3, [sp, #32]\nsmmlar r6, r6, r3, r2\nldr r3, [sp, #36]\n\
         asr r6, r6, r3\n{} r6, #8, r6, asr #1\n",
        saturation(result)
    )
}

/// The column as the window's first, second and third one: to a sum in one register it adds up in another one.
fn products(tap: usize, sum: &str, from: &str) -> String {
    let [pair, single, product] = [["r7", "r10", "smlabb"], ["r8", "r10", "smlabt"], ["r9", "r11", "smlabb"]][tap];
    format!("smlad {sum}, r2, {pair}, {from}\n{product} {sum}, r3, {single}, {sum}\n")
}

/// Windows that share two columns: a column ends the sum r4, and is in r5 and in a new one.
fn adjacent_columns(x: DType, result: DType) -> Columns {
    let begin = |sum: &str| format!("ldr {sum}, [sp, #24]\n{}", products(0, sum, sum));
    let goes_on = format!("{}{}", products(1, "r4", "r5"), begin("r5"));
    Columns {
        // A result is as far from the last column of its window in all of them.
        enter: "sub r1, r3, r0\nsub r5, r5, #3\nmla r1, r5, lr, r1\n",
        first: format!("{}{}", column(x), begin("r5")),
        second: format!("{}{goes_on}", column(x)),
        each: format!("{}{}{goes_on}", column(x), products(2, "r6", "r4")),
        store: "strb r6, [r0, r1]\n",
        between: String::new(),
        leave: "",
        last: "add r6, r4, r2",
        rescale: rescaled(result),
    }
}

/// Windows that share one column, with which the sum r5 ends and the next one begins. A column is between them.
fn alternate_columns(x: DType, result: DType) -> Columns {
    let begin = format!("ldr r5, [sp, #24]\n{}", products(0, "r5", "r5"));
    let second = format!("{}{}", column(x), products(1, "r5", "r5"));
    Columns {
        enter: "add r7, r4, r6\nadd r7, r7, r5\nsub r7, r7, #1\nlsr r7, r7, #1\nmul r7, r7, lr\nsub r7, r7, #1\nstr r7, [sp, #20]\n\
                mov r1, r3\n",
        first: format!("{}{begin}", column(x)),
        each: format!("{}{}{begin}", column(x), products(2, "r6", "r5")),
        store: "strb r6, [r1]\nadd r1, r1, lr\n",
        leave: "ldr r3, [sp, #20]\nsub r1, r1, r3\n",
        between: format!("ldr r2, [sp, #16]\ncmp r0, r2\nbeq 5f\n{second}"),
        second,
        last: "add r6, r5, r2",
        rescale: rescaled(result),
    }
}
