//! Choices between vectors by comparisons whose results are masks of a bit for each lane: in AVX-512, an instruction compares, and a second
//! one chooses. Compilers make four instructions of the same in vectors of lanes that are all ones or zeros.

use super::ValueType;
use super::expression::Expr;
use super::lane_types::mask_name;
use super::spelling::{c_operator, value_type_name};
use mlc_ir::DType;
use mlc_ir::scalar::BinaryFunction;

/// Bytes of the vectors whose comparisons give masks.
const BYTES: usize = 64;

/// The function and the type of a condition that compares vectors of words, where what is chosen is vectors of words, too.
pub fn comparison(
    condition: &Expr,
    chosen: ValueType,
    ty: impl Fn(&Expr) -> ValueType,
) -> Option<(BinaryFunction, ValueType)> {
    let Expr::Binary(function, x, y) = condition else { return None };
    let [x, y] = [x, y].map(|operand| ty(operand));
    let compared = ValueType { lanes: x.lanes.max(y.lanes), ..x };
    let are_words =
        [compared, chosen].iter().all(|ty| matches!(ty.dtype, DType::F32 | DType::I32) && 4 * ty.lanes == BYTES);
    (function.is_comparison() && x.dtype == y.dtype && are_words).then_some((*function, compared))
}

/// The name of the function that chooses by a comparison.
pub fn name(function: BinaryFunction, compared: ValueType, chosen: ValueType) -> String {
    format!("mlc_select_{}_{}_{}", function.name(), value_type_name(compared), value_type_name(chosen))
}

/// That function; `choose` is one that chooses by lanes.
pub fn selection(name: &str, choose: &str, function: BinaryFunction, compared: ValueType, chosen: ValueType) -> String {
    let (t, c, operator) = (value_type_name(chosen), value_type_name(compared), c_operator(function).unwrap_or("=="));
    let mask = match compared.dtype {
        DType::F32 => format!("_mm512_cmp_ps_mask((__m512)left, (__m512)right, {})", predicate(function)),
        _ => format!("_mm512_{}_epi32_mask((__m512i)left, (__m512i)right)", integer_comparison(function)),
    };
    let blend = match chosen.dtype {
        DType::F32 => format!("_mm512_mask_blend_ps({mask}, (__m512)y, (__m512)x)"),
        _ => format!("_mm512_mask_blend_epi32({mask}, (__m512i)y, (__m512i)x)"),
    };
    format!(
        "static inline {t} {name}({c} left, {c} right, {t} x, {t} y) {{\n\
         #if defined(__AVX512F__)\n  \
           return ({t}){blend};\n\
         #else\n  \
           return {choose}(({})(left {operator} right), x, y);\n\
         #endif\n}}\n",
        mask_name(chosen)
    )
}

/// What Intel's intrinsics call a comparison of integers.
fn integer_comparison(function: BinaryFunction) -> &'static str {
    use BinaryFunction as B;
    match function {
        B::NotEqual => "cmpneq",
        B::Less => "cmplt",
        B::LessEqual => "cmple",
        B::Greater => "cmpgt",
        B::GreaterEqual => "cmpge",
        _ => "cmpeq",
    }
}

/// What they call one of singles, as C compares them: with a number that is none, only `!=` holds.
fn predicate(function: BinaryFunction) -> &'static str {
    use BinaryFunction as B;
    match function {
        B::NotEqual => "_CMP_NEQ_UQ",
        B::Less => "_CMP_LT_OS",
        B::LessEqual => "_CMP_LE_OS",
        B::Greater => "_CMP_GT_OS",
        B::GreaterEqual => "_CMP_GE_OS",
        _ => "_CMP_EQ_OQ",
    }
}
