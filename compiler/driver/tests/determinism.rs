//! The same model and options give the same bytes in every process. That a debug build gives those of a release build is what the
//! reviewed code of whole networks shows (`snapshots`), which both builds are held to.

use crate::common::mlc;
use std::path::Path;

/// How often each model is compiled.
const RUNS: usize = 20;

#[test]
fn twenty_processes_write_the_same_archive() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/pnnx");
    let folder = tempfile::tempdir().unwrap();
    for (name, target) in [("net_vit_tiny_separate_qkv", "cortex-m4"), ("net_mlperftiny_dscnn_kws", "x86-64-v4")] {
        let model = data.join(name).join("model.pnnx.param");
        let archive = folder.path().join("archive.tar");
        let mut first: Option<Vec<u8>> = None;
        for run in 0..RUNS {
            let [model, archive_name] = [&model, &archive].map(|path| path.to_str().unwrap());
            mlc(folder.path(), 0, &["compile", model, "--target", target, "-o", archive_name]);
            let bytes = std::fs::read(&archive).unwrap();
            std::fs::remove_file(&archive).unwrap();
            assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{name}, {target}: run {run} differs");
        }
    }
}
