//! Operators that no case of TenniS's own runtime has.

use super::*;
use crate::import::winograd;
use Operand::{Fed, Known};

/// Operators and their tests.
pub(super) const TESTS: &[(&str, fn())] = &[
    ("LSTM", bidirectional_lstm),
    ("_copy", copies),
    ("_dragon_conv2d_padding", dragon_convolution_padding),
    ("_enter", copies),
    ("_nhwc_scale_resize2d", scaled_rows_and_columns),
    ("affine_sample2d", sampling_without_outer_value),
    ("affine_sample2d", sampling_by_a_matrix_of_data),
    ("batch_to_space4d", blocks),
    ("conv2d_winograd", winograd),
    ("conv2d_winograd_v2", winograd),
    ("dcn_v2_forward", deformable_convolution),
    ("divided", divided),
    ("force_gray", gray),
    ("gather_elements", gathered_elements),
    ("identity", copies),
    ("minimum", minimum),
    ("mod", modulo),
    ("prewhiten", prewhiten),
    ("prior_box", prior_boxes),
    ("quantize", quantize),
    ("range", range),
    ("reduce_prod", product),
    ("roi_align", regions),
    ("rsqrt", reciprocal_root),
    ("sample2d_v2", scaled_image),
    ("shape_index_patch", patches),
    ("slice_v2", slice_by_operands),
    ("softplus", softplus),
    ("tile_v2", tile_by_operand),
    ("transpose_v2", transpose_by_operand),
    ("winograd_transform_kernel", winograd),
    ("yolo", yolo),
];

fn copies() {
    for kind in ["_copy", "_enter", "identity"] {
        check(kind, &[], &[Fed(counted(&[2, 3]))], &counted(&[2, 3]));
    }
}

fn reciprocal_root() {
    check("rsqrt", &[], &[Fed(floats(&[3], &[1.0, 4.0, 0.25]))], &floats(&[3], &[1.0, 0.5, 2.0]));
}

fn softplus() {
    let expected = [std::f64::consts::LN_2, 1.313_261_69, 0.126_928];
    for dtype in [DType::F32, DType::F64] {
        check("softplus", &[], &[Fed(tensor(dtype, &[3], &[0.0, 1.0, -2.0]))], &tensor(dtype, &[3], &expected));
    }
}

fn minimum() {
    let (x, y) = (floats(&[3], &[1.0, -2.0, 5.0]), ints(&[1], &[0.0]));
    check("minimum", &[], &[Fed(x), Fed(y)], &floats(&[3], &[0.0, -2.0, 0.0]));
}

fn modulo() {
    let (x, y) = (ints(&[4], &[7.0, -7.0, 7.0, -7.0]), ints(&[4], &[3.0, 3.0, -3.0, -3.0]));
    check("mod", &[], &[Fed(x), Fed(y)], &ints(&[4], &[1.0, -1.0, 1.0, -1.0]));
}

fn product() {
    let parameters = [("dims", list(&[1])), ("keep_dims", Field::of_flag(false))];
    check("reduce_prod", &parameters, &[Fed(floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]))], &floats(&[2], &[2.0, 12.0]));
}

fn range() {
    let number = |value: f64| Known(floats(&[], &[value]));
    check("range", &[], &[number(1.0), number(2.0), number(0.25)], &floats(&[4], &[1.0, 1.25, 1.5, 1.75]));
    let number = |value: f64| Known(ints(&[], &[value]));
    check("range", &[], &[number(5.0), number(0.0), number(-2.0)], &ints(&[3], &[5.0, 3.0, 1.0]));
}

fn slice_by_operands() {
    let operands = [Fed(counted(&[3, 4])), Known(ints(&[2], &[1.0, 2.0])), Known(ints(&[2], &[-1.0, 1.0]))];
    check("slice_v2", &[], &operands, &floats(&[2, 1], &[6.0, 10.0]));
}

fn tile_by_operand() {
    let operands = [Fed(counted(&[1, 2])), Known(ints(&[2], &[2.0, 2.0]))];
    check("tile_v2", &[], &operands, &floats(&[2, 4], &[0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]));
}

fn transpose_by_operand() {
    let operands = [Fed(counted(&[2, 2])), Known(ints(&[2], &[1.0, 0.0]))];
    check("transpose_v2", &[], &operands, &floats(&[2, 2], &[0.0, 2.0, 1.0, 3.0]));
}

fn divided() {
    let parameters = [("size", list(&[2, 3])), ("padding_value", float(9.0))];
    let expected = floats(&[2, 2, 3], &[0.0, 1.0, 9.0, 2.0, 3.0, 9.0, 4.0, 5.0, 9.0, 6.0, 7.0, 9.0]);
    check("divided", &parameters, &[Fed(counted(&[2, 2, 2]))], &expected);
}

/// Blocks of one row and two columns: images 0 and 1 hold even and odd columns.
fn blocks() {
    let parameters = [("block_shape", list(&[1, 2])), ("crop", Field::of_ints(&[2, 2], &[0, 0, 1, 0]))];
    check("batch_to_space4d", &parameters, &[Fed(counted(&[2, 1, 1, 2]))], &floats(&[1, 1, 1, 3], &[2.0, 1.0, 3.0]));
}

fn gray() {
    let x = floats(&[1, 1, 2, 3], &[10.0, 20.0, 30.0, 1.0, 0.0, 0.0]);
    check("force_gray", &[], &[Fed(x)], &floats(&[1, 1, 2, 1], &[21.85, 0.114]));
    let bytes = tensor(DType::U8, &[1, 3], &[255.0, 255.0, 254.0]);
    let scale = [("scale", Field::of_floats(&[3], &[0.25, 0.5, 0.25]))];
    check("force_gray", &scale, &[Fed(bytes)], &tensor(DType::U8, &[1, 1], &[254.0]));
}

fn gathered_elements() {
    let operands = [Fed(counted(&[2, 3])), Fed(ints(&[2, 2], &[2.0, 0.0, 1.0, -1.0]))];
    check("gather_elements", &[("axis", int(1))], &operands, &floats(&[2, 2], &[2.0, 0.0, 4.0, 5.0]));
}

/// The mean of 1 and 3 is 2, their deviation 1; equal numbers are divided by 1 / sqrt(2).
fn prewhiten() {
    let x = floats(&[2, 2], &[1.0, 3.0, 5.0, 5.0]);
    check("prewhiten", &[], &[Fed(x)], &floats(&[2, 2], &[-1.0, 1.0, 0.0, 0.0]));
    let near = floats(&[1, 2], &[0.0, 0.2]);
    check("prewhiten", &[], &[Fed(near)], &floats(&[1, 2], &[-0.141_421_36, 0.141_421_36]));
}

/// Halves away from zero, within the range.
fn quantize() {
    let x = floats(&[2, 3], &[0.25, -0.25, 100.0, 1.5, -1.5, -100.0]);
    let parameters = [("quantize_scale", Field::of_floats(&[2], &[2.0, 3.0]))];
    let expected = tensor(DType::I8, &[2, 3], &[1.0, -1.0, 127.0, 5.0, -5.0, -128.0]);
    check("quantize", &parameters, &[Fed(x)], &expected);
}

/// 5 rows by a window of 3 and steps of 2 fit; 6 columns leave one out.
fn dragon_convolution_padding() {
    let parameters = [("stride", list(&[1, 1, 2, 2])), ("dilation", list(&[1, 1, 1, 1]))];
    let operands = [Fed(counted(&[1, 1, 5, 6])), Known(counted(&[1, 1, 3, 3]))];
    let expected = ints(&[4, 2], &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0]);
    check("_dragon_conv2d_padding", &parameters, &operands, &expected);
    let same = [("auto_pad", Field::of_text("SAME_UPPER")), parameters[0].clone(), parameters[1].clone()];
    let expected = ints(&[4, 2], &[0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
    check("_dragon_conv2d_padding", &same, &operands, &expected);
}

fn convolution_parameters() -> Vec<(&'static str, Field)> {
    vec![
        ("format", Field::of_text("NCHW")),
        ("stride", list(&[1, 1, 1, 1])),
        ("dilation", list(&[1, 1, 1, 1])),
        ("padding", Field::of_ints(&[4, 2], &[0; 8])),
    ]
}

/// Sums of 3 x 3 elements of 0 … 15, by weights as they are and by way of their transform.
fn winograd() {
    let expected = floats(&[1, 1, 2, 2], &[45.0, 54.0, 81.0, 90.0]);
    let (x, ones) = (counted(&[1, 1, 4, 4]), floats(&[1, 1, 3, 3], &[1.0; 9]));
    let parameters = [convolution_parameters()[0].clone(), convolution_parameters()[3].clone()];
    check("conv2d_winograd", &parameters, &[Fed(x.clone()), Known(ones.clone())], &expected);
    let padding = ints(&[4, 2], &[0.0; 8]);
    let operands = [Fed(x.clone()), Known(padding), Known(ones.clone())];
    check("conv2d_winograd_v2", &parameters[..1], &operands, &expected);

    let (mut model, fed) = model("conv2d_winograd", &parameters, &[Fed(x), Known(ones)]);
    let transform = node("winograd_transform_kernel", "u", &[], &[NodeId(1)]);
    let mut convolution = model.nodes.remove(2);
    convolution.parameters.insert("kernel_winograd_transformed".into(), Field::of_flag(true).into());
    convolution.inputs[1] = NodeId(2);
    model.nodes.extend([transform, convolution]);
    model.outputs = vec![NodeId(3)];
    check_all(&outputs_of(&model, &fed).unwrap(), &[expected]);
}

/// Weights that are stored as their transforms compute what they compute themselves, but for their own bounds and the roundings of
/// the sums of 27 products, in either convolution.
#[test]
fn stored_winograd() {
    let mut generator = mlc_ir::Generator::new(3);
    let x = generator.tensor(&TensorType::new(DType::F32, [1, 3, 9, 8]));
    let weights = generator.tensor(&TensorType::new(DType::F32, [2, 3, 3, 3]));
    let largest = x.to_floats().into_iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    let expected = run("conv2d", &convolution_parameters(), &[Fed(x.clone()), Known(weights.clone())]).remove(0);
    let bound = |channel: &[f64]| {
        let bounds: f64 = channel.chunks(9).flat_map(winograd::bounds).sum();
        let magnitudes: f64 = channel.iter().map(|value| value.abs()).sum();
        largest * (bounds + 2.0 * 27.0 * 2_f64.powi(-24) * magnitudes)
    };
    let bounds: Vec<f64> = weights.to_floats().chunks(27).map(bound).collect();
    for size in [4, 8] {
        let mut parameters = convolution_parameters();
        parameters.push(("kernel_winograd_transformed", Field::of_flag(true)));
        let stored = winograd::stored_form(size, &weights);
        let plain = run("conv2d_winograd", &parameters, &[Fed(x.clone()), Known(stored.clone())]);
        parameters.retain(|(name, _)| *name != "padding");
        let operands = [Fed(x.clone()), Known(ints(&[4, 2], &[0.0; 8])), Known(stored)];
        for found in [plain, run("conv2d_winograd_v2", &parameters, &operands)].concat() {
            assert_eq!(found.ty(), expected.ty());
            let outputs = found.to_floats().len() / 2;
            for (place, (found, expected)) in found.to_floats().into_iter().zip(expected.to_floats()).enumerate() {
                let far = (found - expected).abs();
                assert!(far <= bounds[place / outputs], "{size}, element {place}: off by {far}");
            }
        }
    }
}

/// A window of one tap, moved one column to the right at the first place and half a row down at the second one.
fn deformable_convolution() {
    let mut parameters = convolution_parameters();
    parameters.push(("deformable_groups", int(1)));
    let operands = [
        Fed(floats(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0])),
        Known(floats(&[1, 1, 1, 1], &[10.0])),
        Known(floats(&[1], &[0.5])),
        Fed(floats(&[1, 2, 2, 2], &[0.0, 0.5, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])),
        Fed(floats(&[1, 1, 2, 2], &[1.0, 1.0, 0.5, 1.0])),
    ];
    check("dcn_v2_forward", &parameters, &operands, &floats(&[1, 1, 2, 2], &[20.5, 30.5, 15.5, 40.5]));
}

/// A box [0, 2) of an image that counts columns, in two cells with one sample each, and the same box of the next image.
fn regions() {
    let image = [0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0];
    let images: Vec<f64> = image.into_iter().chain(image.map(|value| value + 10.0)).collect();
    let operands = [
        Fed(floats(&[2, 1, 2, 4], &images)),
        Fed(floats(&[2, 5], &[0.0, 0.0, 0.0, 2.0, 1.0, 1.0, 0.0, 0.0, 2.0, 1.0])),
    ];
    let parameters = [("pool_h", int(1)), ("pool_w", int(2)), ("sampling_ratio", int(1))];
    check("roi_align", &parameters, &operands, &floats(&[2, 1, 1, 2], &[0.5, 1.5, 10.5, 11.5]));
}

/// 0.5 of 4 rows is row 2; patches of 2 by 2 begin at 2 - 0.5 + 0.5, and the second one reaches beyond the image.
fn patches() {
    let operands = [Fed(counted(&[1, 1, 5, 5])), Fed(floats(&[1, 4, 1, 1], &[0.5, 0.25, 1.0, 1.0]))];
    let parameters = [("origin_patch", list(&[2, 2])), ("origin", list(&[5, 5]))];
    let expected = floats(&[1, 1, 2, 2, 2], &[7.0, 8.0, 24.0, 0.0, 12.0, 13.0, 0.0, 0.0]);
    check("shape_index_patch", &parameters, &operands, &expected);
}

/// One anchor and one class: x, y, width, height, certainty, class.
fn yolo() {
    let parameters = [("classes", int(1)), ("mask", list(&[2])), ("anchors", Field::of_floats(&[2], &[10.0, 13.0]))];
    let x = floats(&[1, 6, 1, 1], &[0.0, 0.0, 2.0, 3.0, 0.0, 0.0]);
    let expected = [
        floats(&[1, 6, 1, 1], &[0.5, 0.5, 2.0, 3.0, 0.5, 0.5]),
        ints(&[], &[1.0]),
        ints(&[1], &[2.0]),
        floats(&[2], &[10.0, 13.0]),
    ];
    check_all(&run("yolo", &parameters, &[Fed(x)]), &expected);
}

/// One place in the middle of an image of 8 by 8: squares of 4 and of sqrt(4 * 9), boxes of ratio 4 and 1/4.
fn prior_boxes() {
    let parameters = [
        ("min_size", list(&[4])),
        ("max_size", float(9.0)),
        ("aspect_ratio", float(4.0)),
        ("img_size", int(8)),
        ("clip", Field::of_flag(true)),
        ("variance", Field::of_floats(&[4], &[0.1, 0.1, 0.2, 0.2])),
    ];
    let boxes =
        [[0.25, 0.25, 0.75, 0.75], [0.125, 0.125, 0.875, 0.875], [0.0, 0.375, 1.0, 0.625], [0.375, 0.0, 0.625, 1.0]];
    let variances = [[0.1, 0.1, 0.2, 0.2]; 4];
    let values: Vec<f64> = boxes.into_iter().chain(variances).flatten().collect();
    check("prior_box", &parameters, &[Fed(counted(&[1, 1, 1, 1]))], &floats(&[1, 2, 16], &values));
}

/// The shorter side to 2: 2 rows of 4 columns stay, and every second element of 4 by 8.
fn scaled_rows_and_columns() {
    let x = counted(&[1, 2, 4, 1]);
    check("_nhwc_scale_resize2d", &[("size", int(2)), ("type", int(3))], &[Fed(x.clone())], &x);
    let x = counted(&[1, 4, 2, 1]);
    let expected = floats(&[1, 2, 1, 1], &[0.0, 4.0]);
    check("_nhwc_scale_resize2d", &[("size", int(1)), ("type", int(3))], &[Fed(x.clone())], &expected);
    let parameters = [("size", list(&[1, 2])), ("type", int(0))];
    check("_nhwc_scale_resize2d", &parameters, &[Fed(x)], &floats(&[1, 2, 1, 1], &[1.5, 5.5]));
}

/// Means of neighbours, which integers cut: (0 + 1) / 2, (2 + 3) / 2.
fn scaled_image() {
    let operands = |x| [Fed(x), Known(floats(&[2], &[1.0, 0.5]))];
    let linear = [("type", int(0))];
    check("sample2d_v2", &linear, &operands(counted(&[1, 4])), &floats(&[1, 2], &[0.5, 2.5]));
    let bytes = tensor(DType::U8, &[1, 4], &[0.0, 1.0, 2.0, 3.0]);
    check("sample2d_v2", &linear, &operands(bytes), &tensor(DType::U8, &[1, 2], &[0.0, 2.0]));
    check("sample2d_v2", &[], &operands(counted(&[1, 4])), &floats(&[1, 2], &[0.0, 2.0]));
    check("sample2d_v2", &[("type", int(2))], &operands(counted(&[1, 4])), &floats(&[1, 2], &[1.0, 3.0]));
}

/// A row that is moved by half an element: places -0.5, 0.5, 1.5 and 2.5 are clamped to the row.
fn sampling_without_outer_value() {
    let matrix = floats(&[3, 3], &[1.0, 0.0, -0.5, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    let operands = || [Fed(counted(&[1, 3])), Known(ints(&[2], &[1.0, 4.0])), Known(matrix.clone())];
    for (kind, expected) in [(0, [0.0, 0.5, 1.5, 2.0]), (2, [0.0, 1.0, 2.0, 2.0]), (3, [0.0, 0.0, 1.0, 2.0])] {
        let parameters = [("dim", int(0)), ("type", int(kind))];
        check("affine_sample2d", &parameters, &operands(), &floats(&[1, 4], &expected));
    }
}

/// A matrix of the data gives what one of the file does.
fn sampling_by_a_matrix_of_data() {
    let turned = floats(&[3, 3], &[0.5, 0.5, 0.25, -0.5, 1.0, 0.75, 0.0, 0.0, 1.0]);
    let moved = floats(&[3, 3], &[1.0, 0.0, -1.5, 0.0, 1.0, 0.5, 0.0, 0.0, 1.0]);
    for (matrix, kind, outer) in [&turned, &moved].into_iter().flat_map(|matrix| {
        [0, 2, 3].into_iter().flat_map(move |kind| [None, Some(9.0)].map(|outer| (matrix, kind, outer)))
    }) {
        let mut parameters = vec![("dim", int(1)), ("type", int(kind))];
        parameters.extend(outer.map(|outer| ("outer_value", float(outer))));
        for x in [counted(&[2, 4, 3, 2]), tensor(DType::U8, &[1, 2, 2], &[1.0, 50.0, 100.0, 255.0])] {
            let with = |matrix| [Fed(x.clone()), Known(ints(&[2], &[3.0, 5.0])), matrix];
            let expected = run("affine_sample2d", &parameters, &with(Known(matrix.clone())));
            check_all(&run("affine_sample2d", &parameters, &with(Fed(matrix.clone()))), &expected);
        }
    }
}

/// Weights of zero and biases: every gate is 1/2 but the candidate, tanh(1); both directions see the same.
fn bidirectional_lstm() {
    let parameters = [("direction", Field::of_text("bidirectional")), ("hidden_size", int(1))];
    let bias = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    let operands = [
        Fed(counted(&[2, 1, 1])),
        Known(floats(&[2, 4, 1], &[0.0; 8])),
        Known(floats(&[2, 4, 1], &[0.0; 8])),
        Known(floats(&[2, 8], &[bias, bias].concat())),
        Known(floats(&[], &[0.0])),
        Known(floats(&[], &[0.0])),
    ];
    let candidate = 1f64.tanh();
    let cells = [candidate / 2.0, candidate * 0.75];
    let states = cells.map(|cell| cell.tanh() / 2.0);
    let expected = [
        floats(&[2, 2, 1, 1], &[states[0], states[1], states[1], states[0]]),
        floats(&[2, 1, 1], &[states[1]; 2]),
        floats(&[2, 1, 1], &[cells[1]; 2]),
    ];
    check_all(&run("LSTM", &parameters, &operands), &expected);
}
