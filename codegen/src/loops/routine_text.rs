//! [`Routine`]s as C, with assembly where the DSP extension is. The same text without it is C for any machine.

use super::depthwise_text::{depthwise, row_pairs};
use super::direct_dots_text::direct_dots;
use super::dots_text::{dots, rescaled_dots};
use super::dsp_text::{HAS_DSP, in_both_assemblies, rescale};
use super::helium_text;
use super::pixel_pairs_text::{JOIN_PIXELS, pixel_pairs};
use super::routine::Routine;
use super::row_windows_text::row_windows;
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
        Routine::CopyBytes { .. } => copy_bytes(&name),
        Routine::FetchAhead => fetch_ahead(&name),
        Routine::Helium(routine) => helium_text::definition(routine),
        Routine::Widen { dtype, pixels } => widen(&name, dtype, pixels),
        Routine::Dots { tile, bytes } => dots(&name, tile, bytes),
        Routine::JoinPixels => JOIN_PIXELS.to_owned(),
        Routine::PixelPairs => pixel_pairs(&name),
        Routine::RowPairs { dtype } => row_pairs(&name, dtype),
        Routine::Depthwise { stride, dtype } => depthwise(&name, stride, dtype),
        Routine::RowWindows { stride, x, result } => row_windows(&name, stride, x, result),
        Routine::Rescale { dtype, limited } => rescale(&name, dtype, limited),
        Routine::RescaledDots { pixels, dtype, limited, .. } => rescaled_dots(&name, pixels, dtype, limited),
        Routine::DirectDots { tile, .. } => direct_dots(&name, &tile),
    }
}

/// Libraries that are made to be small copy byte by byte. Words at a multiple of their size are taken several at a time, others one by one
/// where the machine can.
fn copy_bytes(name: &str) -> String {
    let parameters = ["const void *x", "void *y", "int32_t count"].map(str::to_owned);
    let dsp = "push {r4-r10, lr}\norr r3, r0, r1\ntst r3, #3\nbne 2f\nsubs r2, r2, #64\nblt 1f\n\
               0:\nldmia r0!, {r3-r10}\nstmia r1!, {r3-r10}\nldmia r0!, {r3-r10}\nstmia r1!, {r3-r10}\nsubs r2, r2, #64\nbge 0b\n\
               1:\nadds r2, r2, #48\nblt 8f\n7:\nldmia r0!, {r3-r6}\nstmia r1!, {r3-r6}\nsubs r2, r2, #16\nbge 7b\n8:\nadds r2, r2, #16\n\
               2:\nsubs r2, r2, #4\nblt 4f\n3:\nldr r3, [r0], #4\nstr r3, [r1], #4\nsubs r2, r2, #4\nbge 3b\n\
               4:\nadds r2, r2, #4\nbeq 6f\n5:\nldrb r3, [r0], #1\nstrb r3, [r1], #1\nsubs r2, r2, #1\nbne 5b\n\
               6:\npop {r4-r10, pc}";
    let small = "mov r3, r0\norrs r3, r1\nmovs r4, #3\ntst r3, r4\nbne 2f\nsubs r2, #32\nblt 1f\n\
                 0:\nldmia r0!, {r3-r6}\nstmia r1!, {r3-r6}\nldmia r0!, {r3-r6}\nstmia r1!, {r3-r6}\nsubs r2, #32\nbge 0b\n\
                 1:\nadds r2, #16\nblt 8f\nldmia r0!, {r3-r6}\nstmia r1!, {r3-r6}\nsubs r2, #16\n8:\nadds r2, #16\n\
                 2:\ncmp r2, #0\nbeq 4f\n3:\nldrb r3, [r0]\nstrb r3, [r1]\nadds r0, #1\nadds r1, #1\nsubs r2, #1\nbne 3b\n4:";
    let words = |line: &dyn Fn(usize) -> String| (0..8).map(|k| format!("      {}\n", line(k))).collect::<String>();
    let portable = format!(
        "static void {name}({}) {{\n  \
           const uint8_t *from = x;\n  \
           uint8_t *to = y;\n\
         #if defined(__GNUC__)\n  \
           typedef uint32_t word __attribute__((may_alias));\n  \
           if ((((uintptr_t)x | (uintptr_t)y) & 3U) == 0U) {{\n    \
             const word *words = (const word *)x;\n    \
             word *places = (word *)y;\n    \
             for (; count >= 32; count -= 32) {{\n{}{}      \
               words += 8;\n      \
               places += 8;\n    \
             }}\n    \
             for (; count >= 4; count -= 4) {{\n      \
               *places++ = *words++;\n    \
             }}\n    \
             from = (const uint8_t *)words;\n    \
             to = (uint8_t *)places;\n  \
           }}\n\
         #endif\n  \
           for (int32_t k = 0; k < count; ++k) {{\n    \
             to[k] = from[k];\n  \
           }}\n}}\n",
        parameters.join(", "),
        words(&|k| format!("const word w{k} = words[{k}];")),
        words(&|k| format!("places[{k}] = w{k};")),
    );
    in_both_assemblies(name, &parameters, [dsp, small], &portable)
}

/// A hint to processors by GNU's compilers, to the second level of cache; other compilers do without. The address isn't a pointer before
/// it is complete, since C has none beyond what one points into.
fn fetch_ahead(name: &str) -> String {
    format!(
        "static inline void {name}(const void *x, int32_t bytes) {{\n\
         #if defined(__GNUC__)\n  \
           __builtin_prefetch((const void *)((uintptr_t)x + (uintptr_t)bytes), 0, 2);\n\
         #else\n  \
           (void)x;\n  \
           (void)bytes;\n\
         #endif\n}}\n"
    )
}

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
