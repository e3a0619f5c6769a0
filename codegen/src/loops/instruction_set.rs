//! Whose intrinsics the helpers of bytes, and of the words that sums of them are, are written with: one of three files says how.

use super::ValueType;
use super::expression::{Integers, Known, Rescaling};
use super::spelling::value_type_name;
use super::{byte_dots, neon, vector_rescaling, wasm};
use crate::target::{ByteDots, System, Target};
use mlc_ir::DType;
use mlc_ir::scalar::BinaryFunction;

/// An instruction set with vectors of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// x86.
    X86,
    /// Arm's NEON, and how it multiplies bytes.
    Neon(ByteDots),
    /// WebAssembly.
    Wasm,
}

impl InstructionSet {
    /// That of a target, if it multiplies bytes in vectors.
    pub fn of(target: &Target) -> Option<InstructionSet> {
        let is_wasm = target.tools.as_ref().is_some_and(|tools| tools.system == System::Wasi);
        match target.byte_dots {
            ByteDots::None => None,
            dots if dots.is_arm() => Some(InstructionSet::Neon(dots)),
            _ if is_wasm => Some(InstructionSet::Wasm),
            _ => Some(InstructionSet::X86),
        }
    }

    /// Whether it has registers of so many words.
    pub fn has(self, lanes: usize) -> bool {
        match self {
            InstructionSet::X86 => byte_dots::width(lanes).is_some(),
            InstructionSet::Neon(_) | InstructionSet::Wasm => lanes == 4,
        }
    }

    /// What tells that a text uses its intrinsics, and the lines that declare them.
    pub fn includes(self) -> [&'static str; 2] {
        match self {
            InstructionSet::X86 => [byte_dots::INTRINSICS, byte_dots::INCLUDES],
            InstructionSet::Neon(_) => [neon::INTRINSICS, neon::INCLUDES],
            InstructionSet::Wasm => [wasm::INTRINSICS, wasm::INCLUDES],
        }
    }

    /// The function that adds the products of quads.
    pub fn quad_dot(self, name: &str, lanes: usize) -> String {
        match self {
            InstructionSet::X86 => byte_dots::dot(name, lanes),
            InstructionSet::Neon(dots) => neon::dot(name, dots),
            InstructionSet::Wasm => wasm::quad_dot(name),
        }
    }

    /// The function that adds the products of pairs.
    pub fn pair_dot(self, name: &str, lanes: usize) -> String {
        match self {
            InstructionSet::X86 => byte_dots::pair_dot(name, lanes),
            InstructionSet::Neon(_) => neon::pair_dot(name),
            InstructionSet::Wasm => wasm::pair_dot(name),
        }
    }

    /// The function that widens bytes to pairs.
    pub fn wide_pairs(self, name: &str, lanes: usize) -> String {
        match self {
            InstructionSet::Wasm => wasm::wide_pairs(name),
            _ => byte_dots::wide_pairs(name, lanes),
        }
    }

    /// A conversion between vectors of bytes and of words, `steps` of smaller ones where there is no instruction for it.
    pub fn conversion(self, name: &str, from: DType, to: ValueType, steps: &str) -> String {
        match self {
            InstructionSet::X86 => byte_dots::conversion(name, from, to, steps),
            InstructionSet::Neon(_) => neon::conversion(name, from, to, steps),
            InstructionSet::Wasm => wasm::conversion(name, from, to, steps),
        }
    }

    /// The body of a function that gives the larger or the smaller of two words, if there is an instruction for it: C compilers don't
    /// find it by `steps`.
    pub fn extreme(self, function: BinaryFunction, ty: ValueType, steps: &str) -> Option<String> {
        (ty.dtype == DType::I32 && self.has(ty.lanes)).then(|| match self {
            InstructionSet::X86 => byte_dots::extreme(function, ty, steps),
            InstructionSet::Neon(_) => neon::extreme(function, ty, steps),
            InstructionSet::Wasm => wasm::extreme(function, steps),
        })
    }

    /// Words as bytes: the nearest end of their range where they are outside. `extremes` name the functions that give the larger and the
    /// smaller of two vectors, `steps` converts what is `limited`.
    pub fn saturation(self, name: &str, to: ValueType, extremes: (&str, &str), steps: &str) -> String {
        let limited = || byte_dots::limited(to, extremes, steps);
        let fits = self.has(to.lanes) && to.dtype.is_byte();
        match self {
            InstructionSet::Neon(_) if fits => neon::saturation(name, to, &limited()),
            InstructionSet::Wasm if fits => wasm::saturation(name, to, &limited()),
            _ => byte_dots::saturation(name, to, extremes, steps),
        }
    }

    /// The body of a function that rounds singles to integers of 23 bits, `steps` where there is no instruction for it; NaN becomes 0.
    pub fn rounded(self, ty: ValueType, steps: &str) -> String {
        match self {
            _ if !self.has(ty.lanes) => steps.to_owned(),
            InstructionSet::X86 => byte_dots::rounded(ty, steps),
            InstructionSet::Neon(_) => neon::rounded(steps),
            InstructionSet::Wasm => wasm::rounded(steps),
        }
    }

    /// The function that rescales so many lanes by lines.
    pub fn line(self, name: &str, integers: Integers, lanes: usize) -> String {
        let [t, f] = [DType::I32, DType::F32].map(|dtype| value_type_name(ValueType::vector(dtype, lanes)));
        let steps = vector_rescaling::line_steps(integers, lanes);
        let body = match self {
            InstructionSet::X86 => vector_rescaling::line(integers, lanes, &steps),
            InstructionSet::Wasm if self.has(lanes) && integers == Integers::Nearest => wasm::line(&steps),
            InstructionSet::Neon(_) | InstructionSet::Wasm => steps,
        };
        format!("static inline {t} {name}({t} x, {f} slope, {f} offset) {{\n{body}}}\n")
    }

    /// The function that changes the scale of vectors of integers; lane by lane by the function `scalar` where nothing better is known.
    pub fn rescaling(self, name: &str, scalar: &str, rescaling: Rescaling, ty: ValueType) -> String {
        let t = value_type_name(ty);
        let (parameter, added) = if rescaling.known.takes_added() { (", int32_t added", ", added") } else { ("", "") };
        // Lanes that don't exist have zeros.
        let bit = if matches!(rescaling.known, Known::Nothing | Known::Middle) { "" } else { " | 32" };
        let lanes = format!(
            "  {t} y = x;\n  \
               for (int lane = 0; lane < {}; ++lane) {{\n    \
                 y[lane] = {scalar}(x[lane], multiplier[lane], shift[lane]{bit}{added});\n  \
               }}\n  \
               return y;\n",
            ty.lanes
        );
        let body = match self {
            _ if rescaling.known == Known::Nothing || ty.dtype != DType::I32 || !self.has(ty.lanes) => lanes,
            InstructionSet::X86 => vector_rescaling::of_x86(rescaling, ty, &lanes),
            InstructionSet::Neon(_) => neon::rescaling(rescaling, ty, &lanes),
            InstructionSet::Wasm => wasm::rescaling(rescaling, ty, &lanes),
        };
        format!("static inline {t} {name}({t} x, {t} multiplier, {t} shift{parameter}) {{\n{body}}}\n")
    }
}
