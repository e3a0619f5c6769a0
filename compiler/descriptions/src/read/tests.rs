use super::*;

/// What is said about a file, in the order of the text.
fn problems(text: &str) -> Vec<String> {
    let diagnostics = match Library::read(&[("f", text.as_bytes())]) {
        Ok(library) => library.warnings,
        Err(diagnostics) => diagnostics,
    };
    diagnostics.iter().map(ToString::to_string).collect()
}

/// A description with an input, an output and a parameter, to each of which fields are added.
fn description(operator: &str, input: &str, output: &str, parameter: &str) -> String {
    format!(
        "{{ \"optype\": \"x_cpu\", \"author\": \"a\", \"arch\": \"cpu\", {operator}\n\
         \"tensors_in\": [{{ \"arg_name\": \"src\", \"mtype\": \"LN_MEM_CPU\", {input} }}],\n\
         \"tensors_out\": [{{ \"arg_name\": \"dst\", \"mtype\": \"LN_MEM_CPU\", \"ndim\": \"src->ndim\", \
         \"dims\": \"src->dims\", \"dtype\": \"src->dtype\", {output} }}],\n\
         \"params\": [{{ \"arg_name\": \"k\", \"ptype\": \"LN_PARAM_NUMBER\", \"realtype\": \"int\", {parameter} }}] }}"
    )
}

fn found(operator: &str, input: &str, output: &str, parameter: &str) -> Vec<String> {
    let clean = |text: &str| text.replace(", }", " }").replace("\"cpu\", \n", "\"cpu\",\n");
    problems(&clean(&description(operator, input, output, parameter)))
}

#[test]
fn a_sound_description_has_no_problems() {
    assert_eq!(found("", "", "", ""), Vec::<String>::new());
    let input =
        r#""dtype": "TL_FLOAT", "ndim": "2", "len": 6, "static": true, "check": "src->len > 1, \"%d\", src->len""#;
    let output = r#""owner": "src_name", "overwrites": "src", "static": false, "len": "k", "cleanup": "{}""#;
    let parameter =
        r#""ge": 0, "lt": "src->dims[0]", "checks": [{"check": "k != 3"}], "custom": "int n = k;", "default": 1"#;
    let operator = r#""checks": [{"check": "n < 4"}], "custom": "n++;", "pure": false, "extra_privs": [{"type": "const unsigned int *", "name": "p[2]"}], "calc_offset": "return te->offset + k;", "operations": "2.5 * src->len", "workspace": 64, "alignment": 32,"#;
    assert_eq!(found(operator, input, output, parameter), Vec::<String>::new());
}

#[test]
fn all_problems_of_a_file_are_told() {
    let text = r#"{"ops": [
{"optype": "a_cpu", "author": "x", "arch": "cpu", "tensors_in": [{"arg_name": "int"}], "tensors_out": {}, "params": []},
{"optype": "a_gpu", "autor": "x", "arch": "gpu", "tensors_in": [], "tensors_out": [], "params": [{"arg_name": "k"}]},
{"optype": "b", "author": 1, "arch": "none", "tensors_in": [], "tensors_out": [], "params": []},
{"optype": "c", "author": "x", "arch": "none", "tensors_in": [], "tensors_out": [], "params": []},
{"optype": "c", "author": "x", "arch": "none", "tensors_in": [], "tensors_out": [], "params": []}
]}"#;
    let expected = [
        "input 'int': 'int' isn't an identifier of C, or is a keyword (bad-identifier) (f:2:79, /ops/0/tensors_in/0/arg_name)",
        "input 'int' needs a `mtype` (missing-field) (f:2:66, /ops/0/tensors_in/0/mtype)",
        "the `tensors_out` of operator 'a_cpu' must be an array, not an object (wrong-type) (f:2:103, /ops/0/tensors_out)",
        "operator 'a_gpu' needs a `author` (missing-field) (f:3:1, /ops/1/author)",
        "the field `autor` of operator 'a_gpu' has no meaning (unknown-field) (f:3:21, /ops/1/autor)",
        "the `arch` of operator 'a_gpu' is 'gpu', not one of none, cpu, cuda, cudnn, tensorrt, dpu (unknown-value) (f:3:43, /ops/1/arch)",
        "parameter 'k' needs a `ptype` (missing-field) (f:3:98, /ops/1/params/0/ptype)",
        "the `author` of operator 'b' must be a string, not a number (wrong-type) (f:4:27, /ops/2/author)",
        "the `optype` 'c' is described twice (duplicate-name) (f:6:12, /ops/4/optype)",
    ];
    let found = problems(text);
    for line in expected {
        assert!(found.iter().any(|message| message.ends_with(line)), "{line}\nin\n{}", found.join("\n"));
    }
    assert_eq!(found.len(), expected.len(), "{}", found.join("\n"));
    let diagnostics = Library::read(&[("f", text.as_bytes())]).err().unwrap();
    assert!(diagnostics.iter().any(|diagnostic| diagnostic.help.as_deref() == Some("is `author` meant?")));
}

#[test]
fn every_kind_of_problem_has_its_place() {
    let mut wrong = Vec::new();
    for (operator, input, output, parameter, message) in [
        (
            "",
            r#""sametype": "src""#,
            "",
            "",
            "which doesn't come before it (unknown-reference) (f:2:72, /tensors_in/0/sametype)",
        ),
        ("", r#""dtype": "TL_HALF""#, "", "", "(unknown-value) (f:2:69, /tensors_in/0/dtype)"),
        (
            "",
            r#""dtype": "dtype(1)""#,
            "",
            "",
            "the function 'dtype' can't be called while shapes are inferred (bad-snippet) (f:2:70, /tensors_in/0/dtype)",
        ),
        (
            "",
            r#""check": "src->ndim > , \"m\"""#,
            "",
            "",
            "a value expected, `,` found (bad-snippet) (f:2:82, /tensors_in/0/check)",
        ),
        (
            "",
            r#""check": "src->ndim, 3""#,
            "",
            "",
            "the message as a string expected, `3` found (bad-snippet) (f:2:81, /tensors_in/0/check)",
        ),
        (
            "",
            r#""check": "f(src->ndim, 3) > 0""#,
            "",
            "",
            "the function 'f' can't be called while shapes are inferred (bad-snippet) (f:2:70, /tensors_in/0/check)",
        ),
        ("", "", r#""owner": "dst""#, "", "which isn't an input (unknown-reference) (f:3:135, /tensors_out/0/owner)"),
        (
            "",
            "",
            r#""custom": "{\n  int a;\n  a = b;\n}""#,
            "",
            "`custom` of output 'dst', line 3: 'b' isn't known here; 'a' is (bad-snippet) (f:3:156, /tensors_out/0/custom)",
        ),
        (
            "",
            "",
            "",
            r#""ge": "src->dim[0]""#,
            "the member 'dim' can't be looked at while shapes are inferred (bad-snippet) (f:4:90, /params/0/ge)",
        ),
        ("", "", "", r#""default": "1""#, "isn't a value of its `ptype` (wrong-type) (f:4:89, /params/0/default)"),
        (
            r#""run": "if (1) {","#,
            "",
            "",
            "",
            "`run` of operator 'x_cpu': `{` isn't closed (bad-snippet) (f:1:67, /run)",
        ),
        (
            r##""run": "\n#define X","##,
            "",
            "",
            "",
            "`run` of operator 'x_cpu', line 2: lines of the preprocessor aren't allowed (bad-snippet) (f:1:62, /run)",
        ),
        (
            r#""post_run": "puts(\"}","#,
            "",
            "",
            "",
            "the string isn't closed on its line (bad-snippet) (f:1:70, /post_run)",
        ),
        (
            r#""calc_offset": "return;","#,
            "",
            "",
            "",
            "a value expected, `;` found (bad-snippet) (f:1:74, /calc_offset)",
        ),
        (
            r#""extra_privs": [{"type": "float", "name": "src"}],"#,
            "",
            "",
            "",
            "(duplicate-name) (f:1:94, /extra_privs/0/name)",
        ),
        (
            r#""extra_privs": [{"type": "float", "name": "k_entry"}],"#,
            "",
            "",
            "",
            "is a variable that belongs to 'k' (bad-identifier) (f:1:94, /extra_privs/0/name)",
        ),
        (
            r#""alignment": 24,"#,
            "",
            "",
            "",
            "must be a power of two, at most 4096 (unknown-value) (f:1:65, /alignment)",
        ),
        (
            r#""alignment": "16","#,
            "",
            "",
            "",
            "must be a power of two, at most 4096 (unknown-value) (f:1:65, /alignment)",
        ),
        (
            r#""operations": "src->len *","#,
            "",
            "",
            "",
            "a value expected, the end of the text found (bad-snippet) (f:1:77, /operations)",
        ),
        (
            r#""workspace": 4, "extra_privs": [{"type": "int", "name": "workspace"}],"#,
            "",
            "",
            "",
            "the name 'workspace' is reserved where scratch memory is asked for (bad-identifier) (f:1:65, /workspace)",
        ),
        (
            "",
            "",
            r#""overwrites": "dst","#,
            "",
            "the `overwrites` of output 'dst' is 'dst', which isn't an input (unknown-reference) (f:3:140, /tensors_out/0/overwrites)",
        ),
        (
            r#""extra_privs": [{"type": "float; int", "name": "m"}],"#,
            "",
            "",
            "",
            "'float; int' isn't a type of C (bad-identifier) (f:1:77, /extra_privs/0/type)",
        ),
        (
            r#""extra_privs": [{"type": "float", "name": "m; int n"}],"#,
            "",
            "",
            "",
            "isn't a name, or a name with extents (bad-identifier) (f:1:94, /extra_privs/0/name)",
        ),
    ] {
        let found = found(operator, input, output, parameter);
        if found.len() != 1 || !found[0].ends_with(message) {
            wrong.push(format!("{message}\nin\n{}", found.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_that_the_code_needs_for_itself_are_refused() {
    for (name, reason) in [
        ("tl_tensor", "is that of a type"),
        ("size_t", "is that of a type"),
        ("priv", "is reserved"),
        ("while", "isn't an identifier of C, or is a keyword"),
        ("a b", "isn't an identifier of C, or is a keyword"),
        ("dst_dims", "is a variable that belongs to 'dst'"),
    ] {
        let text = description("", "", "", "").replace("\"k\"", &format!("{name:?}"));
        let found = problems(&text.replace(", }", " }").replace("\"cpu\", \n", "\"cpu\",\n"));
        let end = format!("{reason} (bad-identifier) (f:4:26, /params/0/arg_name)");
        assert!(found.len() == 1 && found[0].ends_with(&end), "{end}\nin\n{}", found.join("\n"));
    }
}

#[test]
fn templates_and_devices_are_only_read() {
    let text = "base { autogen: false, arch: \"cpu\", tensors_in: [], tensors_out: [], params: [] }\n\
                one_cpu : base { autogen: true, optype: \"one_cpu\", author: \"a\" }\n\
                two_cuda : one_cpu { optype: \"two_cuda\", arch: \"cuda\", custom: \"cudaMalloc(1);\" }";
    let library = Library::read(&[("f", text.as_bytes())]).unwrap_or_else(|errors| panic!("{errors:?}"));
    let names: Vec<&str> = library.iter().map(|description| description.optype.as_str()).collect();
    assert_eq!(names, ["one_cpu", "two_cuda"]);
    let broken = text.replace("cudaMalloc(1);", "cudaMalloc(1;");
    assert_eq!(problems(&broken).len(), 0, "what only devices run isn't parsed");
    assert_eq!(problems(&broken.replace("custom", "run")).len(), 1);
}

#[test]
fn thousands_of_problems_are_cut_off() {
    let text = format!("{{\"ops\": [{}]}}", vec!["{}"; 100_000].join(","));
    let found = problems(&text);
    assert_eq!(found.len(), 201);
    assert!(found[200].ends_with("only the first 200 problems are listed: there may be more"));
}
