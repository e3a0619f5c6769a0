use super::*;
use crate::{Dimension, ElementType, OperandId, OperatorId, Parameter};
use mlc_ir::{Code, Severity};

const GOOD: [&str; 4] = [
    "pnnx.Input in 0 1 0 #0=(1,8)f32",
    "torch.matmul m 2 1 0 0 1 $input=0 $other=0 #0=(1,8)f32 #1=(1,1)f32",
    "pnnx.Expression e 2 1 0 1 2 expr=add(@0,mul(@1,2))",
    "pnnx.Output out 1 0 2",
];

fn file(lines: &[&str], operands: usize) -> String {
    format!("7767517\n{} {operands}\n{}\n", lines.len(), lines.join("\n"))
}

/// Replaces one of the good lines.
fn with_line(index: usize, line: &str) -> String {
    let mut lines = GOOD;
    lines[index] = line;
    file(&lines, 3)
}

/// The first error must have this code, place and message.
fn check(text: &str, code: Code, place: (u32, u32), message: &str) {
    let diagnostics = read(text.as_bytes(), None).unwrap_err();
    let found = diagnostics.iter().find(|diagnostic| diagnostic.is_error()).unwrap();
    assert!(found.message.contains(message), "{message}: {diagnostics:#?}");
    assert_eq!(found.code, code, "{message}");
    assert_eq!((found.location.line, found.location.column), (Some(place.0), Some(place.1)), "{message}");
}

/// The file is read with one warning.
fn check_warning(text: &str, message: &str) {
    let (_, diagnostics) = read(text.as_bytes(), None).unwrap();
    assert_eq!(diagnostics.len(), 1, "{diagnostics:#?}");
    assert_eq!(diagnostics[0].severity, Severity::Warning);
    assert!(diagnostics[0].message.contains(message), "{message}: {diagnostics:#?}");
}

#[test]
fn a_model_is_read_into_a_graph() {
    let (model, diagnostics) = read(file(&GOOD, 3).as_bytes(), None).unwrap();
    assert_eq!(diagnostics, []);
    let matmul = &model.operators[1];
    assert_eq!((matmul.kind.as_str(), matmul.name.as_str(), matmul.line), ("torch.matmul", "m", 4));
    assert_eq!(matmul.inputs, [OperandId(0), OperandId(0)]);
    assert_eq!(matmul.input_names, [Some("input".to_owned()), Some("other".to_owned())]);
    let operand = model.operand(OperandId(0));
    assert_eq!(operand.producer, OperatorId(0));
    assert_eq!(operand.consumers, [OperatorId(1), OperatorId(2)]);
    let ty = operand.ty.as_ref().unwrap();
    assert_eq!(
        (ty.element_type, ty.shape.as_slice()),
        (ElementType::F32, &[Dimension::Known(1), Dimension::Known(8)][..])
    );
    assert_eq!(model.operands[2].ty, None);
    assert_eq!(model.operators[2].parameters["expr"], Parameter::String("add(@0,mul(@1,2))".into()));
}

#[test]
fn a_label_goes_to_the_first_input_without_one() {
    let text = with_line(1, "nn.MultiheadAttention a 3 1 0 0 0 1 $key=0 $attn_mask=0");
    let (model, _) = read(text.as_bytes(), None).unwrap();
    assert_eq!(model.operators[1].input_names, [Some("key".to_owned()), Some("attn_mask".to_owned()), None]);
    assert_eq!(model.operators[1].input_named("attn_mask"), Some(OperandId(0)));
    check(&with_line(1, "a.b c 1 1 0 1 $a=0 $b=0"), Code::DuplicateDefinition, (4, 23), "have other names already");
    check(&with_line(1, "a.b c 1 1 0 1 $a=7"), Code::UndefinedValue, (4, 18), "isn't an input of this operator");
    check(&with_line(1, "a.b c 2 1 0 0 1 $a=0 $a=0"), Code::DuplicateDefinition, (4, 22), "`a` is given twice");
}

#[test]
fn the_header_must_be_right() {
    let good = file(&GOOD, 3);
    check("", Code::Syntax, (1, 1), "the first line isn't 7767517");
    check(&good.replace("7767517", "7767517x"), Code::Syntax, (1, 1), "the first line");
    check("7767517", Code::Syntax, (2, 1), "ends before the operator count");
    check(&good.replace("4 3", "five 3"), Code::Syntax, (2, 1), "number of operators, found `five`");
    check(&good.replace("4 3", "4 -3"), Code::Syntax, (2, 3), "number of operands, found `-3`");
    check(&good.replace("4 3", "4"), Code::Syntax, (2, 1), "number of operands is missing");
    check(&good.replace("4 3", "5 3"), Code::CountMismatch, (2, 1), "5 operators are declared, the file has 4");
    check(&good.replace("4 3", "3 3"), Code::CountMismatch, (6, 1), "3 operators are declared, the file has 4");
    check(&good.replace("4 3", "4 2"), Code::CountMismatch, (2, 3), "2 operands are declared, the operators have 3");
    check(&good.replace("4 3", "99999999999999999999 3"), Code::CountMismatch, (2, 1), "operators are declared");
    check("7767517\n2147483647 2147483647\n", Code::CountMismatch, (2, 1), "2147483647 operators are declared");
    check_warning(&good.replace("4 3", "4 3 # counts"), "behind the two counts");
    let options = ReadOptions { tolerate_operand_count: true, ..ReadOptions::default() };
    let (_, diagnostics) = read_with(good.replace("4 3", "4 2").as_bytes(), None, &options).unwrap();
    assert_eq!(diagnostics[0].code, Code::CountMismatch);
    let help = read(b"PK\x03\x04", None).unwrap_err()[0].help.clone().unwrap();
    assert!(help.contains(".pnnx.param"), "{help}");
}

#[test]
fn files_of_ncnn_are_recognised() {
    let text = "7767517\n2 2\nInput data 0 1 data 0=224 1=224 2=3\nConvolution c 1 1 data c 0=64 1=3\n";
    check(text, Code::RelatedFormat, (3, 1), "a model of ncnn");
}

#[test]
fn lines_must_be_complete_and_clean() {
    check(&with_line(1, "torch.matmul m 2"), Code::Syntax, (4, 17), "expected a type, a name");
    check(&with_line(1, "torch.matmul m 2 1 0 0"), Code::CountMismatch, (4, 18), "1 outputs are declared");
    check(&with_line(1, "a.b m 99999999999999999999 1 0"), Code::CountMismatch, (4, 7), "inputs are declared");
    check(&with_line(1, "a.b m -1 1 0"), Code::Syntax, (4, 7), "number of inputs, found `-1`");
    check(&with_line(1, "a.b m\0 1 1 0 1"), Code::Syntax, (4, 6), "control character U+0000");
    check(&with_line(1, "a.b m 1 1 0 1 =5"), Code::Syntax, (4, 15), "expected a key before `=`");
    check(&with_line(1, "a.b m 1 1 0 1 k=1 k=2"), Code::DuplicateDefinition, (4, 19), "`k` is given twice");
    check(&with_line(1, "a.b m 1 1 0 1 k=(1"), Code::Syntax, (4, 17), "the list isn't closed");
    check(&with_line(1, "a.b m 1 1 0 1 k=9999999999"), Code::NumberOutOfRange, (4, 17), "doesn't fit 32 bits");
    let mut invalid = file(&GOOD, 3).into_bytes();
    let name = invalid.iter().rposition(|&byte| byte == b'm').unwrap();
    invalid[name] = 0xff;
    let found = &read(&invalid, None).unwrap_err()[0];
    assert!(found.message.contains("UTF-8"));
    assert!(read("7767517\n1 0\n\u{fc}.x n\u{e4}me 0 0\n".as_bytes(), None).is_ok());
}

#[test]
fn operands_are_defined_once_and_before_use() {
    check(&with_line(1, "a.b m 1 1 77 1"), Code::UndefinedValue, (4, 11), "operand `77` is never defined");
    check(&with_line(1, "a.b m 1 1 2 1"), Code::UndefinedValue, (4, 11), "used before it is defined");
    check(&with_line(1, "a.b m 1 1 1 1"), Code::UndefinedValue, (4, 11), "uses its own output `1`");
    check(&with_line(1, "a.b m 1 2 0 1 0"), Code::DuplicateDefinition, (4, 15), "operand `0` is defined twice");
    check(&with_line(1, "a.b m 1 2 0 1 1"), Code::DuplicateDefinition, (4, 15), "operand `1` is defined twice");
}

#[test]
fn shapes_of_operands_agree() {
    check(&with_line(1, "a.b m 1 1 0 1 #0=(1,9)f32"), Code::ShapeMismatch, (4, 18), "is (1,9)f32 here and (1,8)f32");
    check(&with_line(1, "a.b m 1 1 0 1 #1=1,9)f32"), Code::Syntax, (4, 18), "expected a shape in parentheses");
    check(&with_line(1, "a.b m 1 1 0 1 #1=(9999999999)f32"), Code::NumberOutOfRange, (4, 18), "above 2147483647");
    check_warning(&with_line(1, "a.b m 1 1 0 1 #7=(1)f32"), "`#7` isn't an input or output");
    check_warning(&with_line(1, "a.b m 1 1 0 1 #1=(1)qint8"), "unknown element type `qint8`");
    let (model, _) = read(with_line(1, "a.b m 1 1 0 1 #1=()i64").as_bytes(), None).unwrap();
    assert_eq!(model.operands[1].ty.as_ref().unwrap().shape, []);
}

#[test]
fn the_operators_of_the_format_have_rules() {
    check(&with_line(1, "pnnx.Input m 1 1 0 1"), Code::OperandCount, (4, 1), "has no inputs and one output");
    check(&with_line(3, "pnnx.Output o 0 0"), Code::OperandCount, (6, 1), "has some inputs and no outputs");
    check(&with_line(1, "pnnx.Attribute m 0 1 1"), Code::ParameterMissing, (4, 1), "holds one weight, found 0");
    check(&with_line(2, "pnnx.Expression e 1 1 0 2"), Code::ParameterMissing, (5, 1), "needs the parameter `expr`");
    check(&with_line(2, "pnnx.Expression e 1 1 0 2 expr=add(@0)"), Code::Syntax, (5, 32), "`add` takes 2 arguments");
    check(&with_line(2, "pnnx.Expression e 1 1 0 2 expr=add(@0,@1)"), Code::UndefinedValue, (5, 32), "input @1 of 1");
    let unknown = with_line(2, "pnnx.Expression e 1 1 0 2 expr=add(@0,frob(1))");
    check(&unknown, Code::OperatorUnsupported, (5, 39), "unknown function `frob`");
    check_warning(&with_line(3, "a.b last 1 0 2"), "has no pnnx.Output");
}

#[test]
fn names_are_unique_where_weights_are() {
    check_warning(&with_line(2, "nn.ReLU m 1 1 0 2"), "another operator is called `m`");
    let text = with_line(2, "nn.PReLU m 1 1 0 2 @weight=(0)f32");
    check(&text, Code::DuplicateDefinition, (5, 10), "another operator is called `m`");
    // Both name the entry `x.y.z`.
    let lines = ["a.b x.y 0 0 @z=(0)f32", "a.b x 0 0 @y.z=(0)f32", "pnnx.Input in 0 1 0", "pnnx.Output out 1 0 0"];
    let (model, _) = read(file(&lines, 1).as_bytes(), None).unwrap();
    let bin = crate::to_bin(&Model { operators: vec![model.operators[0].clone()], operands: vec![] }).unwrap();
    let diagnostics = read(file(&lines, 1).as_bytes(), Some(bin.into())).unwrap_err();
    assert_eq!((diagnostics[0].code, diagnostics[0].location.line), (Code::DuplicateDefinition, Some(4)));
    assert_eq!(diagnostics[0].message, "two weights are called `x.y.z`");
}

#[test]
fn weights_have_a_type_and_bytes() {
    let weight = |ty: &str| with_line(1, &format!("nn.PReLU p 1 1 0 1 @weight={ty}"));
    check(&weight("(3)f32"), Code::WeightMissing, (4, 20), "the file of weights is missing or empty");
    check(&weight("(?)f32"), Code::Syntax, (4, 28), "`?` isn't a dimension");
    check(&weight("(3)f31"), Code::Syntax, (4, 28), "unknown element type `f31`");
    check(&weight("(99999999999)f32"), Code::NumberOutOfRange, (4, 28), "above 2147483647");
    check(&weight("(3)null"), Code::VariantUnsupported, (4, 20), "has no element type, but is used");
    check(&with_line(1, "a.b p 1 1 0 1 @w=(0)f32 @w=(0)f32"), Code::DuplicateDefinition, (4, 25), "`w` is given twice");
    let huge = "(65536,65536,65536,65536)f32";
    let bin = crate::to_bin(&Model::default()).unwrap();
    let overflow = read(weight(huge).as_bytes(), Some(bin.clone().into())).unwrap_err();
    assert_eq!(overflow[0].code, Code::NumberOutOfRange);
    let missing = read(weight("(3)f32").as_bytes(), Some(bin.into())).unwrap_err();
    assert_eq!(missing[0].message, "weight `p.weight` isn't in the archive");
}

#[test]
fn garbage_is_reported_briefly_and_quickly() {
    let lines: String = (0..5000).map(|index| format!("a.b n{index} 1 0 missing{index}\n")).collect();
    let diagnostics = read(format!("7767517\n5000 0\n{lines}").as_bytes(), None).unwrap_err();
    assert_eq!(diagnostics.len(), 100);
    assert_eq!(diagnostics[99].notes, ["4900 more errors aren't shown"]);
    let many = "0 ".repeat(100_000);
    let labels: String = (0..100_000).map(|index| format!("$k{index}=0 ")).collect();
    let text = format!("7767517\n2 1\npnnx.Input i 0 1 0\na.b n 100000 0 {many}{labels}\n");
    let start = std::time::Instant::now();
    let (model, _) = read(text.as_bytes(), None).unwrap();
    assert_eq!(model.operators[1].input_names[99_999].as_deref(), Some("k99999"));
    // Seconds on the busiest machine, hours if each name were compared with all others.
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

#[test]
fn long_names_dont_multiply() {
    let name = "n".repeat(4 << 20);
    let uses: String = (0..300_000).map(|index| format!("missing{index} ")).collect();
    let weights: String = (0..300_000).map(|index| format!("@w{index}=(1)f32 ")).collect();
    let text = format!("7767517\n1 0\na.b {name} 300000 0 {uses}{weights}\n");
    let bin = crate::to_bin(&Model::default()).unwrap();
    let start = std::time::Instant::now();
    let diagnostics = read(text.as_bytes(), Some(bin.into())).unwrap_err();
    // Seconds on the busiest machine, hours if each error copied the name.
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
    assert_eq!(diagnostics.len(), 100);
    assert!(diagnostics.iter().all(|diagnostic| diagnostic.to_string().len() < 1000));
}

#[test]
fn places_name_their_files() {
    let options =
        ReadOptions { param_file: Some("m.param".into()), bin_file: Some("m.bin".into()), ..Default::default() };
    let text = with_line(1, "nn.PReLU p 1 1 77 1 @weight=(3)f32");
    let diagnostics = read_with(text.as_bytes(), Some(Bytes::from_static(b"junk")), &options).unwrap_err();
    let places: Vec<_> = diagnostics.iter().map(|diagnostic| diagnostic.location.to_string()).collect();
    assert_eq!(places, ["m.param:4:16, nn.PReLU \"p\"", "m.bin, byte 4"]);
}
