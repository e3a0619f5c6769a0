//! How types, numbers, operators and polynomials are spelled in C.

use super::halves::is_half;
use super::{ValueType, VarInfo, VarKind};
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Literal};

/// The macro by which C compilers choose between the two texts of a kernel.
pub(super) const VECTORS: &str = "MLC_VECTORS";

/// Where C compilers have vectors of 16 bytes for the machine, in which they compute singles as C wants it. Those of Arm's machines of 32 bits take
/// denormals for zero: gcc computes with them only where it needn't keep to IEEE 754, which it tells.
pub(super) const VECTORS_TEXT: &str = "
/* Kernels have two texts: of vectors of 16 bytes for C compilers and machines that have them, else of single values. */
#ifndef MLC_VECTORS
#if defined(__GNUC__) && (defined(__SSE2__) || (defined(__aarch64__) && defined(__ARM_NEON)) || defined(__wasm_simd128__))
#define MLC_VECTORS 1
#elif defined(__ARM_NEON) && !defined(__clang__) && defined(__GCC_IEC_559) && __GCC_IEC_559 == 0
#define MLC_VECTORS 1
#else
#define MLC_VECTORS 0
#endif
#endif
";

/// Gcc would keep what neighbouring pixels read of each other from turn to turn, in the registers that a tile's sums need: convolutions
/// that read channels first took up to three times as long. Clang tells of helpers that only another machine's branch calls.
pub(super) const COMPILERS: &str = "#if defined(__clang__)
#pragma clang diagnostic ignored \"-Wunused-function\"
#elif defined(__GNUC__)
#pragma GCC optimize(\"no-predictive-commoning\")
#endif

";

/// The macro that stands before a loop whose turns aren't to be written one after the other.
pub(super) const ROLLED: &str = "MLC_ROLLED";

/// The macro's definition: what clang is asked; others leave such loops as they are.
pub(super) const ROLLED_TEXT: &str = "#if defined(__clang__)
#define MLC_ROLLED _Pragma(\"clang loop unroll(disable)\")
#else
#define MLC_ROLLED
#endif
";

/// One text where the compiler has what a condition says, another elsewhere.
pub fn either(condition: &str, own: &str, steps: &str) -> String {
    format!("#if {condition}\n{own}#else\n{steps}#endif\n")
}

/// The C type that elements of a data type have in memory.
pub fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float",
        DType::F64 => "double",
        DType::I8 => "int8_t",
        DType::U8 | DType::Bool => "uint8_t",
        DType::I16 => "int16_t",
        DType::U16 | DType::F16 | DType::Bf16 => "uint16_t",
        DType::I32 => "int32_t",
        DType::U32 => "uint32_t",
        DType::I64 => "int64_t",
        DType::U64 => "uint64_t",
    }
}

/// Name of a value's type in helper names and vector types: `f32`, `f32x8`.
pub fn value_type_name(ty: ValueType) -> String {
    if ty.lanes == 1 { ty.dtype.name().to_owned() } else { format!("{}x{}", ty.dtype, ty.lanes) }
}

/// The definitions of a vector type in C, and of the same where it isn't aligned; lanes have a type of so many bytes.
pub(super) fn vector_type_text(ty: ValueType, (element, size): (&str, usize)) -> String {
    let (name, bytes, own) = (value_type_name(ty), size * ty.lanes, ty.dtype.size());
    format!(
        "typedef {element} {name} __attribute__((vector_size({bytes})));\n\
         typedef {element} {name}_unaligned __attribute__((vector_size({bytes}), aligned({own}), may_alias));\n"
    )
}

/// The text of a helper that gives a vector on, of which C compilers don't know any more that memory has it, too: one of 32 bytes on a processor
/// that has registers for it.
pub(super) fn held_text(name: &str, ty: ValueType) -> String {
    let t = value_type_name(ty);
    format!(
        "static inline {t} {name}({t} x) {{\n#ifdef __AVX__\n  __asm__(\"\" : \"+v\"(x));\n#endif\n  return x;\n}}\n"
    )
}

/// The C type of a variable; that of a mask has lanes of type `mask`.
pub(super) fn variable_type(ty: ValueType, mask: DType) -> String {
    match ty {
        ValueType { dtype: DType::Bool, lanes: 1 } => "bool".into(),
        ValueType { dtype: DType::Bool, lanes } => value_type_name(ValueType::vector(mask, lanes)),
        ValueType { dtype, lanes: 1 } => c_type(dtype).into(),
        _ => value_type_name(ty),
    }
}

/// The C type of a pointer that is a parameter or a variable.
pub(super) fn pointer_type(kind: VarKind) -> String {
    match kind {
        VarKind::Pointer { dtype, holds } if holds.is_written() => format!("{} *", c_type(dtype)),
        VarKind::Pointer { dtype, .. } => format!("const {} *", c_type(dtype)),
        _ => "int32_t ".into(),
    }
}

/// A text that neither ends a comment nor begins one, a trigraph or a continued line.
pub fn harmless(text: &str) -> String {
    let plain = text.replace(|c: char| c.is_control() || c == '\\', " ");
    plain.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")
}

/// Lines as one C comment of at most 100 columns, whatever names from the model they hold.
pub fn comment(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut wrapped: Vec<String> = Vec::new();
    for line in lines {
        wrapped.push(String::new());
        for word in harmless(line).split_whitespace() {
            let last = wrapped.len() - 1;
            if !wrapped[last].is_empty() && wrapped[last].len() + word.len() > 92 {
                wrapped.push(format!("  {word}"));
            } else {
                if !wrapped[last].is_empty() {
                    wrapped[last].push(' ');
                }
                wrapped[last] += word;
            }
        }
    }
    format!("/* {} */\n", wrapped.join("\n   "))
}

/// The text without a pair of parentheses around all of it.
pub(super) fn unparenthesised(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) else { return text };
    let mut depth = 0i32;
    for byte in inner.bytes() {
        depth += match byte {
            b'(' => 1,
            b')' => -1,
            _ => 0,
        };
        if depth < 0 {
            return text;
        }
    }
    inner
}

/// The infix operator of a function, where C has one.
pub(super) fn c_operator(function: BinaryFunction) -> Option<&'static str> {
    use BinaryFunction as B;
    Some(match function {
        B::Add => "+",
        B::Subtract => "-",
        B::Multiply => "*",
        B::Divide => "/",
        B::Equal => "==",
        B::NotEqual => "!=",
        B::Less => "<",
        B::LessEqual => "<=",
        B::Greater => ">",
        B::GreaterEqual => ">=",
        _ => return None,
    })
}

/// A comparison of two vectors of truth values, whose lanes are all ones where they are true: as numbers these would be smaller
/// than false ones.
pub fn mask_comparison(function: BinaryFunction, x: &str, y: &str) -> String {
    use BinaryFunction as B;
    match function {
        B::Less => format!("(~{x} & {y})"),
        B::LessEqual => format!("(~{x} | {y})"),
        B::Greater => format!("({x} & ~{y})"),
        B::GreaterEqual => format!("({x} | ~{y})"),
        B::Equal => format!("(~({x} ^ {y}))"),
        _ => format!("({x} ^ {y})"),
    }
}

/// The bits of a number in half precision, as its elements are held.
fn half_bits(value: Literal) -> String {
    let bits = value.to_attribute().bytes().iter().rev().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte));
    format!("{bits:#06x}")
}

/// A number as C, exact.
pub fn literal(value: Literal) -> String {
    let text = match value {
        Literal::Float(dtype, _) if is_half(dtype) => return half_bits(value),
        Literal::Float(_, value) if value.0.is_nan() => return "NAN".into(),
        Literal::Float(_, value) if value.0.is_infinite() => {
            return if value.0 > 0.0 { "INFINITY".into() } else { "(-INFINITY)".into() };
        }
        Literal::Float(DType::F64, value) => format!("{:?}", value.0),
        Literal::Float(_, value) => format!("{:?}f", value.0 as f32),
        Literal::Integer(DType::Bool, value) => return if value != 0 { "true".into() } else { "false".into() },
        Literal::Integer(DType::U64, value) => format!("{}u", value as u64),
        Literal::Integer(DType::U32, value) => format!("{value}u"),
        Literal::Integer(DType::I64, i64::MIN) => return "INT64_MIN".into(),
        Literal::Integer(_, value) => value.to_string(),
    };
    if text.starts_with('-') { format!("({text})") } else { text }
}

/// Further steps of Horner's scheme, highest coefficient first.
pub(super) fn polynomial(target: &str, variable: &str, coefficients: &[&str]) -> String {
    let step = |coefficient: &&str| format!("  {target} = {target} * {variable} + {coefficient}f;\n");
    coefficients.iter().map(step).collect::<String>().replace("+ -", "- ")
}

/// The declaration of a parameter or a member; `restrict` is that word and a space, or empty.
pub fn declared(info: &VarInfo, restrict: &str) -> String {
    format!("{}{restrict}{}", pointer_type(info.kind), info.name)
}
