use super::*;
use crate::loops::{Holds, Intrinsics, LoopBuilder, Overlaps, Parameter, print};
use crate::target::Target;

const LANES: usize = 4;

fn vector(pointer: Var, index: Index) -> Expr {
    Expr::Load { pointer, index, ty: ValueType::vector(DType::F32, LANES) }
}

/// The text without vectors of what `body` writes over an operand and a result.
fn text(body: impl FnOnce(&mut LoopBuilder, Var, Var)) -> String {
    let mut b = LoopBuilder::new();
    let [x, y] =
        [("x", Holds::Operand), ("y", Holds::Result)].map(|(name, holds)| b.parameter(name, DType::F32, holds));
    body(&mut b, x, y);
    let (vars, body) = b.finish();
    let parameter = |var: Var| Parameter { var, restrict: true, overlaps: Overlaps::Never };
    let parameters = [x, y].map(parameter).to_vec();
    let function = Function { name: "f".into(), comment: Vec::new(), parameters, vars, body };
    assert!(has_vectors(&function));
    let plain = without_vectors(&function);
    assert!(!has_vectors(&plain));
    print::function(&plain, false, &mut Intrinsics::new(&Target::generic()))
}

#[test]
fn a_tile_is_a_loop_over_lanes() {
    let text = text(|b, x, y| {
        let sum = b.mutable("sum", Expr::zero(DType::F32, LANES));
        b.assign(sum, Expr::Var(sum).plus(vector(x, Index::from(8_i64))));
        b.store(y, Index::default(), Expr::Var(sum));
    });
    let body = "  for (int32_t lane = 0; lane < 4; ++lane) {
    const float *x_lane = x + lane;
    float *y_lane = y + lane;
    float sum = 0.0f;
    sum += x_lane[8];
    y_lane[0] = sum;
  }
}
";
    assert!(text.ends_with(body), "{text}");
}

#[test]
fn lanes_that_are_not_stored_are_not_computed() {
    let text = text(|b, x, y| {
        let value = b.define("v", vector(x, Index::default()));
        b.push(Stmt::Store { pointer: y, index: Index::default(), stride: 1, valid: 3, value });
    });
    assert!(text.contains("lane < 3"), "{text}");
}

#[test]
fn lanes_that_are_added_up_are_written_one_by_one() {
    let text = text(|b, x, y| {
        let value = b.define("v", vector(x, Index::default()));
        b.store(y, Index::default(), Expr::Fold(BinaryFunction::Add, Box::new(value)));
    });
    assert!(!text.contains("for ("), "{text}");
    assert!(text.contains("v_5 = x[2];") && text.contains("y[0] = (v_3 + v_5) + (v_4 + v_6);"), "{text}");
}

#[test]
fn what_another_lane_stores_is_read_before() {
    let shifted = text(|b, _, y| {
        let value = b.define("v", vector(y, Index::default()));
        b.store(y, Index::from(1_i64), value);
    });
    assert!(!shifted.contains("for ("), "{shifted}");
    let first = shifted.find("y[1] =");
    assert!(shifted.find("= y[3]") < first && first.is_some(), "{shifted}");
    let apart = text(|b, _, y| {
        let value = b.define("v", vector(y, Index::default()));
        b.store(y, Index::from(LANES), value);
    });
    assert!(apart.contains("lane < 4"), "{apart}");
}
