use super::*;

fn read(text: &str) -> Parameter {
    parse_parameter(text).unwrap()
}

#[test]
fn values_follow_from_their_spelling() {
    let string = |text: &str| Parameter::String(text.to_owned());
    for text in ["None", "()", "[]"] {
        assert_eq!(read(text), Parameter::Null, "{text}");
    }
    assert_eq!(read("True"), Parameter::Bool(true));
    assert_eq!(read("False"), Parameter::Bool(false));
    assert_eq!(read("2147483647"), Parameter::Int(i32::MAX));
    assert_eq!(read("-2147483648"), Parameter::Int(i32::MIN));
    assert_eq!(read("1.000000e-05"), Parameter::Float(1e-5));
    assert_eq!(read("-0.5"), Parameter::Float(-0.5));
    assert_eq!(read("1e6"), Parameter::Float(1e6));
    for text in ["", "true", "-inf", "inf", "nan", ".5", "+1", "@0", "ijk->kji", "3x3", "1.conv", "%x", "(%a,1)", "-"] {
        assert_eq!(read(text), string(text), "{text}");
    }
}

#[test]
fn lists_take_the_widest_kind() {
    assert_eq!(read("(7)"), Parameter::IntList(vec![7]));
    assert_eq!(read("[1,-2]"), Parameter::IntList(vec![1, -2]));
    assert_eq!(read("(1,0.5)"), Parameter::FloatList(vec![1.0, 0.5]));
    assert_eq!(read("(0,@0,2147483647)"), Parameter::StringList(vec!["0".into(), "@0".into(), "2147483647".into()]));
    assert_eq!(
        read("(1,1.0+2.0j)"),
        Parameter::ComplexList(vec![Complex { re: 1.0, im: 0.0 }, Complex { re: 1.0, im: 2.0 }])
    );
}

#[test]
fn complex_numbers_have_two_spellings_of_a_negative_part() {
    let expected = Parameter::Complex(Complex { re: 2.0, im: -3.0 });
    assert_eq!(read("2.000000e+00+-3.000000e+00j"), expected);
    assert_eq!(read("2.000000e+00-3.000000e+00j"), expected);
    assert_eq!(read("-2.0e-1+1.5j"), Parameter::Complex(Complex { re: -0.2, im: 1.5 }));
}

#[test]
fn numbers_out_of_range_are_refused() {
    assert_eq!(parse_parameter("2147483648"), Err(ValueError::OutOfRange("2147483648".into())));
    assert_eq!(parse_parameter("1e99"), Err(ValueError::OutOfRange("1e99".into())));
    assert_eq!(parse_parameter("(1,9999999999)"), Err(ValueError::OutOfRange("9999999999".into())));
    assert_eq!(parse_parameter("(1,2"), Err(ValueError::ListNotClosed));
    assert_eq!(parse_parameter("(1,2]"), Err(ValueError::ListNotClosed));
    assert_eq!(parse_parameter("("), Err(ValueError::ListNotClosed));
}

#[test]
fn shapes_are_numbers_questions_and_symbols() {
    let dimensions = parse_dimensions("1,?,%h,0").unwrap();
    let expected = [Dimension::Known(1), Dimension::Unknown, Dimension::Symbol("h".into()), Dimension::Known(0)];
    assert_eq!(dimensions, expected);
    assert_eq!(parse_dimensions("").unwrap(), []);
    for text in ["-1", "1,,2", "+1", "%", "x", " 1"] {
        assert!(parse_dimensions(text).is_err(), "{text}");
    }
    assert!(parse_extents("?").is_err());
    assert_eq!(parse_extents("2147483647").unwrap(), [i32::MAX as u32]);
    assert_eq!(parse_extents("2147483648"), Err(ValueError::DimensionOutOfRange("2147483648".into())));
    assert_eq!(split_type("(1,2)f32").unwrap(), ("1,2", "f32"));
    assert_eq!(split_type("1,2)f32"), Err(ValueError::ShapeNotClosed));
    assert_eq!(split_type("(1,2"), Err(ValueError::ShapeNotClosed));
}

#[test]
fn floats_are_spelled_like_the_exporter_does() {
    let cases = [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1e-5, "1.000000e-5"),
        (1e-12, "1.000000e-12"),
        (1e-4, "0.0001"),
        (0.01, "0.01"),
        (1.0 / 3.0, "0.333333343"),
        (0.989_303_65, "0.989303648"),
        (1.0, "1.0"),
        (-2.0, "-2.0"),
        (100.0, "100.0"),
        (123_456.0, "123456.0"),
        (999_999.5, "999999.5"),
        (1e6, "1.000000e6"),
    ];
    for (value, text) in cases {
        assert_eq!(format_float(value), text);
    }
    let complex = Complex { re: 2.0, im: -3.0 };
    assert_eq!(format_complex(complex), "2.000000e+00+-3.000000e+00j");
}

#[test]
fn every_float_is_read_back_to_the_same_bits() {
    // A multiplicative walk through all exponents and mantissas, both signs.
    let mut bits: u32 = 1;
    for _ in 0..200_000 {
        bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let value = f32::from_bits(bits);
        if !value.is_finite() {
            continue;
        }
        let text = format_float(value);
        let Parameter::Float(back) = read(&text) else { panic!("{text} isn't read as a float") };
        assert_eq!(back.to_bits(), bits, "{text}");
        let complex = Complex { re: value, im: -value };
        assert_eq!(parse_complex(&format_complex(complex)), Some(complex));
    }
}

#[test]
fn parameters_survive_a_round_trip() {
    let texts =
        ["None", "True", "-7", "0.5", "bilinear", "(1,2,3)", "(0.5,1.0)", "(a,b,3)", "torch.float", "inf", "(None,1)"];
    for text in texts {
        assert_eq!(format_parameter(&read(text)), text);
    }
}
