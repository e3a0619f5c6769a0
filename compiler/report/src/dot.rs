//! A graph as text for Graphviz.

use crate::diagram::Diagram;
use std::fmt::Write;

/// A diagram in the DOT language, `https://graphviz.org/doc/info/lang.html`.
pub fn dot(name: &str, diagram: &Diagram) -> String {
    let mut text = format!("digraph {} {{\n  node [shape=box, fontname=\"sans-serif\"];\n", quoted(name));
    for (number, node) in diagram.nodes.iter().enumerate() {
        let label = [node.operator.as_str(), &node.name, &node.results.join(", ")].map(escaped).join("\\n");
        let _ = writeln!(text, "  n{number} [label=\"{label}\"];");
    }
    for edge in &diagram.edges {
        let _ = writeln!(text, "  n{} -> n{} [tooltip={}];", edge.from, edge.to, quoted(&edge.r#type));
    }
    text + "}\n"
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::{DType, Graph, TensorType, ops};

    #[test]
    fn names_are_quoted() {
        let mut graph = Graph::new("a \"b\"");
        let x = graph.add_input("x\\y", TensorType::new(DType::F32, [2]));
        let y = graph.add(ops::Reshape { shape: [2, 1].into_iter().collect() }, &[x], "y").unwrap();
        graph.add_output("out", y.into());
        let expected = "digraph \"a \\\"b\\\"\" {\n  node [shape=box, fontname=\"sans-serif\"];\n  \
                        n0 [label=\"input\\nx\\\\y\\nf32[2]\"];\n  n1 [label=\"reshape\\ny\\nf32[2, 1]\"];\n  \
                        n2 [label=\"output\\nout\\nf32[2, 1]\"];\n  n0 -> n1 [tooltip=\"f32[2]\"];\n  \
                        n1 -> n2 [tooltip=\"f32[2, 1]\"];\n}\n";
        assert_eq!(dot(&graph.name, &Diagram::of(&graph)), expected);
    }
}
