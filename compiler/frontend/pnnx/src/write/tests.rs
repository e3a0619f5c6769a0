use super::*;
use crate::{Parameter, read};

const TEXT: &str = "\
7767517
4 3
pnnx.Input               in                       0 1 0 #0=(1,?,%h)f32
pnnx.Attribute           table.of.a.very.long.name.indeed 0 1 1 @data=(2)f32 #1=(2)f32
F.batch_norm             bn                       3 1 0 1 0 2 eps=1.000000e-5 k=(0.5,1.0) training=False $weight=0 $running_mean=1 #0=(1,?,%h)f32 #1=(2)f32 #0=(1,?,%h)f32
pnnx.Output              out                      1 0 2
";

fn archive() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&0.5_f32.to_le_bytes());
    bytes.extend_from_slice(&(-1.0_f32).to_le_bytes());
    let mut model = read(&TEXT.replace("@data=(2)f32", "@data=(0)f32").into_bytes(), None).unwrap().0;
    let attribute = model.operators[1].attributes.get_mut("data").unwrap();
    attribute.shape = vec![2];
    attribute.data = bytes.into();
    to_bin(&model).unwrap()
}

#[test]
fn both_files_come_back_byte_for_byte() {
    let bin = archive();
    let (model, diagnostics) = read(TEXT.as_bytes(), Some(bin.clone().into())).unwrap();
    assert_eq!(diagnostics, []);
    assert_eq!(to_param_text(&model).unwrap(), TEXT);
    assert_eq!(to_bin(&model).unwrap(), bin);
}

#[test]
fn a_sloppy_file_is_written_in_canonical_form() {
    let sloppy = TEXT.replace("1.000000e-5", "1e-05").replace(' ', "\t ").replace('\n', "\r\n\n");
    let bin = archive();
    let (model, _) = read(sloppy.as_bytes(), Some(bin.into())).unwrap();
    assert_eq!(to_param_text(&model).unwrap(), TEXT);
}

#[test]
fn any_parameter_that_can_be_written_is_read_back() {
    let parameters = [
        Parameter::Null,
        Parameter::Bool(true),
        Parameter::Int(i32::MIN),
        Parameter::Float(f32::MIN_POSITIVE),
        Parameter::Float(f32::MAX),
        Parameter::Float(-0.1),
        Parameter::String(String::new()),
        Parameter::String("a=b".into()),
        Parameter::IntList(vec![1, -1]),
        Parameter::FloatList(vec![1.0, 3e-9]),
        Parameter::StringList(vec!["@0".into(), "1".into()]),
    ];
    let (mut model, _) = read(TEXT.as_bytes(), Some(archive().into())).unwrap();
    for parameter in parameters {
        model.operators[2].parameters.insert("p".into(), parameter);
        let (back, _) = read(to_param_text(&model).unwrap().as_bytes(), Some(to_bin(&model).unwrap().into())).unwrap();
        assert_eq!(back, model);
    }
}

#[test]
fn texts_with_blanks_are_refused() {
    let (mut model, _) = read(TEXT.as_bytes(), Some(archive().into())).unwrap();
    let mut refuse = |change: fn(&mut Model), text: &str| {
        let before = model.clone();
        change(&mut model);
        assert!(to_param_text(&model).unwrap_err().to_string().contains(text), "{text}");
        model = before;
    };
    refuse(|model| model.operators[0].name = "a b".into(), "name `a b`");
    refuse(|model| model.operators[0].kind.clear(), "type ``");
    refuse(|model| model.operands[0].name = "0\n".into(), "operand `0\n`");
    refuse(
        |model| {
            model.operators[2].parameters.insert("p".into(), Parameter::String("x y".into()));
        },
        "value `x y`",
    );
    model.operators[1].name = "n".repeat(70_000);
    assert!(matches!(to_bin(&model), Err(WriteError::NameTooLong(_))));
}
