//! Runs texts of the C subset.

use super::arithmetic::{binary, pointers, unary};
use super::format::format;
use super::functions::Function;
use super::memory::Memory;
use super::names::Slot;
use super::operators::{Binary, Unary};
use super::syntax::{Declaration, Expr, ExprKind, Initial, Loop, Member, Statement};
use super::token::Fault;
use super::types::{IntType, Record, Type};
use super::value::{Pointer, Target, Value};

/// Why a text stopped before its end.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// It can't be evaluated.
    Fault(Fault),
    /// A condition isn't met: the message.
    Check(String),
}

/// Why a function of the host failed.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// It was called wrongly.
    Fault(String),
    /// A condition isn't met: the whole message.
    Check(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Fault(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Failure {
        Failure::Fault(message.into())
    }
}

/// What a text runs in: structures, and functions that know of them.
pub trait Host {
    /// The value of a structure's member.
    ///
    /// # Errors
    /// When the structure hasn't the member.
    fn member(&self, record: Record, number: usize, member: Member) -> Result<Value, String>;

    /// The result of a function.
    ///
    /// # Errors
    /// When it is called wrongly, or a check fails.
    fn call(&mut self, memory: &mut Memory, function: Function, arguments: &[Value]) -> Result<Value, Failure>;

    /// The message of a condition that isn't met.
    fn unsatisfied(&self, message: &str) -> String;
}

/// How a statement ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Flow {
    /// The next one follows.
    Next,
    /// The loop ends.
    Break,
    /// The next round follows.
    Continue,
    /// The text ends with a value.
    Return(Value),
}

/// Variables, memory and host of running texts.
#[derive(Debug, Clone)]
pub struct Machine<H> {
    /// The objects of the variables that have one already.
    objects: Vec<Option<usize>>,
    slots: Vec<Slot>,
    strings: Vec<usize>,
    /// The memory.
    pub memory: Memory,
    /// The host.
    pub host: H,
}

impl<H: Host> Machine<H> {
    /// A machine for a program's variables and strings.
    ///
    /// # Errors
    /// When they take too much memory.
    pub fn new(slots: &[Slot], strings: &[Vec<u8>], mut memory: Memory, host: H) -> Result<Machine<H>, String> {
        let terminated = |text: &Vec<u8>| memory.constant(&[text.as_slice(), &[0]].concat());
        let strings = strings.iter().map(terminated).collect::<Result<_, _>>()?;
        Ok(Machine { objects: vec![None; slots.len()], slots: slots.to_vec(), strings, memory, host })
    }

    /// Gives a variable its value.
    ///
    /// # Errors
    /// When it isn't one of its type.
    pub fn assign(&mut self, slot: usize, value: Value) -> Result<(), String> {
        let place = self.variable(slot)?;
        self.memory.store(place, value).map(|_| ())
    }

    /// The value of a variable.
    ///
    /// # Errors
    /// When it has none.
    pub fn value(&mut self, slot: usize) -> Result<Value, String> {
        let place = self.variable(slot)?;
        self.memory.load(place)
    }

    /// Where a variable is.
    fn variable(&mut self, slot: usize) -> Result<Pointer, String> {
        let ty = self.slots[slot].ty;
        let object = match self.objects[slot] {
            Some(object) => object,
            None => *self.objects[slot].insert(self.memory.variable(ty, 1)?),
        };
        Ok(Pointer::object(object, ty))
    }

    /// Runs a statement.
    ///
    /// # Errors
    /// Why it stopped.
    pub fn run(&mut self, statement: &Statement) -> Result<Flow, Stop> {
        match statement {
            Statement::Expression(value) => {
                self.eval(value)?;
            }
            Statement::Declare(declarations) => {
                for declaration in declarations {
                    self.declare(declaration)?;
                }
            }
            Statement::If(arms, rest) => {
                for (condition, body) in arms {
                    if self.truth(condition)? {
                        return self.run(body);
                    }
                }
                if let Some(rest) = rest {
                    return self.run(rest);
                }
            }
            Statement::Loop(repetition) => return self.repeat(repetition),
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
            Statement::Return(value) => {
                let value = value.as_ref().map_or(Ok(Value::Void), |value| self.eval(value))?;
                return Ok(Flow::Return(value));
            }
            Statement::Block(statements) => {
                for statement in statements {
                    let flow = self.run(statement)?;
                    if flow != Flow::Next {
                        return Ok(flow);
                    }
                }
            }
        }
        Ok(Flow::Next)
    }

    fn repeat(&mut self, repetition: &Loop) -> Result<Flow, Stop> {
        self.run(&repetition.first)?;
        let mut once = repetition.once;
        loop {
            self.memory.step(1).map_err(|message| Stop::Fault(Fault::new(repetition.at, message)))?;
            let asks = !std::mem::take(&mut once);
            if asks
                && let Some(condition) = &repetition.condition
                && !self.truth(condition)?
            {
                return Ok(Flow::Next);
            }
            match self.run(&repetition.body)? {
                Flow::Break => return Ok(Flow::Next),
                Flow::Return(value) => return Ok(Flow::Return(value)),
                Flow::Next | Flow::Continue => {}
            }
            if let Some(next) = &repetition.next {
                self.eval(next)?;
            }
        }
    }

    fn declare(&mut self, declaration: &Declaration) -> Result<(), Stop> {
        let Declaration { slot, extent, initial, at } = declaration;
        let Slot { ty, array } = self.slots[*slot];
        let fail = |message: String| Stop::Fault(Fault::new(*at, message));
        let mut count = match extent {
            None => None,
            Some(extent) => match self.eval(extent)? {
                Value::Int(count @ 1.., _) => Some(usize::try_from(count).unwrap_or(usize::MAX)),
                _ => return Err(fail("the extent of an array is a positive integer".into())),
            },
        };
        let elements: &[Expr] = match initial {
            Initial::Elements(elements) => elements,
            _ => &[],
        };
        let text = match initial {
            Initial::Value(value) if array => {
                let Value::Pointer(text) = self.eval(value)? else { return Err(fail("a string is expected".into())) };
                let mut bytes = self.memory.text(text).map_err(fail)?;
                bytes.push(0);
                Some(bytes)
            }
            _ => None,
        };
        if array && count.is_none() {
            count = Some(text.as_ref().map_or(elements.len(), Vec::len));
        }
        let count = count.unwrap_or(1);
        self.clear(*slot, count).map_err(fail)?;
        match (initial, text) {
            (Initial::None, _) => Ok(()),
            (Initial::Value(_), Some(bytes)) => {
                let place = self.variable(*slot).map_err(fail)?;
                self.zero(place, count).map_err(fail)?;
                self.memory.bytes_mut(place, bytes.len()).map_err(fail)?.copy_from_slice(&bytes);
                Ok(())
            }
            (Initial::Value(value), None) => {
                let value = self.eval(value)?;
                self.assign(*slot, value).map_err(fail)
            }
            (Initial::Elements(elements), _) => {
                let place = self.variable(*slot).map_err(fail)?;
                self.fill(place, count, elements)
            }
        }
        .inspect(|()| debug_assert!(ty.size().is_some()))
    }

    /// Makes a variable anew, without values.
    fn clear(&mut self, slot: usize, count: usize) -> Result<(), String> {
        let ty = self.slots[slot].ty;
        match self.objects[slot] {
            Some(object) => self.memory.renew(object, ty, count),
            None => {
                self.objects[slot] = Some(self.memory.variable(ty, count)?);
                Ok(())
            }
        }
    }

    fn zero(&mut self, place: Pointer, count: usize) -> Result<(), String> {
        if place.ty.stars > 0 {
            return Ok(());
        }
        let bytes = count.saturating_mul(place.ty.size().unwrap_or(1));
        self.memory.bytes_mut(place, bytes)?.fill(0);
        Ok(())
    }

    /// Stores the first elements of an array; the others become zero.
    fn fill(&mut self, place: Pointer, count: usize, elements: &[Expr]) -> Result<(), Stop> {
        if let Some(first) = elements.first() {
            self.zero(place, count).map_err(|message| fault(first, message))?;
        }
        for (number, element) in elements.iter().enumerate() {
            let value = self.eval(element)?;
            let stored = self.memory.moved(place, number as i128).and_then(|place| self.memory.store(place, value));
            stored.map_err(|message| fault(element, message))?;
        }
        Ok(())
    }

    fn truth(&mut self, condition: &Expr) -> Result<bool, Stop> {
        let value = self.eval(condition)?;
        value.is_true().ok_or_else(|| fault(condition, "a condition needs a value"))
    }

    /// Computes an expression.
    ///
    /// # Errors
    /// Why it stopped.
    pub fn eval(&mut self, expr: &Expr) -> Result<Value, Stop> {
        self.memory.step(1).map_err(|message| fault(expr, message))?;
        let value = match &expr.kind {
            ExprKind::Int(number, ty) => Value::Int(ty.wrapped((*number).into()), *ty),
            ExprKind::Double(number) => Value::Double(*number),
            ExprKind::Single(number) => Value::Single(*number),
            ExprKind::Null => Value::Pointer(Pointer::NULL),
            ExprKind::Text(number) => Value::Pointer(Pointer::object(self.strings[*number], Type::CHAR)),
            ExprKind::Slot(slot) if self.slots[*slot].array => Value::Pointer(self.place(expr)?),
            ExprKind::Slot(_) | ExprKind::Index(..) | ExprKind::Unary(Unary::Target, _) => {
                let place = self.place(expr)?;
                self.memory.load(place).map_err(|message| fault(expr, message))?
            }
            ExprKind::Member(operand, member, arrow) => return self.member(expr, operand, *member, *arrow),
            ExprKind::Unary(Unary::Address, operand) => Value::Pointer(self.place(operand)?),
            ExprKind::Unary(operator, operand) => {
                let value = self.eval(operand)?;
                unary(*operator, value).map_err(|message| fault(expr, message))?
            }
            ExprKind::Chain(first, rest) => {
                let mut value = self.eval(first)?;
                for (operator, operand) in rest {
                    let right = self.eval(operand)?;
                    value = self.binary(*operator, value, right).map_err(|message| fault(operand, message))?;
                }
                value
            }
            ExprKind::All(operands) => {
                for operand in operands {
                    if !self.truth(operand)? {
                        return Ok(Value::truth(false));
                    }
                }
                Value::truth(true)
            }
            ExprKind::Any(operands) => {
                for operand in operands {
                    if self.truth(operand)? {
                        return Ok(Value::truth(true));
                    }
                }
                Value::truth(false)
            }
            ExprKind::Choose(parts) => {
                let [condition, yes, no] = &**parts;
                return if self.truth(condition)? { self.eval(yes) } else { self.eval(no) };
            }
            ExprKind::Assign(target, operator, value) => self.assignment(expr, target, *operator, value)?,
            ExprKind::Step(target, by, after) => {
                let place = self.place(target)?;
                let old = self.memory.load(place).map_err(|message| fault(expr, message))?;
                let new = self.binary(Binary::Add, old, Value::int(*by)).map_err(|message| fault(expr, message))?;
                let new = self.memory.store(place, new).map_err(|message| fault(expr, message))?;
                if *after { old } else { new }
            }
            ExprKind::Cast(Type::VOID, operand) => {
                self.eval(operand)?;
                Value::Void
            }
            ExprKind::Cast(ty, operand) => {
                self.eval(operand)?.converted(*ty).map_err(|message| fault(expr, message))?
            }
            ExprKind::Compound(slot, elements) => {
                let count = elements.len();
                self.clear(*slot, count).map_err(|message| fault(expr, message))?;
                let place = self.variable(*slot).map_err(|message| fault(expr, message))?;
                self.fill(place, count, elements)?;
                Value::Pointer(place)
            }
            ExprKind::Call(function, arguments) => self.call(expr, *function, arguments)?,
            ExprKind::SizeOf(operand) => self.size_of(operand)?,
            ExprKind::Sequence(all) => {
                let mut last = Value::Void;
                for part in all {
                    last = self.eval(part)?;
                }
                last
            }
        };
        Ok(value)
    }

    fn assignment(
        &mut self,
        expr: &Expr,
        target: &Expr,
        operator: Option<Binary>,
        value: &Expr,
    ) -> Result<Value, Stop> {
        let mut value = self.eval(value)?;
        let place = self.place(target)?;
        if let Some(operator) = operator {
            let old = self.memory.load(place).map_err(|message| fault(target, message))?;
            value = self.binary(operator, old, value).map_err(|message| fault(expr, message))?;
        }
        self.memory.store(place, value).map_err(|message| fault(expr, message))
    }

    /// Where a value is kept.
    fn place(&mut self, expr: &Expr) -> Result<Pointer, Stop> {
        let fail = |message| fault(expr, message);
        match &expr.kind {
            ExprKind::Slot(slot) => self.variable(*slot).map_err(fail),
            ExprKind::Index(array, index) => {
                let (array, index) = (self.eval(array)?, self.eval(index)?);
                let (Value::Pointer(array), Value::Int(index, _)) = (array, index) else {
                    return Err(fault(expr, "elements are those of a pointer, and have integer numbers"));
                };
                self.memory.moved(array, index).map_err(fail)
            }
            ExprKind::Unary(Unary::Target, operand) => match self.eval(operand)? {
                Value::Pointer(pointer) => Ok(pointer),
                value => Err(fault(expr, format!("a value of type `{}` isn't a pointer", value.describe()))),
            },
            ExprKind::Member(..) => {
                Err(fault(expr, "members of structures can only be read while shapes are inferred"))
            }
            _ => Err(fault(expr, "this isn't a variable or an element")),
        }
    }

    fn member(&mut self, expr: &Expr, operand: &Expr, member: Member, arrow: bool) -> Result<Value, Stop> {
        let operand = match &operand.kind {
            // `(*src).ndim` is `src->ndim`.
            ExprKind::Unary(Unary::Target, pointer) if !arrow => pointer,
            _ if !arrow => {
                return Err(fault(expr, "only pointers to structures are known here: `->` reaches their members"));
            }
            _ => operand,
        };
        match self.eval(operand)? {
            Value::Pointer(Pointer { target: Target::Record(record, number), .. }) => {
                self.host.member(record, number, member).map_err(|message| fault(expr, message))
            }
            Value::Pointer(Pointer { target: Target::Null, .. }) => Err(fault(expr, "it follows the null pointer")),
            value => Err(fault(expr, format!("a value of type `{}` has no members", value.describe()))),
        }
    }

    /// An operator on numbers or pointers.
    fn binary(&mut self, operator: Binary, left: Value, right: Value) -> Result<Value, String> {
        match (left, right) {
            (Value::Pointer(pointer), Value::Int(by, _)) if operator == Binary::Add => {
                self.memory.moved(pointer, by).map(Value::Pointer)
            }
            (Value::Int(by, _), Value::Pointer(pointer)) if operator == Binary::Add => {
                self.memory.moved(pointer, by).map(Value::Pointer)
            }
            (Value::Pointer(pointer), Value::Int(by, _)) if operator == Binary::Subtract => {
                self.memory.moved(pointer, -by).map(Value::Pointer)
            }
            (Value::Pointer(a), Value::Pointer(b)) => pointers(operator, a, b),
            (Value::Pointer(a), Value::Int(0, _)) => pointers(operator, a, Pointer::NULL),
            (Value::Int(0, _), Value::Pointer(b)) => pointers(operator, Pointer::NULL, b),
            _ => binary(operator, left, right),
        }
    }

    fn call(&mut self, expr: &Expr, function: Function, arguments: &[Expr]) -> Result<Value, Stop> {
        if function == Function::SatisfyMessage {
            // Only a message that is needed is made.
            if self.truth(&arguments[0])? {
                return Ok(Value::Void);
            }
            let message = self.message(expr, &arguments[1..])?;
            return Err(Stop::Check(self.host.unsatisfied(&message)));
        }
        if matches!(function, Function::Warn | Function::Error | Function::InternalError) {
            let message = self.message(expr, arguments)?;
            return match function {
                Function::Warn => Ok(Value::Void),
                _ => Err(Stop::Check(message)),
            };
        }
        let values = arguments.iter().map(|argument| self.eval(argument)).collect::<Result<Vec<_>, _>>()?;
        self.host.call(&mut self.memory, function, &values).map_err(|failure| match failure {
            Failure::Fault(message) => fault(expr, message),
            Failure::Check(message) => Stop::Check(message),
        })
    }

    fn message(&mut self, expr: &Expr, arguments: &[Expr]) -> Result<String, Stop> {
        let mut values = arguments.iter().map(|argument| self.eval(argument)).collect::<Result<Vec<_>, _>>()?;
        let Value::Pointer(text) = values.remove(0) else { return Err(fault(expr, "the message must be a string")) };
        let text = self.memory.text(text).map_err(|message| fault(expr, message))?;
        format(&mut self.memory, &text, &values).map_err(|message| fault(expr, message))
    }

    fn size_of(&mut self, operand: &Expr) -> Result<Value, Stop> {
        let bytes = match &operand.kind {
            ExprKind::Slot(slot) => match self.objects[*slot] {
                Some(object) if self.slots[*slot].array => Some(self.memory.size(object)),
                _ => self.slots[*slot].ty.size(),
            },
            ExprKind::Index(..) | ExprKind::Unary(Unary::Target, _) => self.place(operand)?.ty.size(),
            _ => match self.eval(operand)? {
                Value::Int(_, ty) => Some(ty.bytes.into()),
                Value::Single(_) => Some(4),
                Value::Double(_) | Value::Pointer(_) => Some(8),
                Value::Void => None,
            },
        };
        let bytes = bytes.ok_or_else(|| fault(operand, "the size of this isn't known"))?;
        Ok(Value::Int(bytes as i128, IntType::SIZE))
    }
}

fn fault(expr: &Expr, message: impl Into<String>) -> Stop {
    Stop::Fault(Fault::new(expr.at, message))
}
