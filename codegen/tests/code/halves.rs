//! Conversions between half and single precision: every half, and singles and doubles around every half and between them.

use mlc_codegen::{Execution, Options, ScheduleOptions, generate};
use mlc_ir::ops::Cast;
use mlc_ir::{DType, Graph, Tensor, TensorType};

/// The casts of one input to some types, as one model; the input's and the outputs' bytes.
fn converted(from: DType, input: &Tensor, to: &[DType], target: &mlc_codegen::Target) -> Option<Vec<Tensor>> {
    let ty = TensorType::new(from, input.shape());
    let mut graph = Graph::new("casts");
    let x = graph.add_input("x", ty.clone());
    for &dtype in to {
        let node = graph.add(Cast { dtype }, &[x], dtype.name()).unwrap();
        graph.add_output(dtype.name(), node.into());
    }
    let options = Options {
        model_name: "m".into(),
        target: target.clone(),
        execution: Execution::default(),
        schedules: ScheduleOptions::default(),
    };
    let module = generate(&graph, &options).unwrap();
    let bytes = crate::common::run(&[module], target, &input.to_le_bytes())?;
    let mut rest = &bytes[..];
    let outputs = to.iter().map(|&dtype| {
        let ty = TensorType { dtype, ..ty.clone() };
        let (own, behind) = rest.split_at(ty.bytes());
        rest = behind;
        Tensor::from_le_bytes(ty, own)
    });
    Some(outputs.collect())
}

fn same(what: &str, x: f64, found: f64, expected: f64) {
    let equal = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
    assert!(equal, "{what} of {x:e} is {found:e}, not {expected:e}");
}

#[test]
fn every_half_widens_exactly() {
    for half in [DType::F16, DType::Bf16] {
        let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let input = Tensor::from_le_bytes(TensorType::new(half, [1 << 16]), &bytes);
        let copying = ["cortex-m4", "riscv32"].map(crate::common::embedded);
        for target in crate::common::targets().into_iter().chain(copying) {
            let Some(outputs) = converted(half, &input, &[DType::F32, DType::F64], &target) else { return };
            for output in outputs {
                for (x, y) in input.to_floats().into_iter().zip(output.to_floats()) {
                    same(&format!("{half} on {}", target.vector_bytes), x, y, x);
                }
            }
        }
    }
}

/// All halves, the middles between neighbours, what lies closely beside either, and numbers of every exponent.
fn doubles(half: DType) -> Vec<f64> {
    let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let halves = Tensor::from_le_bytes(TensorType::new(half, [1 << 16]), &bytes).to_floats();
    let mut values = halves.clone();
    for pair in halves.windows(2).step_by(3) {
        let middle = (pair[0] + pair[1]) / 2.0;
        values.extend([middle, middle.next_up(), middle.next_down()]);
        values.extend([f64::from((middle as f32).next_up()), f64::from((middle as f32).next_down())]);
    }
    let mut generator = mlc_ir::Generator::new(9);
    for _ in 0..20_000 {
        values.push(f64::from_bits(generator.bits()));
        values.push(f64::from(f32::from_bits(generator.bits() as u32)));
    }
    values.extend([65519.99, 65520.0, 65504.0, 3.3961775e38, 3.3961e38, f64::MAX, 2.0f64.powi(-25), 1e-320]);
    values.resize(values.len().next_multiple_of(16), 0.5);
    values
}

#[test]
fn numbers_are_rounded_to_the_nearest_half_and_ties_to_even() {
    for half in [DType::F16, DType::Bf16] {
        let values = doubles(half);
        for from in [DType::F32, DType::F64] {
            let input = Tensor::from_floats(TensorType::new(from, [values.len()]), values.clone());
            let expected = Tensor::from_floats(TensorType::new(half, [values.len()]), input.to_floats()).to_floats();
            for target in crate::common::targets() {
                let Some(outputs) = converted(from, &input, &[half], &target) else { return };
                let found = outputs[0].to_floats();
                for ((&x, y), exact) in input.to_floats().iter().zip(found).zip(&expected) {
                    same(&format!("{from} to {half} on {}", target.vector_bytes), x, y, *exact);
                }
            }
        }
    }
}
