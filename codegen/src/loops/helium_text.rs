//! [`Helium`] routines as C, with assembly where the vector extension is. The same text without it is C for any machine.

use super::helium::{Block, Helium, LESS, Patch, Stored};
use super::spelling::c_type;
use mlc_ir::DType;

/// The function of a routine.
pub fn definition(routine: Helium) -> String {
    let name = routine.name();
    match routine {
        Helium::Window { dtype } => window(&name, dtype),
        Helium::Sums { block, stored } => sums(&name, block, stored),
        Helium::Strip => strip(&name),
        Helium::Patches { patch, limited } => patches(&name, patch, limited),
    }
}

const HAS_MVE: &str = "#if defined(__ARM_FEATURE_MVE) && defined(__thumb2__) && defined(__GNUC__)\n";

/// A function whose body is assembly where the extension is, which finds its parameters by the procedure call standard.
fn function(name: &str, parameters: &[&str], assembly: &str, portable: &str) -> String {
    let unused: Vec<String> =
        parameters.iter().map(|parameter| format!("{parameter} __attribute__((unused))")).collect();
    let assembly: String = assembly.lines().map(|line| format!("      \"{}\\n\"\n", line.trim())).collect();
    format!(
        "{HAS_MVE}__attribute__((naked, noinline)) static void {name}(\n    {}) {{\n  \
           __asm__(\n{assembly}      );\n}}\n#else\nstatic void {name}(\n    {}) {{\n{portable}}}\n#endif\n",
        unused.join(",\n    "),
        parameters.join(",\n    "),
    )
}

fn window(name: &str, dtype: DType) -> String {
    let is_unsigned = dtype == DType::U8;
    // The upper bit of an unsigned byte stands for as much as it takes away from a signed one.
    let begin = if is_unsigned { " mov r4, #128\n vdup.8 q1, r4\n" } else { "" };
    let sign = if is_unsigned { " veor q0, q0, q1\n" } else { "" };
    let assembly = format!(
        "push {{r4, r5, r6, lr}}\n{begin} ldr r4, [sp, #16]\n\
         1:\n mov r5, r0\n mov r6, r1\n dlstp.8 lr, r2\n\
         2:\n vldrb.u8 q0, [r5], #16\n{sign} vstrb.8 q0, [r6], #16\n letp lr, 2b\n\
         add r0, r0, r4\n add r1, r1, r2\n subs r3, r3, #1\n bne 1b\n pop {{r4, r5, r6, pc}}"
    );
    let value = match is_unsigned {
        true => format!("(int8_t)(x[row * pitch + k] - {LESS})"),
        false => "x[row * pitch + k]".to_owned(),
    };
    let portable = format!(
        "  for (int32_t row = 0; row < rows; ++row) {{\n    \
           for (int32_t k = 0; k < run; ++k) {{\n      \
             y[row * run + k] = {value};\n    \
           }}\n  }}\n"
    );
    let x = format!("const {} *x", c_type(dtype));
    let parameters = [x.as_str(), "int8_t *y", "int32_t run", "int32_t rows", "int32_t pitch"];
    function(name, &parameters, &assembly, &portable)
}

/// A function that rescales a sum as the routine that it belongs to does.
fn rescaled_one(name: &str, limited: bool) -> String {
    let (low, low_parameter) = if limited { ("low", ", int32_t low") } else { ("-128", "") };
    let (open, close) =
        ("#if !defined(__ARM_FEATURE_MVE) || !defined(__thumb2__) || !defined(__GNUC__)\n", "#endif\n\n");
    format!(
        "{open}static inline int8_t {name}_one(int32_t sum, int32_t multiplier, int32_t shift, int32_t added{low_parameter}) {{\n  \
           int32_t value = (int32_t)(((int64_t)sum * multiplier + 1073741824) >> 31);\n  \
           value -= value < 0;\n  \
           value = (int32_t)((value + ((int64_t)1 << (-shift - 1))) >> -shift) + added;\n  \
           return (int8_t)(value < {low} ? {low} : value > 127 ? 127 : value);\n}}\n{close}"
    )
}

/// A vector of sums that is rescaled and, but for its limits, ready to be stored.
fn rescaled(vector: &str, multiplier: &str, shift: &str) -> String {
    format!(
        "vqrdmulh.s32 {vector}, {vector}, {multiplier}\n vpt.s32 lt, {vector}, zr\n vaddt.i32 {vector}, {vector}, q4\n {shift}\n"
    )
}

fn sums(name: &str, block: Block, stored: Stored) -> String {
    let (pixels, outputs) = (block.pixels(), block.outputs());
    let results = ["int8_t *y0", "int8_t *y1"];
    let mut parameters = vec!["const int8_t *x", "const int8_t *weights", "const int32_t *terms"];
    match stored {
        Stored::Whole => parameters.push("int32_t *sums"),
        Stored::Rescaled { .. } => parameters.extend(&results[..pixels]),
    }
    parameters.extend(["int32_t steps", "int32_t blocks"]);
    if let Stored::Rescaled { limited } = stored {
        parameters.push("int32_t added");
        parameters.extend(limited.then_some("int32_t low"));
    }
    let text = function(name, &parameters, &assembly(block, stored), &portable(name, block, stored));
    match stored {
        Stored::Whole => text,
        Stored::Rescaled { limited } => rescaled_one(name, limited) + &text,
    }
    .replace("OUTPUTS", &outputs.to_string())
}

/// The sums in C.
fn portable(name: &str, block: Block, stored: Stored) -> String {
    let pixels = block.pixels();
    let own = match stored {
        Stored::Whole => "OUTPUTS",
        Stored::Rescaled { .. } => "(3 * OUTPUTS)",
    };
    let store = match stored {
        Stored::Whole => format!("sums[(block * {pixels} + pixel) * OUTPUTS + output] = total;\n"),
        Stored::Rescaled { limited } => {
            let low = if limited { ", low" } else { "" };
            let y = if pixels == 1 { "y0" } else { "(pixel == 0 ? y0 : y1)" };
            format!(
                "const int32_t *scale = own + OUTPUTS + output / 4 * 8 + output % 4;\n        \
                 {y}[block * OUTPUTS + output] = {name}_one(total, scale[0], scale[4], added{low});\n"
            )
        }
    };
    format!(
        "  for (int32_t block = 0; block < blocks; ++block) {{\n    \
           const int32_t *own = terms + block * {own};\n    \
           for (int32_t pixel = {pixels}; pixel-- > 0;) {{\n      \
             for (int32_t output = 0; output < OUTPUTS; ++output) {{\n        \
               int32_t total = own[output];\n        \
               for (int32_t k = 0; k < steps * 16; ++k) {{\n          \
                 const int32_t step = (block * steps + k / 16) * OUTPUTS + output;\n          \
                 total += x[pixel * steps * 16 + k] * weights[step * 16 + k % 16];\n        \
               }}\n        \
               {store}      \
             }}\n    \
           }}\n  }}\n"
    )
}

/// The sums in assembly. They are in the even registers, as the instruction wants them. On the stack are the pixels, how often the loop
/// turns, where it is entered, what is between the pixels' results, and how many blocks are left.
fn assembly(block: Block, stored: Stored) -> String {
    let is_pair = block == Block::TwoByFour;
    let products = |weights: &str, sums: &[&str]| -> String {
        let terms = sums.iter().enumerate().map(|(pixel, sum)| format!("vmladava.s8 {sum}, q{pixel}, {weights}\n"));
        format!("vldrb.u8 {weights}, [r3], #16\n") + &terms.collect::<String>()
    };
    let load = if is_pair { "vldrb.u8 q0, [r1], #16\n vldrb.u8 q1, [r11], #16\n" } else { "vldrb.u8 q0, [r1], #16\n" };
    let sums: &[&[&str]] = if is_pair {
        &[&["r0", "r8"], &["r2", "r10"], &["r4", "r12"], &["r6", "lr"]]
    } else {
        &[&["r0"], &["r2"], &["r4"], &["r6"], &["r8"], &["r10"], &["r12"], &["lr"]]
    };
    let products: String =
        sums.iter().enumerate().map(|(number, sums)| products(["q2", "q3"][number % 2], sums)).collect();
    let step = format!("{load}{products}");
    // Of four steps: as many as are left over are done first.
    let size = 4 * (8 + block.pixels() + block.outputs());
    let unrolled: String = std::iter::repeat_n(step, 4).collect();
    let begin = match block {
        Block::TwoByFour => "ldm r5, {r8, r10, r12, lr}\n ldm r5!, {r0, r2, r4, r6}\n",
        Block::OneByEight => "ldm r5!, {r0, r2, r4, r6, r8, r10, r12, lr}\n",
    };
    let arguments = 100 + 24;
    let rescales = stored != Stored::Whole;
    // Steps are behind the results of all pixels but the first.
    let behind = if is_pair && rescales { arguments + 4 } else { arguments };
    let prepare = match stored {
        Stored::Whole => String::new(),
        Stored::Rescaled { limited } => {
            let low = if limited { format!("ldr r4, [sp, #{}]\n", behind + 12) } else { "mvn r4, #127\n".to_owned() };
            let second = if is_pair {
                format!("ldr r4, [sp, #{arguments}]\n sub r4, r4, r7\n str r4, [sp, #16]\n")
            } else {
                String::new()
            };
            format!(
                "{second}mov r4, #-1\n vdup.32 q4, r4\n ldr r4, [sp, #{}]\n vdup.32 q5, r4\n {low}vdup.32 q6, r4\n\
                 mov r4, #127\n vdup.32 q7, r4\n",
                behind + 8
            )
        }
    };
    let stores = |vector: &str, to: &str| {
        format!(
            "vadd.i32 {vector}, {vector}, q5\n vmax.s32 {vector}, {vector}, q6\n vmin.s32 {vector}, {vector}, q7\n vstrb.32 {vector}, {to}\n"
        )
    };
    let vectors = "vmov d0, r0, r2\n vmov d1, r4, r6\n vmov d2, r8, r10\n vmov d3, r12, lr\n";
    let scales = "vldrw.u32 q2, [r5], #16\n vldrw.u32 q3, [r5], #16\n";
    let (first, second) = (
        rescaled("q0", "q2", "vrshl.s32 q0, q0, q3") + &stores("q0", "[r7], #4"),
        rescaled("q1", "q2", "vrshl.s32 q1, q1, q3"),
    );
    let end = match (stored, block) {
        (Stored::Whole, Block::TwoByFour) => "stm r7!, {r0, r2, r4, r6}\n stm r7!, {r8, r10, r12, lr}\n".to_owned(),
        (Stored::Whole, Block::OneByEight) => "stm r7!, {r0, r2, r4, r6, r8, r10, r12, lr}\n".to_owned(),
        (_, Block::TwoByFour) => {
            // The second pixel first: it may be the first one again.
            format!("{vectors}{scales}ldr r0, [sp, #16]\n add r0, r0, r7\n {second}{}{first}", stores("q1", "[r0]"))
        }
        (_, Block::OneByEight) => {
            format!("{vectors}{scales}{first}{scales}{second}{}", stores("q1", "[r7], #4"))
        }
    };
    let pixels = if is_pair { "ldrd r1, r11, [sp]\n" } else { "ldr r1, [sp]\n" };
    format!(
        "push {{r4-r11, lr}}\n vpush {{d8-d15}}\n sub sp, sp, #24\n mov r7, r3\n mov r5, r2\n mov r3, r1\n\
         ldr r4, [sp, #{behind}]\n add r6, r0, r4, lsl #4\n strd r0, r6, [sp]\n\
         add r6, r4, #3\n lsr r6, r6, #2\n str r6, [sp, #8]\n\
         rsb r6, r4, #0\n and r6, r6, #3\n mov r8, #{size}\n mul r6, r6, r8\n adr r8, 2f\n add r6, r6, r8\n\
         add r6, r6, #1\n str r6, [sp, #12]\n ldr r4, [sp, #{blocks}]\n str r4, [sp, #20]\n {prepare}\
         b 1f\n .p2align 2\n\
         1:\n {pixels}{begin}ldr r9, [sp, #8]\n ldr pc, [sp, #12]\n .p2align 2\n\
         2:\n {unrolled}subs r9, r9, #1\n bne 2b\n {end}\
         ldr r0, [sp, #20]\n subs r0, r0, #1\n str r0, [sp, #20]\n bne 1b\n\
         add sp, sp, #24\n vpop {{d8-d15}}\n pop {{r4-r11, pc}}",
        blocks = behind + 4,
    )
}

fn strip(name: &str) -> String {
    let parameters = [
        "const int8_t *x",
        "const int8_t *border",
        "int8_t *strip",
        "int32_t skipped",
        "int32_t valid",
        "int32_t pitch",
        "int32_t step",
        "int32_t columns",
        "int32_t channels",
    ];
    // Of each row its pointer and what that moves from column to column: nothing in the border.
    let rows: String = [("r4", "r8"), ("r5", "r9"), ("r6", "r10"), ("r7", "r11")]
        .iter()
        .map(|(pointer, step)| {
            format!(
                "mov {pointer}, r1\n mov {step}, #0\n subs r3, r3, #1\n bge 3f\n\
                 subs r12, r12, #1\n blt 3f\n mov {pointer}, r0\n ldr {step}, [sp, #44]\n add r0, r0, lr\n\
                 3:\n"
            )
        })
        .collect();
    let assembly = format!(
        "push {{r4-r11, lr}}\n ldr r12, [sp, #36]\n ldr lr, [sp, #40]\n {rows}\
         ldr r3, [sp, #52]\n vctp.8 r3\n ldr lr, [sp, #48]\n dls lr, lr\n\
         1:\n vpstttt\n vldrbt.u8 q0, [r4]\n vldrbt.u8 q1, [r5]\n vldrbt.u8 q2, [r6]\n vldrbt.u8 q3, [r7]\n\
         add r4, r4, r8\n add r5, r5, r9\n add r6, r6, r10\n add r7, r7, r11\n\
         vst40.8 {{q0, q1, q2, q3}}, [r2]\n vst41.8 {{q0, q1, q2, q3}}, [r2]\n vst42.8 {{q0, q1, q2, q3}}, [r2]\n\
         vst43.8 {{q0, q1, q2, q3}}, [r2]!\n le lr, 1b\n pop {{r4-r11, pc}}"
    );
    let portable = "  for (int32_t column = 0; column < columns; ++column) {\n    \
           for (int32_t channel = 0; channel < 16; ++channel) {\n      \
             for (int32_t row = 0; row < 4; ++row) {\n        \
               const int32_t own = row - skipped;\n        \
               const int8_t byte = own < 0 || own >= valid ? border[channel]\n            \
                   : channel < channels ? x[own * pitch + column * step + channel] : 0;\n        \
               strip[(column * 16 + channel) * 4 + row] = byte;\n      \
             }\n    \
           }\n  }\n";
    function(name, &parameters, &assembly, portable)
}

fn patches(name: &str, patch: Patch, limited: bool) -> String {
    let mut parameters = vec![
        "const int8_t *strip",
        "const int32_t *records",
        "int8_t *y",
        "int32_t columns",
        "int32_t channels",
        "int32_t step",
        "int32_t pitch",
        "int32_t added",
    ];
    parameters.extend(limited.then_some("int32_t low"));
    let (assembly, rows, stride) = match patch {
        Patch::Square => (squares(limited), 2, 1),
        Patch::Single { stride } => (singles(stride, limited), 1, stride),
    };
    let low = if limited { ", low" } else { "" };
    let unused = if rows == 1 { "  (void)pitch;\n" } else { "" };
    let portable = format!(
        "{unused}  for (int32_t channel = 0; channel < channels; ++channel) {{\n    \
           const int32_t *own = records + channel * 7;\n    \
           for (int32_t row = 0; row < {rows}; ++row) {{\n      \
             for (int32_t column = 0; column < columns; ++column) {{\n        \
               int32_t total = own[4];\n        \
               for (int32_t k = 0; k < 16; ++k) {{\n          \
                 const int8_t weight = (int8_t)(uint8_t)((uint32_t)own[k / 4] >> k % 4 * 8);\n          \
                 const int32_t place = ((column * {stride} + k / 4) * 16 + channel) * 4 + k % 4 + row;\n          \
                 total += weight == 0 ? 0 : strip[place] * weight;\n        \
               }}\n        \
               y[row * {pitch} + column * step + channel] = {name}_one(total, own[5], own[6], added{low});\n      \
             }}\n    \
           }}\n  }}\n",
        pitch = if rows == 1 { "0" } else { "pitch" },
    );
    rescaled_one(name, limited) + &function(name, &parameters, &assembly, &portable)
}

/// What four sums of a channel become; the vector is stored as its lowest bytes.
fn finished(limited: bool) -> String {
    let limit = if limited { "vmax.s32 q0, q0, q3\n" } else { "" };
    format!(
        "vadd.i32 q0, q0, r5\n vqrdmulh.s32 q0, q0, r7\n vpt.s32 lt, q0, zr\n vaddt.i32 q0, q0, r8\n vrshl.s32 q0, r9\n\
         vadd.i32 q0, q0, r10\n {limit}vqmovnb.s32 q0, q0\n vqmovnb.s16 q0, q0\n"
    )
}

/// Begins both kinds of patches. Registers: r1 a channel's strip, r3 its results, r5, r7 and r9 what it is rescaled by, r8 -1, r10 what is
/// added, r11 bytes between columns; q1 where a patch's columns are, q2 numbers of four columns. On the stack are the records that are left,
/// and by what strip and results move from the end of a channel to the next one, if a channel is as many columns as are in r4.
fn patches_begin(stride: usize, limited: bool) -> String {
    let low = if limited { "ldr r0, [sp, #140]\n vdup.32 q3, r0\n" } else { "" };
    format!(
        "ldr r11, [sp, #128]\n mul r5, r4, r11\n rsb r5, r5, #1\n mov r6, #{bytes}\n mul r4, r4, r6\n rsb r4, r4, #4\n\
         strd r4, r5, [sp, #8]\n str r1, [sp]\n mov r1, r0\n mov r3, r2\n {low}mov r8, #-1\n ldr r10, [sp, #136]\n\
         mov r0, #0\n vidup.u32 q2, r0, #1\n vshl.i32 q1, q2, #6\n",
        bytes = 64 * stride,
    )
}

const PATCHES_PUSH: &str = "push {r4-r11, lr}\n vpush {d8-d15}\n sub sp, sp, #24\n";

const PATCHES_POP: &str = "add sp, sp, #24\n vpop {d8-d15}\n pop {r4-r11, pc}";

/// Loads a channel's record.
const RECORD: &str = "ldr r2, [sp]\n vldrw.u32 q4, [r2], #16\n ldm r2!, {r5, r7, r9}\n str r2, [sp]\n";

/// Moves to the next channel, if there is one.
const NEXT_CHANNEL: &str = "ldrd r0, r2, [sp, #8]\n add r1, r1, r0\n add r3, r3, r2\n ldr r0, [sp, #124]\n subs r0, r0, #1\n str r0, [sp, #124]\n bne 1b\n";

fn squares(limited: bool) -> String {
    // An odd number of columns ends with the last two of them.
    format!(
        "{PATCHES_PUSH}lsr r4, r3, #1\n and r5, r3, #1\n strd r4, r5, [sp, #16]\n mov r4, r3\n {begin}\
         mov r0, #0\n ldr r4, [sp, #132]\n add r6, r4, r11\n vmov d4, r0, r11\n vmov d5, r4, r6\n\
         1:\n {RECORD}vshl.i32 q5, q4, #8\n mov r0, #0\n vmov q6, q4\n vshlc q6, r0, #32\n vmov q7, q5\n vshlc q7, r0, #32\n\
         ldrd lr, r12, [sp, #16]\n\
         2:\n vldrw.u32 q0, [r1, q1]\n add r1, r1, #128\n\
         vmladav.s8 r0, q0, q4\n vmladav.s8 r2, q0, q6\n vmladav.s8 r4, q0, q5\n vmladav.s8 r6, q0, q7\n\
         vmov d0, r0, r2\n vmov d1, r4, r6\n {finished}\
         vstrb.32 q0, [r3, q2]\n add r3, r3, r11, lsl #1\n le lr, 2b\n\
         cmp r12, #0\n beq 3f\n mov r12, #0\n sub r1, r1, #64\n sub r3, r3, r11\n mov lr, #1\n b 2b\n\
         3:\n {NEXT_CHANNEL}{PATCHES_POP}",
        begin = patches_begin(1, limited),
        finished = finished(limited),
    )
}

fn singles(stride: usize, limited: bool) -> String {
    let bytes = 64 * stride;
    let sums: String = ["r0", "r2", "r4", "r6"]
        .iter()
        .map(|sum| format!("vldrw.u32 q0, [r1, q1]\n add r1, r1, #{bytes}\n vmladav.s8 {sum}, q0, q4\n"))
        .collect();
    format!(
        "{PATCHES_PUSH}str r3, [sp, #16]\n add r4, r3, #3\n bic r4, r4, #3\n {begin}vmul.i32 q2, q2, r11\n lsl r11, r11, #2\n\
         1:\n {RECORD}ldr r12, [sp, #16]\n\
         2:\n {sums}vmov d0, r0, r2\n vmov d1, r4, r6\n {finished}\
         vctp.32 r12\n vpst\n vstrbt.32 q0, [r3, q2]\n add r3, r3, r11\n subs r12, r12, #4\n bgt 2b\n\
         {NEXT_CHANNEL}{PATCHES_POP}",
        begin = patches_begin(stride, limited),
        finished = finished(limited),
    )
}
