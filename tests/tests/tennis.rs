//! Damaged TenniS modules all the way: each is refused, with an error, or becomes code.

use bytes::Bytes;
use mlc::pipeline::{self, CompileOptions};
use mlc_import::ImportOptions;
use mlc_ir::{Diagnostic, Generator};
use mlc_tests::paths;

/// Damaged files.
const DAMAGED: usize = 5000;

/// Largest file that is damaged: others are weights for the greater part.
const LARGEST: usize = 1 << 14;

fn compile(bytes: &Bytes) -> Result<(), Vec<Diagnostic>> {
    let (model, _) = mlc_tennis::read(bytes)?;
    let imported = mlc_tennis::import(&model, &ImportOptions::default())?;
    mlc_ir::verify(&imported.graph)?;
    pipeline::compile(&imported.graph, &CompileOptions::default(), &mut |_, _| {}).map(|_| ())
}

#[test]
fn damaged_modules_are_compiled_or_refused() {
    let folders = paths::subfolders(&paths::data().join("tennis")).unwrap();
    let files = folders.iter().map(|folder| Bytes::from(std::fs::read(folder.join("model.tsm")).unwrap()));
    let files: Vec<Bytes> = files.filter(|bytes| bytes.len() <= LARGEST).collect();
    let mut random = Generator::new(11);
    let (mut compiled, mut refused) = (0, 0);
    for round in 0..DAMAGED {
        let bytes: Bytes = random.damaged(&files[round % files.len()]).into();
        match compile(&bytes) {
            Ok(()) => compiled += 1,
            Err(errors) => {
                assert!(errors.iter().any(|error| error.is_error() && !error.message.is_empty()), "round {round}");
                refused += 1;
            }
        }
    }
    assert!(compiled > 500 && refused > 1000, "{compiled} compiled, {refused} refused");
}
