//! Inputs in other numbers than the model's own: integers as sensors give them, and numbers that are yet to be normalised.

use super::{Ports, defect, mismatch};
use crate::attribute::Attribute;
use crate::diagnostics::Diagnostic;
use crate::graph::{Graph, Value};
use crate::ops::{Binary, Cast, Input, Op};
use crate::scalar::BinaryFunction;
use crate::tensor::Tensor;
use crate::types::{DType, TensorType};

/// The data types that raw numbers may have.
pub const RAW: [DType; 4] = [DType::U8, DType::I8, DType::U16, DType::I16];

/// How raw numbers become those that a model wants: (x - mean) / deviation. One number is for all channels.
#[derive(Debug, Clone, PartialEq)]
pub struct Normalization {
    /// What is subtracted.
    pub means: Vec<f64>,
    /// What is divided by.
    pub deviations: Vec<f64>,
}

/// Number of the input of a name, or of the only one.
///
/// # Errors
/// `MLC0004` when there is none of the name, or not one only.
pub fn find_input(graph: &Graph, name: Option<&str>) -> Result<usize, Diagnostic> {
    Ports::of(graph).inputs.find(name)
}

/// Makes an input of floats one of a raw type, if one is given, whose numbers the model normalises, if that is wanted.
///
/// # Errors
/// `MLC0004` when the input isn't one of floats, the type is none of [`RAW`], or the numbers fit no axis.
pub fn take_raw(
    graph: &mut Graph,
    number: usize,
    raw: Option<DType>,
    normalization: Option<&Normalization>,
) -> Result<(), Diagnostic> {
    let input = Value::from(graph.inputs()[number]);
    let (name, own) = (graph.node(input.node).name.clone(), graph.ty(input).clone());
    if !own.dtype.is_float() {
        return Err(mismatch(format!("the input '{name}' is {own}: only floats are made of raw numbers")));
    }
    if let Some(raw) = raw.filter(|raw| !RAW.contains(raw)) {
        return Err(mismatch(format!("raw numbers of the input '{name}' can't be {raw}"))
            .with_note(format!("they may be {}", RAW.map(DType::name).join(", "))));
    }
    let (first, permutation) = behind_transpose(graph, input);
    let numbers = normalization.map(|numbers| constants(&name, &own, numbers, &permutation)).transpose()?;
    let uses = graph.uses(first);
    let mut value = first;
    if let Some(raw) = raw {
        retype(graph, input, TensorType::new(raw, &own.shape[..]));
        if first != input {
            graph.nodes[first.node].results[0].dtype = raw;
        }
        value = graph.add(Cast { dtype: own.dtype }, &[value], &format!("{name}.real")).map_err(defect)?.into();
    }
    let functions = [(BinaryFunction::Subtract, "centred", 0.0), (BinaryFunction::Divide, "scaled", 1.0)];
    for ((function, suffix, neutral), number) in functions.into_iter().zip(numbers.into_iter().flatten()) {
        if number.splat().is_some_and(|number| number.to_f64() == neutral) {
            continue;
        }
        let constant = graph.add_constant(&format!("{name}.{suffix}.by"), number);
        let node = graph.add(Binary { function }, &[value, constant], &format!("{name}.{suffix}"));
        value = node.map_err(defect)?.into();
    }
    for (node, operand) in uses {
        graph.replace_operand(node, operand, value);
    }
    for output in &mut graph.outputs {
        if output.value == first {
            output.value = value;
        }
    }
    Ok(())
}

/// The value in whose place the normalised one is to be, and the order of its axes: that of the transpose, if one alone takes the input.
/// Importers of channels-first formats put it in front of a convolution, which takes up what stands right before it.
fn behind_transpose(graph: &Graph, input: Value) -> (Value, Vec<usize>) {
    let is_output = graph.outputs().iter().any(|output| output.value == input);
    if let ([(node, _)], false) = (&graph.uses(input)[..], is_output)
        && let Op::Transpose(transpose) = &graph.node(*node).op
    {
        return ((*node).into(), transpose.permutation.clone());
    }
    (input, (0..graph.ty(input).rank()).collect())
}

/// Gives an input another type; what takes it isn't looked at.
pub(super) fn retype(graph: &mut Graph, input: Value, ty: TensorType) {
    graph.nodes[input.node].op = Input { ty: ty.clone() }.into();
    graph.nodes[input.node].results = vec![ty];
}

/// Means and deviations in shapes that broadcast to the input's with its axes in another order.
fn constants(
    name: &str,
    ty: &TensorType,
    numbers: &Normalization,
    permutation: &[usize],
) -> Result<[Attribute; 2], Diagnostic> {
    let constant = |numbers: &[f64]| {
        let shape = match numbers {
            [_] => Vec::new(),
            _ => {
                let axis = channels(name, ty, numbers.len())?;
                permutation.iter().map(|&own| if own == axis { numbers.len() } else { 1 }).collect()
            }
        };
        Ok(Attribute::from_tensor(&Tensor::from_floats(TensorType::new(ty.dtype, &shape[..]), numbers.to_vec())))
    };
    Ok([constant(&numbers.means)?, constant(&numbers.deviations)?])
}

/// The axis of so many channels. Where several have the extent, it is axis 1 or the last, if only one of these has it.
fn channels(name: &str, ty: &TensorType, count: usize) -> Result<usize, Diagnostic> {
    let all: Vec<usize> = (0..ty.rank()).filter(|&axis| ty.shape[axis] == count).collect();
    let usual: Vec<usize> = all.iter().copied().filter(|&axis| axis == 1 || axis + 1 == ty.rank()).collect();
    match (&all[..], &usual[..]) {
        ([axis], _) | (_, [axis]) => Ok(*axis),
        ([], _) => Err(mismatch(format!("{count} numbers are given for the channels of the input '{name}': {ty}"))
            .with_help("give one number, or as many as an axis of the input has entries")),
        _ => Err(mismatch(format!("several axes of the input '{name}': {ty} have {count} entries"))
            .with_help("give one number for all channels")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{evaluate, text, verify};

    fn graph(shape: &str) -> Graph {
        let text = "mlc 1
graph @g(%x: f32SHAPE, %k: i32[2]) -> (\"p\": f32SHAPE, \"k\": i32[2], \"x\": f32SHAPE) {
  %p = unary %x {function = negate}
  return %p, %k, %x
}
";
        text::parse(&text.replace("SHAPE", shape), &()).unwrap_or_else(|faults| panic!("{faults:?}"))
    }

    fn numbers(means: &[f64], deviations: &[f64]) -> Normalization {
        Normalization { means: means.to_vec(), deviations: deviations.to_vec() }
    }

    #[test]
    fn raw_numbers_are_normalised_along_the_channels() {
        for (shape, axis) in [("[1, 2, 3, 3]", 1), ("[1, 3, 3, 2]", 3), ("[2, 3, 4]", 0), ("[2, 2, 3, 3]", 1)] {
            let mut graph = graph(shape);
            let normalization = numbers(&[1.0, 2.0], &[4.0]);
            take_raw(&mut graph, 0, Some(DType::U8), Some(&normalization)).unwrap();
            verify(&graph).unwrap();
            let raw = Value::from(graph.inputs()[0]);
            let ty = graph.ty(raw).clone();
            assert_eq!(ty.dtype, DType::U8);
            let (x, inner): (Vec<i64>, usize) =
                ((0..ty.elements() as i64).collect(), ty.shape[axis + 1..].iter().product());
            let mean = |place: usize| if (place / inner).is_multiple_of(2) { 1.0 } else { 2.0 };
            let expected = x.iter().enumerate().map(|(place, &x)| (x as f64 - mean(place)) / 4.0);
            let k = Tensor::from_integers(TensorType::new(DType::I32, [2]), vec![0, 1]);
            let outputs = evaluate(&graph, &[Tensor::from_integers(ty, x.clone()), k]).unwrap();
            assert_eq!(outputs[2].to_floats(), expected.clone().collect::<Vec<_>>(), "{shape}");
            assert_eq!(outputs[0].to_floats(), expected.map(|x| -x).collect::<Vec<_>>(), "{shape}");
        }
    }

    #[test]
    fn what_is_transposed_is_normalised_behind_that() {
        let text = "mlc 1
graph @g(%x: f32[1, 2, 2, 3]) -> (\"p\": f32[1, 2, 3, 2], \"t\": f32[1, 2, 3, 2]) {
  %t = transpose %x {permutation = [0, 2, 3, 1]}
  %p = unary %t {function = negate}
  return %p, %t
}
";
        let mut graph = text::parse(text, &()).unwrap();
        take_raw(&mut graph, 0, Some(DType::I8), Some(&numbers(&[1.0, 2.0], &[0.5]))).unwrap();
        verify(&graph).unwrap();
        let transposed = graph.find("t").unwrap();
        assert_eq!(graph.ty(transposed.into()).dtype, DType::I8);
        let x = Tensor::from_integers(TensorType::new(DType::I8, [1, 2, 2, 3]), (0..12).collect());
        let outputs = evaluate(&graph, &[x]).unwrap();
        let expected = (0..6).flat_map(|place| [2.0 * (f64::from(place) - 1.0), 2.0 * (f64::from(place) + 4.0)]);
        assert_eq!(outputs[1].to_floats(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn nothing_is_added_that_changes_nothing() {
        let mut changed = graph("[4]");
        take_raw(&mut changed, 0, None, Some(&numbers(&[0.0], &[1.0]))).unwrap();
        changed.remove_dead();
        assert!(changed.structurally_equal(&graph("[4]")));
    }

    #[test]
    fn what_cannot_be_is_told() {
        let same = numbers(&[0.0; 2], &[1.0]);
        for (shape, number, raw, normalization, message) in [
            ("[2]", 1, Some(DType::U8), None, "the input 'k' is i32[2]"),
            ("[2]", 0, Some(DType::I64), None, "can't be i64"),
            ("[3]", 0, None, Some(&same), "2 numbers are given for the channels of the input 'x': f32[3]"),
            ("[1, 2, 2]", 0, None, Some(&same), "several axes of the input 'x'"),
        ] {
            let error = take_raw(&mut graph(shape), number, raw, normalization).unwrap_err();
            assert!(error.message.contains(message), "{error}");
        }
        let error = find_input(&graph("[2]"), None).unwrap_err();
        assert!(error.message.contains("has 2 inputs"), "{error}");
        assert_eq!(find_input(&graph("[2]"), Some("k")).unwrap(), 1);
    }
}
