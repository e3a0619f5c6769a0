//! Which operator types are known. Each group of operators is a table in its own file; this one joins them.

use super::call::{Call, Operands, Table};
use super::format::Pnnx;
use super::item::Item;
use super::{
    activation, attention, comparison, complex, convolution, creation, einsum, expression, fourier, functions,
    indexing, joining, linear, normalization, ordering, padding, pooling, quantization, recurrent, reduction, resizing,
    sampling, shape, slicing, unfolding, writing,
};
use mlc_import::{Entry, Fault, Handler, Operators, entries};
use mlc_ir::Code;

const TABLES: &[Table] = &[
    STRUCTURE,
    activation::OPERATORS,
    attention::OPERATORS,
    comparison::OPERATORS,
    complex::OPERATORS,
    convolution::OPERATORS,
    creation::OPERATORS,
    einsum::OPERATORS,
    fourier::OPERATORS,
    functions::OPERATORS,
    indexing::OPERATORS,
    joining::OPERATORS,
    linear::OPERATORS,
    normalization::OPERATORS,
    ordering::OPERATORS,
    padding::OPERATORS,
    pooling::OPERATORS,
    quantization::OPERATORS,
    recurrent::OPERATORS,
    reduction::OPERATORS,
    resizing::OPERATORS,
    sampling::OPERATORS,
    shape::OPERATORS,
    slicing::OPERATORS,
    unfolding::OPERATORS,
    writing::OPERATORS,
    REFUSED,
];

const STRUCTURE: Table = &[
    ("pnnx.Attribute", Handler::Many(attribute)),
    ("pnnx.Expression", Handler::Many(expression::import)),
    ("aten::numel", Handler::Many(elements)),
    ("prim::DictConstruct", Handler::Many(dictionary)),
    ("prim::ListConstruct", Handler::Many(pack)),
    ("prim::ListUnpack", Handler::Many(unpack)),
    ("prim::TupleConstruct", Handler::Many(pack)),
    ("prim::TupleUnpack", Handler::Many(unpack)),
];

const DATA_DEPENDENT: &str = "the size of its result depends on the data, so no static memory plan exists";
const RANDOM: &str = "its result is random";
const UNDEFINED: &str = "its result is undefined memory";
/// The exporter writes `torch.qint8` for whatever type it meets, none for results, and no scale of weights that have one for all.
const QUANTIZED: &str = "PNNX files say neither the types nor all scales of quantised tensors; import the model's ONNX or TFLite \
                         export, or export it with fake quantisation";
const OVERLAP: &str = "overlapping frames can't be added up";
const CONTROL_FLOW: &str = "control flow isn't supported; export the model traced, not scripted";

const LOST_WRITE: &str = "the exporter loses what a write in place changes; write the model without it, with torch.where or \
                          torch.cat";

const REFUSED: Table = &[
    ("aten::fill", Handler::Refused(LOST_WRITE)),
    ("aten::nonzero", Handler::Refused(DATA_DEPENDENT)),
    ("aten::unique_consecutive", Handler::Refused(DATA_DEPENDENT)),
    ("aten::zero", Handler::Refused(LOST_WRITE)),
    ("nn.intrinsic.quantized.ConvReLU2d", Handler::Refused(QUANTIZED)),
    ("nn.intrinsic.quantized.LinearReLU", Handler::Refused(QUANTIZED)),
    ("nn.quantized.Conv2d", Handler::Refused(QUANTIZED)),
    ("nn.quantized.DeQuantize", Handler::Refused(QUANTIZED)),
    ("nn.quantized.Linear", Handler::Refused(QUANTIZED)),
    ("nn.quantized.Quantize", Handler::Refused(QUANTIZED)),
    ("nn.quantized.add", Handler::Refused(QUANTIZED)),
    ("nn.quantized.cat", Handler::Refused(QUANTIZED)),
    ("nn.quantized.mul", Handler::Refused(QUANTIZED)),
    (
        "prim::Constant",
        Handler::Refused("the model was exported at a low optimisation level; export it with optlevel=2"),
    ),
    ("prim::If", Handler::Refused(CONTROL_FLOW)),
    ("prim::Loop", Handler::Refused(CONTROL_FLOW)),
    ("torch.dequantize", Handler::Refused(QUANTIZED)),
    ("torch.empty", Handler::Refused(UNDEFINED)),
    ("torch.empty_like", Handler::Refused(UNDEFINED)),
    ("Tensor.new_empty", Handler::Refused(UNDEFINED)),
    ("torch.masked_select", Handler::Refused(DATA_DEPENDENT)),
    ("torch.normal", Handler::Refused(RANDOM)),
    ("torch.quantize_per_tensor", Handler::Refused(QUANTIZED)),
    ("torch.randn", Handler::Refused(RANDOM)),
    ("torch.randn_like", Handler::Refused(RANDOM)),
    ("torchaudio.functional.inverse_spectrogram", Handler::Refused(OVERLAP)),
];

impl Operators for Pnnx {
    fn entries() -> impl Iterator<Item = Entry<Pnnx>> {
        entries(TABLES)
    }
}

fn attribute(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let key = call.site.operator.attributes.keys().next().cloned();
    let key = key.ok_or_else(|| Fault::new(Code::WeightMissing, "the constant has no data"))?;
    let value = call.weight(&key)?;
    Ok(vec![Item::Tensor(value)])
}

fn pack(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    call.use_all_inputs();
    Ok(vec![Item::List(call.inputs.clone())])
}

/// The values of a dictionary, in its order; keys and values alternate.
fn dictionary(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    call.use_all_inputs();
    Ok(vec![Item::List(call.inputs.iter().skip(1).step_by(2).cloned().collect())])
}

/// How many elements a tensor has.
fn elements(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.x()?;
    Ok(vec![Item::Int(call.builder.ty(x).elements() as i64)])
}

fn unpack(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    call.use_all_inputs();
    match call.inputs.first() {
        Some(Item::List(items)) => Ok(items.clone()),
        Some(other) => Err(Fault::operands(format!("expected a tuple or a list, found {}", other.description()))),
        None => Err(Fault::new(Code::OperandCount, "expected a tuple or a list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_type_is_listed_twice() {
        let mut kinds: Vec<&str> = Pnnx::entries().map(|entry| entry.kind).collect();
        kinds.sort_unstable();
        let twice: Vec<_> = kinds.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }
}
