//! Growing a random graph: operators' own samples, fed with earlier values, between layers as models have them.

use super::adapt::fit;
use super::draft::{Draft, Sample};
use super::layers::LAYERS;
use mlc_ir::{DType, Literal, Op, OpKind, TensorType, Value};

/// A random graph of about 5 to 60 operators of these data types, with an input for it. The same seed gives the same graph.
pub fn random_graph(seed: u64, dtypes: &[DType]) -> Sample {
    let mut draft = Draft::new(seed, dtypes);
    let wanted = draft.random.choose(&[5, 6, 8, 8, 10, 10, 12, 12, 15, 15, 20, 25, 30, 45]);
    first_input(&mut draft);
    let mut attempts = 0;
    while draft.operators() < wanted && attempts < 10 * wanted {
        attempts += 1;
        if draft.random.one_in(2) {
            let layer = draft.random.choose(&LAYERS);
            let _ = layer(&mut draft);
        } else {
            let _ = sampled(&mut draft);
        }
    }
    draft.finish()
}

fn first_input(draft: &mut Draft<'_>) {
    let mut image = draft.random.shape(2, 4);
    if draft.random.one_in(2) {
        image = [1, 6, 7, 3][..].into();
    }
    draft.input(&TensorType::new(DType::F32, image));
}

/// A sample of an operator, on earlier values that are made to fit, on constants and on new inputs.
fn sampled(draft: &mut Draft<'_>) -> Option<()> {
    let kind = draft.random.choose(OpKind::OWN);
    if matches!(kind, OpKind::Input | OpKind::Constant) {
        return None;
    }
    let (op, types) = kind.sample(&mut draft.random);
    let (op, types) = retyped(draft, op, types);
    let mut operands: Vec<Value> = Vec::new();
    for (number, ty) in types.iter().enumerate() {
        operands.push(operand(draft, ty, number)?);
    }
    let results = draft.apply(op, &operands)?;
    for result in results {
        draft.tame(result);
    }
    Some(())
}

/// The sample with another data type in place of its first operand's, where the operator accepts that.
fn retyped(draft: &mut Draft<'_>, op: Op, types: Vec<TensorType>) -> (Op, Vec<TensorType>) {
    let Some(from) = types.first().map(|ty| ty.dtype) else { return (op, types) };
    if !draft.random.one_in(3) {
        return (op, types);
    }
    let to = draft.random.choose(draft.dtypes);
    let mut other = op.clone();
    match &mut other {
        Op::Cast(cast) => cast.dtype = draft.random.choose(draft.dtypes),
        Op::Pad(pad) => pad.value = Literal::of(to, pad.value.to_f64()),
        _ => {}
    }
    let retyped: Vec<TensorType> = types
        .iter()
        .map(|ty| if ty.dtype == from { TensorType { dtype: to, ..ty.clone() } } else { ty.clone() })
        .collect();
    if other.infer(&retyped).is_ok() { (other, retyped) } else { (op, types) }
}

/// An operand of a type.
fn operand(draft: &mut Draft<'_>, ty: &TensorType, number: usize) -> Option<Value> {
    if number > 0 && draft.random.one_in(3) {
        return Some(draft.constant(ty));
    }
    if draft.random.one_in(12) && draft.input_count() < 6 {
        return Some(draft.input(ty));
    }
    let exact = draft.pick_where(|other| other == ty);
    let value = match exact {
        Some(value) if !draft.random.one_in(4) => return Some(draft.tame(value)),
        _ => draft.pick()?,
    };
    let value = draft.tame(value);
    fit(draft, value, ty)
}
