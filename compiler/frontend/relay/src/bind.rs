//! Binds the arrays of an archive to the variables of `@main`. The graph executor's arrays are named `p0`, `p1`, … in the order
//! in which the optimised model uses them, and may be in the blocks of a kernel's layout: they are bound in the order in which
//! the text uses its variables, where element types and shapes allow exactly that. Whether it was right shows when the
//! model runs.

use super::lexer::Place;
use super::syntax::{Binding, Block, ExpressionId, ExpressionKind, Function, Module, Parameter, Type};
use super::{Parameters, parse};
use mlc_import::Fault;
use mlc_ir::{Attribute, Code, Diagnostic};
use std::collections::{BTreeMap, BTreeSet};

/// Binds arrays to the variables of a text's `@main` that aren't among the inputs: by name where a variable's name is an
/// array's, else by order of use and by shape.
///
/// # Errors
/// When the text can't be parsed, or a variable gets no array, or the array in its turn doesn't fit.
pub fn bind(text: &str, arrays: &Parameters, inputs: &[&str]) -> Result<Parameters, Diagnostic> {
    let module = parse::parse(text)?;
    let main = module.definitions.iter().find(|(name, _)| *name == "main");
    let Some((_, main)) = main else {
        return Err(*Place { line: 1, column: 1 }.error("the text has no function @main"));
    };
    let main = &module.functions[*main];
    let mut bound = Parameters::new();
    let mut rest: Vec<(&String, &Attribute)> = arrays.iter().collect();
    rest.sort_by_key(|(name, _)| number(name));
    let mut rest = rest.into_iter();
    for name in order_of_use(&module, main) {
        let Some(variable) = main.parameters.iter().find(|variable| variable.name == name) else { continue };
        if inputs.contains(&name) {
            continue;
        }
        let array = arrays.get_key_value(name).or_else(|| rest.by_ref().find(|(array, _)| number(array).is_some()));
        let array = array.ok_or_else(|| unbound(variable, "the archive's parameters have no array for it".into()))?;
        bound.insert(name.to_owned(), fitted(variable, array)?);
    }
    match rest.find(|(name, _)| number(name).is_some()) {
        None => Ok(bound),
        Some((name, _)) => Err(unbound_text(main, format!("the text has no variable for the array `{name}`"))),
    }
}

/// The number of a name such as `p7`.
fn number(name: &str) -> Option<u32> {
    name.strip_prefix('p')?.parse().ok()
}

const HELP: &str = "compile the archive without --from relay, or give the weights with --params to its text";

fn unbound(variable: &Parameter<'_>, reason: String) -> Diagnostic {
    let message = format!("the variable %{} can't be bound: {reason}", variable.name);
    Diagnostic::error(Code::WeightMissing, variable.place.location(), message).with_help(HELP)
}

fn unbound_text(main: &Function<'_>, reason: String) -> Diagnostic {
    Diagnostic::error(Code::WeightMissing, main.place.location(), reason).with_help(HELP)
}

/// The array as the variable's type has it.
fn fitted(variable: &Parameter<'_>, (name, array): (&String, &Attribute)) -> Result<Attribute, Diagnostic> {
    let found = array.ty();
    let wanted = match &variable.ty {
        Some(Type::Tensor(dtype, extents)) if *dtype == found.dtype => {
            extents.iter().copied().collect::<Option<Vec<usize>>>()
        }
        _ => None,
    };
    let fitted = wanted.and_then(|wanted| unblocked(array, &wanted).transpose());
    match fitted {
        Some(Ok(fitted)) => Ok(fitted),
        Some(Err(fault)) => Err(unbound(variable, fault.message)),
        None => {
            let reason =
                format!("the array `{name}` in its turn is {found}, which is another type or a folded constant");
            Err(unbound(variable, reason))
        }
    }
}

/// An array in the shape of a variable: with axes of extent 1 left out, or out of blocks of channels.
fn unblocked(array: &Attribute, wanted: &[usize]) -> Result<Option<Attribute>, Fault> {
    let shape = &array.ty().shape;
    let proper = |shape: &[usize]| -> Vec<usize> { shape.iter().copied().filter(|&extent| extent != 1).collect() };
    if array.ty().elements() != wanted.iter().product::<usize>() {
        return Ok(None);
    }
    // One axis cut into blocks is still in order.
    if proper(shape) == proper(wanted) || wanted.len() == 1 {
        return Ok(Some(array.reshape(wanted)?));
    }
    let moved = match (&shape[..], wanted) {
        // [O / o, I / i, H, W, i, o]
        (&[outer, inner, h, w, i, o], &[outputs, inputs, height, width])
            if (outer * o, inner * i, h, w) == (outputs, inputs, height, width) =>
        {
            array.transpose(&[0, 5, 1, 4, 2, 3])?
        }
        // [N / n, K, n]
        (&[blocks, k, n], &[units, depth]) if (blocks * n, k) == (units, depth) => array.transpose(&[0, 2, 1])?,
        _ => return Ok(None),
    };
    Ok(Some(moved.reshape(wanted)?))
}

/// Names of variables in the order in which the result, operand by operand, needs them first.
fn order_of_use<'m>(module: &'m Module<'_>, main: &'m Function<'_>) -> Vec<&'m str> {
    let mut bindings: BTreeMap<u32, ExpressionId> = BTreeMap::new();
    let mut lets: BTreeMap<&str, ExpressionId> = BTreeMap::new();
    for binding in &main.body.bindings {
        match binding {
            Binding::Graph(number, expression) => drop(bindings.insert(*number, *expression)),
            Binding::Let(name, expression) => drop(lets.insert(name, *expression)),
            Binding::Free(_) => {}
        }
    }
    let (mut names, mut seen, mut visited) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let mut stack = vec![main.body.result];
    while let Some(id) = stack.pop() {
        if !visited.insert(id) {
            continue;
        }
        match &module.expressions[id].kind {
            ExpressionKind::Local(name) => match lets.get(name.as_str()) {
                Some(expression) => stack.push(*expression),
                None if seen.insert(name.as_str()) => names.push(name.as_str()),
                None => {}
            },
            ExpressionKind::Graph(number) => stack.extend(bindings.get(number)),
            ExpressionKind::Tuple(parts) | ExpressionKind::Operator(_, parts, _) => stack.extend(parts.iter().rev()),
            ExpressionKind::Call(function, parts) => {
                stack.extend(parts.iter().rev());
                stack.push(*function);
            }
            ExpressionKind::Projection(tuple, _) => stack.push(*tuple),
            ExpressionKind::If(condition, Block { result: first, .. }, Block { result: second, .. }) => {
                stack.extend([*second, *first, *condition]);
            }
            ExpressionKind::Function(_)
            | ExpressionKind::Global(_)
            | ExpressionKind::Literal(_)
            | ExpressionKind::Meta(..) => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::{DType, Tensor, TensorType};

    fn counting(shape: &[usize]) -> Attribute {
        let ty = TensorType::new(DType::F32, shape);
        let values = (0..ty.elements()).map(|value| value as f64).collect();
        Attribute::from_tensor(&Tensor::from_floats(ty, values))
    }

    const TEXT: &str = "def @main(%x: Tensor[(1, 6), float32], %b: Tensor[(4), float32], %w: Tensor[(4, 6), float32]) {\n  \
                        %0 = nn.dense(%x, %w, units=4);\n  nn.bias_add(%0, %b)\n}";

    #[test]
    fn arrays_are_bound_in_the_order_of_use() {
        // The array is in blocks of two units: [N / 2, K, 2].
        let blocked = counting(&[4, 6]).reshape(&[2, 2, 6]).unwrap().transpose(&[0, 2, 1]).unwrap();
        let arrays: Parameters =
            [("p1".to_owned(), counting(&[1, 4])), ("p0".to_owned(), blocked)].into_iter().collect();
        let bound = bind(TEXT, &arrays, &["x"]).unwrap();
        assert_eq!(bound["w"], counting(&[4, 6]));
        assert_eq!(bound["b"], counting(&[4]));
    }

    #[test]
    fn blocks_of_a_convolution_are_undone() {
        let plain = counting(&[4, 6, 3, 2]);
        let blocked = plain.reshape(&[2, 2, 2, 3, 3, 2]).unwrap().transpose(&[0, 2, 4, 5, 3, 1]).unwrap();
        assert_eq!(blocked.ty().shape[..], [2, 2, 3, 2, 3, 2]);
        assert_eq!(unblocked(&blocked, &[4, 6, 3, 2]).unwrap(), Some(plain));
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let arrays = |list: &[(&str, &[usize])]| -> Parameters {
            list.iter().map(|(name, shape)| ((*name).to_owned(), counting(shape))).collect()
        };
        let fault = |arrays: Parameters| bind(TEXT, &arrays, &["x"]).unwrap_err().to_string();
        assert_eq!(
            fault(arrays(&[("p0", &[4, 7]), ("p1", &[4])])),
            "error[MLC0105]: the variable %w can't be bound: the array `p0` in its turn is f32[4, 7], which is another type or a \
             folded constant (line 1:66)"
        );
        assert_eq!(
            fault(arrays(&[("p0", &[4, 6])])),
            "error[MLC0105]: the variable %b can't be bound: the archive's parameters have no array for it (line 1:40)"
        );
        assert_eq!(
            fault(arrays(&[("p0", &[4, 6]), ("p1", &[4]), ("p2", &[4])])),
            "error[MLC0105]: the text has no variable for the array `p2` (line 1:5)"
        );
    }
}
