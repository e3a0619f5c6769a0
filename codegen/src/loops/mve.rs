//! Arm's vector extension for microcontrollers (MVE, "Helium"): where its intrinsics stand in place of operators on GNU vectors.
//! Vectors are four singles.

use super::ValueType;
use super::helper::Intrinsic;
use mlc_ir::DType;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};

/// The line that declares the intrinsics.
pub const INCLUDES: &str = "#include <arm_mve.h>\n";

const LANES: usize = 4;

/// The intrinsic that adds a product of a vector and a factor of so many lanes.
pub fn multiply_add(lanes: usize, factor_lanes: usize) -> Option<&'static str> {
    match (lanes, factor_lanes) {
        (LANES, 1) => Some("vfmaq_n_f32"),
        (LANES, LANES) => Some("vfmaq_f32"),
        _ => None,
    }
}

/// The first `valid` lanes from an address on; the others are 0.
pub fn load(address: &str, valid: usize) -> String {
    format!("vldrwq_z_f32({address}, vctp32q({valid}))")
}

/// The statement that stores the first `valid` lanes of a variable. gcc 12 takes it for a store of all lanes, and leaves out earlier
/// ones that it believes to be overwritten, unless something between them may read memory.
pub fn store(address: &str, value: &str, valid: usize) -> String {
    format!("vstrwq_p_f32({address}, {value}, vctp32q({valid})); __asm__ volatile(\"\" ::: \"memory\");")
}

/// The definition of a helper, or `None` where that of GNU vectors does.
pub fn definition(name: &str, intrinsic: Intrinsic) -> Option<String> {
    const VECTOR: ValueType = ValueType { dtype: DType::F32, lanes: LANES };
    let (result, parameters, body) = match intrinsic {
        Intrinsic::Unary(UnaryFunction::Relu, VECTOR) => {
            ("f32x4", "f32x4 x", "vdupq_m_n_f32(x, 0.0f, vcmpltq_n_f32(x, 0.0f))".to_owned())
        }
        Intrinsic::Binary(BinaryFunction::Maximum, VECTOR) => ("f32x4", "f32x4 x, f32x4 y", chosen("vcmpgtq_f32")),
        Intrinsic::Binary(BinaryFunction::Minimum, VECTOR) => ("f32x4", "f32x4 x, f32x4 y", chosen("vcmpltq_f32")),
        Intrinsic::Splat(VECTOR) => ("f32x4", "float x", "vdupq_n_f32(x)".to_owned()),
        Intrinsic::Fold(BinaryFunction::Add, VECTOR) => ("float", "f32x4 x", folded("+")),
        Intrinsic::Fold(BinaryFunction::Multiply, VECTOR) => ("float", "f32x4 x", folded("*")),
        Intrinsic::Fold(BinaryFunction::Maximum, VECTOR) => return Some(extreme(name, ">")),
        Intrinsic::Fold(BinaryFunction::Minimum, VECTOR) => return Some(extreme(name, "<")),
        _ => return None,
    };
    Some(format!("static inline {result} {name}({parameters}) {{\n  return {body};\n}}\n"))
}

/// `x` where it compares so with `y` or is not a number, else `y`.
fn chosen(comparison: &str) -> String {
    format!("vpselq_f32(x, y, (mve_pred16_t)({comparison}(x, y) | vcmpneq_f32(x, x)))")
}

fn folded(operator: &str) -> String {
    format!("(x[0] {operator} x[2]) {operator} (x[1] {operator} x[3])")
}

/// The extreme lane; one that is not a number wins.
fn extreme(name: &str, order: &str) -> String {
    format!(
        "static inline float {name}(f32x4 x) {{\n  float y = x[0];\n  \
         for (int lane = 1; lane < {LANES}; ++lane) {{\n    \
         y = y {order} x[lane] || y != y ? y : x[lane];\n  }}\n  return y;\n}}\n"
    )
}
