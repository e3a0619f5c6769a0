//! Operators that hold graphs. What is decided while compiling leaves no trace; of a branch that data decide on, both sides are
//! computed and one is selected.

use super::call::{Importer, Item, Site, Table};
use super::format::{Onnx, Region};
use crate::proto::GraphProto;
use mlc_import::Handler::Control;
use mlc_import::normalized_axis;
use mlc_import::{Attributes, Fault, Format, Turns, check_copies};
use mlc_ir::ops::{MAXIMUM_TRIP_COUNT, SliceAxis};
use mlc_ir::{Code, DType, Value};

pub(super) const OPERATORS: Table =
    &[("If", 1, Control(branch)), ("Loop", 1, Control(repeat)), ("Scan", 8, Control(scan))];

/// A graph attribute.
fn graph<'a>(attributes: &Attributes<'a, Onnx>, key: &str) -> Result<&'a GraphProto, Fault> {
    let graph = attributes.get(key).and_then(|attribute| attribute.g.as_ref());
    graph.ok_or_else(|| Fault::new(Code::ParameterMissing, format!("attribute `{key}`, a graph, is missing")))
}

fn numbers<'a>(attributes: &Attributes<'a, Onnx>, key: &str) -> Option<&'a [i64]> {
    attributes.get(key).map(|attribute| &attribute.ints[..])
}

fn tensor(inputs: &[Item], index: usize, what: &str) -> Result<Value, Fault> {
    match inputs.get(index) {
        Some(Item::Tensor(value)) => Ok(*value),
        _ => Err(Fault::operands(format!("operand {index}, {what}, must be a tensor"))),
    }
}

/// `If`
fn branch<'a>(importer: &mut Importer<'a>, site: &Site<'a>, inputs: Vec<Item>) -> Result<Vec<Item>, Fault> {
    let attributes = Onnx::attributes(importer.scope(), site.operator)?;
    let [then, otherwise] = [graph(&attributes, "then_branch")?, graph(&attributes, "else_branch")?];
    let condition = tensor(&inputs, 0, "the condition")?;
    importer.import_branch(site, condition, [then, otherwise].map(Region::Graph), &[])
}

/// `Loop`
fn repeat<'a>(importer: &mut Importer<'a>, site: &Site<'a>, inputs: Vec<Item>) -> Result<Vec<Item>, Fault> {
    let attributes = Onnx::attributes(importer.scope(), site.operator)?;
    let body = graph(&attributes, "body")?;
    let (trip_count, bound) = match inputs.first() {
        Some(Item::Tensor(value)) => trip_count(importer, *value)?,
        _ => (None, None),
    };
    let mut condition = match inputs.get(1) {
        Some(Item::Tensor(value)) => Some(*value),
        _ => None,
    };
    let mut limit = trip_count;
    if let Some(value) = condition
        && let Some(taken) = importer.decided(value)?
    {
        condition = None;
        if !taken {
            limit = Some(0);
        }
    }
    let carried = inputs.get(2..).unwrap_or_default().to_vec();
    let stacked = body.output.len().checked_sub(1 + carried.len()).ok_or_else(|| {
        let message = format!("the body gives {} results for {} carried values", body.output.len(), carried.len());
        Fault::new(Code::OperandCount, message)
    })?;
    let stacked = vec![SliceAxis { axis: 0, reverse: false }; stacked];
    let turns = Turns {
        body: Region::Graph(body),
        trip_count: limit,
        bound,
        condition,
        again: None,
        numbered: true,
        carried,
        scanned: Vec::new(),
        stacked,
    };
    importer.import_turns(site, &turns)
}

/// The number of turns if it is a constant, or the value that data give it; neither when it is so large that it bounds nothing.
fn trip_count(importer: &mut Importer<'_>, value: Value) -> Result<(Option<usize>, Option<Value>), Fault> {
    let ty = importer.builder.ty(value);
    if !ty.dtype.is_integer() || ty.elements() != 1 {
        return Err(Fault::operands(format!("the number of turns must be one whole number, found {ty}")));
    }
    let Some(attribute) = importer.builder.graph().constant(value) else {
        return Ok((None, Some(importer.builder.cast(value, DType::I64)?)));
    };
    let number = attribute.to_tensor().to_integers()[0].max(0);
    Ok((usize::try_from(number).ok().filter(|&number| number <= MAXIMUM_TRIP_COUNT), None))
}

/// `Scan`: since version 9 over any axes, before that over axis 1 of each item of a batch.
fn scan<'a>(importer: &mut Importer<'a>, site: &Site<'a>, mut inputs: Vec<Item>) -> Result<Vec<Item>, Fault> {
    let attributes = Onnx::attributes(importer.scope(), site.operator)?;
    let body = graph(&attributes, "body")?;
    let batched = site.version < Some(9);
    if batched {
        let lengths = if inputs.is_empty() { Item::Absent } else { inputs.remove(0) };
        if lengths != Item::Absent {
            return Err(Fault::variant("sequences of different lengths (sequence_lens) aren't supported"));
        }
    }
    let count = attributes.get("num_scan_inputs").and_then(|attribute| attribute.i).unwrap_or(0);
    let states =
        usize::try_from(count).ok().filter(|&count| count > 0).and_then(|count| inputs.len().checked_sub(count));
    let states = states.ok_or_else(|| {
        Fault::parameter(format!("attribute `num_scan_inputs` is {count}, there are {} operands", inputs.len()))
    })?;
    let results = body.output.len().checked_sub(states).ok_or_else(|| {
        let message = format!("the body gives {} results for {states} states", body.output.len());
        Fault::new(Code::OperandCount, message)
    })?;
    let wholes: Vec<Value> =
        (states..inputs.len()).map(|index| tensor(&inputs, index, "a scanned one")).collect::<Result<_, _>>()?;
    let carried: Vec<Item> = inputs[..states].to_vec();
    if batched {
        let backwards = directions(numbers(&attributes, "directions"), wholes.len())?;
        return batch(importer, site, body, &carried, &wholes, &backwards, results);
    }
    let backwards = directions(numbers(&attributes, "scan_input_directions"), wholes.len())?;
    let axes = given(numbers(&attributes, "scan_input_axes"), wholes.len(), "scan_input_axes")?;
    let mut scanned = Vec::new();
    for ((&whole, reverse), axis) in wholes.iter().zip(backwards).zip(axes) {
        let ty = importer.builder.ty(whole);
        let axis = normalized_axis(axis, ty.rank())
            .ok_or_else(|| Fault::parameter(format!("the scanned tensor {ty} has no axis {axis}")))?;
        scanned.push((whole, SliceAxis { axis, reverse }));
    }
    let backwards = directions(numbers(&attributes, "scan_output_directions"), results)?;
    let axes = given(numbers(&attributes, "scan_output_axes"), results, "scan_output_axes")?;
    let stacked =
        backwards.into_iter().zip(&axes).map(|(reverse, &axis)| SliceAxis { axis: axis.max(0) as usize, reverse });
    let stacked = stacked.collect();
    let results = importer.import_turns(site, &turns(importer, body, carried, scanned, stacked)?)?;
    negative_axes(importer, site, states, &axes, results)
}

/// Which of the tensors are walked backwards.
fn directions(given: Option<&[i64]>, count: usize) -> Result<Vec<bool>, Fault> {
    let numbers = self::given(given, count, "directions")?;
    match numbers.iter().find(|number| !(0..=1).contains(*number)) {
        Some(other) => Err(Fault::parameter(format!("a direction is 0 or 1, found {other}"))),
        None => Ok(numbers.iter().map(|&number| number == 1).collect()),
    }
}

/// A number for each tensor; 0 where none are given.
fn given(numbers: Option<&[i64]>, count: usize, what: &str) -> Result<Vec<i64>, Fault> {
    match numbers {
        None => Ok(vec![0; count]),
        Some(numbers) if numbers.len() == count => Ok(numbers.to_vec()),
        Some(numbers) => Err(Fault::parameter(format!("{what}: {} numbers for {count} tensors", numbers.len()))),
    }
}

/// The turns of a scan: as many as the scanned tensors have slices.
fn turns<'a>(
    importer: &Importer<'a>,
    body: &'a GraphProto,
    carried: Vec<Item>,
    scanned: Vec<(Value, SliceAxis)>,
    stacked: Vec<SliceAxis>,
) -> Result<Turns<'a, Onnx>, Fault> {
    let extents = scanned.iter().map(|(whole, way)| importer.builder.ty(*whole).shape[way.axis]);
    let extents: Vec<usize> = extents.collect();
    if extents.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(Fault::operands(format!("the scanned tensors have {extents:?} slices, one number expected")));
    }
    let trip_count = extents.first().copied();
    Ok(Turns {
        body: Region::Graph(body),
        trip_count,
        bound: None,
        condition: None,
        again: None,
        numbered: false,
        carried,
        scanned,
        stacked,
    })
}

/// Moves the outermost axis of stacked results to where a negative number means it; that takes their rank.
fn negative_axes<'a>(
    importer: &mut Importer<'a>,
    site: &Site<'a>,
    states: usize,
    axes: &[i64],
    mut results: Vec<Item>,
) -> Result<Vec<Item>, Fault> {
    importer.builder.begin(&site.name);
    for (item, &axis) in results[states..].iter_mut().zip(axes) {
        if let (Item::Tensor(value), true) = (&item, axis < 0) {
            let ty = importer.builder.ty(*value);
            let place = normalized_axis(axis, ty.rank())
                .ok_or_else(|| Fault::parameter(format!("the stacked result {ty} has no axis {axis}")))?;
            *item = Item::Tensor(importer.builder.move_axis(*value, 0, place)?);
        }
    }
    Ok(results)
}

/// `Scan` of version 8: each item of the batch is a scan.
fn batch<'a>(
    importer: &mut Importer<'a>,
    site: &Site<'a>,
    body: &'a GraphProto,
    states: &[Item],
    wholes: &[Value],
    backwards: &[bool],
    results: usize,
) -> Result<Vec<Item>, Fault> {
    let first: Vec<Value> =
        (0..states.len()).map(|index| tensor(states, index, "a state")).collect::<Result<_, _>>()?;
    let extent = |value: &Value| importer.builder.ty(*value).shape.first().copied();
    let items = wholes.first().and_then(extent).unwrap_or(0);
    if items == 0 || first.iter().chain(wholes).any(|value| extent(value) != Some(items)) {
        return Err(Fault::operands("states and scanned tensors need one batch axis"));
    }
    if wholes.iter().any(|&whole| importer.builder.rank(whole) < 2) {
        return Err(Fault::operands("scanned tensors need a batch axis and a sequence axis"));
    }
    check_copies::<Onnx>(Region::Graph(body), items)?;
    let mut parts: Vec<Vec<Value>> = Vec::new();
    for item in 0..items {
        importer.builder.begin(&site.name);
        let mut carried = Vec::new();
        for &state in &first {
            carried.push(Item::Tensor(importer.builder.pick(state, 0, item)?));
        }
        let mut scanned = Vec::new();
        for (&whole, &reverse) in wholes.iter().zip(backwards) {
            scanned.push((importer.builder.pick(whole, 0, item)?, SliceAxis { axis: 0, reverse }));
        }
        let stacked = vec![SliceAxis { axis: 0, reverse: false }; results];
        let items = importer.import_turns(site, &turns(importer, body, carried, scanned, stacked)?)?;
        if items.contains(&Item::Unknown) {
            return Ok(items);
        }
        parts.push((0..items.len()).map(|index| tensor(&items, index, "a result")).collect::<Result<_, _>>()?);
    }
    importer.builder.begin(&site.name);
    let joined = |index: usize| {
        let list: Vec<Value> = parts.iter().map(|part| part[index]).collect();
        Ok(Item::Tensor(importer.builder.stack(&list, 0)?))
    };
    (0..states.len() + results).map(joined).collect()
}
