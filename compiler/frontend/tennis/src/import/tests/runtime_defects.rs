//! What TenniS's own runtime gets wrong, and how parameters are read whatever their form.

use super::*;
use Operand::{Fed, Known};

#[test]
fn the_largest_of_negative_numbers_is_found() {
    check("argmax", &[("dim", int(0))], &[Fed(floats(&[3], &[-3.0, -1.0, -2.0]))], &ints(&[], &[1.0]));
}

#[test]
fn operands_of_a_division_keep_their_order() {
    let operands = [Known(ints(&[], &[7.0])), Fed(ints(&[2], &[4.0, 10.0]))];
    check("mod", &[], &operands, &ints(&[2], &[3.0, 7.0]));
}

#[test]
fn negative_axes_of_slices_count_from_the_end() {
    let operands =
        [Fed(counted(&[2, 3])), Known(ints(&[1], &[-1.0])), Known(ints(&[1], &[9.0])), Known(ints(&[1], &[-1.0]))];
    check("slice_v3", &[], &operands, &floats(&[2, 1], &[2.0, 5.0]));
}

#[test]
fn axes_of_one_element_are_resized() {
    let operands = [Fed(floats(&[1, 1], &[3.0])), Known(ints(&[2], &[2.0, 2.0]))];
    check("_resize2d", &[], &operands, &floats(&[2, 2], &[3.0; 4]));
}

#[test]
fn quotients_by_zero_are_the_ends_of_the_data_type() {
    let operands = [Fed(ints(&[4], &[5.0, -5.0, 0.0, 7.0])), Fed(ints(&[4], &[0.0, 0.0, 0.0, -2.0]))];
    let (largest, smallest) = (f64::from(i32::MAX), f64::from(i32::MIN));
    check("div", &[], &operands, &ints(&[4], &[largest, smallest, smallest, -3.0]));
    let bytes = |values: &[f64]| Fed(tensor(DType::U8, &[2], values));
    check("div", &[], &[bytes(&[9.0, 0.0]), bytes(&[0.0, 0.0])], &tensor(DType::U8, &[2], &[255.0, 0.0]));
}

#[test]
fn mixed_operands_are_promoted() {
    let operands = [Fed(tensor(DType::U8, &[2], &[200.0, 100.0])), Fed(tensor(DType::I8, &[1], &[1.0]))];
    check("add", &[], &operands, &tensor(DType::I8, &[2], &[-55.0, 101.0]));
    let operands = [Fed(tensor(DType::I64, &[1], &[3.0])), Fed(floats(&[1], &[0.5]))];
    check("mul", &[], &operands, &tensor(DType::F64, &[1], &[1.5]));
}

#[test]
fn parameters_are_read_by_value() {
    let x = || [Fed(counted(&[2, 3]))];
    let double = field(&tensor(DType::F64, &[1, 1], &[1.9]));
    let flag = field(&tensor(DType::F32, &[1], &[0.0]));
    check("max", &[("dim", double), ("keep_dims", flag)], &x(), &floats(&[2], &[2.0, 5.0]));
    let text = [("dim", Field::of_text("-2")), ("keep_dims", Field::of_text("TRUE"))];
    check("max", &text, &x(), &floats(&[1, 3], &[3.0, 4.0, 5.0]));
    let bytes = field(&tensor(DType::U8, &[1], &[1.0]));
    check("flatten2d", &[("dim", bytes)], &x(), &counted(&[2, 3]));
}

#[test]
fn the_exporters_spelling_of_a_parameter_is_read() {
    for key in ["shift", "shfit"] {
        let operands = [Fed(counted(&[4])), Known(ints(&[1], &[2.0]))];
        check("crop_nd", &[(key, list(&[1]))], &operands, &floats(&[2], &[1.0, 2.0]));
    }
    let mut parameters = vec![("dialations", list(&[1, 1, 1, 1])), ("stride", list(&[1, 1, 1, 1]))];
    parameters.extend([("format", Field::of_text("NCHW")), ("padding", Field::of_ints(&[4, 2], &[0; 8]))]);
    let operands = [Fed(counted(&[1, 1, 1, 2])), Known(floats(&[1, 1, 1, 2], &[1.0, 10.0]))];
    check("conv2d", &parameters, &operands, &floats(&[1, 1, 1, 1], &[10.0]));
}

#[test]
fn axes_are_added_on_both_sides() {
    let expanded = |parameters: Parameters<'_>| {
        let operands = [Fed(counted(&[2, 3])), Known(ints(&[], &[4.0]))];
        run("_expand", parameters, &operands)[0].shape().to_vec()
    };
    assert_eq!(expanded(&[]), [1, 1, 2, 3]);
    assert_eq!(expanded(&[("front", int(1))]), [1, 2, 3, 1]);
    assert_eq!(expanded(&[("inverse", Field::of_flag(true))]), [2, 3, 1, 1]);
    assert_eq!(expanded(&[("inverse", Field::of_flag(true)), ("end", int(1))]), [1, 2, 3, 1]);
}

#[test]
fn pools_of_channels_last_are_pools_of_channels_first_turned() {
    let parameters = [
        ("format", Field::of_text("NHWC")),
        ("type", int(1)),
        ("padding", Field::of_ints(&[4, 2], &[0; 8])),
        ("ksize", list(&[1, 2, 2, 1])),
        ("stride", list(&[1, 2, 2, 1])),
    ];
    let x = floats(&[1, 2, 3, 1], &[1.0, 3.0, 5.0, 5.0, 7.0, 9.0]);
    check("pooling2d", &parameters, &[Fed(x)], &floats(&[1, 1, 2, 1], &[4.0, 7.0]));
}
