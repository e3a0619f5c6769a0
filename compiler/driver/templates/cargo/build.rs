//! Compiles the model's C. The compiler and its options are those of the crate `cc`: CC, CFLAGS and TARGET choose others.

fn main() {
    let sources = [
@RUST_SOURCES@    ];
    let objects: &[&str] = &[@RUST_OBJECTS@];
    let mut build = cc::Build::new();
    build.includes(["model/codegen/host/include", "@RUNTIME@/include", "@RUNTIME@/crt_config"]);
    build.opt_level(3).warnings(false);
    for flag in [@RUST_FLAGS@] {
        build.flag_if_supported(flag);
    }
    build.files(sources).objects(objects).compile("tvmgen_@MODEL@");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system != "none" && system != "windows") {
        println!("cargo:rustc-link-lib=m");
    }
    println!("cargo:rerun-if-changed=model");
}
