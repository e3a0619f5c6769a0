//! The C printer: loop programs as C99, with GNU vector types where a program has vectors.

mod heads;
mod helpers;
pub mod launches;
mod memory;
mod quads;

use super::halves::is_half;
use super::helper::{Helpers, Intrinsic};
use super::intrinsics::Intrinsics;
use super::lane_types::mask_dtype;
use super::lanes;
use super::masks;
use super::scalar_text::{binary_text, unary_text};
use super::spelling::{
    VECTORS, c_operator, c_type, comment, declared, harmless, literal, mask_comparison, pointer_type, unparenthesised,
    value_type_name, variable_type,
};
use super::{Atom, Expr, Function, Index, Stmt, ValueType, Var, VarInfo, VarKind, value_type};
use super::{extremes, mve};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Literal};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A phase as its kernel calls it.
#[derive(Debug, Clone)]
pub struct Launched {
    /// Symbol of the function of a share.
    pub name: String,
    /// How many shares there are.
    pub shares: usize,
}

/// Prints a function and notes the helpers that it needs. One that is `apart` isn't put into its caller.
pub fn function(function: &Function, apart: bool, intrinsics: &mut Intrinsics) -> String {
    launching(function, apart, &[], intrinsics)
}

/// Prints a function that launches phases.
pub fn launching(function: &Function, apart: bool, phases: &[Launched], intrinsics: &mut Intrinsics) -> String {
    let comment = comment(&function.comment);
    if !intrinsics.has_two_texts() || !lanes::has_vectors(function) {
        return comment + &definition(function, apart, phases, intrinsics);
    }
    let of_vectors = definition(function, apart, phases, intrinsics);
    let of_lanes = definition(&lanes::without_vectors(function), apart, phases, intrinsics);
    format!("{comment}#if {VECTORS}\n{of_vectors}#else\n{of_lanes}#endif\n")
}

fn definition(function: &Function, apart: bool, phases: &[Launched], intrinsics: &mut Intrinsics) -> String {
    let (text, depth, masks) = (String::new(), 0, BTreeMap::new());
    let mut printer = Printer { vars: &function.vars, intrinsics, text, depth, masks, phases };
    // Where it may write what it reads, gcc takes vectors from memory again behind a loop that had them; else it keeps them, and for want
    // of registers writes each to the stack in every turn.
    let has_vectors = function.vars.iter().any(|info| matches!(info.kind, VarKind::Value(ty) if ty.lanes > 1));
    let is_apart = !(printer.intrinsics.is_mve() && has_vectors);
    let parameters: Vec<String> = function
        .parameters
        .iter()
        .map(|parameter| {
            let restrict = if parameter.restrict && is_apart { "restrict " } else { "" };
            declared(&function.vars[parameter.var as usize], restrict)
        })
        .collect();
    let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    printer.depth = 1;
    printer.block(&function.body);
    let body = printer.text;
    let head = format!("static void {}({parameters})", function.name);
    let head = if head.len() > 98 { head.replace(", ", ",\n    ").replacen('(', "(\n    ", 1) } else { head };
    let attribute = if apart { "__attribute__((noinline))\n" } else { "" };
    format!("{attribute}{head} {{\n{body}}}\n")
}

struct Printer<'a> {
    vars: &'a [VarInfo],
    intrinsics: &'a mut Intrinsics,
    text: String,
    depth: usize,
    /// For variables that hold masks, the type of their lanes.
    masks: BTreeMap<Var, DType>,
    phases: &'a [Launched],
}

impl Printer<'_> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{:1$}{line}", "", self.depth * 2);
    }

    fn name(&self, var: Var) -> &str {
        &self.vars[var as usize].name
    }

    fn ty(&self, expr: &Expr) -> ValueType {
        value_type(self.vars, expr)
    }

    fn block(&mut self, statements: &[Stmt]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn nested(&mut self, head: &str, body: &[Stmt]) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
        self.block(body);
        self.depth -= 1;
        self.line("}");
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::For { var, start, end, step, descends, rolled, body, .. } => {
                self.hint(*rolled);
                let head = self.loop_head(*var, (start, end), *step, *descends);
                self.nested(&head, body);
            }
            Stmt::Array { var, elements } => {
                let element = match self.vars[*var as usize].kind {
                    VarKind::Pointer { dtype, .. } => c_type(dtype),
                    VarKind::Value(ty) => c_type(ty.dtype),
                    VarKind::Index => "int32_t",
                };
                self.line(&format!("{element} {}[{}];", self.name(*var), elements.max(&1)));
            }
            Stmt::Define { var, value, mutable } => {
                let ty = self.ty(value);
                self.intrinsics.use_type(ty);
                let mask = self.mask_dtype(value);
                self.masks.insert(*var, mask);
                let qualifier = if *mutable { "" } else { "const " };
                let ty = variable_type(ty, mask);
                let value = self.expr(value);
                self.line(&format!("{qualifier}{ty} {} = {value};", self.name(*var)));
            }
            Stmt::DefineIndex { var, value } => {
                let value = self.index(value);
                self.line(&format!("const int32_t {} = {value};", self.name(*var)));
            }
            Stmt::Assign { var, value } => self.assign(*var, value),
            Stmt::Pointer { var, base, offset } => {
                let info = &self.vars[*var as usize];
                let head = format!("{}{}", pointer_type(info.kind), info.name);
                let offset = self.index(offset);
                self.line(&format!("{head} = {} + {offset};", self.name(*base)));
            }
            Stmt::Store { pointer, index, stride, valid, value } => self.store(*pointer, index, *stride, *valid, value),
            Stmt::If { conditions, then, otherwise } => {
                let parts: Vec<String> = conditions
                    .iter()
                    .map(|(left, relation, right)| {
                        format!("{} {} {}", self.index(left), relation.operator(), self.index(right))
                    })
                    .collect();
                self.nested(&format!("if ({})", parts.join(" && ")), then);
                if !otherwise.is_empty() {
                    self.nested("else", otherwise);
                }
            }
            Stmt::IfValue { condition, then } => {
                let condition = self.expr(condition);
                self.nested(&format!("if ({})", unparenthesised(&condition)), then);
            }
            Stmt::Routine { routine, pointers, numbers } => {
                let pointers = pointers.iter().map(|(pointer, index)| self.address(*pointer, index));
                let arguments: Vec<String> = pointers.chain(numbers.iter().map(i64::to_string)).collect();
                let name = self.intrinsics.call(Intrinsic::Routine(routine.function()));
                self.line(&format!("{name}({});", arguments.join(", ")));
            }
            Stmt::Launch { phase, arguments } => self.launch(*phase, arguments),
            Stmt::Comment(text) => self.line(&format!("/* {} */", harmless(text))),
        }
    }

    /// The type of a mask's lanes: as wide as what was compared to make it. For other values it says nothing.
    fn mask_dtype(&self, value: &Expr) -> DType {
        self.found_mask_dtype(value).unwrap_or(DType::I32)
    }

    fn found_mask_dtype(&self, value: &Expr) -> Option<DType> {
        let ty = self.ty(value);
        if ty.dtype != DType::Bool || ty.lanes == 1 {
            return None;
        }
        if let Expr::Var(var) = value {
            return self.masks.get(var).copied();
        }
        let compared = value.children().map(|child| self.ty(child).dtype).find(|&dtype| dtype != DType::Bool);
        compared.map(mask_dtype).or_else(|| value.children().find_map(|child| self.found_mask_dtype(child)))
    }

    fn assign(&mut self, var: Var, value: &Expr) {
        let name = self.name(var).to_owned();
        if let Expr::Binary(BinaryFunction::Add, left, right) = value
            && **left == Expr::Var(var)
            && self.ty(left).dtype.is_float()
        {
            let product = if self.intrinsics.is_mve() && self.intrinsics.fuses() { self.fused(right) } else { None };
            if let Some((function, operands)) = product {
                return self.line(&format!("{name} = {function}({name}, {operands});"));
            }
            let right = self.expr(right);
            return self.line(&format!("{name} += {};", unparenthesised(&right)));
        }
        let value = self.expr(value);
        self.line(&format!("{name} = {};", unparenthesised(&value)));
    }

    /// The intrinsic that adds a product of vectors, or of a vector and a number, and the factors.
    fn fused(&mut self, product: &Expr) -> Option<(&'static str, String)> {
        let Expr::Binary(BinaryFunction::Multiply, x, y) = product else { return None };
        let (vector, factor) = if self.ty(x).lanes > 1 { (x, y) } else { (y, x) };
        let function = mve::multiply_add(self.ty(vector), self.ty(factor).lanes)?;
        // The intrinsics are macros, which commas of a list of lanes would confuse.
        let mut operand = |value: &Expr| match value {
            Expr::Gather { .. } => format!("({})", self.expr(value)),
            _ if self.ty(value) == ValueType::scalar(DType::F16) => self.half(value),
            _ => unparenthesised(&self.expr(value)).to_owned(),
        };
        Some((function, format!("{}, {}", operand(vector), operand(factor))))
    }

    fn address(&mut self, pointer: Var, index: &Index) -> String {
        if index.as_constant() == Some(0) {
            return self.name(pointer).to_owned();
        }
        let index = self.index(index);
        format!("{} + {index}", self.name(pointer))
    }

    fn index(&mut self, index: &Index) -> String {
        // A pointer is added to term by term, and may not be before its array on the way.
        let goes_back = index.constant > 0 && index.terms.iter().any(|(_, factor)| *factor < 0);
        let mut text = if goes_back { index.constant.to_string() } else { String::new() };
        for (atom, factor) in &index.terms {
            let mut term = match atom {
                Atom::Var(var) => self.name(*var).to_owned(),
                Atom::Quotient(inner, divisor) => format!("{} / {divisor}", self.grouped_index(inner)),
                Atom::Remainder(inner, divisor) => format!("{} % {divisor}", self.grouped_index(inner)),
                Atom::Maximum(left, right) => self.extreme(left, ">", right),
                Atom::Minimum(left, right) => self.extreme(left, "<", right),
                Atom::Value(value) if self.is_plain(atom) => self.expr(value),
                Atom::Value(value) => format!("(int32_t){}", self.expr(value)),
            };
            if !self.is_plain(atom) && (factor.abs() != 1 || !index.terms.is_empty()) {
                term = format!("({term})");
            }
            if factor.abs() != 1 {
                term = format!("{term} * {}", factor.abs());
            }
            text += match (text.is_empty(), *factor < 0) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => " - ",
                (false, false) => " + ",
            };
            text += &term;
        }
        if text.is_empty() {
            return index.constant.to_string();
        }
        match index.constant {
            0 => {}
            _ if goes_back => {}
            constant if constant < 0 => text += &format!(" - {}", -constant),
            constant => text += &format!(" + {constant}"),
        }
        text
    }

    /// Whether it is spelled as a variable alone.
    fn is_plain(&self, atom: &Atom) -> bool {
        match atom {
            Atom::Var(_) => true,
            Atom::Value(value) => matches!(**value, Expr::Var(_)) && self.ty(value) == ValueType::scalar(DType::I32),
            _ => false,
        }
    }

    /// The index, in parentheses where it is more than a variable.
    fn grouped_index(&mut self, index: &Index) -> String {
        let text = self.index(index);
        match index.terms[..] {
            [(ref atom, 1)] if index.constant == 0 && self.is_plain(atom) => text,
            _ => format!("({text})"),
        }
    }

    fn extreme(&mut self, left: &Index, order: &str, right: &Index) -> String {
        let (left, right) = (self.index(left), self.index(right));
        format!("{left} {order} {right} ? {left} : {right}")
    }

    /// The value as an operand: a call, a name, a literal or something in parentheses.
    fn expr(&mut self, expr: &Expr) -> String {
        match expr {
            Expr::Literal(value) => literal(*value),
            Expr::Var(var) => self.name(*var).to_owned(),
            Expr::Load { pointer, index, ty } if ty.lanes == 1 => {
                let index = self.index(index);
                format!("{}[{index}]", self.name(*pointer))
            }
            Expr::Load { pointer, index, ty } => self.load(*pointer, index, *ty),
            Expr::Gather { pointer, index, stride, valid, ty } => self.gather(*pointer, index, *stride, *valid, *ty),
            Expr::Unary(function, x) => self.unary(*function, x),
            Expr::Binary(function, x, y) => self.binary(*function, x, y),
            Expr::Select(condition, x, y) => self.select(condition, x, y),
            Expr::Cast(dtype, x) => self.cast(*dtype, x),
            Expr::BitCast(dtype, x) => self.bit_cast(*dtype, x),
            Expr::Rescale(..)
            | Expr::Pair { .. }
            | Expr::HalfOf { .. }
            | Expr::Dot(_)
            | Expr::WidePairs { .. }
            | Expr::Quad { .. }
            | Expr::QuadDot(_)
            | Expr::Line(..)
            | Expr::Saturate(..) => self.helper(expr),
            Expr::Splat(x, lanes) => {
                let ty = ValueType { lanes: *lanes, ..self.ty(x) };
                self.intrinsics.use_type(ty);
                let zero = matches!(**x, Expr::Literal(Literal::Float(_, value)) if value.0.to_bits() == 0);
                let x = self.expr(x);
                if *lanes == 1 {
                    x
                } else if zero {
                    format!("({}){{0}}", value_type_name(ty))
                } else {
                    format!("{}({})", self.intrinsics.call(Intrinsic::Splat(ty)), unparenthesised(&x))
                }
            }
            Expr::Lane(x, lane) => self.lane(x, *lane),
            Expr::Held(x) => self.held(x),
            Expr::Fold(function, x) => {
                let (ty, text) = (self.ty(x), self.expr(x));
                if ty.lanes == 1 {
                    return text;
                }
                format!("{}({})", self.intrinsics.call(Intrinsic::Fold(*function, ty)), unparenthesised(&text))
            }
            Expr::Index(dtype, index) => format!("({})({})", c_type(*dtype), self.index(index)),
        }
    }

    fn unary(&mut self, function: UnaryFunction, x: &Expr) -> String {
        let ty = self.ty(x);
        let text = self.expr(x);
        if ty.lanes == 1 {
            return unary_text(self.intrinsics, function, ty.dtype, &text);
        }
        match function {
            UnaryFunction::Negate if ty.dtype.is_float() => format!("(-{text})"),
            UnaryFunction::Not => format!("(~{text})"),
            UnaryFunction::IsNan => format!("({text} != {text})"),
            UnaryFunction::IsInfinite => {
                let name = self.intrinsics.call(Intrinsic::Unary(UnaryFunction::Absolute, ty));
                format!("({name}({}) == INFINITY)", unparenthesised(&text))
            }
            _ => format!("{}({})", self.intrinsics.call(Intrinsic::Unary(function, ty)), unparenthesised(&text)),
        }
    }

    fn binary(&mut self, function: BinaryFunction, x: &Expr, y: &Expr) -> String {
        use BinaryFunction as B;
        let (left, right) = (self.ty(x), self.ty(y));
        let ty = ValueType { lanes: left.lanes.max(right.lanes), ..left };
        if let Some(bound) = extremes::bound(function, ty, y, self.intrinsics.is_mve()) {
            let name = self.intrinsics.call(Intrinsic::Bounded(function, ty));
            let (x, bound) = (self.widened(x, ty.lanes, ty.dtype), self.expr(&bound.into()));
            return format!("{name}({}, {bound})", unparenthesised(&x));
        }
        if ty.lanes == 1 {
            let (x, y) = (self.expr(x), self.expr(y));
            return binary_text(self.intrinsics, function, ty.dtype, &x, &y);
        }
        self.intrinsics.use_type(ty);
        let operator = match function {
            B::And => Some("&"),
            B::Or => Some("|"),
            B::Xor => Some("^"),
            _ => c_operator(function),
        };
        let has_helper = self.intrinsics.is_mve() && function == B::Divide && ty == mve::SINGLES;
        if let Some(operator) = operator.filter(|_| ty.dtype.is_float() && !has_helper) {
            let (x, y) = match is_half(ty.dtype) {
                // A single half is its bits.
                true => [x, y].map(|x| self.widened(x, ty.lanes, DType::I16)).into(),
                false => (self.expr(x), self.expr(y)),
            };
            return format!("({x} {operator} {y})");
        }
        let mask = self.found_mask_dtype(x).unwrap_or_else(|| self.mask_dtype(y));
        let x = self.widened(x, ty.lanes, mask);
        let y = self.widened(y, ty.lanes, mask);
        if function.is_comparison() && ty.dtype == DType::Bool {
            return mask_comparison(function, &x, &y);
        }
        let wraps = matches!(function, B::Add | B::Subtract | B::Multiply | B::Divide);
        if let Some(operator) = operator.filter(|_| !wraps) {
            return format!("({x} {operator} {y})");
        }
        let name = self.intrinsics.call(Intrinsic::Binary(function, ty));
        format!("{name}({}, {})", unparenthesised(&x), unparenthesised(&y))
    }

    /// A scalar in all lanes; a truth value as a mask with lanes of type `mask`.
    fn widened(&mut self, x: &Expr, lanes: usize, mask: DType) -> String {
        let ty = self.ty(x);
        if ty.lanes == lanes {
            return self.expr(x);
        }
        let splat = |x: Expr| Expr::Splat(Box::new(x), lanes);
        if ty.dtype == DType::Bool {
            let wide = splat(Expr::Cast(mask, Box::new(x.clone())));
            return self.expr(&Expr::Cast(DType::Bool, Box::new(wide)));
        }
        self.expr(&splat(x.clone()))
    }

    fn select(&mut self, condition: &Expr, x: &Expr, y: &Expr) -> String {
        let lanes = [condition, x, y].map(|operand| self.ty(operand).lanes);
        let lanes = lanes[0].max(lanes[1]).max(lanes[2]);
        if lanes == 1 {
            let (condition, x, y) = (self.expr(condition), self.expr(x), self.expr(y));
            return format!("({condition} ? {x} : {y})");
        }
        let mask = [x, y, condition].into_iter().find_map(|operand| self.found_mask_dtype(operand));
        let mask = mask.unwrap_or(DType::I32);
        let dtype = self.ty(x).dtype;
        let ty = ValueType { lanes, dtype: if dtype == DType::Bool { mask } else { dtype } };
        let (x, y) = (self.widened(x, lanes, mask), self.widened(y, lanes, mask));
        if self.ty(condition).lanes == 1 {
            // An unaligned vector in memory is of another type than a value.
            self.intrinsics.use_type(ty);
            let vector = value_type_name(ty);
            return format!("({} ? ({vector}){x} : ({vector}){y})", self.expr(condition));
        }
        if let Some((function, compared)) = masks::comparison(condition, ty, |expr| self.ty(expr)) {
            let name = self.intrinsics.call(Intrinsic::SelectBy(function, compared, ty));
            let compared: Vec<String> =
                condition.children().map(|operand| self.widened(operand, lanes, mask)).collect();
            let all: Vec<String> =
                compared.into_iter().chain([x, y]).map(|text| unparenthesised(&text).to_owned()).collect();
            return format!("{name}({})", all.join(", "));
        }
        let name = self.intrinsics.call(Intrinsic::Select(ty));
        let condition = self.expr(condition);
        format!("{name}({}, {}, {})", unparenthesised(&condition), unparenthesised(&x), unparenthesised(&y))
    }

    fn cast(&mut self, to: DType, x: &Expr) -> String {
        let ty = self.ty(x);
        if let Some(wide) = self.widened_bytes(to, x) {
            return wide;
        }
        let text = self.expr(x);
        if ty.dtype == to {
            return text;
        }
        match (ty.dtype, to) {
            (DType::Bool, _) if ty.lanes > 1 => {
                let vector = ValueType::vector(to, ty.lanes);
                self.intrinsics.use_type(vector);
                let one = self.expr(&Expr::Splat(Box::new(Literal::of(to, 1.0).into()), ty.lanes));
                let mask = ValueType::vector(mask_dtype(to), ty.lanes);
                let text = self.intrinsics.converted(text, self.mask_dtype(x), mask);
                let mask = value_type_name(mask);
                format!("(({})(({mask}){one} & {text}))", value_type_name(vector))
            }
            (_, DType::Bool) => format!("({text} != 0)"),
            (from, _) if from.is_float() && to.is_integer() || is_half(from) || is_half(to) => {
                let name = self.intrinsics.call(Intrinsic::Cast(from, ValueType { dtype: to, ..ty }));
                format!("{name}({})", unparenthesised(&text))
            }
            (from, _) if ty.lanes > 1 => self.intrinsics.converted(text, from, ValueType { dtype: to, ..ty }),
            _ => format!("({}){text}", c_type(to)),
        }
    }

    fn bit_cast(&mut self, to: DType, x: &Expr) -> String {
        let ty = self.ty(x);
        let text = self.expr(x);
        let result = ValueType { dtype: to, ..ty };
        let are_numbers = [ty, result].into_iter().any(|ty| self.intrinsics.half_bits(ty).is_some());
        if c_type(ty.dtype) == c_type(to) && !are_numbers {
            return text;
        }
        self.intrinsics.use_type(result);
        let is_bits = |dtype: DType| !dtype.is_float() || is_half(dtype);
        if ty.lanes > 1 || is_bits(ty.dtype) && is_bits(to) {
            let name = if ty.lanes > 1 { value_type_name(result) } else { c_type(to).to_owned() };
            return format!("(({name}){text})");
        }
        format!("{}({})", self.intrinsics.call(Intrinsic::BitCast(ty.dtype, to)), unparenthesised(&text))
    }
}
