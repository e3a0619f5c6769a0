//! Random programs of copies between windows of shared buffers: the graph computes what a plain simulation of memory does.

use crate::model::{
    Buffer, BufferIndex, DataType, Dialect, Extents, Model, Node, Operation, Place, Tensor, TensorIndex,
};
use crate::{external_ports, import, output_ports};
use indexmap::IndexMap;
use mlc_import::{Bindings, ImportOptions};
use mlc_ir::{Generator, Graph, Tensor as Value, TensorType, evaluate};

/// Bytes of every buffer.
const BYTES: usize = 48;
const BUFFERS: u32 = 3;

/// A window of a buffer, of an array with random extents.
fn window(generator: &mut Generator, buffer: BufferIndex, data_type: DataType, shape: Option<&[usize]>) -> Tensor {
    let elements = BYTES / data_type.size();
    loop {
        let mut storage = Extents::new();
        let mut left = elements;
        for _ in 0..generator.range(1, 3) {
            let extent = generator.range(1, left);
            storage.push(extent);
            left /= extent;
        }
        // Many windows are of the whole buffer's array, so that they meet.
        if generator.one_in(2) {
            let last = generator.choose(&[2, 3, 4, 6]);
            storage = [elements / last, last].into_iter().collect();
        }
        let rank = storage.len();
        let sizes: Vec<usize> = match shape {
            Some(shape) if shape.len() == rank && shape.iter().zip(&storage).all(|(size, extent)| size <= extent) => {
                shape.to_vec()
            }
            Some(_) => continue,
            None => storage.iter().map(|&extent| generator.range(1, extent)).collect(),
        };
        let offsets = sizes.iter().zip(&storage).map(|(size, extent)| generator.range(0, extent - size)).collect();
        let shape: Extents = sizes.into_iter().collect();
        return Tensor { id: 0, data_type, padded_shape: shape.clone(), shape, storage, offsets, buffer };
    }
}

/// A program of copies, in which no operation writes a part of what it reads.
fn program(generator: &mut Generator) -> Model {
    let mut tensors: Vec<Tensor> = Vec::new();
    let mut add = |tensor: Tensor| {
        let id = tensors.len() as u64;
        tensors.push(Tensor { id, ..tensor });
        TensorIndex(id as u32)
    };
    let mut nodes = Vec::new();
    while nodes.len() < 10 {
        let data_type = generator.choose(&[DataType::Int32, DataType::Int32, DataType::Uint8, DataType::Fp16]);
        let buffer = |generator: &mut Generator| BufferIndex(generator.range(0, BUFFERS as usize - 1) as u32);
        let (from, to) = (buffer(generator), buffer(generator));
        let read = window(generator, from, data_type, None);
        let written = window(generator, to, data_type, Some(&read.shape));
        if read.overlaps(&written) {
            continue;
        }
        let (reads, writes, results) = (add(read), add(written.clone()), add(written));
        let id = nodes.len() as u32;
        let operation = Operation {
            kind: "Copy".into(),
            name: format!("copy_{id}").into(),
            is_virtual: false,
            reads: vec![reads],
            writes: vec![writes],
            results: vec![results],
            arguments: IndexMap::new(),
            place: Place { list: "Nodes", node: id, operation: None },
        };
        nodes.push(Node { id, producers: Vec::new(), consumers: Vec::new(), operations: vec![operation] });
    }
    let buffer = |id| Buffer {
        id: u64::from(id),
        remote: None,
        is_external: false,
        send_tags: Vec::new(),
        receive_tags: Vec::new(),
        bytes: BYTES,
    };
    let buffers = (0..BUFFERS).map(buffer).collect();
    Model { dialect: Dialect::Model2024b, rank: 0, world_size: 1, nodes, tensors, buffers, warnings: Vec::new() }
}

/// Where each element of a window starts, in bytes.
fn places(window: &Tensor) -> Vec<usize> {
    let (steps, size) = (window.steps(), window.data_type.size());
    let mut places = vec![window.first_byte()];
    for (&extent, &step) in window.shape.iter().zip(&steps) {
        places = places.iter().flat_map(|&place| (0..extent).map(move |index| place + index * step * size)).collect();
    }
    places
}

/// Memory after the program, by buffer.
fn simulated(model: &Model, mut memory: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    for operation in model.operations() {
        let (read, written) = (model.tensor(operation.reads[0]), model.tensor(operation.writes[0]));
        let size = read.data_type.size();
        let source = &memory[read.buffer.0 as usize];
        let elements: Vec<Vec<u8>> = places(read).iter().map(|&place| source[place..place + size].to_vec()).collect();
        for (place, element) in places(written).into_iter().zip(elements) {
            memory[written.buffer.0 as usize][place..place + size].copy_from_slice(&element);
        }
    }
    memory
}

/// A graph of a program, with every buffer from outside, and as output, as a whole.
fn graph(model: &Model) -> Graph {
    let name = |tensor: &Tensor| (format!("b{}", tensor.buffer.0), format!("tensor:{}", tensor.id));
    let whole: Vec<&Tensor> = model.tensors.iter().filter(|tensor| tensor.covers(BYTES)).collect();
    let bindings = Bindings {
        places: whole.iter().map(|tensor| name(tensor)).collect(),
        outputs: whole.iter().map(|tensor| name(tensor)).collect(),
        ..Bindings::default()
    };
    let options = ImportOptions { bindings, ..ImportOptions::default() };
    let graph = import(model, &options).unwrap().graph;
    mlc_ir::verify(&graph).unwrap();
    graph
}

#[test]
fn random_programs_do_what_memory_does() {
    let mut generator = Generator::new(11);
    for _ in 0..400 {
        let mut model = program(&mut generator);
        // Windows of all bytes, through which the test writes and reads them.
        for buffer in 0..BUFFERS {
            let all: Extents = [BYTES].into_iter().collect();
            let (id, offsets) = (model.tensors.len() as u64, [0].into_iter().collect());
            let (shape, storage, padded_shape) = (all.clone(), all.clone(), all);
            let (data_type, buffer) = (DataType::Byte, BufferIndex(buffer));
            model.tensors.push(Tensor { id, data_type, shape, storage, offsets, padded_shape, buffer });
        }
        let graph = graph(&model);
        let byte = |_| (0..BYTES).map(|_| generator.range(0, 119) as u8).collect::<Vec<u8>>();
        let memory: Vec<Vec<u8>> = (0..BUFFERS).map(byte).collect();
        let value = |bytes: &Vec<u8>| Value::from_le_bytes(TensorType::new(mlc_ir::DType::U8, [BYTES]), bytes);
        let number = |name: &str| name[1..].parse::<usize>().unwrap();
        let inputs = graph.inputs().iter().map(|&id| value(&memory[number(&graph.node(id).name)]));
        let inputs: Vec<Value> = inputs.collect();
        let expected = simulated(&model, memory.clone());
        for (output, found) in graph.outputs().iter().zip(evaluate(&graph, &inputs).unwrap()) {
            assert_eq!(found.to_le_bytes(), expected[number(&output.name)], "{model:#?}\n{}", output.name);
        }
    }
}

#[test]
fn what_is_read_before_it_is_written_comes_from_outside() {
    let mut generator = Generator::new(12);
    let (mut inside, mut outside) = (0, 0);
    for _ in 0..400 {
        let model = program(&mut generator);
        let mut written = vec![[false; BYTES]; BUFFERS as usize];
        let mut external = vec![false; BUFFERS as usize];
        let bytes = |window: &Tensor| {
            let size = window.data_type.size();
            places(window).into_iter().flat_map(move |place| place..place + size).collect::<Vec<usize>>()
        };
        for operation in model.operations() {
            let (read, write) = (model.tensor(operation.reads[0]), model.tensor(operation.writes[0]));
            let buffer = read.buffer.0 as usize;
            external[buffer] |= bytes(read).into_iter().any(|byte| !written[buffer][byte]);
            bytes(write).into_iter().for_each(|byte| written[write.buffer.0 as usize][byte] = true);
        }
        let found: Vec<String> = external_ports(&model).into_iter().map(|port| port.name).collect();
        let count = external.iter().filter(|&&external| external).count();
        // Where windows have different arrays, what was written may count as unwritten; never the other way round.
        assert!(found.len() >= count && found.len() <= BUFFERS as usize, "{found:?}");
        inside += BUFFERS as usize - found.len();
        outside += count;
        assert!(output_ports(&model).len() <= model.nodes.len());
    }
    assert!(inside > 10 && outside > 100, "{inside} inside, {outside} outside");
}
