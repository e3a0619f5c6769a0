//! `@main`: its variables are parameters and inputs, its result gives the outputs.

use super::*;
use crate::syntax::{AttributeValue, Type};
use mlc_ir::TensorType;

impl<'a> Importer<'a> {
    pub(super) fn import_main(&mut self, parameters: &Parameters, options: &ImportOptions) {
        let module = self.module;
        let Some((_, main)) = module.definitions.iter().find(|(name, _)| *name == "main") else {
            let message = "the text has no function @main";
            self.findings.push(Diagnostic::error(Code::UndefinedValue, Location::default(), message));
            return;
        };
        let main = &module.functions[*main];
        self.check_names(&main.parameters, parameters, options);
        let scope = Rc::new(Scope::default());
        let mut inputs = 0;
        for variable in &main.parameters {
            let item = match parameters.get(&variable.name) {
                Some(constant) => self.bound(variable, constant),
                None => {
                    inputs += 1;
                    self.input(variable, inputs - 1, options)
                }
            };
            let item = item.unwrap_or_else(|fault| {
                self.report(variable.place, fault);
                Item::Unknown
            });
            scope.bind(&variable.name, item);
        }
        let result = self.block(&main.body, &scope);
        scope.clear();
        if !self.failed() {
            self.outputs(&result, &main.attributes, main.place);
        }
    }

    /// Checks that every name that the user gives is one of the text's.
    fn check_names(&mut self, variables: &[Parameter<'a>], parameters: &Parameters, options: &ImportOptions) {
        let known = |name: &str| variables.iter().any(|variable| variable.name == name);
        let unused: Vec<&str> = parameters.keys().map(String::as_str).filter(|name| !known(name)).collect();
        if let Some(first) = unused.first() {
            let message = format!("{} of the parameters aren't variables of @main, such as `{first}`", unused.len());
            self.findings.push(Diagnostic::warning(Code::Unused, Location::default(), message));
        }
        let open = variables.iter().filter(|variable| !parameters.contains_key(&variable.name)).count();
        let number = |name: &str| name.parse::<usize>().is_ok_and(|number| number < open);
        for name in options.input_shapes.keys().filter(|name| !known(name) && !number(name)) {
            let message = format!("a shape is given for the input `{name}`, which the model doesn't have");
            self.findings.push(Diagnostic::error(Code::OptionMismatch, Location::default(), message));
        }
        for name in options.dimensions.keys() {
            self.findings.push(mlc_import::unknown_dimension(name, &Default::default()));
        }
    }

    fn bound(&mut self, variable: &'a Parameter<'a>, constant: &Attribute) -> Result<Item<'a>, Fault> {
        let found = constant.ty();
        let fits = match &variable.ty {
            None => true,
            Some(Type::Tensor(dtype, extents)) => {
                *dtype == found.dtype
                    && extents.len() == found.rank()
                    && extents
                        .iter()
                        .zip(&found.shape)
                        .all(|(known, &extent)| known.is_none_or(|known| known == extent))
            }
            Some(_) => false,
        };
        if !fits {
            let message =
                format!("the parameter for %{} is {found}, which isn't of the variable's type", variable.name);
            return Err(Fault::new(Code::WeightSizeMismatch, message));
        }
        Ok(Item::Tensor(self.builder.named_constant(&variable.name, constant.clone())))
    }

    fn input(
        &mut self,
        variable: &'a Parameter<'a>,
        number: usize,
        options: &ImportOptions,
    ) -> Result<Item<'a>, Fault> {
        let name = &variable.name;
        let Some(Type::Tensor(dtype, extents)) = &variable.ty else {
            return Err(Fault::variant(format!("the type of the input %{name} must be that of a tensor")));
        };
        let given = options.input_shapes.get(name).or_else(|| options.input_shapes.get(&number.to_string()));
        let shape = match given {
            Some(given) => {
                let fits = given.len() == extents.len()
                    && extents.iter().zip(given).all(|(known, extent)| known.is_none_or(|known| known == *extent));
                if !fits {
                    let message =
                        format!("the shape {given:?} was given for the input %{name}, which the text contradicts");
                    return Err(Fault::new(Code::ShapeMismatch, message));
                }
                given.clone()
            }
            None => extents.iter().copied().collect::<Option<Vec<usize>>>().ok_or_else(|| {
                Fault::new(Code::InputShapeUnknown, format!("the shape of the input %{name} is open"))
                    .with_help(format!("give it, for example with --input-shape '{name}=1,3,224,224'"))
            })?,
        };
        let ty = TensorType::new(*dtype, &shape);
        if ty.checked_bytes().is_none() {
            return Err(Fault::new(Code::NumberOutOfRange, format!("the input %{name} of type {ty} is too large")));
        }
        Ok(Item::Tensor(self.builder.input(name, ty)))
    }

    fn outputs(&mut self, result: &Item<'a>, attributes: &[Argument<'a>], place: Place) {
        let mut values = Vec::new();
        if let Err(fault) = flatten(result, &mut values) {
            return self.report(place, fault);
        }
        if values.is_empty() {
            return self.report(place, Fault::new(Code::NoOutput, "@main gives nothing"));
        }
        let given = attributes.iter().find(|attribute| attribute.name == "output_tensor_names");
        let names: Vec<String> = match given.map(|attribute| &attribute.value) {
            Some(AttributeValue::List(names)) if names.len() == values.len() => names
                .iter()
                .filter_map(|name| match name {
                    AttributeValue::Text(name) => Some(name.clone()),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        let named = unique.len() == values.len();
        for (index, &value) in values.iter().enumerate() {
            let name = match named {
                true => names[index].clone(),
                false if values.len() == 1 => "output".into(),
                false => format!("output{index}"),
            };
            self.builder.output(&name, value);
        }
    }
}

/// The tensors of tuples in tuples.
fn flatten(item: &Item<'_>, values: &mut Vec<Value>) -> Result<(), Fault> {
    match item {
        Item::Tensor(value) => values.push(*value),
        Item::Tuple(tuple) => tuple.items.iter().try_for_each(|item| flatten(item, values))?,
        _ => return Err(Fault::variant("@main gives a function, tensors are expected")),
    }
    Ok(())
}
