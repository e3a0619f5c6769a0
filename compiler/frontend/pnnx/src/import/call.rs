//! [`Call`]: one operator of the model while it is imported, with typed access to its operands, parameters and weights.

use super::item::{Item, dtype_of, dtype_of_word};
use crate::model::Operator;
use mlc_import::Builder;
use mlc_import::Fault;
use mlc_ir::{Attribute, Code, DType, Shape, TensorType, Value};
use std::collections::BTreeSet;

/// The operator at hand.
pub(super) struct Call<'a> {
    pub operator: &'a Operator,
    pub builder: &'a mut Builder,
    /// What the operator takes, in order.
    pub inputs: Vec<Item>,
    /// Shapes that the file gives for the results, as far as they are known.
    pub declared: Vec<Option<Vec<Option<usize>>>>,
    /// Whether anything takes the result with this number.
    pub result_used: Vec<bool>,
    /// Sentences for the user about this operator.
    pub warnings: Vec<String>,
    used_parameters: BTreeSet<String>,
    used_inputs: BTreeSet<usize>,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        operator: &'a Operator,
        builder: &'a mut Builder,
        inputs: Vec<Item>,
        declared: Vec<Option<Vec<Option<usize>>>>,
        result_used: Vec<bool>,
    ) -> Self {
        Call {
            operator,
            builder,
            inputs,
            declared,
            result_used,
            warnings: Vec::new(),
            used_parameters: BTreeSet::new(),
            used_inputs: BTreeSet::new(),
        }
    }

    /// The input labelled so, else the one at this position, provided that it has no other label.
    fn input_position(&self, label: &str, position: usize) -> Option<usize> {
        let names = &self.operator.input_names;
        let labelled = names.iter().position(|name| name.as_deref() == Some(label));
        labelled.or_else(|| {
            let free = position < self.inputs.len() && !names.get(position).is_some_and(Option::is_some);
            free.then_some(position)
        })
    }

    /// An operand by label or position; `None` when it is absent or Python's None.
    pub(super) fn optional(&mut self, label: &str, position: usize) -> Option<Item> {
        let position = self.input_position(label, position)?;
        self.used_inputs.insert(position);
        self.inputs.get(position).filter(|item| **item != Item::None).cloned()
    }

    /// An operand by label or position.
    pub(super) fn operand(&mut self, label: &str, position: usize) -> Result<Item, Fault> {
        let missing = || {
            let message = format!("operand `{label}` is missing; the operator has {} operands", self.inputs.len());
            Fault::new(Code::OperandCount, message)
        };
        let missing = missing();
        self.optional(label, position).ok_or(missing)
    }

    /// A tensor by label or position. Numbers become tensors of rank 0.
    pub(super) fn tensor(&mut self, label: &str, position: usize) -> Result<Value, Fault> {
        let item = self.operand(label, position)?;
        self.as_tensor(label, &item)
    }

    /// A tensor by label or position, if it is there.
    pub(super) fn optional_tensor(&mut self, label: &str, position: usize) -> Result<Option<Value>, Fault> {
        self.optional(label, position).map(|item| self.as_tensor(label, &item)).transpose()
    }

    /// The tensor at a position, whatever its label.
    pub(super) fn positional_tensor(&mut self, position: usize) -> Result<Value, Fault> {
        self.used_inputs.insert(position);
        match self.inputs.get(position).cloned() {
            Some(item) => self.as_tensor(&format!("number {position}"), &item),
            None => Err(Fault::new(Code::OperandCount, format!("operand number {position} is missing"))),
        }
    }

    /// The tensor `input`, or the first operand.
    pub(super) fn x(&mut self) -> Result<Value, Fault> {
        self.tensor("input", 0)
    }

    /// Marks all operands as looked at.
    pub(super) fn use_all_inputs(&mut self) {
        self.used_inputs.extend(0..self.inputs.len());
    }

    /// All operands as tensors; a list counts as its items.
    pub(super) fn all_tensors(&mut self) -> Result<Vec<Value>, Fault> {
        self.use_all_inputs();
        let items = match &self.inputs[..] {
            [Item::List(items)] => items.clone(),
            _ => self.inputs.clone(),
        };
        items.iter().map(|item| self.as_tensor("input", item)).collect()
    }

    /// An item as a tensor.
    pub(super) fn as_tensor(&mut self, label: &str, item: &Item) -> Result<Value, Fault> {
        match item {
            Item::Tensor(value) => Ok(*value),
            Item::Int(value) => Ok(self.builder.literal(mlc_ir::Literal::integer(DType::I64, *value))),
            Item::Float(value) => Ok(self.builder.number(DType::F32, *value)),
            Item::Bool(value) => Ok(self.builder.number(DType::Bool, f64::from(u8::from(*value)))),
            Item::Complex(..) => {
                Err(Fault::variant(format!("operand `{label}` is complex, which isn't supported here"))
                    .with_help("split it into real and imaginary parts in the source model"))
            }
            other => Err(Fault::operands(format!("operand `{label}` must be a tensor, found {}", other.description()))),
        }
    }

    /// A weight of the operator.
    pub(super) fn weight(&mut self, key: &str) -> Result<Value, Fault> {
        self.optional_weight(key)?.ok_or_else(|| {
            Fault::new(Code::WeightMissing, format!("the weight `{key}` is missing"))
                .with_help(format!("the line declares it as in @{key}=(16,3)f32"))
        })
    }

    /// A weight of the operator, if it is there.
    pub(super) fn optional_weight(&mut self, key: &str) -> Result<Option<Value>, Fault> {
        let Some(attribute) = self.operator.attributes.get(key) else { return Ok(None) };
        let attribute = to_ir(key, attribute)?;
        Ok(Some(self.builder.constant(key, attribute)))
    }

    /// An argument: the operand labelled so, else the parameter. `None` when absent or Python's None.
    pub(super) fn argument(&mut self, key: &str) -> Option<Item> {
        let position = self.operator.input_names.iter().position(|name| name.as_deref() == Some(key));
        if let Some(position) = position {
            self.used_inputs.insert(position);
            return self.inputs.get(position).filter(|item| **item != Item::None).cloned();
        }
        self.used_parameters.insert(key.to_owned());
        self.operator.parameters.get(key).map(Item::from).filter(|item| *item != Item::None)
    }

    fn typed<T>(&mut self, key: &str, kind: &str, read: fn(&Item) -> Option<T>) -> Result<Option<T>, Fault> {
        let Some(item) = self.argument(key) else { return Ok(None) };
        let item = self.host_number(item);
        match read(&item) {
            Some(value) => Ok(Some(value)),
            None => Err(Fault::parameter(format!("parameter `{key}` must be {kind}, found {}", item.description()))),
        }
    }

    /// A constant of one element as a number, anything else as it is.
    pub(super) fn host_number(&self, item: Item) -> Item {
        let Item::Tensor(value) = item else { return item };
        match self.builder.graph().constant(value) {
            Some(attribute) if attribute.ty().elements() == 1 => {
                let tensor = attribute.to_tensor();
                match attribute.ty().dtype {
                    DType::Bool => Item::Bool(tensor.to_integers() == [1]),
                    dtype if dtype.is_float() => Item::Float(tensor.to_floats()[0]),
                    _ => Item::Int(tensor.to_integers()[0]),
                }
            }
            _ => item,
        }
    }

    pub(super) fn int(&mut self, key: &str) -> Result<Option<i64>, Fault> {
        self.typed(key, "a whole number", Item::int)
    }

    pub(super) fn int_or(&mut self, key: &str, default: i64) -> Result<i64, Fault> {
        Ok(self.int(key)?.unwrap_or(default))
    }

    pub(super) fn float(&mut self, key: &str) -> Result<Option<f64>, Fault> {
        self.typed(key, "a number", Item::float)
    }

    pub(super) fn float_or(&mut self, key: &str, default: f64) -> Result<f64, Fault> {
        Ok(self.float(key)?.unwrap_or(default))
    }

    pub(super) fn flag_or(&mut self, key: &str, default: bool) -> Result<bool, Fault> {
        let read = |item: &Item| match item {
            Item::Bool(value) => Some(*value),
            Item::Int(0) => Some(false),
            Item::Int(1) => Some(true),
            _ => None,
        };
        Ok(self.typed(key, "True or False", read)?.unwrap_or(default))
    }

    pub(super) fn ints(&mut self, key: &str) -> Result<Option<Vec<i64>>, Fault> {
        self.typed(key, "a list of whole numbers", Item::ints)
    }

    pub(super) fn floats(&mut self, key: &str) -> Result<Option<Vec<f64>>, Fault> {
        self.typed(key, "a list of numbers", Item::floats)
    }

    pub(super) fn word(&mut self, key: &str) -> Result<Option<String>, Fault> {
        let read = |item: &Item| match item {
            Item::Word(word) => Some(word.clone()),
            _ => None,
        };
        self.typed(key, "a word", read)
    }

    /// A parameter that the operator can't do without.
    pub(super) fn required<T>(&self, key: &str, value: Option<T>) -> Result<T, Fault> {
        value.ok_or_else(|| Fault::new(Code::ParameterMissing, format!("parameter `{key}` is missing")))
    }

    /// Marks parameters that don't matter for the result.
    pub(super) fn ignore(&mut self, keys: &[&str]) {
        self.used_parameters.extend(keys.iter().map(|&key| key.to_owned()));
    }

    /// A whole number for each spatial axis; one number counts for all.
    pub(super) fn spatial(&mut self, key: &str, axes: usize, default: usize) -> Result<Vec<usize>, Fault> {
        match self.ints(key)? {
            None => Ok(vec![default; axes]),
            Some(values) => spatial_list(key, &values, axes),
        }
    }

    /// A data type parameter.
    pub(super) fn dtype(&mut self, key: &str) -> Result<Option<DType>, Fault> {
        let Some(word) = self.word(key)? else { return Ok(None) };
        dtype_of_word(&word).map(Some).ok_or_else(|| Fault::variant(format!("data type {word} isn't supported")))
    }

    /// The axis that a number, negative ones from the end, means.
    pub(super) fn axis(&self, x: Value, axis: i64) -> Result<usize, Fault> {
        normalized_axis(axis, self.builder.rank(x))
            .ok_or_else(|| Fault::parameter(format!("{} has no axis {axis}", self.builder.ty(x))))
    }

    /// The axis parameter, with its default.
    pub(super) fn axis_or(&mut self, x: Value, key: &str, default: i64) -> Result<usize, Fault> {
        let axis = self.int_or(key, default)?;
        self.axis(x, axis)
    }

    /// The axes of a list parameter, ascending; all of them when it is absent or empty.
    pub(super) fn axes_or_all(&mut self, x: Value, key: &str) -> Result<Vec<usize>, Fault> {
        let rank = self.builder.rank(x);
        match self.ints(key)? {
            Some(axes) if !axes.is_empty() => {
                // PyTorch takes axes 0 and -1 for a number, too.
                if rank == 0 && axes.iter().all(|axis| matches!(axis, 0 | -1)) {
                    return Ok(Vec::new());
                }
                let axes = axes.iter().map(|&axis| self.axis(x, axis)).collect::<Result<BTreeSet<_>, _>>()?;
                Ok(axes.into_iter().collect())
            }
            _ => Ok((0..rank).collect()),
        }
    }

    /// Parameters, and operands that have a label or are tensors, that the import didn't look at.
    pub(super) fn unused(&self) -> Vec<String> {
        const HARMLESS: [&str; 17] = [
            "copy",
            "device",
            "dropout",
            "dropout_p",
            "inplace",
            "layout",
            "memory_format",
            "non_blocking",
            "num_features",
            "pin_memory",
            "requires_grad",
            "scale_grad_by_freq",
            "sparse",
            "training",
            "momentum",
            "padding_idx",
            "affine",
        ];
        let parameters = self.operator.parameters.iter().filter(|(key, value)| {
            !self.used_parameters.contains(*key)
                && !HARMLESS.contains(&key.as_str())
                && !matches!(Item::from(*value), Item::None | Item::Bool(false))
        });
        let inputs = (0..self.inputs.len()).filter(|index| !self.used_inputs.contains(index));
        let operands = inputs.filter_map(|index| match self.operator.input_names.get(index).and_then(Option::as_ref) {
            Some(name) => Some(format!("operand `{name}`")),
            None if matches!(self.inputs[index], Item::Tensor(_)) => Some(format!("operand number {index}")),
            None => None,
        });
        parameters.map(|(key, _)| format!("parameter `{key}`")).chain(operands).collect()
    }

    /// Shape of a value, to be iterated while the builder is at work.
    pub(super) fn shape(&self, value: Value) -> Shape {
        self.builder.shape(value)
    }
}

/// The axis that a number, negative ones from the end, means.
pub(super) fn normalized_axis(axis: i64, rank: usize) -> Option<usize> {
    // PyTorch takes axes 0 and -1 for a number, too; callers that need an axis fail on their own.
    let rank = i64::try_from(rank).ok()?;
    let axis = if axis < 0 { axis + rank } else { axis };
    (0..rank).contains(&axis).then_some(axis as usize)
}

/// Checks a list of one number for each spatial axis; one number counts for all.
pub(super) fn spatial_list(key: &str, values: &[i64], axes: usize) -> Result<Vec<usize>, Fault> {
    let values = match values {
        [single] => vec![*single; axes],
        _ => values.to_vec(),
    };
    let fits = values.len() == axes && values.iter().all(|&value| (0..=1 << 31).contains(&value));
    if !fits {
        return Err(Fault::parameter(format!("parameter `{key}` must have {axes} whole numbers, found {values:?}")));
    }
    Ok(values.into_iter().map(|value| value as usize).collect())
}

/// A weight of the file as the IR's constant, sharing the bytes.
pub(super) fn to_ir(key: &str, attribute: &crate::model::Attribute) -> Result<Attribute, Fault> {
    let dtype = dtype_of(attribute.element_type).ok_or_else(|| {
        Fault::variant(format!("the weight `{key}` has element type {}, which isn't supported", attribute.element_type))
    })?;
    let shape: Shape = attribute.shape.iter().map(|&extent| extent as usize).collect();
    Ok(Attribute::new(TensorType::new(dtype, shape), attribute.data.clone())?)
}
