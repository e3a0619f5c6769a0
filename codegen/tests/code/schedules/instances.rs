//! Random operators with types of operands: the samples of every operator, and larger ones.

use super::case::{Case, Layout};
use mlc_ir::ops::{
    AdaptivePool, ArgReduce, AveragePool, Convolution, Cumulative, CumulativeFunction, Gather, GatherElements, Kernel,
    Matmul, MaxPool, Normalize, Pad, PadMode, PoolFunction, Reduce, ReduceFunction, Resize, Scatter, Softmax, Sort,
};
use mlc_ir::scalar::{BinaryFunction, Expression};
use mlc_ir::{DType, Float, Generator, Literal, Op, OpKind, TensorType};

/// Operators that lowering turns into views, copies, constants and functions of their own, so that they have no schedule.
const WITHOUT_SCHEDULE: [OpKind; 9] = [
    OpKind::Input,
    OpKind::Constant,
    OpKind::Broadcast,
    OpKind::Concat,
    OpKind::Extern,
    OpKind::Loop,
    OpKind::Reshape,
    OpKind::Slice,
    OpKind::Transpose,
];

/// Their operands get borders by lowering; other tests run them.
const WITH_BORDERS: [OpKind; 3] = [OpKind::Convolution, OpKind::TransposedConvolution, OpKind::Matmul];

fn has_schedule(op: &Op) -> bool {
    match op {
        Op::Kernel(kernel) => !WITH_BORDERS.contains(&kernel.anchor.kind()),
        Op::Pad(pad) => pad.mode != PadMode::Constant,
        op => !WITHOUT_SCHEDULE.contains(&op.kind()) && !WITH_BORDERS.contains(&op.kind()),
    }
}

/// A number that the operator keeps when others are added to the list.
fn seed(kind: OpKind) -> u64 {
    kind.name().bytes().fold(0, |seed: u64, byte| (seed * 31 + u64::from(byte)) % (1 << 20))
}

/// Larger instances than the samples are, so that every width of vector and every rest is met.
fn larger(kind: OpKind, generator: &mut Generator) -> Option<(Op, Vec<TensorType>)> {
    let f32 = |shape: Vec<usize>| TensorType::new(DType::F32, shape);
    let channels = generator.choose(&[1, 3, 4, 8, 13, 16, 20, 33, 64, 71, 130]);
    let mut wide = generator.shape(1, 3).to_vec();
    let axis = generator.range(0, wide.len() - 1);
    wide[axis] = channels;
    let (op, _) = kind.sample(generator);
    Some(match op {
        Op::Reduce(op) => {
            let axes = generator.axes(wide.len());
            let function = generator.choose(&[ReduceFunction::Sum, ReduceFunction::Mean, ReduceFunction::Maximum]);
            (Reduce { function, axes, ..op }.into(), vec![f32(wide)])
        }
        Op::Softmax(op) => (Softmax { axis: generator.range(0, wide.len() - 1), ..op }.into(), vec![f32(wide)]),
        Op::Normalize(op) => (Normalize { axes: generator.axes(wide.len()), ..op }.into(), vec![f32(wide)]),
        Op::MaxPool(_) => {
            let taps = generator.choose(&[2, 3, 5]);
            let pads = (generator.range(0, taps / 2), generator.range(0, taps / 2));
            let strides = vec![generator.range(1, 2); 2];
            let x = f32(vec![generator.range(1, 2), generator.range(5, 9), generator.range(5, 9), channels]);
            (MaxPool { window: vec![taps; 2], strides, dilations: vec![1; 2], pads: vec![pads; 2] }.into(), vec![x])
        }
        Op::AveragePool(_) => {
            let taps = generator.choose(&[2, 3, 5]);
            let pads = vec![(generator.range(0, taps / 2), generator.range(0, taps / 2)); 2];
            let counted_pads = if generator.one_in(2) { pads.clone() } else { vec![(0, 0); 2] };
            let strides = vec![generator.range(1, 2); 2];
            let x = f32(vec![1, generator.range(5, 9), generator.range(5, 9), channels]);
            let window = vec![taps; 2];
            (AveragePool { window, strides, dilations: vec![1; 2], pads, counted_pads }.into(), vec![x])
        }
        Op::AdaptivePool(op) => {
            let x = f32(vec![generator.range(1, 2), generator.range(4, 9), generator.range(4, 9), channels]);
            (AdaptivePool { sizes: vec![generator.range(1, 7), generator.range(1, 5)], ..op }.into(), vec![x])
        }
        Op::ArgReduce(op) => (ArgReduce { axis: generator.range(0, wide.len() - 1), ..op }.into(), vec![f32(wide)]),
        Op::Cumulative(op) => (Cumulative { axis: generator.range(0, wide.len() - 1), ..op }.into(), vec![f32(wide)]),
        Op::Gather(_) => {
            let indices = TensorType::new(DType::I32, generator.shape(0, 2));
            (Gather { axis: 1 }.into(), vec![f32(vec![generator.range(1, 3), 12, channels]), indices])
        }
        Op::GatherElements(_) => {
            let indices = TensorType::new(DType::I32, [generator.range(1, 2), generator.range(1, 20), channels]);
            (GatherElements { axis: 1 }.into(), vec![f32(vec![2, 12, channels]), indices])
        }
        Op::Scatter(op) => {
            let rows = generator.range(1, 5);
            let shape = generator.choose(&[[1, rows, 1], [1, rows, channels], [2, rows, 1], [2, 1, 1]]);
            let indices = TensorType::new(DType::I32, shape);
            let types = vec![f32(vec![3, 12, channels]), indices, f32(vec![2, rows, channels])];
            (Scatter { axis: 1, ..op }.into(), types)
        }
        Op::Sort(op) => {
            let extent = generator.choose(&[2, 5, 16, 17, 64, 100, 257]);
            let count = generator.choose(&[1, 2, extent / 2, extent]);
            wide[axis] = extent;
            (Sort { axis, count, ..op }.into(), vec![f32(wide)])
        }
        Op::Recurrent(op) => {
            let (time, batch) = (generator.range(1, 4), generator.range(1, 2));
            let units = generator.choose(&[5, 8, 16, 19, 40, 67]);
            let extents = [time, batch, units, generator.choose(&[3, 8, 21, 36])];
            let types = op.operand_types(DType::F32, generator.choose(&[DType::I32, DType::I64]), extents);
            (op.into(), types)
        }
        Op::Resize(op) => {
            let (height, width) = (generator.range(2, 6), generator.range(2, 6));
            let factor = generator.range(1, 3);
            let sizes = match generator.range(0, 2) {
                0 => vec![height * factor, width * factor],
                1 => vec![generator.range(1, 9), generator.range(1, 9)],
                _ => vec![height.div_ceil(factor), width],
            };
            let ratio = |(extent, &size): (usize, &usize)| Float(f64::from(extent as f32 / size as f32));
            let ratios = [height, width].into_iter().zip(&sizes).map(ratio).collect();
            let x = f32(vec![generator.range(1, 2), height, width, channels]);
            (Resize { axes: vec![1, 2], sizes, ratios, ..op }.into(), vec![x])
        }
        Op::Pad(op) if op.mode != PadMode::Constant => {
            let x = f32(vec![generator.range(4, 6), generator.range(4, 6), channels.max(4)]);
            let pads = (0..3).map(|_| (generator.range(0, 3), generator.range(0, 3))).collect();
            (Pad { pads, value: Literal::of(DType::F32, 0.0), ..op }.into(), vec![x])
        }
        _ => return None,
    })
}

/// Cases that are larger than the samples.
pub fn larger_cases(rounds: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for &kind in OpKind::ALL {
        let mut generator = Generator::new(seed(kind) + 2000);
        for round in 0..rounds {
            let Some((op, types)) = larger(kind, &mut generator) else { continue };
            let (op, types) = if round % 3 == 0 { with_epilogue(op, types, &mut generator) } else { (op, types) };
            let layout = if round % 2 == 0 { Layout::Dense } else { Layout::Any };
            cases.push(Case::new(op, &types, layout, &mut generator));
        }
    }
    cases
}

/// Tensors without elements, and windows that meet nothing but padding.
pub fn empty() -> Vec<Case> {
    let f32 = |shape: &[usize]| TensorType::new(DType::F32, shape);
    let mut list: Vec<(Op, TensorType)> = Vec::new();
    for function in [ReduceFunction::Sum, ReduceFunction::Mean, ReduceFunction::Product] {
        list.push((Reduce { function, axes: vec![1], keep_axes: false }.into(), f32(&[3, 0])));
        list.push((Reduce { function, axes: vec![0], keep_axes: true }.into(), f32(&[0, 20])));
        list.push((Reduce { function, axes: vec![1], keep_axes: false }.into(), f32(&[0, 4])));
    }
    for axis in 0..2 {
        list.push((Softmax { axis, logarithm: false }.into(), f32(&[0, 4])));
        let function = CumulativeFunction::Sum;
        list.push((Cumulative { function, axis, exclusive: false, reverse: false }.into(), f32(&[4, 0])));
        let normalize = Normalize { axes: vec![axis], epsilon: Float(1e-5), center: true };
        list.push((normalize.into(), f32(&[0, 4])));
    }
    let (window, dilations) = (vec![2], vec![1]);
    for pads in [vec![(3, 4)], vec![(2, 9)]] {
        for strides in [vec![1], vec![2]] {
            let (window, dilations) = (window.clone(), dilations.clone());
            let counted_pads = vec![(1, 2)];
            let max = MaxPool {
                window: window.clone(),
                strides: strides.clone(),
                dilations: dilations.clone(),
                pads: pads.clone(),
            };
            let average = AveragePool { window, strides, dilations, pads: pads.clone(), counted_pads };
            list.push((max.into(), f32(&[1, 4, 20])));
            list.push((average.into(), f32(&[1, 4, 20])));
        }
    }
    list.push((AdaptivePool { function: PoolFunction::Mean, sizes: vec![2] }.into(), f32(&[0, 4, 3])));
    let mut generator = Generator::new(1);
    let case = |(op, ty): (Op, TensorType)| Case::new(op, &[ty], Layout::Dense, &mut generator);
    list.into_iter().map(case).collect()
}

/// Every operator with each data type that its inference takes in place of a sample's.
pub fn every_dtype() -> Vec<Case> {
    let mut cases = Vec::new();
    for &kind in OpKind::ALL {
        let mut generator = Generator::new(seed(kind) + 3000);
        for dtype in DType::ALL {
            let mut left = 2;
            for _ in 0..100 {
                let (mut op, mut types) = kind.sample(&mut generator);
                let Some(own) = types.first().map(|ty| ty.dtype) else { break };
                types.iter_mut().filter(|ty| ty.dtype == own).for_each(|ty| ty.dtype = dtype);
                if let Op::Pad(pad) = &mut op {
                    pad.value = Literal::of(dtype, 0.0);
                }
                if left > 0 && has_schedule(&op) && op.infer(&types).is_ok() {
                    cases.push(Case::new(op, &types, Layout::Any, &mut generator));
                    left -= 1;
                }
            }
        }
    }
    cases
}

/// The operator as the anchor of a kernel that adds a bias and halves, or that doubles it in another type.
fn with_epilogue(op: Op, mut types: Vec<TensorType>, generator: &mut Generator) -> (Op, Vec<TensorType>) {
    let Some(first) = op.infer(&types).ok().and_then(|results| results.first().cloned()) else { return (op, types) };
    if !op.category().is_anchor() || first.dtype != DType::F32 {
        return (op, types);
    }
    let anchor_operands = types.len();
    if generator.one_in(4) {
        let expression = Expression::build(|b| {
            let (x, eight) = (b.operand(0), b.number(DType::F32, 8.0));
            let scaled = b.binary(BinaryFunction::Multiply, x, eight);
            let wide = b.cast(DType::F64, scaled);
            let quarter = b.number(DType::F64, 0.25);
            b.binary(BinaryFunction::Multiply, wide, quarter)
        });
        return (Kernel { anchor: Box::new(op), anchor_operands, expression }.into(), types);
    }
    types.push(TensorType::new(DType::F32, generator.broadcastable(&first.shape)));
    let expression = Expression::build(|b| {
        let (x, bias, half) = (b.operand(0), b.operand(1), b.number(DType::F32, 0.5));
        let sum = b.binary(BinaryFunction::Add, x, bias);
        b.binary(BinaryFunction::Multiply, sum, half)
    });
    (Kernel { anchor: Box::new(op), anchor_operands, expression }.into(), types)
}

/// Cases of every operator with a schedule.
pub fn samples(rounds: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for &kind in OpKind::ALL {
        let mut generator = Generator::new(seed(kind) + 1000);
        for round in 0..rounds {
            let (op, types) = kind.sample(&mut generator);
            let layout = if round % 2 == 0 { Layout::Dense } else { Layout::Any };
            if has_schedule(&op) {
                cases.push(Case::new(op, &types, layout, &mut generator));
            }
        }
    }
    cases
}

/// Products and convolutions of more outputs than tiles have, with borders, groups and rows that tiles don't divide.
pub fn wide_products() -> Vec<Case> {
    let generator = &mut Generator::new(12);
    let convolution = |pads: (usize, usize), groups: usize, stride: usize| -> (Op, [Vec<usize>; 2]) {
        let (pads, strides) = (vec![pads; 2], vec![stride; 2]);
        let op = Convolution { strides, dilations: vec![1; 2], pads, groups, border: 0, sums: None };
        (op.into(), [vec![2, 5, 11, 2 * groups], vec![3, 3, 2, 35 * groups]])
    };
    let product = |transpose_right: bool, weights: [usize; 2]| -> (Op, [Vec<usize>; 2]) {
        let op = Matmul { transpose_left: false, transpose_right, sums: None };
        (op.into(), [vec![3, 13, 20], weights.to_vec()])
    };
    let ops = [
        product(false, [20, 37]),
        product(true, [37, 20]),
        convolution((0, 0), 1, 1),
        convolution((1, 1), 1, 1),
        convolution((1, 0), 1, 2),
        convolution((1, 1), 2, 1),
    ];
    let mut cases = Vec::new();
    for (op, shapes) in ops {
        let types = shapes.map(|shape| TensorType::new(DType::F32, shape.as_slice()));
        for layout in [Layout::Dense, Layout::Any] {
            cases.push(Case::new(op.clone(), &types, layout, generator));
        }
    }
    cases
}

/// Sums of products of bytes, narrowed again, by weights that are known.
pub fn byte_products() -> Vec<Case> {
    let generator = &mut Generator::new(15);
    let mut cases = Vec::new();
    for (rows, outputs, stride) in [(4, 12, 1), (5, 7, 2), (3, 1, 1)] {
        let (pads, strides) = (vec![(0, 0); 2], vec![stride; 2]);
        let anchor = Convolution { strides, dilations: vec![1; 2], pads, groups: 1, border: 0, sums: Some(DType::I32) };
        let expression = Expression::build(|b| {
            let (x, low, high) = (b.operand(0), b.number(DType::I32, -128.0), b.number(DType::I32, 127.0));
            let least = b.binary(BinaryFunction::Maximum, x, low);
            let most = b.binary(BinaryFunction::Minimum, least, high);
            b.cast(DType::I8, most)
        });
        let op: Op = Kernel { anchor: Box::new(anchor.into()), anchor_operands: 2, expression }.into();
        let types = [vec![1, rows, 9, 6], vec![3, 3, 6, outputs]].map(|shape| TensorType::new(DType::I8, shape));
        for layout in [Layout::Dense, Layout::Any] {
            let mut case = Case::new(op.clone(), &types, layout, generator);
            case.constants = vec![false, true];
            cases.push(case);
        }
    }
    cases
}
