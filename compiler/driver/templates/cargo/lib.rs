//! The neural network `@MODEL@`: plain C behind a safe function. No standard library, no heap.
#![no_std]

use core::ffi::c_void;

/// Memory at the alignment that the model's code wants.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, align(16))]
pub struct Aligned<T>(pub T);

/// What the model reads: dense tensors in row-major order.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
@RUST_INPUTS@}

/// What the model writes: dense tensors in row-major order.
#[derive(Debug)]
pub struct Outputs<'a> {
@RUST_OUTPUTS@}

/// Why the model didn't run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// It runs already: its working memory is static, so that only one run can go on at a time.
    Busy,
    /// The generated code returned this status.
    Failed(i32),
}

#[repr(C)]
struct RawInputs {
@RAW_INPUTS@}

#[repr(C)]
struct RawOutputs {
@RAW_OUTPUTS@}

extern "C" {
    fn tvmgen_@MODEL@_run(inputs: *mut RawInputs, outputs: *mut RawOutputs) -> i32;
}

/// Runs the model once, unless another run goes on. Cores without an atomic exchange, such as Cortex-M0, have [`run_alone`] only.
///
/// # Errors
/// When another run goes on, or the generated code fails.
#[cfg(target_has_atomic = "8")]
pub fn run(inputs: &Inputs<'_>, outputs: &mut Outputs<'_>) -> Result<(), Error> {
    use core::sync::atomic::{AtomicBool, Ordering};
    static BUSY: AtomicBool = AtomicBool::new(false);
    if BUSY.swap(true, Ordering::Acquire) {
        return Err(Error::Busy);
    }
    // SAFETY: whoever else comes here before the end finds it busy.
    let result = unsafe { run_alone(inputs, outputs) };
    BUSY.store(false, Ordering::Release);
    result
}

/// Runs the model once.
///
/// # Errors
/// When the generated code fails.
///
/// # Safety
/// No other run may go on, in another thread or an interrupted one: the model's working memory is static.
pub unsafe fn run_alone(inputs: &Inputs<'_>, outputs: &mut Outputs<'_>) -> Result<(), Error> {
    let mut raw_inputs = RawInputs {
@BIND_INPUTS@    };
    let mut raw_outputs = RawOutputs {
@BIND_OUTPUTS@    };
    // SAFETY: the pointers are to tensors of the sizes that the header of the C code declares; the code keeps none of them,
    // doesn't write to inputs, and no other run goes on, as the caller promises.
    let status = unsafe { tvmgen_@MODEL@_run(&mut raw_inputs, &mut raw_outputs) };
    if status == 0 {
        Ok(())
    } else {
        Err(Error::Failed(status))
    }
}
