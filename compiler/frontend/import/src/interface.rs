//! Inputs of the model: shapes that the file leaves open are bound by what the user says, by name or by place.

use crate::fault::Fault;
use crate::format::Format;
use crate::importer::Importer;
use crate::options::ImportOptions;
use indexmap::IndexMap;
use mlc_ir::{Attribute, Code, DType, Diagnostic, Location, TensorType, Value};
use std::collections::BTreeSet;
use std::fmt;

/// An extent as a file says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extent<'m> {
    /// A number.
    Known(usize),
    /// A number that has a name, the same wherever the name stands.
    Named(&'m str),
    /// Any number.
    Open,
}

impl fmt::Display for Extent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Extent::Known(extent) => extent.fmt(f),
            Extent::Named(name) => f.write_str(name),
            Extent::Open => f.write_str("?"),
        }
    }
}

/// An input as a file declares it.
#[derive(Debug, Clone)]
pub struct DeclaredInput<'m> {
    /// Its name in the graph.
    pub name: &'m str,
    /// Another name by which the user may mean it.
    pub alias: Option<&'m str>,
    /// Its extents; `None` when the file doesn't even say how many there are.
    pub shape: Option<Vec<Extent<'m>>>,
}

impl DeclaredInput<'_> {
    fn text(&self) -> String {
        let extents: Vec<String> = self.shape.iter().flatten().map(ToString::to_string).collect();
        format!("[{}]", extents.join(", "))
    }

    /// An example of how the user says its shape.
    fn example(&self) -> String {
        let Some(shape) = &self.shape else { return "1,3,224,224".into() };
        let extents = shape.iter().map(|extent| match extent {
            Extent::Known(extent) => extent.to_string(),
            _ => "1".into(),
        });
        extents.collect::<Vec<String>>().join(",")
    }
}

/// Says that an extent is given for a dimension that the model doesn't have.
fn unknown_dimension(name: &str, known: &BTreeSet<&str>) -> Diagnostic {
    let message = format!("an extent is given for the dimension `{name}`, which the model doesn't have");
    let names: Vec<&str> = known.iter().copied().collect();
    let help = match names.is_empty() {
        true => "no dimension of the model has a name".into(),
        false => format!("the named dimensions are: {}", names.join(", ")),
    };
    Diagnostic::option_mismatch(message).with_help(help)
}

/// What is given for an input by its name, its other name or its number, with the one that was taken.
fn found<'o, T>(
    index: usize,
    input: &DeclaredInput<'_>,
    options: &'o IndexMap<String, T>,
) -> Option<(&'o String, &'o T)> {
    let number = index.to_string();
    let mut names = [Some(input.name), input.alias, Some(&*number)].into_iter().flatten();
    names.find_map(|name| options.get_key_value(name))
}

impl<'m, F: Format> Importer<'m, F> {
    /// The shape of each input: what the user gives, by name, by its other name or by its number, that of the value which the user says it always
    /// has, else what the file says.
    ///
    /// Shapes that the user gives bind names that other inputs' shapes use. Names that the model doesn't have are findings;
    /// `dimensions` are the model's named ones, beside those of the inputs.
    pub fn input_shapes(
        &mut self,
        inputs: &[DeclaredInput<'m>],
        dimensions: impl IntoIterator<Item = &'m str>,
        options: &ImportOptions,
    ) -> Vec<Result<Vec<usize>, Fault>> {
        let mut given = self.given("shape", inputs, &options.input_shapes);
        for (index, (input, shape)) in inputs.iter().zip(&mut given).enumerate() {
            let value = found(index, input, &options.input_values).map(|(_, value)| value);
            *shape = shape.take().or_else(|| value.map(|value| value.ty().shape.to_vec()));
        }
        for (input, given) in inputs.iter().zip(&given) {
            if let (Some(declared), Some(given)) = (&input.shape, given) {
                self.bind_dimensions(declared, given);
            }
        }
        let shapes = inputs.iter().zip(given).map(|(input, given)| self.input_shape(input, given)).collect();
        let named = inputs.iter().flat_map(|input| input.shape.iter().flatten()).filter_map(|extent| match extent {
            Extent::Named(name) => Some(*name),
            _ => None,
        });
        let known: BTreeSet<&str> = named.chain(dimensions).collect();
        for name in options.dimensions.keys().filter(|name| !known.contains(name.as_str())) {
            self.findings.push(unknown_dimension(name, &known));
        }
        shapes
    }

    /// The type of an input, whose size is checked.
    ///
    /// # Errors
    /// When it is beyond what the IR allows.
    pub fn input_type(&self, dtype: DType, shape: &[usize]) -> Result<TensorType, Fault> {
        let ty = TensorType::new(dtype, shape);
        match ty.checked_bytes() {
            Some(_) => Ok(ty),
            None => Err(Fault::new(Code::NumberOutOfRange, format!("the input {ty} is too large"))),
        }
    }

    /// The data type of what each input is given, where the user says it, by the same names as shapes.
    pub fn given_dtypes(&mut self, inputs: &[DeclaredInput<'m>], options: &ImportOptions) -> Vec<Option<DType>> {
        self.given("data type", inputs, &options.input_dtypes)
    }

    /// The value that each input always has, where the user says it, by the same names as shapes.
    pub fn given_values(&mut self, inputs: &[DeclaredInput<'m>], options: &ImportOptions) -> Vec<Option<Attribute>> {
        self.given("value", inputs, &options.input_values)
    }

    /// What is computed with in the place of an input: what it always is, if that is given, else itself.
    ///
    /// # Errors
    /// When what is given has another type.
    pub fn input_or_given(&mut self, name: &str, input: Value, given: Option<Attribute>) -> Result<Value, Fault> {
        let Some(given) = given else { return Ok(input) };
        let ty = self.builder.ty(input);
        if given.ty() != ty {
            let message = format!("the value {} is given for the input `{name}`, which is {ty}", given.ty());
            return Err(Fault::new(Code::ShapeMismatch, message));
        }
        Ok(self.builder.constant("value", given))
    }

    /// What the user gives for each input.
    fn given<T: Clone>(
        &mut self,
        what: &str,
        inputs: &[DeclaredInput<'m>],
        options: &IndexMap<String, T>,
    ) -> Vec<Option<T>> {
        let mut used = Vec::new();
        let mut given = Vec::new();
        for (index, input) in inputs.iter().enumerate() {
            let found = found(index, input, options);
            used.extend(found.map(|(key, _)| key.clone()));
            given.push(found.map(|(_, value)| value.clone()));
        }
        for name in options.keys().filter(|name| !used.contains(name)) {
            let message = format!("a {what} is given for the input `{name}`, which the model doesn't have");
            let names: Vec<&str> = inputs.iter().map(|input| input.name).collect();
            let diagnostic = Diagnostic::option_mismatch(message);
            self.findings.push(diagnostic.with_help(format!("the inputs are: {}", names.join(", "))));
        }
        given
    }

    fn bind_dimensions(&mut self, declared: &[Extent<'m>], given: &[usize]) {
        for (extent, &given) in declared.iter().zip(given) {
            if let Extent::Named(name) = extent {
                self.dimensions.entry((*name).to_owned()).or_insert(given);
            }
        }
    }

    /// An extent, as far as it is known by now.
    pub fn known_extent(&self, extent: &Extent<'_>) -> Option<usize> {
        match extent {
            Extent::Known(extent) => Some(*extent),
            Extent::Named(name) => self.dimensions.get(*name).copied(),
            Extent::Open => None,
        }
    }

    fn input_shape(&mut self, input: &DeclaredInput<'m>, given: Option<Vec<usize>>) -> Result<Vec<usize>, Fault> {
        match (&input.shape, given) {
            (Some(declared), Some(given)) => self.check_given(input, declared, &given).map(|()| given),
            (None, Some(given)) => Ok(given),
            (Some(declared), None) => self.declared_shape(input, declared),
            (None, None) => Err(open(input, "the file doesn't say its shape", &[])),
        }
    }

    fn declared_shape(&mut self, input: &DeclaredInput<'m>, declared: &[Extent<'m>]) -> Result<Vec<usize>, Fault> {
        let mut extents: Vec<Option<usize>> = declared.iter().map(|extent| self.known_extent(extent)).collect();
        let first_is_open = extents.len() > 1 && extents[0].is_none() && extents[1..].iter().all(Option::is_some);
        if F::LEADING_DIMENSION_IS_BATCH && first_is_open {
            extents[0] = Some(1);
            let option = match declared[0] {
                Extent::Named(name) => {
                    self.dimensions.insert(name.to_owned(), 1);
                    format!("--dim {name}=N")
                }
                _ => "--input-shape".into(),
            };
            let name = input.name;
            let message = format!("the first dimension of the input `{name}` is open; 1 is taken, {option} sets it");
            let location = Location { node: Some(name.to_owned()), ..Location::default() };
            self.findings.push(Diagnostic::note(Code::InputShapeUnknown, location, message));
        }
        extents.iter().copied().collect::<Option<Vec<usize>>>().ok_or_else(|| {
            let unknown = declared.iter().zip(&extents).filter(|(_, extent)| extent.is_none());
            let names = unknown.filter_map(|(extent, _)| match extent {
                Extent::Named(name) => Some(format!("--dim {name}=N")),
                _ => None,
            });
            let names: Vec<String> = names.collect();
            open(input, &format!("the file says {}, which is open", input.text()), &names)
        })
    }

    fn check_given(&self, input: &DeclaredInput<'m>, declared: &[Extent<'m>], given: &[usize]) -> Result<(), Fault> {
        let fits = |(extent, &given): (&Extent<'m>, &usize)| {
            self.known_extent(extent).is_none_or(|expected| expected == given)
        };
        if declared.len() == given.len() && declared.iter().zip(given).all(fits) {
            return Ok(());
        }
        let (name, text) = (input.name, input.text());
        let message = format!("the shape {given:?} was given for the input `{name}`, the file says {text}");
        Err(Fault::new(Code::ShapeMismatch, message)
            .with_help("extents that the file fixes can only be changed by exporting the model again"))
    }
}

fn open(input: &DeclaredInput<'_>, reason: &str, names: &[String]) -> Fault {
    let by_name = if names.is_empty() { String::new() } else { format!(", or by name: {}", names.join(" ")) };
    let name = input.name;
    Fault::new(Code::InputShapeUnknown, format!("the shape of the input `{name}` must be given: {reason}"))
        .with_help(format!("give it, for example with --input-shape '{name}={}'{by_name}", input.example()))
}
