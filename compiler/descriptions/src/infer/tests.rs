use super::*;
use std::path::Path;

/// The descriptions of a case of the repository.
fn case(name: &str) -> Library {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/lightnet-opdesc").join(name);
    let file = if folder.join("op.op").is_file() { "op.op" } else { "op.json" };
    let bytes = std::fs::read(folder.join(file)).unwrap();
    Library::read(&[(file, &bytes)]).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn tensor(name: &str, element: usize, extents: &[i32]) -> TensorDescription {
    TensorDescription { name: name.into(), element, extents: extents.to_vec(), is_static: false, memory: 1 }
}

fn instance(inputs: &[TensorDescription], outputs: &[&str], parameters: &[(&str, ParameterValue)]) -> OperatorInstance {
    OperatorInstance {
        name: "op0".into(),
        inputs: inputs.to_vec(),
        outputs: outputs.iter().map(ToString::to_string).collect(),
        parameters: parameters.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
    }
}

/// Extents of the outputs, or what is said instead.
fn infer(library: &Library, optype: &str, operator: &OperatorInstance) -> Result<Vec<Vec<i32>>, String> {
    let inference = library.infer(library.get(optype).unwrap(), operator);
    inference
        .map(|inference| inference.outputs.into_iter().map(|output| output.extents).collect())
        .map_err(|e| e.message)
}

const FLOAT: usize = 1;
const INT32: usize = 3;

fn numbers(list: &[f64]) -> ParameterValue {
    ParameterValue::Numbers(list.to_vec())
}

fn number(number: f64) -> ParameterValue {
    ParameterValue::Number(number)
}

fn text(text: &str) -> ParameterValue {
    ParameterValue::Text(text.into())
}

#[test]
fn shapes_follow_from_expressions_lists_and_statements() {
    let x = tensor("x", FLOAT, &[2, 3, 5, 7]);
    let pad = instance(
        std::slice::from_ref(&x),
        &["y"],
        &[("border", numbers(&[1.0, 2.0, 3.0, 4.0])), ("value", number(0.5))],
    );
    assert_eq!(infer(&case("pad2d_array_param"), "pad2d_cpu", &pad), Ok(vec![vec![2, 3, 9, 13]]));
    let cells = instance(std::slice::from_ref(&x), &["y"], &[]);
    assert_eq!(infer(&case("dims_as_json_array"), "first_cells_cpu", &cells), Ok(vec![vec![2, 3]]));
    let moments = instance(&[x.clone(), tensor("k", FLOAT, &[7])], &["m", "v"], &[]);
    assert_eq!(infer(&case("moments_two_outputs"), "moments_cpu", &moments), Ok(vec![vec![7], vec![7]]));
    let fold = |how| instance(std::slice::from_ref(&x), &["y"], &[("how", text(how))]);
    assert_eq!(infer(&case("fold_with_from_func"), "fold_last_cpu", &fold("TL_MAX")), Ok(vec![vec![2, 3, 5, 1]]));
    let library = case("fold_with_from_func");
    let inference = library.infer(library.get("fold_last_cpu").unwrap(), &fold("TL_MAX")).unwrap();
    assert_eq!(
        (&inference.parameters[0].value, &inference.parameters[0].converted),
        (&text("TL_MAX"), &Some(number(4.0)))
    );
    let message = infer(&case("fold_with_from_func"), "fold_last_cpu", &fold("TL_SUB")).unwrap_err();
    assert_eq!(message, "op0(fold_last_cpu) should satisfy: \"'how' must be TL_SUM, TL_MAX or TL_MUL\"");
    let table = TensorDescription { is_static: true, ..tensor("t", FLOAT, &[10, 4]) };
    let lookup = instance(&[table, tensor("i", INT32, &[2, 3])], &["y"], &[]);
    assert_eq!(infer(&case("lookup_static_table"), "lookup_cpu", &lookup), Ok(vec![vec![2, 3, 4]]));
    let swap = instance(&[tensor("x", FLOAT, &[3])], &["y"], &[]);
    let message = infer(&case("op_grammar_inheritance"), "swap_halves_cpu", &swap).unwrap_err();
    assert_eq!(message, "op0(swap_halves_cpu) should satisfy: \"dims[0] of 'src' must be even\"");
}

#[test]
fn checks_may_rewrite_parameters() {
    let library = case("shape_snippet_autopad");
    let pool = |mode: &str| {
        let parameters = [
            ("size", numbers(&[3.0, 2.0])),
            ("stride", numbers(&[2.0, 2.0])),
            ("pads", numbers(&[9.0, 9.0, 9.0, 9.0])),
            ("mode", text(mode)),
        ];
        instance(&[tensor("x", FLOAT, &[1, 1, 5, 6])], &["y"], &parameters)
    };
    let inferred = |mode: &str| library.infer(library.get("maxpool_auto_cpu").unwrap(), &pool(mode)).unwrap();
    let upper = inferred("SAME_UPPER");
    assert_eq!(
        (&upper.outputs[0].extents, &upper.parameters[2].value),
        (&vec![1, 1, 3, 3], &numbers(&[1.0, 0.0, 1.0, 0.0]))
    );
    assert_eq!(inferred("NOTSET").parameters[2].value, numbers(&[9.0; 4]));
    assert_eq!(
        infer(&library, "maxpool_auto_cpu", &pool("FULL")).unwrap_err(),
        "op0(maxpool_auto_cpu) should satisfy: \"mode 'FULL' is not known\""
    );
}

#[test]
fn checks_that_are_not_met_name_everything() {
    let float = |extents: &[i32]| tensor("x", FLOAT, extents);
    let clip = |slope, lo| [("slope", number(slope)), ("lo", number(lo)), ("hi", number(1.0))];
    let row = |first, count| [("first", number(first)), ("count", number(count))];
    let tile = |axis| [("axis", number(axis)), ("times", number(60.0))];
    let border = [("border", numbers(&[1.0, -2.0, 3.0, 4.0])), ("value", number(0.5))];
    for (name, optype, operator, message) in [
        (
            "leaky_clip",
            "leaky_clip_cpu",
            instance(&[float(&[2])], &["y"], &clip(0.5, 2.0)),
            "op0(leaky_clip_cpu) should satisfy: \"'lo' must stay below 'hi'\"",
        ),
        (
            "leaky_clip",
            "leaky_clip_cpu",
            instance(&[float(&[2])], &["y"], &clip(-0.5, 0.0)),
            "leaky_clip_cpu: `op0`'s `slope` param's value should be > 0, but gets a -0.5",
        ),
        (
            "leaky_clip",
            "leaky_clip_cpu",
            instance(&[tensor("x", INT32, &[2])], &["y"], &clip(0.5, 0.0)),
            "leaky_clip_cpu: `op0`'s tensor `x`'s dtype should be TL_FLOAT, but gets TL_INT32",
        ),
        (
            "leaky_clip",
            "leaky_clip_cpu",
            instance(&[float(&[2])], &["y"], &clip(0.5, 0.0)[1..]),
            "leaky_clip_cpu: `op0` needs a `slope` param",
        ),
        (
            "leaky_clip",
            "leaky_clip_cpu",
            instance(&[], &["y"], &clip(0.5, 0.0)),
            "leaky_clip_cpu: `op0` needs 1 input tensors, but gets 0 input tensors",
        ),
        (
            "leaky_clip",
            "leaky_clip_cpu",
            instance(&[TensorDescription { memory: 0, ..float(&[2]) }], &["y"], &clip(0.5, 0.0)),
            "leaky_clip_cpu: `op0`'s tensor `x`'s mtype should be LN_MEM_CPU, but gets LN_MEM_NONE",
        ),
        (
            "row_view_owner_offset",
            "row_view_cpu",
            instance(&[float(&[4, 3])], &["y"], &row(2.0, 3.0)),
            "op0(row_view_cpu) should satisfy: \"first + count <= src->dims[0]\"",
        ),
        (
            "row_view_owner_offset",
            "row_view_cpu",
            instance(&[float(&[4, 3])], &["y"], &row(4.0, 1.0)),
            "row_view_cpu: `op0`'s `first` param's value should be < 4, but gets a 4",
        ),
        (
            "operator_custom_check",
            "tile_cpu",
            instance(&[float(&[9, 20])], &["y"], &tile(1.0)),
            "op0(tile_cpu) should satisfy: \"10800 elements are too many\"",
        ),
        (
            "operator_custom_check",
            "tile_cpu",
            instance(&[float(&[9, 20])], &["y"], &tile(2.0)),
            "op0(tile_cpu) should satisfy: \"axis 2 does not fit shape [9, 20]\"",
        ),
        (
            "pad2d_array_param",
            "pad2d_cpu",
            instance(&[float(&[1, 1, 2, 2])], &["y"], &border),
            "pad2d_cpu: `op0`'s `border` param[1] should be >= 0, but gets -2",
        ),
        (
            "pad2d_array_param",
            "pad2d_cpu",
            instance(&[float(&[1, 1, 2])], &["y"], &border),
            "pad2d_cpu: `op0`'s tensor `x` should be a 4-dimensional tensor, but has 3 dimensions",
        ),
    ] {
        assert_eq!(infer(&case(name), optype, &operator), Err(message.to_owned()));
    }
}

#[test]
fn views_lie_within_their_owners() {
    let library = case("row_view_owner_offset");
    let description = library.get("row_view_cpu").unwrap();
    let operator = instance(&[tensor("x", FLOAT, &[6, 3])], &["y"], &[("first", number(2.0)), ("count", number(3.0))]);
    let inference = library.infer(description, &operator).unwrap();
    assert_eq!(inference.outputs[0].extents, [3, 3]);
    for owner_offset in [0, 64] {
        assert_eq!(library.view_offset(description, &operator, &inference, 0, owner_offset), Ok(24));
    }
}

/// A description with a text in the place of `custom`.
fn with_custom(custom: &str) -> Library {
    let custom = custom.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let text = format!(
        "{{\"optype\": \"x_cpu\", \"author\": \"a\", \"arch\": \"cpu\", \"params\": [], \
         \"tensors_in\": [{{\"arg_name\": \"src\", \"mtype\": \"LN_MEM_CPU\"}}], \
         \"tensors_out\": [{{\"arg_name\": \"dst\", \"mtype\": \"LN_MEM_CPU\", \"custom\": \"{custom}\"}}]}}"
    );
    Library::read(&[("x.json", text.as_bytes())]).unwrap_or_else(|errors| panic!("{errors:?}"))
}

#[test]
fn faults_name_the_line_in_the_text() {
    let sound = "dst_ndim = 1;\ndst_dims = src->dims;\ndst_dtype = src->dtype;\n";
    let operator = instance(&[tensor("x", FLOAT, &[6])], &["y"], &[]);
    assert_eq!(infer(&with_custom(sound), "x_cpu", &operator), Ok(vec![vec![6]]));
    for (more, message) in [
        ("int a = src->dims[3];", "`custom` of output 'dst', line 4: element 3 is outside of the memory, which has 1"),
        ("src->dims[0] = 1;", "`custom` of output 'dst', line 4: it writes to what can only be read"),
        (
            "src->ndim = 1;",
            "`custom` of output 'dst', line 4: members of structures can only be read while shapes are inferred",
        ),
        ("for (;;)\n;", "`custom` of output 'dst', line 4: it takes too many steps: is there a loop without end?"),
        (
            "\nln_alloc(1ul << 60);",
            "`custom` of output 'dst', line 5: it asks for 1152921504606846976 bytes of memory at once",
        ),
        ("dst_ndim = 9;", "output 'dst': it has 9 dimensions, not 1 to 8"),
        ("dst_ndim = 2;", "output 'dst': element 0 is outside of the memory, which has 1"),
        ("dst_dims = (int[]){0};", "output 'dst': its shape is [0]: extents must be positive"),
        (
            "dst_dims = (int[]){65536, 65536}; dst_ndim = 2;",
            "output 'dst': its shape is [65536, 65536]: it has more elements than an int can count",
        ),
        ("dst_dtype = 11;", "output 'dst': its dtype isn't one of the element types"),
        ("int a = dst->ndim;", "`custom` of output 'dst', line 4: it reads a pointer that was never assigned"),
    ] {
        let library = with_custom(&format!("{sound}{more}"));
        let start = std::time::Instant::now();
        assert_eq!(infer(&library, "x_cpu", &operator), Err(message.to_owned()));
        // A tenth of a second where nothing else runs.
        assert!(start.elapsed().as_secs() < 5, "{more}");
    }
    let error = with_custom("int a;").infer(with_custom("int a;").get("x_cpu").unwrap(), &operator).unwrap_err();
    assert_eq!(error.message, "`ndim` of output 'dst': it reads what was never written");
    assert_eq!(error.location.to_string(), "x_cpu \"op0\"");
}

#[test]
fn what_a_run_takes_follows_from_the_types() {
    let text = r#"{"optype": "x_cpu", "author": "a", "arch": "cpu", "operations": "2.5 * src->len", "workspace": "k * (int)sizeof(float)",
        "tensors_in": [{"arg_name": "src", "mtype": "LN_MEM_CPU"}, {"arg_name": "other", "mtype": "LN_MEM_CPU"}],
        "tensors_out": [{"arg_name": "dst", "mtype": "LN_MEM_CPU", "ndim": 1, "dims": [6], "dtype": "src->dtype", "overwrites": "src"},
                        {"arg_name": "twin", "mtype": "LN_MEM_CPU", "ndim": 1, "dims": [6], "dtype": "src->dtype", "overwrites": "src"},
                        {"arg_name": "less", "mtype": "LN_MEM_CPU", "ndim": 1, "dims": [5], "dtype": "src->dtype", "overwrites": "other"}],
        "params": [{"arg_name": "k", "ptype": "LN_PARAM_NUMBER", "realtype": "int"}], "run": "(void)workspace;"}"#;
    let library = Library::read(&[("x", text.as_bytes())]).unwrap_or_else(|errors| panic!("{errors:?}"));
    let x = tensor("x", FLOAT, &[2, 3]);
    let operator = |k: f64| instance(&[x.clone(), x.clone()], &["a", "b", "c"], &[("k", number(k))]);
    let description = library.get("x_cpu").unwrap();
    let inference = library.infer(description, &operator(16.0)).unwrap();
    assert_eq!((inference.operations, inference.workspace), (15, 64));
    let implementation = description.implementation(&operator(16.0), &inference, &[0, 0, 0]).unwrap();
    assert_eq!(implementation.overwrites, [(0, 0)], "one output only, and of the same size");
    let found = infer(&library, "x_cpu", &operator(-1.0)).unwrap_err();
    assert_eq!(found, "x_cpu: `op0`'s `workspace` is -4, a number from 0 to 2147483648 expected");
}
