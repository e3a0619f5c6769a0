//! Types: `Tensor[(1, ?), float32]`, `float32`, tuples and functions.

use super::cursor::{Parsed, Parser};
use crate::lexer::Kind;
use crate::syntax::Type;
use mlc_ir::DType;

impl Parser<'_> {
    pub(super) fn ty(&mut self) -> Parsed<Type> {
        self.nested(|parser| match parser.peek().clone() {
            Kind::Word("Tensor") => {
                parser.next();
                parser.tensor()
            }
            Kind::Word("fn") => {
                parser.next();
                parser.tuple_type()?;
                parser.expect("->")?;
                parser.ty()?;
                Ok(Type::Function)
            }
            Kind::Mark("(") => parser.tuple_type().map(Type::Tuple),
            _ => Ok(Type::Tensor(parser.dtype()?, Vec::new())),
        })
    }

    fn tuple_type(&mut self) -> Parsed<Vec<Type>> {
        self.expect("(")?;
        let mut types = Vec::new();
        while !self.at_mark(")") {
            types.push(self.ty()?);
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(types)
    }

    fn dtype(&mut self) -> Parsed<DType> {
        let place = self.place();
        let name = self.word("a type")?;
        DType::parse_long_name(name).ok_or_else(|| place.error(format!("the data type {name} isn't supported")))
    }

    fn tensor(&mut self) -> Parsed<Type> {
        self.expect("[")?;
        self.expect("(")?;
        let mut extents = Vec::new();
        while !self.at_mark(")") {
            extents.push(if self.accept("?") { None } else { Some(self.index("an extent")?) });
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")")?;
        self.expect(",")?;
        let dtype = self.dtype()?;
        self.expect("]")?;
        Ok(Type::Tensor(dtype, extents))
    }
}
