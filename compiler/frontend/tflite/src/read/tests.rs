use super::*;
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

type Table = WIPOffset<UnionWIPOffset>;

/// The place of a field in the list of a table.
fn slot(field: u16) -> u16 {
    4 + 2 * field
}

/// A table with these offsets in its fields.
fn table(builder: &mut FlatBufferBuilder<'_>, fields: &[(u16, Table)], bytes: &[(u16, i8)]) -> Table {
    let start = builder.start_table();
    for &(field, offset) in fields {
        builder.push_slot_always(slot(field), offset);
    }
    for &(field, byte) in bytes {
        builder.push_slot_always(slot(field), byte);
    }
    WIPOffset::new(builder.end_table(start).value())
}

fn ints(builder: &mut FlatBufferBuilder<'_>, numbers: &[i32]) -> Table {
    WIPOffset::new(builder.create_vector(numbers).value())
}

fn tables(builder: &mut FlatBufferBuilder<'_>, tables: &[Table]) -> Table {
    WIPOffset::new(builder.create_vector(tables).value())
}

/// A model with one operator, RELU, of these operands, whose results and outputs are tensor 1 of two.
fn relu(operands: &[i32], outputs: &[i32], constant: &[u8]) -> Bytes {
    let mut builder = FlatBufferBuilder::new();
    let b = &mut builder;
    let tensor = |b: &mut FlatBufferBuilder<'_>, name: &str, buffer: i8| {
        let name = Table::new(b.create_string(name).value());
        let shape = ints(b, &[2]);
        let start = b.start_table();
        b.push_slot_always(slot(0), shape);
        b.push_slot_always(slot(3), name);
        b.push_slot_always(slot(2), u32::from(buffer.unsigned_abs()));
        Table::new(b.end_table(start).value())
    };
    let tensor_tables = [tensor(b, "x", 0), tensor(b, "y", 0), tensor(b, "w", 1)];
    let tensors = tables(b, &tensor_tables);
    let (inputs, results) = (ints(b, operands), ints(b, &[1]));
    let operator = table(b, &[(1, inputs), (2, results)], &[]);
    let operators = tables(b, &[operator]);
    let (inputs, outputs) = (ints(b, &[0]), ints(b, outputs));
    let subgraph = table(b, &[(0, tensors), (1, inputs), (2, outputs), (3, operators)], &[]);
    let subgraphs = tables(b, &[subgraph]);
    let code = table(b, &[], &[(0, 19)]);
    let codes = tables(b, &[code]);
    let data = Table::new(b.create_vector(constant).value());
    let buffers = [table(b, &[], &[]), table(b, &[(0, data)], &[])];
    let buffers = tables(b, &buffers);
    let start = b.start_table();
    b.push_slot_always(slot(0), VERSION);
    b.push_slot_always(slot(1), codes);
    b.push_slot_always(slot(2), subgraphs);
    b.push_slot_always(slot(4), buffers);
    let root = b.end_table(start);
    b.finish(root, Some("TFL3"));
    Bytes::copy_from_slice(b.finished_data())
}

#[test]
fn a_model_is_read() {
    let model = read(&relu(&[0], &[1], &[0; 8])).unwrap();
    let subgraph = &model.subgraphs[0];
    assert_eq!((subgraph.tensors[0].name.as_str(), subgraph.tensors[0].shape.as_slice()), ("x", &[2][..]));
    assert_eq!((&*subgraph.operators[0].kind, &*subgraph.operators[0].inputs), ("RELU", &[Some(0)][..]));
    assert_eq!((model.weights(), model.operators().len()), ((1, 8), 1));
    assert!(subgraph.tensors[0].data.is_none());
}

#[test]
fn all_faults_are_told_with_their_places() {
    let faults = read(&relu(&[0, -1, 7, -2], &[9], &[0; 7])).unwrap_err();
    let messages: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "output 0 of subgraph 0 is tensor 9, but there are 3",
            "operand 2 of operator 0 of subgraph 0 is tensor 7, but there are 3",
            "operand 3 of operator 0 of subgraph 0 is tensor a negative number, but there are 3",
            "tensor 2 `w` of subgraph 0: FLOAT32 of [2] has 8 bytes, 7 are there",
        ]
    );
}

#[test]
fn what_leaves_the_file_is_an_error() {
    let bytes = relu(&[0], &[1], &[0; 8]);
    // At the end of the file is the end of a text, which isn't read.
    for length in 0..bytes.len() - 4 {
        let faults = read(&bytes.slice(..length));
        assert!(faults.is_err_and(|faults| faults.iter().all(|fault| !fault.message.is_empty())), "{length} bytes");
    }
    let mut old = bytes.to_vec();
    old[6] = b'2';
    assert!(read(&old.into()).unwrap_err()[0].message.contains("TFL3"));
}
