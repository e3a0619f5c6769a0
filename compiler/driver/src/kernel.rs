//! [`Kernel`]: a generated kernel, as the archive of its model describes it.

use mlc_codegen::package::PredictedKernel;
use mlc_ir::types::row_major_strides;
use mlc_ir::{DType, Tensor, TensorType};
use serde::Deserialize;

/// A generated kernel, or a loop over those that follow it, as the archive describes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Kernel {
    /// Its C function.
    pub function: String,
    /// The node that it computes.
    pub node: String,
    /// What it computes, such as `convolution with epilogue`.
    pub operator: String,
    /// Operators of the model that it stands for.
    #[serde(default)]
    pub origins: Vec<String>,
    /// How many of those behind it are inside of it; archives say it of loops only.
    #[serde(default)]
    pub inside: usize,
    /// Multiply-accumulate operations.
    pub macs: u64,
    /// Bytes that it reads and writes if each element is read or written once; archives of older versions don't say it.
    #[serde(default)]
    pub bytes: u64,
    /// Bytes of memory that only it uses; archives of older versions don't say it.
    #[serde(default)]
    pub workspace_bytes: u64,
    /// Where its results lie when it has run; archives of older versions don't say it.
    #[serde(default)]
    pub results: Vec<KernelResult>,
    /// What it was predicted to cost; archives of older versions don't say it.
    #[serde(default)]
    pub predicted: Option<PredictedKernel>,
    /// The schedule that it took, if there are schedules of its operator and the archive says it.
    #[serde(default)]
    pub schedule: Option<String>,
    /// Where threads compute it, if they compute branches that don't depend on each other.
    #[serde(default)]
    pub branch: Option<Branch>,
}

/// Which of the branches that are computed at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Branch {
    /// Number of the launch by which threads get them.
    pub launch: usize,
    /// Number of the share of that.
    pub share: usize,
}

/// A value that a kernel computes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ResultDescription")]
pub struct KernelResult {
    /// Name of the value's node in the optimised graph.
    pub node: String,
    /// Which result of the node it is.
    pub slot: usize,
    /// Its type.
    pub ty: TensorType,
    /// Elements between neighbours along each axis, from its first element on.
    strides: Vec<usize>,
    /// Bytes from its first element to the end of its last.
    pub span: usize,
}

#[derive(Deserialize)]
struct ResultDescription {
    node: String,
    slot: usize,
    dtype: String,
    shape: Vec<usize>,
    #[serde(default)]
    strides: Vec<usize>,
}

impl TryFrom<ResultDescription> for KernelResult {
    type Error = String;

    fn try_from(description: ResultDescription) -> Result<KernelResult, String> {
        let ResultDescription { node, slot, dtype, shape, strides } = description;
        let dtype = DType::parse(&dtype).ok_or_else(|| format!("'{node}' has the unknown data type '{dtype}'"))?;
        let ty = TensorType::new(dtype, shape);
        ty.checked_bytes().ok_or_else(|| format!("'{node}' is too large"))?;
        let strides = if strides.is_empty() { row_major_strides(&ty.shape).to_vec() } else { strides };
        if strides.len() != ty.rank() {
            return Err(format!("'{node}' has {} strides and {} axes", strides.len(), ty.rank()));
        }
        let last = ty.shape.iter().zip(&strides).try_fold(0_usize, |last, (&extent, &stride)| {
            last.checked_add(extent.saturating_sub(1).checked_mul(stride)?)
        });
        let elements = last.and_then(|last| if ty.shape.contains(&0) { Some(0) } else { last.checked_add(1) });
        let span = elements.and_then(|elements| elements.checked_mul(dtype.size()));
        let span = span.filter(|&span| span <= isize::MAX as usize).ok_or_else(|| format!("'{node}' is too large"))?;
        Ok(KernelResult { node, slot, ty, strides, span })
    }
}

impl KernelResult {
    /// The tensor, from the bytes of its span. Precondition: there are so many.
    pub fn tensor(&self, bytes: &[u8]) -> Tensor {
        if bytes.len() == self.ty.bytes() {
            return Tensor::from_le_bytes(self.ty.clone(), bytes);
        }
        let size = self.ty.dtype.size();
        let mut starts = vec![0];
        for (&extent, &stride) in self.ty.shape.iter().zip(&self.strides) {
            starts = starts.iter().flat_map(|start| (0..extent).map(move |index| start + index * stride)).collect();
        }
        let dense: Vec<u8> =
            starts.iter().flat_map(|start| &bytes[start * size..(start + 1) * size]).copied().collect();
        Tensor::from_le_bytes(self.ty.clone(), &dense)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> Result<KernelResult, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn results_with_gaps_between_their_rows_become_dense() {
        let text = r#"{"node": "n", "slot": 0, "dtype": "i16", "shape": [2, 2], "strides": [3, 1]}"#;
        let found = result(text).unwrap();
        assert_eq!(found.span, 10);
        let bytes: Vec<u8> = [1i16, 2, 99, 3, 4].iter().flat_map(|number| number.to_le_bytes()).collect();
        let expected = Tensor::from_integers(TensorType::new(DType::I16, [2, 2]), vec![1, 2, 3, 4]);
        assert_eq!(found.tensor(&bytes), expected);
        let empty = result(r#"{"node": "n", "slot": 0, "dtype": "f32", "shape": [2, 0], "strides": [9, 1]}"#).unwrap();
        assert_eq!((empty.span, empty.tensor(&[]).to_floats().len()), (0, 0));
    }

    #[test]
    fn damaged_descriptions_of_results_are_refused() {
        for (dtype, shape, strides, message) in [
            ("f33", "[1]", "[1]", "unknown data type"),
            ("f32", "[9999999999999, 9999999999999]", "[]", "too large"),
            ("f32", "[2, 2]", "[1]", "1 strides and 2 axes"),
            ("f32", "[2, 2]", "[18446744073709551615, 1]", "too large"),
            ("f32", "[3]", "[9223372036854775807]", "too large"),
            ("f32", "[2]", "[-1]", "invalid value"),
        ] {
            let text =
                format!(r#"{{"node": "n", "slot": 0, "dtype": "{dtype}", "shape": {shape}, "strides": {strides}}}"#);
            let error = result(&text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
