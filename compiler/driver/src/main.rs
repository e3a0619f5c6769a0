//! The mlc command.
fn main() {}
