//! Several levels of a machine: what the header says of them, and how `<model>_lib0.c` picks one when it runs.

use super::names::macro_prefix;
use crate::module::{Level, Module};
use crate::target::ProcessorBits;
use std::fmt::Write;

/// What a level's functions are told apart from the others' by: the model's name in symbols, and where its constants are in the caller's pool.
pub(super) struct Part<'a> {
    model_name: &'a str,
    /// Bytes in front of its constants in the pool of them that the caller gives.
    pub pool_offset: usize,
}

/// The parts that kernels come in: one for each level, or one.
pub(super) fn parts(module: &Module) -> Vec<Part<'_>> {
    if module.levels.is_empty() {
        return vec![Part { model_name: &module.model_name, pool_offset: 0 }];
    }
    module.levels.iter().map(Part::of).collect()
}

impl Part<'_> {
    fn of(level: &Level) -> Part<'_> {
        Part { model_name: &level.model_name, pool_offset: level.pool_offset }
    }

    /// The symbol of one of its functions.
    pub(super) fn symbol(&self, function: &str) -> String {
        format!("tvmgen_{}_{function}", self.model_name)
    }
}

/// Statements that return what a function of the kernels' file gives: of several, that of the level whose number an expression is.
pub(super) fn call(
    module: &Module,
    function: &str,
    level: &str,
    arguments: &dyn Fn(&Part<'_>) -> Vec<String>,
) -> String {
    let parts = parts(module);
    let spelled = |part: &Part<'_>, indent: &str| {
        let separator = format!(",\n{indent}  ");
        format!(
            "{indent}return {}(\n{indent}  {}\n{indent});\n",
            part.symbol(function),
            arguments(part).join(&separator)
        )
    };
    match &parts[..] {
        [one] if module.levels.is_empty() => spelled(one, "  "),
        several => {
            let cases = several.iter().enumerate();
            let cases: String =
                cases.map(|(number, part)| format!("    case {number}:\n{}", spelled(part, "      "))).collect();
            format!("  switch ({level}) {{\n{cases}    default:\n      return {};\n  }}\n", missing(module))
        }
    }
}

/// The macro of what functions return where the machine doesn't have the level.
pub(super) fn missing(module: &Module) -> String {
    format!("{}_LEVEL_MISSING", macro_prefix(module))
}

/// The call that gives the number of the level in use.
pub(super) fn in_use(module: &Module) -> String {
    format!("tvmgen_{}_level()", module.model_name)
}

/// What the header says and declares; nothing where there is one level.
pub(super) fn declarations(module: &Module) -> String {
    if module.levels.is_empty() {
        return String::new();
    }
    let (model, prefix) = (&module.model_name, macro_prefix(module));
    let mut text = "/*\n * There are kernels for several levels of the machine:\n".to_owned();
    for (number, level) in module.levels.iter().enumerate() {
        let _ = writeln!(text, " *   {number}: {}", level.summary);
    }
    let _ = write!(
        text,
        " * Runs take the last level that the machine has; with the macro {prefix}_LEVEL, for the C compiler of {model}_lib0.c, that of \
         this\n * number. Results differ from level to level as floating point does from machine to machine; states are the same for all.\n \
         */\n#define {prefix}_LEVEL_COUNT {}\n\n\
         /* What the functions return beside 0 where the machine doesn't have the level; nothing was computed. */\n\
         #define {missing} (-4053)\n\n\
         /* The number of the level that runs take; -1 where the machine doesn't have it. It never changes. */\n\
         int32_t tvmgen_{model}_level(void);\n\n",
        module.levels.len(),
        missing = missing(module),
    );
    text
}

/// The headers that the functions of levels need.
pub(super) fn includes(module: &Module) -> &'static str {
    if module.levels.is_empty() { "" } else { "#include <cpuid.h>\n" }
}

/// The functions that find the level out; nothing where there is one.
pub(super) fn functions(module: &Module) -> String {
    if module.levels.is_empty() {
        return String::new();
    }
    let (model, prefix) = (&module.model_name, macro_prefix(module));
    let mut conditions = String::new();
    for (number, level) in module.levels.iter().enumerate() {
        let _ = write!(conditions, "  if (!({})) {{\n    return {};\n  }}\n", has(level.processor), number as i64 - 1);
    }
    let last = module.levels.len() - 1;
    format!(
        "/* The number of the last level that the processor has, and the operating system keeps the registers of; -1 for none. */\n\
         static int32_t find_level(void) {{\n  \
         unsigned int first, second, third, fourth, features = 0, more = 0, extended = 0, kept = 0;\n  \
         if (__get_cpuid(1, &first, &second, &third, &fourth)) {{\n    features = third;\n  }}\n  \
         if (__get_cpuid_count(7, 0, &first, &second, &third, &fourth)) {{\n    more = second;\n  }}\n  \
         if (__get_cpuid(0x80000001u, &first, &second, &third, &fourth)) {{\n    extended = third;\n  }}\n  \
         if ((features & {SAYS_WHAT_IS_KEPT:#x}u) != 0) {{\n    \
         __asm__ volatile(\"xgetbv\" : \"=a\"(kept), \"=d\"(fourth) : \"c\"(0));\n  }}\n{conditions}  return {last};\n}}\n\n\
         int32_t tvmgen_{model}_level(void) {{\n  \
         /* 0 until it is known, then two more than the number. Threads that look for it at the same time find the same. */\n  \
         static int32_t known;\n  int32_t level = __atomic_load_n(&known, __ATOMIC_RELAXED);\n  if (level == 0) {{\n    \
         level = find_level();\n\
         #ifdef {prefix}_LEVEL\n    level = level >= ({prefix}_LEVEL) ? ({prefix}_LEVEL) : -1;\n#endif\n    \
         level += 2;\n    __atomic_store_n(&known, level, __ATOMIC_RELAXED);\n  }}\n  return level - 2;\n}}\n\n",
    )
}

/// The bit of the features with which there is the instruction that says which registers are kept.
const SAYS_WHAT_IS_KEPT: u32 = 1 << 27;

/// The condition that a processor has a level.
fn has(bits: ProcessorBits) -> String {
    let ProcessorBits { features, more_features, extended_features, kept_registers } = bits;
    let words =
        [("features", features), ("more", more_features), ("extended", extended_features), ("kept", kept_registers)];
    let wanted = words.into_iter().filter(|(_, bits)| *bits != 0);
    let conditions: Vec<String> = wanted.map(|(word, bits)| format!("({word} & {bits:#x}u) == {bits:#x}u")).collect();
    if conditions.is_empty() { "1".to_owned() } else { conditions.join(" && ") }
}
