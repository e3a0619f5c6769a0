//! The formats that have a reader, each behind a Cargo feature of its own: adding one is a file here and a line in [`FRONTENDS`].

#[cfg(feature = "ark")]
mod ark;
mod contents;
mod frontend;
#[cfg(feature = "lightnet")]
mod lightnet;
#[cfg(feature = "mlf")]
mod mlf;
#[cfg(feature = "onnx")]
mod onnx;
mod outcome;
#[cfg(feature = "pnnx")]
mod pnnx;
#[cfg(feature = "relay")]
mod relay;
#[cfg(feature = "tennis")]
mod tennis;
#[cfg(feature = "tflite")]
mod tflite;

#[cfg(feature = "ark")]
pub use ark::read_ark;
pub use contents::{Contents, Memory};
pub use frontend::{Frontend, ModelFile};
#[cfg(feature = "lightnet")]
pub use lightnet::{RawLightnet, read_lightnet};
#[cfg(feature = "pnnx")]
pub use pnnx::{RawPnnx, read_pnnx};
#[cfg(feature = "tennis")]
pub use tennis::read_tennis;

use crate::format::Format;

/// The formats that this build of mlc reads.
pub const FRONTENDS: &[Frontend] = &[
    #[cfg(feature = "ark")]
    ark::FRONTEND,
    #[cfg(feature = "lightnet")]
    lightnet::FRONTEND,
    #[cfg(feature = "mlf")]
    mlf::FRONTEND,
    #[cfg(feature = "onnx")]
    onnx::FRONTEND,
    #[cfg(feature = "pnnx")]
    pnnx::FRONTEND,
    #[cfg(feature = "relay")]
    relay::FRONTEND,
    #[cfg(feature = "tennis")]
    tennis::FRONTEND,
    #[cfg(feature = "tflite")]
    tflite::FRONTEND,
];

/// The reader of a format, where this build has one.
pub fn find(format: Format) -> Option<&'static Frontend> {
    FRONTENDS.iter().find(|frontend| frontend.format == format)
}
