//! The error of the vector versions of transcendental functions, in units in the last place of single precision.

use mlc_codegen::{Execution, Options, ScheduleOptions, Target, generate};
use mlc_ir::ops::Unary;
use mlc_ir::scalar::UnaryFunction;
use mlc_ir::{DType, Graph, Tensor, TensorType};

/// The largest error that is promised.
const BOUND: f64 = 4.0;

/// Elements per function: every exponent, both signs, and the special values.
fn arguments() -> Vec<f64> {
    let mut generator = mlc_ir::Generator::new(3);
    let mut values: Vec<f64> = Vec::new();
    for _ in 0..60_000 {
        let value = f32::from_bits(generator.bits() as u32);
        values.push(f64::from(value));
        values.push(f64::from((generator.unit() * 12.0) as f32));
        values.push(f64::from((generator.unit() * 120.0) as f32));
        values.push(f64::from(generator.unit() as f32));
    }
    // Beside multiples of pi / 2 little is left of an argument; from 2^20 on the C library takes over.
    for _ in 0..20_000 {
        let turns = generator.range(1, 700_000) as f64;
        let near = (turns * std::f64::consts::FRAC_PI_2) as f32;
        values.extend([near, -near, near.next_up(), near.next_down()].map(f64::from));
        values.push(generator.unit() * f64::from(1 << 22));
        values.push(1.0 + generator.unit() * 1e-3);
    }
    values.extend([1_048_576.0, 1_048_577.0, 88.0, 89.0, 89.41, 89.42, 0.5, 1e4, 10_001.0]);
    values.extend([
        0.0,
        -0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1.0,
        -1.0,
        88.72283,
        88.72284,
        -103.97,
        -87.33655,
    ]);
    values.resize(values.len().next_multiple_of(16), 0.5);
    values.into_iter().map(|value| f64::from(value as f32)).collect()
}

fn exact(function: UnaryFunction, x: f64) -> f64 {
    match function {
        UnaryFunction::Exp => x.exp(),
        UnaryFunction::Log => x.ln(),
        UnaryFunction::Tanh => x.tanh(),
        UnaryFunction::Log1p => x.ln_1p(),
        UnaryFunction::Expm1 => x.exp_m1(),
        UnaryFunction::Erf => libm::erf(x),
        UnaryFunction::Sin => libm::sin(x),
        UnaryFunction::Cos => libm::cos(x),
        UnaryFunction::Tan => libm::tan(x),
        UnaryFunction::Asin => libm::asin(x),
        UnaryFunction::Acos => libm::acos(x),
        UnaryFunction::Atan => libm::atan(x),
        UnaryFunction::Sinh => libm::sinh(x),
        UnaryFunction::Cosh => libm::cosh(x),
        UnaryFunction::Asinh => libm::asinh(x),
        UnaryFunction::Acosh if x < 1.0 => f64::NAN,
        UnaryFunction::Acosh => libm::acosh(x),
        UnaryFunction::Atanh => libm::atanh(x),
        _ => f64::NAN,
    }
}

/// Distance in units of the last place of the exact value, as single precision has it.
fn ulps(found: f64, exact: f64) -> f64 {
    let rounded = exact as f32;
    if (found.is_nan() && rounded.is_nan()) || found == f64::from(rounded) {
        return 0.0;
    }
    if !rounded.is_finite() || !found.is_finite() {
        // Around the overflow threshold, either side of the rounding is right.
        let near = exact.abs() / f64::from(f32::MAX);
        return if (0.999_999..1.000_001).contains(&near) { 0.0 } else { f64::INFINITY };
    }
    let unit = f64::from(f32::from_bits(rounded.abs().to_bits() + 1)) - f64::from(rounded.abs());
    (found - exact).abs() / unit.max(f64::from(f32::from_bits(1)))
}

#[test]
fn vector_functions_are_within_four_units_in_the_last_place() {
    let functions = [
        UnaryFunction::Exp,
        UnaryFunction::Log,
        UnaryFunction::Tanh,
        UnaryFunction::Log1p,
        UnaryFunction::Expm1,
        UnaryFunction::Erf,
        UnaryFunction::Sin,
        UnaryFunction::Cos,
        UnaryFunction::Tan,
        UnaryFunction::Asin,
        UnaryFunction::Acos,
        UnaryFunction::Atan,
        UnaryFunction::Sinh,
        UnaryFunction::Cosh,
        UnaryFunction::Asinh,
        UnaryFunction::Acosh,
        UnaryFunction::Atanh,
    ];
    let values = arguments();
    let ty = TensorType::new(DType::F32, [values.len()]);
    let input = Tensor::from_floats(ty.clone(), values.clone());
    for lanes in [16, 32, 64] {
        let mut graph = Graph::new("functions");
        let x = graph.add_input("x", ty.clone());
        for function in functions {
            let node = graph.add(Unary { function }, &[x], function.name()).unwrap();
            graph.add_output(function.name(), node.into());
        }
        let options = Options {
            model_name: "m".into(),
            target: Target::host(lanes),
            execution: Execution::default(),
            schedules: ScheduleOptions::default(),
        };
        let module = generate(&graph, &options).unwrap();
        let Some(bytes) = crate::common::run(&[module], &options.target, &input.to_le_bytes()) else { return };
        for (function, own) in functions.iter().zip(bytes.chunks_exact(ty.bytes())) {
            let found = Tensor::from_le_bytes(ty.clone(), own).to_floats();
            let errors = values.iter().zip(&found).map(|(&x, &y)| (ulps(y, exact(*function, x)), x, y));
            let worst = errors.max_by(|left, right| left.0.total_cmp(&right.0)).unwrap();
            eprintln!("{} with {lanes} bytes: {:.2} ulp at {:e} -> {:e}", function.name(), worst.0, worst.1, worst.2);
            assert!(worst.0 <= BOUND, "{} of {:e} gives {:e}: {} ulp", function.name(), worst.1, worst.2, worst.0);
        }
    }
}
