//! Sums of products of bytes that are read where they are as C, with assembly where the DSP extension is.

use super::dots_text::{Places, SUMS, Sum, begin_block, blocks_in_c, end_block, four_steps};
use super::dsp_text::{in_assembly, limit, rescale_one};
use super::routine::DirectTile;
use super::spelling::c_type;

/// The function of a [`DirectDots`](super::routine::Routine::DirectDots).
pub fn direct_dots(name: &str, own: &DirectTile) -> String {
    let &DirectTile { pixels, distance, x, wide, dtype, limited } = own;
    let (byte, source) = (c_type(dtype), c_type(x));
    let mut parameters = vec![format!("const {source} *x")];
    parameters.extend(["weights", "first", "scales"].map(|of| format!("const int32_t *{of}")));
    parameters.extend((0..pixels).map(|pixel| format!("{byte} *y{pixel}")));
    parameters.extend(["groups", "blocks", "runs", "gap"].map(|of| format!("int32_t {of}")));
    parameters.extend(limited.then(|| "int32_t low".to_owned()));
    let [_, low, _] = limit(limited);
    let (words, weight) = match wide {
        true => (4, "(int16_t)(uint16_t)((uint32_t)weights[step % 2] >> (step / 2 * 16))"),
        false => (2, "(int8_t)(uint8_t)((uint32_t)weights[0] >> (step * 8))"),
    };
    let portable = format!(
        "{}static int32_t {name}_sum(\n    \
           const {source} *x, const int32_t *weights, int32_t total, int32_t groups, int32_t runs, int32_t gap) {{\n  \
           for (int32_t run = 0; run < runs; ++run) {{\n    \
             for (int32_t group = 0; group < groups; ++group) {{\n      \
               for (int32_t step = 0; step < 4; ++step) {{\n        \
                 total += x[group * 4 + step] * {weight};\n      \
               }}\n      \
               weights += {words};\n    \
             }}\n    \
             x += groups * 4 + gap;\n  \
           }}\n  \
           return total;\n}}\n\n{}",
        rescale_one(name, dtype, limited),
        blocks_in_c(
            name,
            &parameters,
            pixels,
            dtype,
            &Sum {
                x: &format!("x + pixel * {distance}"),
                words,
                groups: "groups * runs",
                arguments: "groups, runs, gap",
                low
            }
        ),
    );
    in_assembly(name, &parameters, &assembly(own), &portable)
}

/// A group of some pixels and two outputs: r2, r3, r10 and r11 are the pairs of their weights.
fn group(own: &DirectTile) -> String {
    let weights = match own.wide {
        true => "ldmia r1!, {r2, r3, r10, r11}\n",
        false => "ldmia r1!, {r2, r3}\nsxtb16 r10, r3\nsxtb16 r11, r3, ror #8\nsxtb16 r3, r2, ror #8\nsxtb16 r2, r2\n",
    };
    let widen = if own.x.is_signed() { "sxtb16" } else { "uxtb16" };
    let [first, second] = SUMS;
    let of_pixel = |pixel: usize| {
        // The pointer moves on behind the last load.
        let place = if pixel == 0 { "[r0], #4".to_owned() } else { format!("[r0, #{}]", pixel * own.distance) };
        let (first, second) = (first[pixel], second[pixel]);
        format!(
            "ldr lr, {place}\n{widen} r12, lr\n{widen} lr, lr, ror #8\nsmlad {first}, r12, r2, {first}\n\
             smlad {second}, r12, r10, {second}\nsmlad {first}, lr, r3, {first}\nsmlad {second}, lr, r11, {second}\n"
        )
    };
    let pixels: String = (0..own.pixels).rev().map(of_pixel).collect();
    format!("{weights}{pixels}")
}

/// The loops. Blocks whose multipliers are 0 are only rescaled. Groups of a run are taken four at a time, the first time only as many as are left
/// over. On the stack are the first terms, the scales, x, the end of a run, how many groups are skipped the first time, the number of runs that are left; behind what is
/// saved there are the results, the numbers of groups and of blocks that are left, of runs, the gap, the lower limit.
fn assembly(own: &DirectTile) -> String {
    let &DirectTile { pixels, dtype, limited, .. } = own;
    let results = 64;
    let [groups, blocks, runs, gap, low] = [0, 4, 8, 12, 16].map(|behind| results + 4 * pixels + behind);
    format!(
        "push {{r4-r11, lr}}\nsub sp, sp, #28\nldr r12, [sp, #{groups}]\nstrd r2, r3, [sp]\nstr r0, [sp, #8]\n\
         rsb r12, r12, #0\nand r12, r12, #3\nstr r12, [sp, #16]\n\
         1:\n{}ldr r0, [sp, #8]\nldr r12, [sp, #{runs}]\nstr r12, [sp, #20]\n\
         2:\nldr lr, [sp, #{groups}]\nadd lr, r0, lr, lsl #2\nstr lr, [sp, #12]\nldr r12, [sp, #16]\n\
         {}ldr lr, [sp, #12]\ncmp r0, lr\nbne 30b\n\
         ldr r12, [sp, #{gap}]\nadd r0, r0, r12\nldr lr, [sp, #20]\nsubs lr, lr, #1\nstr lr, [sp, #20]\nbne 2b\n\
         {}bne 1b\nadd sp, sp, #28\npop {{r4-r11, pc}}",
        begin_block(pixels),
        four_steps(&group(own)),
        end_block(pixels, dtype, limited, &Places { results, blocks, low }),
    )
}
