//! Fake quantisation against its definition.

use super::tests::{compute, errors, floats};

const PER_TENSOR: &str = "aten::fake_quantize_per_tensor_affine fq 5 1 0 s z low high y";

fn numbers(scale: &str, zero_point: &str, low: &str, high: &str) -> [String; 4] {
    [("s", scale), ("z", zero_point), ("low", low), ("high", high)]
        .map(|(name, value)| format!("pnnx.Expression e_{name} 0 1 {name} expr={value}"))
}

fn rounded(x: &[f64], [scale, zero_point, low, high]: [&str; 4]) -> Vec<f64> {
    let numbers = numbers(scale, zero_point, low, high);
    let lines: Vec<&str> = numbers.iter().map(String::as_str).chain([PER_TENSOR]).collect();
    compute(&format!("({})f32", x.len()), &lines, "y", &floats(&[x.len()], x)).to_floats()
}

#[test]
fn numbers_are_those_of_integers_within_limits() {
    let x = [-100.0, -0.75, -0.25, 0.0, 0.25, 0.75, 1.0, 100.0];
    // Halves go to even.
    assert_eq!(rounded(&x, ["0.5", "3", "0", "255"]), [-1.5, -1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 100.0]);
    // Bytes with a sign, of which fewer are used than there are.
    assert_eq!(rounded(&x, ["0.5", "0", "-3", "3"]), [-1.5, -1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.5]);
    assert_eq!(rounded(&x, ["0.5", "0", "-300", "300"]), [-100.0, -1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 100.0]);
}

#[test]
fn channels_have_scales_of_their_own() {
    let lines = [
        "pnnx.Expression e_axis 0 1 axis expr=-1",
        "pnnx.Expression e_low 0 1 low expr=-128",
        "pnnx.Expression e_high 0 1 high expr=127",
        "torch.ones o 0 1 ones dtype=torch.float size=(2)",
        "torch.cumsum c 1 1 ones s dim=0",
        "torch.zeros z 0 1 z dtype=torch.int size=(2)",
        "aten::fake_quantize_per_channel_affine fq 6 1 0 s z axis low high y",
    ];
    let found = compute("(2,2)f32", &lines, "y", &floats(&[2, 2], &[0.6, 0.9, 1.5, 900.0])).to_floats();
    assert_eq!(found, [1.0, 0.0, 2.0, 254.0]);
}

#[test]
fn limits_that_no_integers_have_are_refused() {
    for (low, high) in [("0", "100000"), ("5", "5"), ("-1", "65535")] {
        let numbers = numbers("0.5", "0", low, high);
        let ends = ["pnnx.Input in 0 1 0 #0=(4)f32", "pnnx.Output out 1 0 y"];
        let middle = numbers.iter().map(String::as_str).chain([PER_TENSOR]);
        let lines: Vec<&str> = ends[..1].iter().copied().chain(middle).chain(ends[1..].iter().copied()).collect();
        let found = &errors(&lines)[0].message;
        assert!(found.contains(&format!("numbers from {low} to {high}")), "{found}");
    }
}
