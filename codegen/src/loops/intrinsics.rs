//! The helper functions that generated C carries: what C has no operator for, or leaves undefined. Each is written once per
//! type, as a `static inline` function named after what it computes, and only when a kernel needs it.

use super::ValueType;
use super::halves::is_half;
use super::helper::{Helpers, Intrinsic};
use super::instruction_set::InstructionSet;
use super::lane_types::{mask_dtype, mask_name, signed_of_size, unsigned_dtype, unsigned_name, unsigned_of_size};
use super::scalar_helpers::{saturating_cast, scalar_binary, scalar_unary};
use super::scalar_text::{binary_text, unary_text};
use super::spelling::{
    COMPILERS, ROLLED, ROLLED_TEXT, VECTORS, VECTORS_TEXT, c_type, held_text, unparenthesised, value_type_name,
    vector_type_text,
};
use super::{
    byte_dots, circular, extremes, half_number_text, half_text, masks, mathematics, mve, mve_mathematics, quads,
    rescaling_text, rounding, routine_text, vector_rescaling,
};
use crate::target::{Target, VectorSpelling};
use indexmap::IndexMap;
use mlc_ir::DType;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use std::collections::BTreeSet;

/// What the names of helpers that keep bits begin with.
const BIT_CAST: &str = "mlc_bit_cast_";

/// The helpers and vector types that a file needs.
#[derive(Debug, Clone, Default)]
pub struct Intrinsics {
    definitions: IndexMap<String, String>,
    /// Names of those that take vectors.
    of_vectors: BTreeSet<String>,
    vectors: BTreeSet<ValueType>,
    strict: bool,
    mve: bool,
    two_texts: bool,
    /// Lanes of the vectors of halves that C takes for numbers; 0 where it doesn't.
    half_lanes: usize,
    /// Whether code is C99 and nothing else.
    plain: bool,
    /// Whose vectors multiply bytes: where any do, those of bytes and of words are converted in one step.
    instruction_set: Option<InstructionSet>,
    /// Whether code may be compiled for x86.
    x86: bool,
}

impl Intrinsics {
    /// None yet; functions are those of the C library if code must be strict, else vectors have polynomials.
    pub fn new(target: &Target) -> Intrinsics {
        let mve = target.vectors == VectorSpelling::Mve;
        let (plain, instruction_set) = (!target.has_extensions(), InstructionSet::of(target));
        let half_lanes = if target.half_vectors { target.vector_bytes / DType::F16.size() } else { 0 };
        let (strict, two_texts) = (target.is_strict(), target.vectors == VectorSpelling::Either);
        let x86 = target.may_be_x86();
        Intrinsics { strict, mve, two_texts, half_lanes, plain, instruction_set, x86, ..Intrinsics::default() }
    }

    /// Whose intrinsics helpers have beside a text for all others: those of x86 where no vectors multiply bytes.
    fn own_instructions(&self) -> InstructionSet {
        self.instruction_set.unwrap_or(InstructionSet::X86)
    }

    /// Whether functions with vectors have a second text without them, between which C compilers choose.
    pub fn has_two_texts(&self) -> bool {
        self.two_texts
    }

    /// Whether vectors are computed with by Arm's intrinsics.
    pub fn is_mve(&self) -> bool {
        self.mve
    }

    /// The type of the bits of a vector of halves, where C takes its lanes for numbers.
    pub fn half_bits(&self, ty: ValueType) -> Option<ValueType> {
        let is_number = ty.dtype == DType::F16 && ty.lanes > 1 && ty.lanes == self.half_lanes;
        is_number.then_some(ValueType { dtype: DType::U16, ..ty })
    }

    /// The C type of a vector's lanes, and its bytes.
    fn lane_type(&self, ty: ValueType) -> (&'static str, usize) {
        let half = if self.mve { "__fp16" } else { "_Float16" };
        let own = self.half_bits(ty).map(|_| (half, DType::F16.size()));
        own.or_else(|| mve::lane_type(ty).filter(|_| self.mve)).unwrap_or((c_type(ty.dtype), ty.dtype.size()))
    }

    /// Whether a product and a sum may be rounded as one.
    pub fn fuses(&self) -> bool {
        !self.strict
    }
}

impl Helpers for Intrinsics {
    fn use_type(&mut self, ty: ValueType) {
        if ty.lanes > 1 && ty.dtype != DType::Bool && self.vectors.insert(ty) && !is_half(ty.dtype) {
            self.use_type(ValueType::vector(mask_dtype(ty.dtype), ty.lanes));
            if ty.dtype.is_integer() {
                self.use_type(ValueType::vector(unsigned_dtype(ty.dtype), ty.lanes));
            }
        }
    }

    fn call(&mut self, intrinsic: Intrinsic) -> String {
        let word = ValueType::scalar(DType::I32);
        let (name, ty) = match intrinsic {
            Intrinsic::Unary(function, ty) => (format!("mlc_{}_{}", function.name(), value_type_name(ty)), ty),
            Intrinsic::Binary(function, ty) => (format!("mlc_{}_{}", function.name(), value_type_name(ty)), ty),
            Intrinsic::Bounded(function, ty) => (format!("mlc_{}_bound_{}", function.name(), value_type_name(ty)), ty),
            Intrinsic::Select(ty) => (format!("mlc_select_{}", value_type_name(ty)), ty),
            Intrinsic::SelectBy(function, compared, ty) => {
                self.use_type(compared);
                (masks::name(function, compared, ty), ty)
            }
            Intrinsic::Fold(function, ty) => (format!("mlc_{}_lanes_{}", function.name(), value_type_name(ty)), ty),
            Intrinsic::Splat(ty) => (format!("mlc_splat_{}", value_type_name(ty)), ty),
            Intrinsic::Held(ty) => (format!("mlc_held_{}", value_type_name(ty)), ty),
            Intrinsic::Cast(from, to) => {
                let ty = ValueType { dtype: from, ..to };
                self.use_type(to);
                (format!("mlc_cast_{}_{}", value_type_name(ty), value_type_name(to)), ty)
            }
            Intrinsic::BitCast(from, to) => (format!("{BIT_CAST}{from}_{to}"), ValueType::scalar(from)),
            Intrinsic::Half => (mve::NUMBER.to_owned(), ValueType::scalar(DType::F16)),
            Intrinsic::HalfPair => ("mlc_half_pair".to_owned(), word),
            Intrinsic::HalfOf { is_upper } => (half_text::part_name(is_upper).to_owned(), word),
            Intrinsic::Saturate(dtype, lanes) => {
                let ty = ValueType::vector(dtype, lanes);
                self.use_type(ty);
                (format!("mlc_saturate_{}", value_type_name(ty)), ValueType::vector(DType::I32, lanes))
            }
            Intrinsic::Pair => ("mlc_pair".to_owned(), word),
            Intrinsic::Dot(1) => ("mlc_dot".to_owned(), word),
            Intrinsic::Dot(lanes) => (byte_dots::name("pair_dot", lanes), ValueType::vector(DType::I32, lanes)),
            Intrinsic::WidePairs(lanes) => {
                self.use_type(ValueType::vector(DType::I8, 2 * lanes));
                self.use_type(ValueType::vector(DType::I16, 2 * lanes));
                (byte_dots::name("wide_pairs", lanes), ValueType::vector(DType::I32, lanes))
            }
            Intrinsic::Routine(routine) => (routine.name(), word),
            Intrinsic::Rolled => (ROLLED.to_owned(), word),
            Intrinsic::RescaleLanes(own) => (quads::rescale_name(own).to_owned(), quads::QUAD),
            Intrinsic::Quad => ("mlc_quad".to_owned(), word),
            Intrinsic::QuadDot(lanes) => (byte_dots::name("quad_dot", lanes), ValueType::vector(DType::I32, lanes)),
            Intrinsic::Line(integers, lanes) => {
                (vector_rescaling::line_name(integers, lanes), ValueType::vector(DType::I32, lanes))
            }
            Intrinsic::Rescale(rescaling, ty) => (rescaling_text::name(rescaling, ty), ty),
        };
        self.use_type(ty);
        if !self.definitions.contains_key(&name) {
            // Helpers that this one calls come first.
            let definition = self.define(&name, intrinsic);
            if ty.lanes > 1 {
                self.of_vectors.insert(name.clone());
            }
            self.definitions.insert(name.clone(), definition);
        }
        name
    }
}

impl Intrinsics {
    /// A vector of integers of type `from` with each lane converted to that of another type, singles by way of integers of their size.
    /// Types in between are as wide as half or twice the one before: what goes further gcc 12 converts lane by lane.
    pub fn converted(&mut self, text: String, from: DType, to: ValueType) -> String {
        if to.dtype.is_float() {
            let wide = if from.size() < to.dtype.size() { signed_of_size(to.dtype.size()) } else { from };
            let text = self.converted(text, from, ValueType { dtype: wide, ..to });
            self.use_type(to);
            if self.mve && wide == DType::I32 && to == mve::SINGLES {
                return format!("{}({})", self.call(Intrinsic::Cast(wide, to)), unparenthesised(&text));
            }
            return format!("__builtin_convertvector({}, {})", unparenthesised(&text), value_type_name(to));
        }
        let sizes = (from.size(), to.dtype.size());
        if self.instruction_set.is_some_and(|set| set.has(to.lanes)) && matches!(sizes, (1, 4) | (4, 1)) {
            let name = self.call(Intrinsic::Cast(from, to));
            return format!("{name}({})", unparenthesised(&text));
        }
        self.converted_by_steps(text, from, to)
    }

    fn converted_by_steps(&mut self, mut text: String, from: DType, to: ValueType) -> String {
        let mut dtype = from;
        while dtype.size() != to.dtype.size() {
            let size = if dtype.size() < to.dtype.size() { dtype.size() * 2 } else { dtype.size() / 2 };
            let between = if from.is_signed() { signed_of_size(size) } else { unsigned_of_size(size) };
            dtype = if size == to.dtype.size() { to.dtype } else { between };
            let ty = ValueType { dtype, ..to };
            self.use_type(ty);
            text = format!("__builtin_convertvector({}, {})", unparenthesised(&text), value_type_name(ty));
        }
        text
    }

    /// The lines that include what the helpers need.
    pub fn includes(&self) -> String {
        let mut text = String::new();
        if self.definitions.keys().any(|name| half_text::is_conversion(name)) {
            text += if self.plain { half_text::PLAIN_INCLUDES } else { half_text::INCLUDES };
        } else if self.definitions.keys().any(|name| name.starts_with(BIT_CAST) || name == mve::NUMBER) {
            text += "#include <string.h>\n";
        }
        let [intrinsics, includes] = self.own_instructions().includes();
        if self.definitions.values().any(|definition| definition.contains(intrinsics)) {
            text += includes;
        }
        if self.mve && !self.vectors.is_empty() {
            text += mve::INCLUDES;
        }
        text
    }

    /// Type definitions and helpers, ready to be put in front of the kernels.
    pub fn prelude(&self) -> String {
        let has_vectors = !self.vectors.is_empty();
        let is_vector = |name: &String| self.two_texts && self.of_vectors.contains(name);
        let definitions = |are_vectors: bool| {
            let own = self.definitions.iter().filter(move |(name, _)| is_vector(name) == are_vectors);
            own.flat_map(|(_, definition)| ["\n", definition]).collect::<String>()
        };
        let types: String = self.vectors.iter().map(|&ty| vector_type_text(ty, self.lane_type(ty))).collect();
        let compilers = if self.mve { "" } else { COMPILERS };
        match (has_vectors, self.two_texts) {
            (false, _) => definitions(false),
            (true, false) => format!("\n{compilers}{types}{}", definitions(false)),
            // Those of vectors may call the others.
            (true, true) => format!(
                "{VECTORS_TEXT}\n{compilers}{}\n#if {VECTORS}\n{types}{}#endif\n",
                definitions(false).trim_start(),
                definitions(true)
            ),
        }
    }

    fn define(&mut self, name: &str, intrinsic: Intrinsic) -> String {
        if self.mve
            && let Some(definition) = mve::definition(name, intrinsic)
        {
            return definition;
        }
        if let Intrinsic::Unary(function, ty) = intrinsic
            && self.mve
            && !self.strict
            && let Some(definition) = mve_mathematics::definition(self, name, function, ty)
        {
            return definition;
        }
        if let Some(definition) = self.of_halves(name, intrinsic) {
            return definition;
        }
        match intrinsic {
            Intrinsic::Unary(function, ty) if ty.lanes > 1 => self.vector_unary(name, function, ty),
            Intrinsic::Binary(function, ty) if ty.lanes > 1 => self.vector_binary(name, function, ty),
            Intrinsic::Unary(UnaryFunction::RoundToInteger, _) => {
                let bits = self.call(Intrinsic::BitCast(DType::F32, DType::I32));
                rounding::to_integer(name, &bits)
            }
            Intrinsic::Unary(function, ty) => scalar_unary(name, function, ty.dtype),
            Intrinsic::Binary(function, ty) => scalar_binary(name, function, ty.dtype),
            Intrinsic::Select(ty) => {
                let (t, mask) = (value_type_name(ty), mask_name(ty));
                format!(
                    "static inline {t} {name}({mask} condition, {t} x, {t} y) {{\n  \
                     return ({t})((condition & ({mask})x) | (~condition & ({mask})y));\n}}\n"
                )
            }
            Intrinsic::SelectBy(function, compared, ty) => {
                let choose = self.call(Intrinsic::Select(ty));
                masks::selection(name, &choose, function, compared, ty)
            }
            Intrinsic::Bounded(function, ty) => {
                let splat = if ty.lanes > 1 { self.call(Intrinsic::Splat(ty)) } else { String::new() };
                extremes::bounded(name, function, ty, &splat, self.x86)
            }
            Intrinsic::Fold(function, ty) => self.fold(name, function, ty),
            Intrinsic::Splat(ty) => {
                let (t, lanes) = (value_type_name(ty), vec!["x"; ty.lanes].join(", "));
                format!("static inline {t} {name}({} x) {{\n  return ({t}){{{lanes}}};\n}}\n", c_type(ty.dtype))
            }
            Intrinsic::Held(ty) => held_text(name, ty),
            Intrinsic::Cast(from, to) if is_half(from) || is_half(to.dtype) => {
                let plain = self.plain;
                half_text::conversion(self, name, from, to, plain)
            }
            Intrinsic::Cast(from, to) if to.lanes > 1 => {
                let steps = self.converted_by_steps("x".to_owned(), from, to);
                self.own_instructions().conversion(name, from, to, &steps)
            }
            Intrinsic::Cast(from, to) => saturating_cast(name, from, to.dtype),
            Intrinsic::Half => mve::number(),
            Intrinsic::HalfPair => half_text::pair(name),
            Intrinsic::HalfOf { is_upper } => half_text::part(self, name, is_upper),
            Intrinsic::Saturate(dtype, lanes) if lanes > 1 => self.vector_saturation(name, dtype, lanes),
            Intrinsic::Saturate(dtype, _) => rescaling_text::saturation(name, dtype),
            Intrinsic::Pair => routine_text::pair(name),
            Intrinsic::Dot(1) => routine_text::dot(name),
            Intrinsic::Dot(lanes) => self.own_instructions().pair_dot(name, lanes),
            Intrinsic::WidePairs(lanes) => self.own_instructions().wide_pairs(name, lanes),
            Intrinsic::Routine(routine) => routine_text::definition(routine),
            Intrinsic::Rolled => ROLLED_TEXT.to_owned(),
            Intrinsic::RescaleLanes(own) => quads::rescale(name, own),
            Intrinsic::Quad => byte_dots::quad(name),
            Intrinsic::QuadDot(lanes) => self.own_instructions().quad_dot(name, lanes),
            Intrinsic::Line(integers, lanes) => {
                self.use_type(ValueType::vector(DType::F32, lanes));
                self.own_instructions().line(name, integers, lanes)
            }
            Intrinsic::Rescale(rescaling, ty) if ty.lanes > 1 => {
                let own = vector_rescaling::of_lanes(rescaling);
                let scalar = self.call(Intrinsic::Rescale(own, ValueType::scalar(ty.dtype)));
                self.own_instructions().rescaling(name, &scalar, rescaling, ty)
            }
            Intrinsic::Rescale(rescaling, ty) => rescaling_text::definition(name, rescaling, ty.dtype),
            Intrinsic::BitCast(from, to) => format!(
                "static inline {to} {name}({from} x) {{\n  {to} y;\n  memcpy(&y, &x, sizeof(y));\n  return y;\n}}\n",
                from = c_type(from),
                to = c_type(to)
            ),
        }
    }

    /// Combines the halves of a vector, then the lanes of what that gives.
    fn fold(&mut self, name: &str, function: BinaryFunction, ty: ValueType) -> String {
        let (t, element) = (value_type_name(ty), c_type(ty.dtype));
        let half = ValueType { lanes: ty.lanes / 2, ..ty };
        let operator = match function {
            BinaryFunction::And => Some("&"),
            BinaryFunction::Or => Some("|"),
            _ if !ty.dtype.is_float() => None,
            BinaryFunction::Add => Some("+"),
            BinaryFunction::Multiply => Some("*"),
            _ => None,
        };
        let mut combine = |x: &str, y: &str| match operator {
            Some(operator) => format!("{x} {operator} {y}"),
            None => format!("{}({x}, {y})", self.call(Intrinsic::Binary(function, half))),
        };
        if half.lanes == 1 {
            let value = combine("x[0]", "x[1]");
            return format!("static inline {element} {name}({t} x) {{\n  return {value};\n}}\n");
        }
        let part = value_type_name(half);
        let value = combine(
            &format!("*(const {part}_unaligned *)lanes"),
            &format!("*(const {part}_unaligned *)(lanes + {})", half.lanes),
        );
        let inner = self.call(Intrinsic::Fold(function, half));
        format!(
            "static inline {element} {name}({t} x) {{\n  const {element} *lanes = (const {element} *)&x;\n  \
             return {inner}({value});\n}}\n"
        )
    }

    fn vector_saturation(&mut self, name: &str, dtype: DType, lanes: usize) -> String {
        let wide = ValueType::vector(DType::I32, lanes);
        let [least, most] = [BinaryFunction::Maximum, BinaryFunction::Minimum]
            .map(|function| self.call(Intrinsic::Binary(function, wide)));
        let steps = self.converted_by_steps("limited".to_owned(), DType::I32, ValueType { dtype, ..wide });
        let to = ValueType { dtype, ..wide };
        self.own_instructions().saturation(name, to, (&least, &most), &steps)
    }

    /// The definition of a helper of numbers that are halves, if it is one.
    fn of_halves(&mut self, name: &str, intrinsic: Intrinsic) -> Option<String> {
        let (Intrinsic::Unary(_, ty) | Intrinsic::Binary(_, ty) | Intrinsic::Splat(ty) | Intrinsic::Select(ty)) =
            intrinsic
        else {
            return None;
        };
        let bits = self.half_bits(ty)?;
        self.use_type(bits);
        self.use_type(ValueType { dtype: DType::I16, ..ty });
        half_number_text::definition(name, intrinsic, ty)
    }

    fn vector_unary(&mut self, name: &str, function: UnaryFunction, ty: ValueType) -> String {
        let (t, mask) = (value_type_name(ty), mask_name(ty));
        match function {
            UnaryFunction::Negate if ty.dtype.is_integer() => {
                let unsigned = unsigned_name(ty);
                format!("static inline {t} {name}({t} x) {{\n  return ({t})(({unsigned}){{0}} - ({unsigned})x);\n}}\n")
            }
            UnaryFunction::Relu if ty.dtype.is_signed() => {
                let steps = format!("  return ({t})(({mask})x & ~(x < 0));\n");
                let own = |name: &str| format!("  return {name}(({t}){{0}}, x);\n");
                let body = extremes::by_instruction(BinaryFunction::Maximum, ty, &steps, self.x86, own);
                format!("static inline {t} {name}({t} x) {{\n{body}}}\n")
            }
            UnaryFunction::Absolute if ty.dtype.is_float() => {
                let sign = if ty.dtype == DType::F64 { "0x7fffffffffffffff" } else { "0x7fffffff" };
                format!("static inline {t} {name}({t} x) {{\n  return ({t})(({mask})x & {sign});\n}}\n")
            }
            _ => {
                if let Some(definition) = rounding::definition(name, function, ty, self.own_instructions()) {
                    return definition;
                }
                if !self.strict && ty.dtype == DType::F32 {
                    let body = mathematics::body(self, function, ty).or_else(|| circular::body(self, function, ty));
                    if let Some(body) = body {
                        return format!("static inline {t} {name}({t} x) {{\n{body}}}\n");
                    }
                }
                let call = unary_text(self, function, ty.dtype, "x[lane]");
                format!(
                    "static inline {t} {name}({t} x) {{\n  {t} y = x;\n  for (int lane = 0; lane < {}; ++lane) {{\n    \
                     y[lane] = {call};\n  }}\n  return y;\n}}\n",
                    ty.lanes
                )
            }
        }
    }

    fn vector_binary(&mut self, name: &str, function: BinaryFunction, ty: ValueType) -> String {
        let (t, mask) = (value_type_name(ty), mask_name(ty));
        let wraps = match function {
            BinaryFunction::Add => Some("+"),
            BinaryFunction::Subtract => Some("-"),
            BinaryFunction::Multiply => Some("*"),
            _ => None,
        };
        if let Some(operator) = wraps.filter(|_| ty.dtype.is_integer()) {
            let unsigned = unsigned_name(ty);
            return format!(
                "static inline {t} {name}({t} x, {t} y) {{\n  \
                 return ({t})(({unsigned})x {operator} ({unsigned})y);\n}}\n"
            );
        }
        if function == BinaryFunction::ShiftLeft {
            return byte_dots::shift_left(name, ty, &unsigned_name(ty));
        }
        if function == BinaryFunction::ShiftRight && ty.dtype.is_signed() {
            return byte_dots::shift_right(name, ty, &unsigned_name(ty));
        }
        let order = match function {
            BinaryFunction::Maximum => ">",
            BinaryFunction::Minimum => "<",
            _ => {
                let scalar = binary_text(self, function, ty.dtype, "x[lane]", "y[lane]");
                return format!(
                    "static inline {t} {name}({t} x, {t} y) {{\n  {t} z = x;\n  for (int lane = 0; lane < {}; ++lane) {{\n    \
                     z[lane] = {scalar};\n  }}\n  return z;\n}}\n",
                    ty.lanes
                );
            }
        };
        let nan = if ty.dtype.is_float() { " | (x != x)" } else { "" };
        let body = format!(
            "  const {mask} first = (x {order} y){nan};\n  \
             return ({t})((first & ({mask})x) | (~first & ({mask})y));\n"
        );
        let own = self.instruction_set.and_then(|set| set.extreme(function, ty, &body));
        let body = own.unwrap_or_else(|| extremes::of_vectors(function, ty, &body, self.x86));
        format!("static inline {t} {name}({t} x, {t} y) {{\n{body}}}\n")
    }
}
