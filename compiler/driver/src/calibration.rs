//! The inputs of several runs, which `mlc quantize` learns from, in a folder:
//!
//! - `.npz` archives, which hold an array for each input by its name;
//! - or, for each input, a folder of its name with `.npy` files, or `<name>.npy`;
//! - or, of a model with one input, `.npy` files of any names.
//!
//! Files are taken in the order of their names. An array is the input of one run, or of several along a leading axis; where the input
//! has an extent of 1 there, that may be the axis.

use crate::inputs::{InputPort, read_several, split, unreadable};
use crate::{arrays, files};
use mlc_ir::{Code, Diagnostic, Location, Tensor, TensorType};
use std::path::{Path, PathBuf};

/// Reads the inputs of all runs, each in the order of `ports`.
///
/// # Errors
/// `MLC0001` when the folder or a file can't be read, `MLC0006` when an array is damaged or has another type or shape than its input,
/// `MLC0008` when there are no arrays for an input, the inputs have different numbers of runs, or elements say nothing.
pub fn read(folder: &Path, ports: &[InputPort]) -> Result<Vec<Vec<Tensor>>, Vec<Diagnostic>> {
    let entries = entries(folder).map_err(|fault| vec![fault])?;
    let archives: Vec<&PathBuf> = entries.iter().filter(|path| has_extension(path, "npz")).collect();
    let mut faults = Vec::new();
    let mut columns: Vec<Vec<Tensor>> = Vec::new();
    for (number, &(name, ty)) in ports.iter().enumerate() {
        let found = if archives.is_empty() {
            from_files(folder, &entries, (number, name), ty, ports.len())
        } else {
            from_archives(&archives, name, ty)
        };
        match found.and_then(|runs| checked(folder, name, ty, runs)) {
            Ok(runs) => columns.push(runs),
            Err(fault) => faults.push(fault.with_note(format!("it is for the input '{name}': {ty}"))),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let counts: Vec<usize> = columns.iter().map(Vec::len).collect();
    let runs = counts.first().copied().unwrap_or(1);
    if counts.iter().any(|&count| count != runs) {
        let list: Vec<String> =
            ports.iter().zip(&counts).map(|((name, _), count)| format!("'{name}': {count}")).collect();
        let fault = unfit(folder, "the inputs have different numbers of runs".into());
        return Err(vec![fault.with_note(format!("runs of the inputs are {}", list.join(", ")))]);
    }
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    Ok((0..runs).map(|_| columns.iter_mut().filter_map(Iterator::next).collect()).collect())
}

fn unfit(path: &Path, message: String) -> Diagnostic {
    Diagnostic::error(Code::CalibrationUnfit, Location::default().in_file(path.display().to_string()), message)
}

/// The entries of a folder by name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let unreadable = |error: std::io::Error| {
        let location = Location::default().in_file(folder.display().to_string());
        Diagnostic::error(Code::FileUnreadable, location, format!("can't read the folder: {}", files::describe(&error)))
    };
    let list = std::fs::read_dir(folder).map_err(unreadable)?;
    let mut entries = list.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>().map_err(unreadable)?;
    entries.sort();
    Ok(entries)
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension) && path.is_file()
}

/// The runs of an input in archives of arrays by name.
fn from_archives(archives: &[&PathBuf], name: &str, ty: &TensorType) -> Result<Vec<Tensor>, Diagnostic> {
    let mut runs = Vec::new();
    for path in archives {
        let found = arrays::read(path)?;
        let Some(array) = found.get(name) else {
            let names: Vec<String> = found.keys().map(|name| format!("'{name}'")).collect();
            let fault = unfit(path, format!("the archive has no array for the input '{name}'"));
            return Err(fault.with_note(format!("its arrays are {}", names.join(", "))));
        };
        runs.extend(split(&array.value, ty).map_err(|message| unreadable(path, message))?);
    }
    Ok(runs)
}

/// The runs of an input in `.npy` files; `count` is how many inputs the model has.
fn from_files(
    folder: &Path,
    entries: &[PathBuf],
    (number, name): (usize, &str),
    ty: &TensorType,
    count: usize,
) -> Result<Vec<Tensor>, Diagnostic> {
    let names = [name.to_owned(), files::safe_file_name(name), number.to_string()];
    let is_named = |path: &PathBuf, names: &[String]| {
        path.file_name().is_some_and(|found| names.iter().any(|name| found == name.as_str()))
    };
    let own = entries.iter().find(|path| path.is_dir() && is_named(path, &names));
    let file_names = names.clone().map(|name| format!("{name}.npy"));
    let arrays: Vec<PathBuf> = match own {
        Some(own) => self::entries(own)?.into_iter().filter(|path| has_extension(path, "npy")).collect(),
        None => {
            let arrays = entries.iter().filter(|path| has_extension(path, "npy"));
            arrays.filter(|path| count == 1 || is_named(path, &file_names)).cloned().collect()
        }
    };
    if arrays.is_empty() {
        let fault = unfit(folder, format!("there are no calibration data for the input '{name}'"));
        let [_, safe, _] = &names;
        let help = format!(
            "put arrays of typical inputs into '{}', or all of them into '{safe}.npy'",
            folder.join(safe).display()
        );
        return Err(fault.with_help(help));
    }
    let mut runs = Vec::new();
    for path in arrays {
        runs.extend(read_several(&path, ty)?);
    }
    Ok(runs)
}

/// The runs of an input, if they say something of it.
fn checked(folder: &Path, name: &str, ty: &TensorType, runs: Vec<Tensor>) -> Result<Vec<Tensor>, Diagnostic> {
    if runs.is_empty() {
        return Err(unfit(folder, format!("the calibration data for the input '{name}' are of no run")));
    }
    if !ty.dtype.is_float() {
        return Ok(runs);
    }
    let mut first = None;
    let mut varies = false;
    for (run, tensor) in runs.iter().enumerate() {
        for number in tensor.to_floats() {
            if !number.is_finite() {
                let message =
                    format!("the calibration data for the input '{name}' have the element {number} in run {run}");
                return Err(unfit(folder, message));
            }
            varies |= *first.get_or_insert(number) != number;
        }
    }
    if varies || ty.elements() == 0 {
        return Ok(runs);
    }
    let number = first.unwrap_or_default();
    let fault = unfit(folder, format!("all elements of the calibration data for the input '{name}' are {number}"));
    Err(fault.with_help("give inputs as they are when the model is used: ranges of its tensors follow from them"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npy;
    use mlc_ir::DType;
    use std::fs;

    fn tensor(shape: &[usize], first: f64) -> Tensor {
        let ty = TensorType::new(DType::F32, shape);
        let values = (0..ty.elements()).map(|place| first + place as f64).collect();
        Tensor::from_floats(ty, values)
    }

    fn write(path: &Path, tensor: &Tensor) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, npy::format(tensor)).unwrap();
    }

    fn first_elements(runs: &[Vec<Tensor>]) -> Vec<Vec<f64>> {
        runs.iter().map(|run| run.iter().map(|tensor| tensor.to_floats()[0]).collect()).collect()
    }

    #[test]
    fn arrays_are_found_by_input_and_split_into_runs() {
        let (image, flag) = (TensorType::new(DType::F32, [1, 2]), TensorType::new(DType::F32, [3]));
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("in_image/b.npy"), &tensor(&[3, 2], 10.0));
        write(&folder.path().join("in_image/a.npy"), &tensor(&[1, 2], 1.0));
        write(&folder.path().join("flag.npy"), &tensor(&[4, 3], 0.0));
        let runs = read(folder.path(), &[("in:image", &image), ("flag", &flag)]).unwrap();
        assert_eq!(first_elements(&runs), [[1.0, 0.0], [10.0, 3.0], [12.0, 6.0], [14.0, 9.0]]);
        // Of one input, any file is for it.
        let single = tempfile::tempdir().unwrap();
        write(&single.path().join("x7.npy"), &tensor(&[1, 2], 7.0));
        write(&single.path().join("x3.npy"), &tensor(&[5, 1, 2], 3.0));
        assert_eq!(first_elements(&read(single.path(), &[("image", &image)]).unwrap())[5], [7.0]);
    }

    #[test]
    fn archives_hold_an_array_for_each_input() {
        let ty = TensorType::new(DType::F32, [1, 2]);
        let folder = tempfile::tempdir().unwrap();
        let mut archive = zip::ZipWriter::new(fs::File::create(folder.path().join("runs.npz")).unwrap());
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        for (name, first) in [("a", 1.0), ("b", 100.0)] {
            archive.start_file(format!("{name}.npy"), options).unwrap();
            std::io::Write::write_all(&mut archive, &npy::format(&tensor(&[2, 1, 2], first))).unwrap();
        }
        archive.finish().unwrap();
        let runs = read(folder.path(), &[("b", &ty), ("a", &ty)]).unwrap();
        assert_eq!(first_elements(&runs), [[100.0, 1.0], [102.0, 3.0]]);
        let faults = read(folder.path(), &[("a", &ty), ("c", &ty)]).unwrap_err();
        assert_eq!(faults[0].message, "the archive has no array for the input 'c'");
    }

    #[test]
    fn what_says_nothing_is_refused() {
        let ty = TensorType::new(DType::F32, [1, 2]);
        let fault = |tensor: Option<Tensor>, name: &str| {
            let folder = tempfile::tempdir().unwrap();
            if let Some(tensor) = tensor {
                write(&folder.path().join(name), &tensor);
            }
            let fault = read(folder.path(), &[("x", &ty)]).unwrap_err().remove(0);
            (fault.code, fault.message)
        };
        let of = |values: [f64; 2]| Some(Tensor::from_floats(ty.clone(), values.to_vec()));
        let unfit = |message: &str| (Code::CalibrationUnfit, message.to_owned());
        assert_eq!(fault(None, "x.npy"), unfit("there are no calibration data for the input 'x'"));
        let infinite = unfit("the calibration data for the input 'x' have the element NaN in run 0");
        assert_eq!(fault(of([0.0, f64::NAN]), "x.npy"), infinite);
        assert_eq!(fault(of([2.0; 2]), "x.npy"), unfit("all elements of the calibration data for the input 'x' are 2"));
        assert_eq!(
            fault(Some(tensor(&[0, 2], 0.0)), "x.npy"),
            unfit("the calibration data for the input 'x' are of no run")
        );
        assert_eq!(fault(Some(tensor(&[2, 3], 0.0)), "x.npy").0, Code::ArrayMismatch);
        let integers = Tensor::from_integers(TensorType::new(DType::I8, [1, 2]), vec![1, 2]);
        assert_eq!(fault(Some(integers), "x.npy").0, Code::ArrayMismatch);
        assert_eq!(read(Path::new("not there"), &[("x", &ty)]).unwrap_err()[0].code, Code::FileUnreadable);
    }
}
