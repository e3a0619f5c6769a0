//! What the operators of networks refuse, and which operators of the graph they become.

use super::*;
use crate::proto::NodeProto;
use mlc_ir::OpKind;

fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { name: name.into(), ints: values.to_vec(), r#type: 7, ..AttributeProto::default() }
}

fn floats(name: &str, values: &[f32]) -> AttributeProto {
    AttributeProto { name: name.into(), floats: values.to_vec(), r#type: 6, ..AttributeProto::default() }
}

fn word(name: &str, value: &str) -> AttributeProto {
    AttributeProto { name: name.into(), s: Some(value.as_bytes().to_vec().into()), r#type: 3, ..int("", 0) }
}

/// A model of one operator, whose inputs have these shapes.
fn single(op_type: &str, version: i64, shapes: &[&[&str]], attributes: Vec<AttributeProto>) -> ModelProto {
    let names: Vec<String> = (0..shapes.len()).map(|number| format!("x{number}")).collect();
    let inputs = names.iter().zip(shapes).map(|(name, shape)| input(name, shape)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let node = NodeProto { attribute: attributes, ..node(op_type, &names, &["y"]) };
    ModelProto { opset_import: vec![opset("", version)], ..model(inputs, vec![node], &["y"]) }
}

fn refusal(model: &ModelProto) -> String {
    messages(import_with(model, &ImportOptions::default())).join("\n")
}

/// The operators that compute something, or move elements in another way than by a new shape or another order of axes.
fn kinds(model: &ModelProto) -> Vec<OpKind> {
    let graph = import_with(model, &ImportOptions::default()).unwrap().graph;
    let layout = [OpKind::Input, OpKind::Constant, OpKind::Transpose, OpKind::Reshape];
    let kinds = graph.topological_order().into_iter().map(|node| graph.node(node).op.kind());
    kinds.filter(|kind| !layout.contains(kind)).collect()
}

const IMAGE: &[&str] = &["1", "2", "6", "6"];
const WEIGHTS: &[&str] = &["2", "2", "3", "3"];

#[test]
fn pads_that_contradict_auto_pad_are_refused() {
    let convolution =
        |pads: &[i64]| single("Conv", 11, &[IMAGE, WEIGHTS], vec![word("auto_pad", "SAME_UPPER"), ints("pads", pads)]);
    assert!(refusal(&convolution(&[2, 2, 2, 2])).contains("the pads are given as [(2, 2), (2, 2)], but follow"));
    assert_eq!(kinds(&convolution(&[1, 1, 1, 1])), [OpKind::Convolution]);
    assert_eq!(kinds(&convolution(&[0, 0, 0, 0])), [OpKind::Convolution]);
}

#[test]
fn a_kernel_that_the_weights_do_not_have_is_refused() {
    let wrong = single("Conv", 11, &[IMAGE, WEIGHTS], vec![ints("kernel_shape", &[3, 5])]);
    assert!(refusal(&wrong).contains("`kernel_shape` is [3, 5], the weights have [3, 3]"));
    let wrong = single("Conv", 11, &[IMAGE, WEIGHTS, &["1"]], vec![]);
    assert!(refusal(&wrong).contains("the bias f32[1] doesn't fit"));
}

#[test]
fn a_transposed_convolution_that_reaches_too_short_for_auto_pad_is_refused() {
    let attributes = vec![word("auto_pad", "SAME_LOWER"), ints("strides", &[4, 4])];
    let short = single("ConvTranspose", 11, &[IMAGE, WEIGHTS], attributes);
    assert!(refusal(&short).contains("24 elements on spatial axis 0, but the windows only reach 23"));
}

#[test]
fn training_is_refused() {
    let vectors: &[&[&str]] = &[IMAGE, &["2"], &["2"], &["2"], &["2"]];
    let training = single("BatchNormalization", 6, vectors, vec![]);
    assert!(refusal(&training).contains("statistics of a batch while training aren't supported before version 14"));
    let longer: &[&[&str]] = &[IMAGE, &["2"], &["3"], &["2"], &["2"]];
    let training = single("BatchNormalization", 15, longer, vec![int("training_mode", 1)]);
    assert!(refusal(&training).contains("a statistic or weight f32[3] doesn't fit 2 channels"));
}

#[test]
fn nearest_elements_are_refused_where_no_version_defines_them() {
    let upsample = |scale| single("Upsample", 7, &[IMAGE], vec![floats("scales", &[1.0, 1.0, scale, scale])]);
    assert!(refusal(&upsample(0.6)).contains("isn't defined before opset 11"));
    assert_eq!(kinds(&upsample(0.5)), [OpKind::Resize]);
    assert_eq!(kinds(&upsample(2.0)), [OpKind::Resize]);
    assert!(refusal(&upsample(-1.0)).contains("can't be scaled by -1"));
    assert!(refusal(&upsample(f32::NAN)).contains("can't be scaled by NaN"));
    assert!(refusal(&upsample(0.01)).contains("nothing to interpolate"));
}

#[test]
fn channels_are_interpolated_by_indices_or_a_product() {
    let upsample =
        |mode| single("Upsample", 7, &[IMAGE], vec![word("mode", mode), floats("scales", &[1.0, 2.0, 1.0, 1.0])]);
    assert_eq!(kinds(&upsample("nearest")), [OpKind::Gather]);
    assert_eq!(kinds(&upsample("linear")), [OpKind::Matmul]);
}

#[test]
fn a_broadcast_that_widens_the_product_is_refused() {
    let wide = single("Gemm", 11, &[&["1", "3"], &["3", "4"], &["2", "4"]], vec![]);
    assert!(refusal(&wide).contains("operand C f32[2, 4] doesn't broadcast to the product f32[1, 4]"));
}
