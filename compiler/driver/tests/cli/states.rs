//! Models that keep states, on the command line.

use super::{Folder, STREAM};

#[test]
fn c_compiler_verifies_models_that_keep_their_states() {
    let folder = Folder::new();
    folder.write("stream.mlc", STREAM);
    let plain = folder.mlc(&["verify", "stream.mlc"]).success();
    assert!(plain.out.starts_with("y: ok"), "{}", plain.out);
    let kept = folder.mlc(&["verify", "stream.mlc", "--stateful", "--state", "s=s.next"]).success();
    let lines: Vec<&str> = kept.out.lines().collect();
    assert!(lines.len() == 3 && lines[2].starts_with("y of run 3: ok"), "{}", kept.out);
    folder.mlc(&["compile", "stream.mlc", "--stateful", "--emit", "c", "-o", "c"]).success();
    let header = std::fs::read_to_string(folder.path().join("c/tvmgen_default.h")).unwrap();
    assert!(header.contains("int32_t tvmgen_default_reset(void);") && !header.contains("hidden"), "{header}");
    let external = ["compile", "stream.mlc", "--stateful", "--state-pool", "external"];
    folder.mlc(&[&external[..], &["--emit", "c", "-o", "e"]].concat()).success();
    let header = std::fs::read_to_string(folder.path().join("e/tvmgen_default.h")).unwrap();
    for line in [
        "int32_t tvmgen_default_reset(struct tvmgen_default_workspace_pools* workspace_pools);",
        "  void* global_state_workspace; /* 12 bytes: states of one stream, kept between runs */",
        "#define TVMGEN_DEFAULT_STATE_SIZE 12",
        "#define TVMGEN_DEFAULT_STATE_ALIGNMENT 16",
    ] {
        assert!(header.contains(line), "{header}");
    }
    // The archive's own runs go on where the last one ended, as those of an archive with static states do.
    folder.mlc(&[&external[..], &["-o", "own.tar"]].concat()).success();
    folder.mlc(&["compile", "stream.mlc", "--stateful", "-o", "static.tar"]).success();
    folder.write_array("x.npy", &[2, 2, 1, 3], &[1.0, 0.5, 0.0, 2.0, -1.0, 1.0, 0.25, 3.0, 0.0, 1.0, 1.0, -2.0]);
    folder.write_array("s.npy", &[1, 3], &[0.5, 0.25, 0.0]);
    let runs = |archive: &str, to: &str| {
        let files = ["--input", "x=x.npy", "--input", "s=s.npy", "--steps", "--output-dir", to];
        folder.mlc(&[&["run", archive][..], &files].concat()).success();
        folder.read_array(&format!("{to}/y.npy"), &[2, 2, 1, 3])
    };
    assert_eq!(runs("own.tar", "own"), runs("static.tar", "static"));
    let graph_too = ["--executor", "aot,graph"];
    folder.mlc(&[&external[..], &graph_too].concat()).failure(2, &["without a pool of states", "--executor aot"]);
    let packed = ["--interface-api", "packed"];
    folder.mlc(&[&external[..], &packed].concat()).failure(2, &["only the C interface takes memory", "--state-pool"]);
    folder.mlc(&["compile", "stream.mlc", "--emit", "c", "-o", "d"]).success();
    let header = std::fs::read_to_string(folder.path().join("d/tvmgen_default.h")).unwrap();
    assert!(!header.contains("reset"), "{header}");
    folder
        .mlc(&["run", "model.mlc", "--stateful"])
        .failure(2, &["no forward recurrent operator", "--state INPUT=OUTPUT"]);
    folder
        .mlc(&["verify", "stream.mlc", "--state", "s=z"])
        .failure(2, &["no output 'z'", "its outputs are: y, s.next"]);
    folder
        .mlc(&["verify", "stream.mlc", "--state", "s=y"])
        .failure(2, &["is f32[1, 3], the output 'y' is f32[2, 1, 3]"]);
}
