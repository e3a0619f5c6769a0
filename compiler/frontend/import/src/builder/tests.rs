//! What the builder computes at once, leaves out, and how it names nodes.

use super::*;
use mlc_ir::ops::PadMode;

fn builder(shape: &[usize]) -> (Builder, Value) {
    let mut builder = Builder::new("test");
    let x = builder.input("x", TensorType::new(DType::F32, shape));
    builder.begin("layer");
    (builder, x)
}

#[test]
fn moving_a_constant_gives_a_constant() {
    let (mut builder, _) = builder(&[1]);
    let weight = builder.constant("weight", Attribute::from_f32(&[2, 3], &[1., 2., 3., 4., 5., 6.]).unwrap());
    let moved = builder.transpose(weight, &[1, 0]).unwrap();
    let attribute = builder.graph().constant(moved).unwrap();
    assert_eq!(attribute.to_tensor().to_floats(), [1., 4., 2., 5., 3., 6.]);
    let cut = builder.slice_axis(moved, 0, 1, 2, 1).unwrap();
    assert_eq!(builder.graph().constant(cut).unwrap().to_tensor().to_floats(), [2., 5., 3., 6.]);
    assert_eq!(&*builder.graph().node(moved.node).name, "layer.weight.transpose");
}

#[test]
fn what_changes_nothing_is_left_out() {
    let (mut builder, x) = builder(&[2, 3]);
    assert_eq!(builder.transpose(x, &[0, 1]).unwrap(), x);
    assert_eq!(builder.reshape(x, &[2, 3]).unwrap(), x);
    assert_eq!(builder.broadcast(x, &[2, 3]).unwrap(), x);
    assert_eq!(builder.slice_axis(x, 1, 0, 3, 1).unwrap(), x);
    assert_eq!(builder.pad(x, &[(0, 0), (0, 0)], PadMode::Constant, 0.0).unwrap(), x);
    assert_eq!(builder.cast(x, DType::F32).unwrap(), x);
}

#[test]
fn computing_nodes_get_the_plain_name() {
    let (mut builder, x) = builder(&[2, 3]);
    let moved = builder.transpose(x, &[1, 0]).unwrap();
    let y = builder.unary(UnaryFunction::Tanh, moved).unwrap();
    assert_eq!(&*builder.graph().node(moved.node).name, "layer.transpose");
    assert_eq!(&*builder.graph().node(y.node).name, "layer");
    assert!(builder.graph().node(y.node).origins.contains("layer"));
}

#[test]
fn negative_pads_cut() {
    let (mut builder, x) = builder(&[4, 5]);
    let y = builder.pad(x, &[(-1, 2), (0, -2)], PadMode::Constant, 0.0).unwrap();
    assert_eq!(&builder.shape(y)[..], [5, 3]);
    assert!(builder.pad(x, &[(-3, -2), (0, 0)], PadMode::Constant, 0.0).is_err());
}

#[test]
fn rounding_up_pads_behind_unless_the_last_window_would_begin_there() {
    // 7 elements, 2 taps, stride 2: rounding up adds a fourth window that reaches one element further.
    assert_eq!(ceil_mode_pads(7, 2, 2, 1, (0, 0)), Some(1));
    assert_eq!(ceil_mode_pads(8, 2, 2, 1, (0, 0)), Some(0));
    // 5 elements, 1 pad on both sides, 2 taps, stride 3: the last window would begin behind the tensor.
    assert_eq!(ceil_mode_pads(5, 2, 3, 1, (1, 1)), Some(1));
    assert_eq!(ceil_mode_pads(2, 4, 1, 1, (0, 0)), None);
    // A window larger than the tensor has one position as long as a step is longer than what is missing.
    assert_eq!(ceil_mode_pads(1, 2, 2, 1, (0, 0)), Some(1));
    assert_eq!(ceil_mode_pads(2, 3, 5, 2, (1, 0)), Some(2));
    assert_eq!(ceil_mode_pads(1, 3, 2, 1, (0, 0)), None);
    assert_eq!(ceil_mode_pads(0, 2, 2, 1, (0, 1)), None);
}

#[test]
fn promotion_takes_the_wider_type_of_the_higher_kind() {
    assert_eq!(promoted(DType::F32, DType::I64), DType::F32);
    assert_eq!(promoted(DType::Bool, DType::U8), DType::U8);
    assert_eq!(promoted(DType::U8, DType::I8), DType::I16);
    assert_eq!(promoted(DType::U8, DType::I32), DType::I32);
    assert_eq!(promoted(DType::F16, DType::Bf16), DType::F32);
    assert_eq!(promoted(DType::F64, DType::F32), DType::F64);
    for left in DType::ALL {
        for right in DType::ALL {
            assert_eq!(promoted(left, right), promoted(right, left), "{left} and {right}");
        }
    }
}

#[test]
fn pads_behind_shrink_where_they_would_make_another_window_fit() {
    // A window of one tap would begin in the padding behind, which rounding up doesn't allow.
    assert_eq!(ceil_mode_pads(5, 1, 1, 1, (0, 1)), Some(0));
}

#[test]
fn an_axis_is_interpolated_by_rows() {
    let (mut builder, x) = builder(&[2, 3, 4]);
    let unchanged: Rows = (0..3).map(|place| vec![(place, 1.0)]).collect();
    assert_eq!(builder.interpolate_axis(x, 1, &unchanged).unwrap(), x);
    let constant = builder.constant("ramp", Attribute::from_f32(&[1, 3, 2], &[0., 1., 2., 3., 4., 5.]).unwrap());
    builder.compute_constants();
    let mut values = |axis: usize, rows: Rows| {
        let y = builder.interpolate_axis(constant, axis, &rows).unwrap();
        builder.graph().constant(y).unwrap().to_tensor().to_floats()
    };
    assert_eq!(values(1, vec![vec![(2, 1.0)], vec![(0, 1.0)]]), [4., 5., 0., 1.]);
    assert_eq!(values(1, vec![vec![(0, 0.5), (1, 0.5)]]), [1., 2.]);
    assert_eq!(values(2, vec![vec![(0, 0.25), (1, 0.75)]]), [0.75, 2.75, 4.75]);
    assert!(builder.interpolate_axis(x, 2, &vec![vec![(4, 1.0)]]).is_err());
    let marked = builder.fill_marked(constant, &[vec![], vec![true, false, false], vec![false, true]], 9.0).unwrap();
    assert_eq!(builder.graph().constant(marked).unwrap().to_tensor().to_floats(), [9., 9., 2., 9., 4., 9.]);
}
