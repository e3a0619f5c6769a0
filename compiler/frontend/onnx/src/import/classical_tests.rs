//! What the user is told about labels that aren't numbers, and what support vector machines refuse.

use super::*;
use crate::proto::NodeProto;

fn attribute(name: &str, kind: i32) -> AttributeProto {
    AttributeProto { name: name.into(), r#type: kind, ..AttributeProto::default() }
}

fn words(name: &str, values: &[&str]) -> AttributeProto {
    let strings = values.iter().map(|value| value.as_bytes().to_vec().into()).collect();
    AttributeProto { strings, ..attribute(name, 8) }
}

fn floats(name: &str, values: &[f32]) -> AttributeProto {
    AttributeProto { floats: values.to_vec(), ..attribute(name, 6) }
}

fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), ..attribute(name, 7) }
}

/// A model of one operator of ai.onnx.ml, for one row of two features.
fn single(op_type: &str, outputs: &[&str], attributes: Vec<AttributeProto>) -> ModelProto {
    let node = NodeProto { attribute: attributes, domain: "ai.onnx.ml".into(), ..node(op_type, &["x"], outputs) };
    let mut own = model(vec![input("x", &["1", "2"])], vec![node], outputs);
    own.opset_import.push(opset("ai.onnx.ml", 1));
    own
}

fn warnings(model: &ModelProto) -> Vec<String> {
    let imported = import_with(model, &ImportOptions::default()).unwrap();
    imported.warnings.into_iter().map(|warning| warning.message).collect()
}

#[test]
fn named_classes_become_their_places_and_the_user_is_told() {
    let names = words("classlabels_strings", &["no", "yes"]);
    let mut named = single("LinearClassifier", &["l", "z"], vec![names, floats("coefficients", &[1.0, 2.0, 3.0, 4.0])]);
    let expected =
        "LinearClassifier `l`: the classes have names; the place of a class among them stands for it: no, yes";
    assert_eq!(warnings(&named), [expected]);
    // The file says that the labels are strings, which the warning has dealt with.
    let strings = TensorTypeProto { elem_type: 8, shape: None };
    let graph = named.graph.as_mut().unwrap();
    graph.output[0].r#type = Some(TypeProto { tensor_type: Some(strings), ..TypeProto::default() });
    assert_eq!(warnings(&named), [expected]);
}

#[test]
fn scores_stand_for_a_list_of_maps() {
    let labels: Vec<i64> = (0..20).collect();
    let model = single("ZipMap", &["z"], vec![ints("classlabels_int64s", &labels)]);
    let graph = import_with(&model, &ImportOptions::default()).unwrap().graph;
    assert_eq!(graph.ty(graph.outputs()[0].value), &TensorType::new(DType::F32, [1, 2]));
    let expected = "the tensor of the scores stands for the list of maps from classes to scores; its columns are 0, 1, 2, 3, \
                    4, 5, 6, 7, 8, 9, 10, 11, … (20 in all)";
    assert_eq!(warnings(&model), [format!("ZipMap `z`: {expected}")]);
}

#[test]
fn strict_categories_get_zeros_and_the_user_is_told() {
    let model = single("OneHotEncoder", &["y"], vec![ints("cats_int64s", &[1, 2]), int("zeros", 0)]);
    assert_eq!(
        warnings(&model),
        ["OneHotEncoder `y`: an element without a category gets zeros; the model says that it is an error"]
    );
}

#[test]
fn support_vectors_that_do_not_fit_are_refused() {
    let kernel = || AttributeProto { s: Some(b"RBF".to_vec().into()), ..attribute("kernel_type", 3) };
    let classifier = |coefficients: &[f32], vectors: &[f32], per_class: &[i64], more: Vec<AttributeProto>| {
        let mut attributes = vec![
            ints("classlabels_ints", &[0, 1]),
            floats("coefficients", coefficients),
            floats("support_vectors", vectors),
            floats("rho", &[0.5]),
            ints("vectors_per_class", per_class),
            floats("kernel_params", &[0.5, 0.0, 3.0]),
            kernel(),
        ];
        attributes.extend(more);
        messages(import_with(&single("SVMClassifier", &["l", "z"], attributes), &ImportOptions::default())).join("\n")
    };
    let four = [1.0, 2.0, 3.0, 4.0];
    for (found, expected) in [
        (classifier(&[1.0, -1.0], &four[..3], &[1, 1], vec![]), "3 numbers don't make 2 vectors of 2 numbers"),
        (classifier(&[1.0], &four, &[1, 1], vec![]), "1 coefficients don't fit 2 vectors of 2 classes"),
        (classifier(&[1.0, -1.0], &four, &[2], vec![]), "1 numbers of vectors don't fit 2 classes"),
        (classifier(&[1.0, -1.0], &four, &[-1, 3], vec![]), "a number of vectors is negative"),
        (classifier(&[1.0], &four, &[i64::MAX, i64::MAX], vec![]), "4 numbers don't make"),
        (
            classifier(&[1.0], &four, &[i64::MAX, i64::MAX, i64::MAX], vec![]),
            "3 numbers of vectors don't fit 2 classes",
        ),
        (classifier(&[1.0, -1.0], &four, &[1, 1], vec![floats("prob_a", &[1.0])]), "probabilities"),
    ] {
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn scaled_corners_are_mentioned_where_standard_and_runtime_differ() {
    let resize = |scale: f32| {
        let mode = |name: &str, value: &str| AttributeProto {
            s: Some(value.as_bytes().to_vec().into()),
            ..attribute(name, 3)
        };
        let attributes = vec![mode("mode", "linear"), mode("coordinate_transformation_mode", "align_corners")];
        let node = NodeProto { attribute: attributes, ..node("Resize", &["x", "", "scales"], &["y"]) };
        let mut own = model(vec![input("x", &["1", "4"])], vec![node], &["y"]);
        let tensor = TensorProto { name: "scales".into(), dims: vec![2], data_type: 1, ..TensorProto::default() };
        let scales = TensorProto { float_data: vec![1.0, scale], ..tensor };
        own.graph.as_mut().unwrap().initializer = vec![scales];
        warnings(&own)
    };
    assert_eq!(resize(1.5), Vec::<String>::new());
    let told = resize(1.7);
    assert!(told.len() == 1 && told[0].contains("PyTorch and ONNX Runtime align the last element"), "{told:?}");
}
