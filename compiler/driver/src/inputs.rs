//! Which tensor each input of a model gets: files that the user names, or random numbers.

use crate::{files, npy};
use indexmap::IndexMap;
use mlc_ir::{Attribute, Code, DType, Diagnostic, Generator, Location, Tensor, TensorType};
use std::path::{Path, PathBuf};

/// An input of a model, by name and type.
pub type InputPort<'a> = (&'a str, &'a TensorType);

/// The files of inputs that always have the same value, by the inputs' names.
pub type Always = [(String, PathBuf)];

/// Files for inputs: `NAME=FILE` for the input of that name, `FILE` for the next one that has none. An argument is taken as
/// `NAME=FILE` when the model has an input of that name. An input that is `always` the same gets its value where it is given no file, and
/// comes after the others in that order.
///
/// # Errors
/// `MLC0004` when names or numbers don't fit the model, and what reading the files gives; all inputs are tried.
pub fn read(arguments: &[String], always: &Always, ports: &[InputPort]) -> Result<Vec<Tensor>, Vec<Diagnostic>> {
    let files = assign(arguments, always, ports)?;
    let mut tensors = Vec::new();
    let mut faults = Vec::new();
    for (file, (name, ty)) in files.into_iter().zip(ports) {
        match npy::read_tensor(file, ty) {
            Ok(tensor) => tensors.push(tensor),
            Err(fault) => faults.push(fault.with_note(format!("the file is for the input '{name}': {ty}"))),
        }
    }
    if faults.is_empty() { Ok(tensors) } else { Err(faults) }
}

/// What an input always is.
pub fn value<'a>(always: &'a Always, name: &str) -> Option<&'a Path> {
    always.iter().find(|(own, _)| own == name).map(|(_, file)| file.as_path())
}

/// Files for inputs, as [`read`] has them, of several runs in a row, as [`split`] finds them; what is of one run is the same in all of
/// them. Gives the inputs of each run.
///
/// # Errors
/// As [`read`], and when the files don't say of how many runs they are.
pub fn read_runs(
    arguments: &[String],
    always: &Always,
    ports: &[InputPort],
) -> Result<Vec<Vec<Tensor>>, Vec<Diagnostic>> {
    let files = assign(arguments, always, ports)?;
    let mut given: Vec<Vec<Tensor>> = Vec::new();
    let mut faults = Vec::new();
    for (path, (name, ty)) in files.into_iter().zip(ports) {
        match read_several(path, ty) {
            Ok(tensors) if tensors.is_empty() => faults.push(unreadable(path, "the array is of no run".into())),
            Ok(tensors) => given.push(tensors),
            Err(fault) => faults.push(fault.with_note(format!("the file is for the input '{name}': {ty}"))),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let counts = given.iter().zip(ports).filter(|(tensors, _)| tensors.len() > 1);
    let counts: Vec<(usize, &str)> = counts.map(|(tensors, (name, _))| (tensors.len(), *name)).collect();
    let runs = counts.first().map_or(1, |(runs, _)| *runs);
    if let Some((other, name)) = counts.iter().find(|(count, _)| *count != runs) {
        return Err(vec![mismatch(format!("the input '{name}' is of {other} runs, '{}' is of {runs}", counts[0].1))]);
    }
    // What is of one run is for all.
    let of_run = |run: usize| given.iter().map(|tensors| tensors[run.min(tensors.len() - 1)].clone()).collect();
    Ok((0..runs).map(of_run).collect())
}

/// The tensors of a type that an array file holds, as [`split`] finds them.
///
/// # Errors
/// `MLC0001` when the file can't be read, `MLC0006` when it is damaged or holds something else.
pub fn read_several(path: &Path, ty: &TensorType) -> Result<Vec<Tensor>, Diagnostic> {
    let array = npy::parse(&files::read(path)?).map_err(|message| unreadable(path, message))?;
    // Files have no bf16, but its bits.
    let is_bits = (array.dtype, ty.dtype) == (DType::U16, DType::Bf16);
    let dtype = if is_bits { ty.dtype } else { array.dtype };
    let value = Attribute::new(TensorType::new(dtype, &array.shape), array.bytes);
    let value = value.map_err(|error| unreadable(path, error.to_string()))?;
    split(&value, ty).map_err(|message| unreadable(path, message))
}

/// What is wrong with an array file.
pub fn unreadable(path: &Path, message: String) -> Diagnostic {
    Diagnostic::error(Code::ArrayMismatch, Location::default().in_file(path.display().to_string()), message)
}

/// The tensors of a type that an array holds: one, or several along a leading axis; where the type has an extent of 1 there, that may be the
/// axis.
///
/// # Errors
/// A message when it holds something else.
pub fn split(array: &Attribute, ty: &TensorType) -> Result<Vec<Tensor>, String> {
    let found = array.ty();
    if found.dtype != ty.dtype {
        return Err(format!("the array has elements of type {}, {} expected", found.dtype, ty.dtype));
    }
    let several = found.shape.get(1..);
    let runs = if found.shape == ty.shape {
        1
    } else if several == Some(&ty.shape[..]) || (several == ty.shape.get(1..) && ty.shape.first() == Some(&1)) {
        found.shape[0]
    } else {
        let (found, expected) = (found.shape.as_slice(), ty.shape.as_slice());
        return Err(format!(
            "the array has shape {found:?}, {expected:?} expected, or several of these along a leading axis"
        ));
    };
    let bytes = ty.bytes();
    Ok((0..runs).map(|run| Tensor::from_le_bytes(ty.clone(), &array.bytes()[run * bytes..(run + 1) * bytes])).collect())
}

/// The file of each input.
fn assign<'a>(
    arguments: &'a [String],
    always: &'a Always,
    ports: &[InputPort],
) -> Result<Vec<&'a Path>, Vec<Diagnostic>> {
    let mut files: Vec<Option<&Path>> = vec![None; ports.len()];
    let mut unnamed = Vec::new();
    let mut faults = Vec::new();
    for argument in arguments {
        // A name may hold '=' itself, so every place is tried.
        let named = argument.match_indices('=').find_map(|(at, _)| {
            let index = ports.iter().position(|(name, _)| *name == &argument[..at])?;
            Some((index, &argument[at + 1..]))
        });
        match named {
            Some((index, file)) => {
                if files[index].replace(Path::new(file)).is_some() {
                    faults.push(mismatch(format!("the input '{}' is given twice", ports[index].0)));
                }
            }
            None => unnamed.push(argument.as_str()),
        }
    }
    let values: Vec<Option<&Path>> = ports.iter().map(|(name, _)| value(always, name)).collect();
    let open = files.iter().zip(&values).filter(|(file, value)| file.is_none() && value.is_none()).count();
    // More files than other inputs are for these, too.
    let are_spared = unnamed.len() <= open;
    let is_free =
        |(file, value): &(&mut Option<&Path>, &Option<&Path>)| file.is_none() && !(are_spared && value.is_some());
    let mut free = files.iter_mut().zip(&values).filter(is_free).map(|(file, _)| file);
    for argument in unnamed {
        if let Some((name, _)) = argument.split_once('=').filter(|_| !Path::new(argument).exists()) {
            faults.push(mismatch(format!("the model has no input '{name}'")).with_note(list(ports)));
        } else if let Some(file) = free.next() {
            *file = Some(Path::new(argument));
        } else {
            let message = format!("there is no input left for '{argument}'");
            faults.push(mismatch(message).with_note(list(ports)));
        }
    }
    files.iter_mut().zip(values).for_each(|(file, value)| *file = file.or(value));
    if faults.is_empty() {
        for (file, (name, ty)) in files.iter().zip(ports) {
            if file.is_none() {
                let help = format!("add --input '{name}=FILE.npy'");
                faults.push(mismatch(format!("no file is given for the input '{name}': {ty}")).with_help(help));
            }
        }
    }
    if faults.is_empty() { Ok(files.into_iter().flatten().collect()) } else { Err(faults) }
}

fn mismatch(message: String) -> Diagnostic {
    Diagnostic::option_mismatch(message)
}

fn list(ports: &[InputPort]) -> String {
    if ports.is_empty() {
        return "the model has no inputs".into();
    }
    let ports: Vec<String> = ports.iter().map(|(name, ty)| format!("'{name}': {ty}")).collect();
    format!("its inputs are {}", ports.join(", "))
}

/// Types of input files, by the name or the number of the input that each is for: what a model that leaves them open is to be
/// loaded with. The model's names aren't known yet, so `NAME=` ends at the first `=` unless the whole is a file. Files that
/// can't be read are left out; [`read`] reports them.
pub fn types(arguments: &[String]) -> IndexMap<String, TensorType> {
    let mut types = IndexMap::new();
    for (number, argument) in arguments.iter().enumerate() {
        let (key, file) = match argument.split_once('=').filter(|_| !Path::new(argument).exists()) {
            Some((name, file)) => (name.to_owned(), file),
            None => (number.to_string(), argument.as_str()),
        };
        if let Some(array) = files::read(Path::new(file)).ok().and_then(|bytes| npy::parse(&bytes).ok()) {
            types.insert(key, TensorType::new(array.dtype, &array.shape[..]));
        }
    }
    types
}

/// Shapes of input files, as [`types`] names them.
pub fn shapes(arguments: &[String]) -> IndexMap<String, Vec<usize>> {
    types(arguments).into_iter().map(|(name, ty)| (name, ty.shape.to_vec())).collect()
}

/// Splits `NAME=FILE`.
///
/// # Errors
/// `MLC0004` when no output has the name.
pub fn find_output<'a>(argument: &'a str, names: &[&str]) -> Result<(usize, &'a Path), Diagnostic> {
    let found = argument.match_indices('=').find_map(|(at, _)| {
        let index = names.iter().position(|name| *name == &argument[..at])?;
        Some((index, Path::new(&argument[at + 1..])))
    });
    match found {
        Some(found) => Ok(found),
        // Without a name, a model with one output leaves no doubt.
        None if names.len() == 1 && !argument.contains('=') => Ok((0, Path::new(argument))),
        None => {
            let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
            Err(mismatch(format!("'{argument}' names no output of the model"))
                .with_note(format!("its outputs are {}", names.join(", "))))
        }
    }
}

/// Random tensors, the same for the same seed: floats in -2..2; integers of 8 and 16 bits over a good part of their range;
/// wider integers 0 or 1, since they are often indices.
pub fn random(seed: u64, ports: &[InputPort]) -> Vec<Tensor> {
    let mut generator = Generator::new(seed);
    ports.iter().map(|(_, ty)| random_tensor(&mut generator, ty)).collect()
}

fn random_tensor(generator: &mut Generator, ty: &TensorType) -> Tensor {
    let (low, high) = match ty.dtype {
        DType::I8 | DType::I16 => (-128, 127),
        DType::U8 | DType::U16 => (0, 255),
        dtype if dtype.is_float() => return generator.tensor(ty),
        _ => (0, 1),
    };
    let values = (0..ty.elements()).map(|_| generator.range(0, (high - low) as usize) as i64 + low).collect();
    Tensor::from_integers(ty.clone(), values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(arguments: &[&str], ports: &[InputPort]) -> Result<Vec<String>, Vec<String>> {
        messages_beside(&[], arguments, ports)
    }

    fn messages_beside(always: &Always, arguments: &[&str], ports: &[InputPort]) -> Result<Vec<String>, Vec<String>> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        assign(&arguments, always, ports)
            .map(|files| files.into_iter().map(|file| file.display().to_string()).collect())
            .map_err(|faults| faults.into_iter().map(|fault| fault.message).collect())
    }

    #[test]
    fn inputs_that_are_always_the_same_need_no_file() {
        let ty = TensorType::new(DType::F32, [1]);
        let ports = [("size", &ty), ("x", &ty), ("y", &ty)];
        let always = [("size".to_owned(), "s.npy".into())];
        let files = |names: &[&str]| Ok(names.iter().map(ToString::to_string).collect());
        let given = |arguments: &[&str]| messages_beside(&always, arguments, &ports);
        assert_eq!(given(&["1.npy", "2.npy"]), files(&["s.npy", "1.npy", "2.npy"]));
        assert_eq!(given(&["x=1.npy", "2.npy"]), files(&["s.npy", "1.npy", "2.npy"]));
        assert_eq!(given(&["1.npy", "2.npy", "3.npy"]), files(&["1.npy", "2.npy", "3.npy"]));
        assert_eq!(given(&["size=1.npy", "2.npy", "3.npy"]), files(&["1.npy", "2.npy", "3.npy"]));
        assert_eq!(given(&["1.npy"]), Err(vec!["no file is given for the input 'y': f32[1]".to_owned()]));
    }

    #[test]
    fn files_go_to_named_inputs_and_then_in_order() {
        let ty = TensorType::new(DType::F32, [1]);
        let ports = [("a", &ty), ("b=c", &ty), ("d", &ty)];
        let files = |names: &[&str]| Ok(names.iter().map(ToString::to_string).collect());
        assert_eq!(messages(&["1.npy", "2.npy", "3.npy"], &ports), files(&["1.npy", "2.npy", "3.npy"]));
        assert_eq!(messages(&["1.npy", "b=c=2=3.npy", "3.npy"], &ports), files(&["1.npy", "2=3.npy", "3.npy"]));
        assert_eq!(messages(&["d=1.npy", "2.npy", "3.npy"], &ports), files(&["2.npy", "3.npy", "1.npy"]));
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let ty = TensorType::new(DType::F32, [1]);
        let ports = [("a", &ty), ("b", &ty)];
        let faults = |texts: &[&str]| Err(texts.iter().map(ToString::to_string).collect());
        assert_eq!(
            messages(&["x=1.npy", "y=2.npy"], &ports),
            faults(&["the model has no input 'x'", "the model has no input 'y'"])
        );
        assert_eq!(messages(&["1", "2", "3"], &ports), faults(&["there is no input left for '3'"]));
        assert_eq!(messages(&["a=1", "a=2", "3"], &ports), faults(&["the input 'a' is given twice"]));
        assert_eq!(messages(&["1"], &ports), faults(&["no file is given for the input 'b': f32[1]"]));
    }

    #[test]
    fn random_inputs_depend_on_the_seed_only() {
        for dtype in DType::ALL {
            let ty = TensorType::new(dtype, [64]);
            let ports = [("a", &ty)];
            assert_eq!(random(7, &ports), random(7, &ports));
            assert_ne!(random(7, &ports), random(8, &ports));
        }
    }
}
