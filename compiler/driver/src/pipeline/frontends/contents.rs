//! What can be counted in a model's file without knowing what the operators mean.

use mlc_ir::{Graph, Op};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Operators and weights of a file.
#[derive(Debug, Default, Serialize)]
pub struct Contents {
    /// Number of operators of each kind, in the file's own words.
    pub operators: BTreeMap<String, usize>,
    /// Number of weights.
    pub weights: usize,
    /// What they take in all.
    pub weight_bytes: u64,
    /// What else a format's files say, by name.
    #[serde(flatten, serialize_with = "as_members")]
    pub facts: Vec<(&'static str, String)>,
    /// Memory that gets its content from outside, weights or inputs, where the file doesn't say which it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<Memory>,
    /// Memory that is an output if the user names no other, likewise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_over: Vec<Memory>,
}

/// A piece of a model's memory.
#[derive(Debug, Serialize)]
pub struct Memory {
    /// Its name.
    pub name: String,
    /// How else it may be named in options.
    pub place: String,
    /// Type and shape in the file's own words.
    pub r#type: String,
    /// What it takes.
    pub bytes: u64,
    /// Whether the model writes to it.
    pub updated: bool,
}

fn as_members<S: Serializer>(facts: &[(&'static str, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(facts.iter().map(|(name, value)| (name, value)))
}

impl Contents {
    /// Those of a graph and the bodies of its loops.
    pub fn of_graph(graph: &Graph) -> Contents {
        let mut contents = Contents::default();
        contents.add_graph(graph);
        contents
    }

    fn add_graph(&mut self, graph: &Graph) {
        for id in graph.node_ids() {
            let op = &graph.node(id).op;
            match op {
                Op::Input(_) => continue,
                Op::Constant(constant) => {
                    self.weights += 1;
                    self.weight_bytes += constant.value.ty().bytes() as u64;
                    continue;
                }
                Op::Loop(op) => self.add_graph(&op.body),
                _ => {}
            }
            *self.operators.entry(op.name().to_owned()).or_default() += 1;
        }
    }
}
