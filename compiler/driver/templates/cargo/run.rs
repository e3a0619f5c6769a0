//! Runs the model. Arguments are files of raw little-endian tensors: the inputs', then the outputs'; without any, inputs are zeros.

use @RUST_CRATE@::{run, Aligned, Inputs, Outputs};

fn read<const N: usize>(path: Option<&String>) -> [u8; N] {
    let Some(path) = path else { return [0; N] };
    let bytes = std::fs::read(path).expect("the input can be read");
    bytes.try_into().expect("the input has as many bytes as the model wants")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
@RUN_READ@@RUN_OUTPUTS@    let status = run(
        &Inputs { @RUN_BIND_INPUTS@ },
        &mut Outputs { @RUN_BIND_OUTPUTS@ },
    );
    status.expect("the model runs");
@RUN_WRITE@}
