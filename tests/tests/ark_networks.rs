//! Whole networks from ARK files: what the optimiser makes of them.

use indexmap::IndexMap;
use mlc_codegen::Target;
use mlc_ir::{Attribute, Graph, Op, TensorType};
use mlc_passes::OptimizeOptions;
use mlc_tests::case::Case;
use mlc_tests::compile::{compile_graph, load};
use mlc_tests::paths;

fn case(name: &str) -> Case {
    Case::read(&paths::data().join("ark").join(name)).unwrap()
}

fn optimized(case: &Case) -> Graph {
    let graph = load(case).unwrap().graph;
    mlc_passes::optimize(graph, &OptimizeOptions::default(), &mut |_, _| {}).unwrap().0
}

/// The products of a graph, alone or as anchors of kernels, by the types of their results.
fn products(graph: &Graph) -> Vec<&TensorType> {
    let is_product = |op: &Op| match op {
        Op::Matmul(_) => true,
        Op::Kernel(kernel) => matches!(*kernel.anchor, Op::Matmul(_)),
        _ => false,
    };
    let nodes = graph.topological_order().into_iter().map(|id| graph.node(id));
    nodes.filter(|node| is_product(&node.op)).map(|node| &node.results[0]).collect()
}

#[test]
fn projections_of_one_input_are_one_product() {
    let graph = optimized(&case("llama_block_fp32"));
    let products: Vec<String> = products(&graph).iter().map(ToString::to_string).collect();
    // Queries, keys and values; scores; what attention gives; its projection; gate and up, one of which multiplies with the other in its
    // epilogue, which as one product they couldn't; down.
    let expected = [
        "f32[1, 8, 96]",
        "f32[1, 4, 8, 8]",
        "f32[1, 4, 8, 8]",
        "f32[1, 8, 32]",
        "f32[1, 8, 96]",
        "f32[1, 8, 96]",
        "f32[1, 8, 32]",
    ];
    assert_eq!(products, expected);
}

/// A node without names: its operator, its fields and the types of its results. Which way round a product has its weights is left
/// out: they are packed for the kernel, whichever it is.
fn described(graph: &Graph) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for id in graph.node_ids() {
        let node = graph.node(id);
        let mut op = node.op.clone();
        let forget = |op: &mut Op, weights: Option<&mlc_ir::Value>| {
            if let (Op::Matmul(product), Some(&weights)) = (op, weights) {
                product.transpose_right &= graph.constant(weights).is_none();
            }
        };
        let weights = graph.operands(id).get(1).copied();
        match &mut op {
            Op::Input(_) | Op::Constant(_) => continue,
            Op::Kernel(kernel) => forget(&mut kernel.anchor, weights.as_ref()),
            op => forget(op, weights.as_ref()),
        }
        lines.push(format!("{op:?}: {:?}", node.results));
    }
    lines.sort();
    lines
}

/// The texts of a model's code, without comments and white space, names replaced by numbers in the order in which they come, and its constants.
fn code(graph: &Graph, target: &Target) -> (Vec<String>, Vec<Attribute>) {
    let module = compile_graph(graph, "net", target).unwrap().module;
    let mut names: IndexMap<String, usize> = IndexMap::new();
    let mut texts = Vec::new();
    for source in &module.sources {
        let parts = source.text.split("/*").map(|part| part.split_once("*/").map_or(part, |(_, code)| code));
        let mut text = String::new();
        for part in parts.collect::<String>().split_inclusive(|c: char| !c.is_alphanumeric() && c != '_') {
            let word = part.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
            if word.starts_with("tvmgen_net") {
                let next = names.len();
                text += &format!("name{}", names.entry(word.to_owned()).or_insert(next));
                text += &part[word.len()..];
            } else {
                text += part;
            }
        }
        // Where lines break depends on the lengths of names.
        texts.push(text.split_whitespace().collect());
    }
    (texts, module.constants.into_iter().map(|constant| constant.value).collect())
}

#[test]
fn a_transformer_block_becomes_the_code_that_it_becomes_from_onnx() {
    let ark = case("transformer_encoder");
    let onnx = ark.as_onnx().unwrap();
    assert_eq!(described(&optimized(&ark)), described(&optimized(&onnx)));
    let graphs = [&ark, &onnx].map(|case| load(case).unwrap().graph);
    for target in [Target::generic(), mlc::targets::find("host").unwrap()] {
        let [ark, onnx] = [&graphs[0], &graphs[1]].map(|graph| code(graph, &target));
        assert!(ark.0 == onnx.0, "the code differs on {}", target.name);
        assert!(ark.1 == onnx.1, "the constants differ on {}", target.name);
        assert!(ark.0[0].contains("name0") && ark.1.len() > 8);
    }
}
