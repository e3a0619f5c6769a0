//! Models of the repository with random damage: each is refused with a reason, or compiled. `MLC_DAMAGED` is the number of files.

use mlc::pipeline::{self, LoadOptions};
use mlc_codegen::Target;
use mlc_ir::parallel;
use mlc_ir::{Diagnostic, Generator};
use mlc_tests::{compile, paths};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Larger files take longer to compile, and aren't otherwise.
const MOST_BYTES: usize = 1 << 15;
/// Nothing that fits in so few bytes takes longer, whatever its numbers are.
const TIME: Duration = Duration::from_secs(60);

/// The models of a format whose file has this name.
fn models(format: &str, name: &str) -> Vec<Vec<u8>> {
    let folders = paths::subfolders(&paths::data().join(format)).unwrap();
    let files = folders.iter().filter_map(|folder| std::fs::read(folder.join(name)).ok());
    files.filter(|file| file.len() <= MOST_BYTES).collect()
}

/// Damage that leaves a text well-formed: one digit becomes another.
fn change_digit(bytes: &mut [u8], random: &mut Generator) {
    let start = random.range(0, bytes.len() - 1);
    if let Some(digit) = bytes[start..].iter_mut().find(|byte| byte.is_ascii_digit()) {
        *digit = random.choose(b"0123456789");
    }
}

/// Whether a file is compiled.
fn is_compiled(path: &Path) -> bool {
    let start = Instant::now();
    let compiled = pipeline::load(path, &LoadOptions::default())
        .map_err(|failure| failure.diagnostics)
        .and_then(|loaded| compile::compile_graph(&loaded.graph, "default", &Target::generic()));
    assert!(start.elapsed() < TIME, "{} takes {:?}", path.display(), start.elapsed());
    match compiled {
        Ok(_) => true,
        Err(found) => {
            assert!(found.iter().any(Diagnostic::is_error), "{}: no reason", path.display());
            false
        }
    }
}

/// Damages models of a format whose files have this name. Half of them get other digits only.
fn check(models: &[Vec<u8>], extension: &str, seed: u64) {
    let number = std::env::var("MLC_DAMAGED").map_or(2500, |number| number.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut random = Generator::new(seed);
    let files: Vec<PathBuf> = (0..number)
        .map(|round: usize| {
            let mut bytes = models[round % models.len()].clone();
            if round.is_multiple_of(2) {
                bytes = random.damaged(&bytes);
            } else {
                change_digit(&mut bytes, &mut random);
            }
            let path = folder.path().join(format!("{round}.{extension}"));
            std::fs::write(&path, bytes).unwrap();
            path
        })
        .collect();
    let compiled = parallel::map(&files, 2, |file| is_compiled(file)).into_iter().filter(|&compiled| compiled).count();
    assert!((number / 20..number * 9 / 10).contains(&compiled), "{compiled} of {number}");
}

#[test]
fn damaged_ark_models_are_refused_or_compiled() {
    check(&models("ark", "model.json"), "json", 17);
}

#[test]
fn damaged_lightnet_models_are_refused_or_compiled() {
    check(&models("lightnet", "model.json"), "json", 18);
}

#[test]
fn damaged_lightnet_texts_are_refused_or_compiled() {
    check(&models("lightnet", "model.il"), "il", 19);
}

#[test]
fn damaged_tflite_models_are_refused_or_compiled() {
    check(&models("tflite", "model.tflite"), "tflite", 20);
}
