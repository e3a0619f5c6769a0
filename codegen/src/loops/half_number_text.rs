//! Helpers of vectors of halves that C takes for numbers. They look at bits: C compilers that have sums and products of such vectors may
//! still compare them lane by lane.

use super::ValueType;
use super::helper::Intrinsic;
use super::spelling::value_type_name;
use mlc_ir::DType;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};

/// The definition of a helper, or `None` where that of other vectors does.
pub fn definition(name: &str, intrinsic: Intrinsic, ty: ValueType) -> Option<String> {
    let [t, signed, unsigned] =
        [DType::F16, DType::I16, DType::U16].map(|dtype| value_type_name(ValueType { dtype, ..ty }));
    Some(match intrinsic {
        Intrinsic::Splat(_) => {
            let lanes = vec!["x"; ty.lanes].join(", ");
            format!("static inline {t} {name}(uint16_t x) {{\n  return ({t})({unsigned}){{{lanes}}};\n}}\n")
        }
        // From the smallest denormal number below zero to minus infinity.
        Intrinsic::Unary(UnaryFunction::Relu, _) => format!(
            "static inline {t} {name}({t} x) {{\n  \
             return ({t})(({unsigned})x & ~({unsigned})((({unsigned})x - 0x8001) <= 0x7bff));\n}}\n"
        ),
        Intrinsic::Binary(function @ (BinaryFunction::Maximum | BinaryFunction::Minimum), _) => {
            let order = if function == BinaryFunction::Maximum { ">" } else { "<" };
            // Bits of negative numbers grow with their size.
            let place = |x: &str| format!("({signed}){x} ^ ((({signed}){x} >> 15) & 0x7fff)");
            let nan = |x: &str| format!("((({signed}){x} & 0x7fff) > 0x7c00)");
            format!(
                "static inline {t} {name}({t} x, {t} y) {{\n  \
                 const {signed} left = {}, right = {};\n  \
                 const {signed} first = ((left {order} right) & ~{}) | {};\n  \
                 return ({t})((first & ({signed})x) | (~first & ({signed})y));\n}}\n",
                place("x"),
                place("y"),
                nan("y"),
                nan("x"),
            )
        }
        _ => return None,
    })
}
