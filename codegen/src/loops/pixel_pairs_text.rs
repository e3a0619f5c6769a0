//! Sums of products of two pixels in a word as C, with assembly where a Cortex-M0 is.

use super::dsp_text::in_small_assembly;

/// The function of a [`JoinPixels`](super::routine::Routine::JoinPixels).
pub const JOIN_PIXELS: &str =
    "static void mlc_join_pixels(const int8_t *x, const int8_t *other, int32_t *words, int32_t count) {
  for (int32_t k = 0; k < count; ++k) {
    words[k] = (int32_t)((uint32_t)x[k] + ((uint32_t)other[k] << 16));
  }
}
";

/// The function of a [`PixelPairs`](super::routine::Routine::PixelPairs).
pub fn pixel_pairs(name: &str) -> String {
    let parameters = [
        "const int32_t *words",
        "const int32_t *weights",
        "const int32_t *first",
        "int32_t *sums",
        "int32_t blocks",
        "int32_t steps",
    ]
    .map(String::from);
    let portable = format!(
        "static void {name}(\n    {}) {{\n  \
           (void)steps;\n  \
           for (int32_t block = 0; block < blocks; ++block) {{\n    \
             const int32_t *x = words;\n    \
             int32_t total[2][2] = {{{{first[block * 2], first[block * 2 + 1]}}, {{first[block * 2], first[block * 2 + 1]}}}};\n    \
             int32_t count;\n    \
             while ((count = *weights++) != 0) {{\n      \
               uint32_t both[2] = {{0, 0}};\n      \
               for (int32_t k = 0; k < count * 2; ++k) {{\n        \
                 const uint32_t word = (uint32_t)weights[k / 2] >> (k % 2 * 16);\n        \
                 both[0] += (uint32_t)x[k] * (uint32_t)(int8_t)(uint8_t)word;\n        \
                 both[1] += (uint32_t)x[k] * (uint32_t)(int8_t)(uint8_t)(word >> 8);\n      \
               }}\n      \
               for (int32_t output = 0; output < 2; ++output) {{\n        \
                 const int32_t low = (int16_t)(uint16_t)both[output];\n        \
                 total[0][output] += low;\n        \
                 total[1][output] += (int16_t)(uint16_t)((both[output] - (uint32_t)low) >> 16);\n      \
               }}\n      \
               x += count * 2;\n      \
               weights += count;\n    \
             }}\n    \
             for (int32_t pixel = 0; pixel < 2; ++pixel) {{\n      \
               sums[(pixel * blocks + block) * 2] = total[pixel][0];\n      \
               sums[(pixel * blocks + block) * 2 + 1] = total[pixel][1];\n    \
             }}\n  \
           }}\n}}\n",
        parameters.join(",\n    ")
    );
    in_small_assembly(name, &parameters, ASSEMBLY, &portable)
}

/// The sums of a chunk are in r8 and r9, those of pixels and outputs in r10 to lr. On the stack are the words, the first terms, the sums,
/// the bytes between both pixels' sums; behind what is saved there is the number of blocks that are left.
const ASSEMBLY: &str = "sub sp, sp, #16\nstr r0, [sp]\nstr r2, [sp, #4]\nstr r3, [sp, #8]\nldr r4, [sp, #52]\nlsls r4, r4, #3\nstr r4, [sp, #12]
1:\nldr r2, [sp, #4]\nldmia r2!, {r4, r5}\nstr r2, [sp, #4]\nmov r10, r4\nmov r11, r4\nmov r12, r5\nmov lr, r5\nldr r0, [sp]
2:\nldmia r1!, {r7}\ncmp r7, #0\nbeq 4f\nmovs r4, #0\nmov r8, r4\nmov r9, r4
3:\nldmia r0!, {r2, r3}\nldmia r1!, {r4}\nsxtb r5, r4\nmuls r5, r2, r5\nadd r8, r8, r5
lsls r5, r4, #16\nasrs r5, r5, #24\nmuls r5, r2, r5\nadd r9, r9, r5
lsls r5, r4, #8\nasrs r5, r5, #24\nmuls r5, r3, r5\nadd r8, r8, r5
asrs r4, r4, #24\nmuls r4, r3, r4\nadd r9, r9, r4\nsubs r7, r7, #1\nbne 3b
mov r4, r8\nsxth r5, r4\nadd r10, r10, r5\nsubs r4, r4, r5\nasrs r4, r4, #16\nadd r11, r11, r4
mov r4, r9\nsxth r5, r4\nadd r12, r12, r5\nsubs r4, r4, r5\nasrs r4, r4, #16\nadd lr, lr, r4\nb 2b
4:\nldr r2, [sp, #8]\nldr r3, [sp, #12]\nmov r4, r10\nmov r5, r12\nstr r4, [r2]\nstr r5, [r2, #4]
mov r4, r11\nstr r4, [r2, r3]\nadds r2, r2, #4\nmov r4, lr\nstr r4, [r2, r3]\nadds r2, r2, #4\nstr r2, [sp, #8]
ldr r4, [sp, #52]\nsubs r4, r4, #1\nstr r4, [sp, #52]\nbne 1b\nadd sp, sp, #16";
