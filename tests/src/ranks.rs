//! Models of several ranks for tests: from files, and at random.

use mlc_ir::ops::{Binary, Matmul, Transpose, Unary};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Distribution, Generator, Graph, Message, Tensor, TensorType, Transfer, Value, text, verify};
use std::path::Path;
use std::process::Command;

/// The graphs of the files `rank0.mlc`, `rank1.mlc`, … in a folder.
///
/// # Errors
/// When a file isn't a graph.
pub fn read(folder: &Path) -> Result<Vec<Graph>, String> {
    let files = (0..).map(|rank| folder.join(format!("rank{rank}.mlc"))).take_while(|file| file.exists());
    let parse = |file| {
        let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
        let graph = text::parse(&text, &()).map_err(|faults| format!("{faults:?}"))?;
        verify(&graph).map(|()| graph).map_err(|faults| format!("{faults:?}"))
    };
    files.map(parse).collect()
}

/// Whether an MPI is installed; says so where it isn't.
#[allow(clippy::print_stderr, reason = "tests say what they leave out")]
pub fn has_mpi() -> bool {
    let runs = |tool: &str| Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    let found = runs("mpirun") && runs("mpicc");
    if !found {
        eprintln!("skipped: no MPI is installed (mpirun and mpicc)");
    }
    found
}

/// Random inputs of each rank.
pub fn inputs(graphs: &[Graph], seed: u64) -> Vec<Vec<Tensor>> {
    let mut generator = Generator::new(seed);
    let mut of = |graph: &Graph| -> Vec<Tensor> {
        let types = graph.open_inputs().into_iter().map(|number| graph.ty(graph.inputs()[number].into()).clone());
        types.map(|ty| generator.tensor(&ty)).collect()
    };
    graphs.iter().map(&mut of).collect()
}

/// A rank that is being made.
struct Making {
    graph: Graph,
    values: Vec<Value>,
    messages: Vec<Message>,
}

/// Rows and columns of all values.
const EXTENT: usize = 6;

impl Making {
    fn new(rank: usize) -> Making {
        let mut graph = Graph::new(format!("rank{rank}"));
        let x = graph.add_input("x", TensorType::new(DType::F32, [EXTENT, EXTENT]));
        Making { graph, values: vec![x], messages: Vec::new() }
    }

    fn compute(&mut self, generator: &mut Generator) {
        let (a, b) = (generator.choose(&self.values), generator.choose(&self.values));
        let graph = &mut self.graph;
        let node = match generator.range(0, 4) {
            0 => graph.add(Unary { function: UnaryFunction::Tanh }, &[a], "tanh"),
            1 => graph.add(Binary { function: BinaryFunction::Add }, &[a, b], "add"),
            2 => graph.add(Binary { function: BinaryFunction::Maximum }, &[a, b], "maximum"),
            3 => graph.add(Transpose { permutation: vec![1, 0] }, &[a], "transpose"),
            _ => {
                let product =
                    graph.add(Matmul { transpose_left: false, transpose_right: true, sums: None }, &[a, b], "product");
                product.and_then(|node| graph.add(Unary { function: UnaryFunction::Tanh }, &[node.into()], "bounded"))
            }
        };
        self.values.extend(node.ok().map(Value::from));
    }
}

/// Ranks that compute and send each other values in a random order, which can be kept.
pub fn random(generator: &mut Generator) -> Vec<Graph> {
    let count = generator.range(2, 4);
    let mut ranks: Vec<Making> = (0..count).map(Making::new).collect();
    for _ in 0..generator.range(8, 30) {
        let rank = generator.range(0, count - 1);
        if generator.range(0, 2) > 0 {
            ranks[rank].compute(generator);
            continue;
        }
        let peer = (rank + generator.range(1, count - 1)) % count;
        let tag = generator.range(0, 2) as i32 - 1;
        let value = generator.choose(&ranks[rank].values);
        let output = ranks[rank].graph.outputs().len();
        ranks[rank].graph.add_output(&format!("sent{output}"), value);
        ranks[rank].messages.push(Message { transfer: Transfer::Send { output }, peer, tag });
        let to = &mut ranks[peer];
        let input = to.graph.inputs().len();
        let received = to.graph.add_input(&format!("received{input}"), TensorType::new(DType::F32, [EXTENT, EXTENT]));
        to.values.push(received);
        to.messages.push(Message { transfer: Transfer::Receive { input }, peer: rank, tag });
    }
    let finish = |(rank, making): (usize, Making)| {
        let Making { mut graph, values, messages } = making;
        for (number, &value) in values.iter().rev().take(2).enumerate() {
            graph.add_output(&format!("y{number}"), value);
        }
        graph.distribution = Some(Distribution { rank, count, messages });
        graph.remove_dead();
        graph
    };
    ranks.into_iter().enumerate().map(finish).collect()
}
