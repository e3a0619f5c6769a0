//! What a user says of weights, inputs and outputs of a model whose file leaves them out.

use clap::Args;
use mlc_import::Bindings;
use std::path::{Path, PathBuf};

/// Weights and inputs of a model whose file holds none.
#[derive(Debug, Clone, Default, Args)]
pub struct BindingOptions {
    /// Inputs that stay inputs, though there are weights of these names; separated by commas
    #[arg(long = "inputs", value_name = "NAME,...", value_delimiter = ',')]
    pub kept_inputs: Vec<String>,
    /// Name a model's memory that gets its content from outside, such as 'x=buffer:0' or 'wq=tensor:17'; may be repeated
    #[arg(long = "bind", value_name = "NAME=PLACE", value_parser = named_place)]
    pub bound: Vec<NamedPlace>,
    /// Convert weights of other data types to the model's
    #[arg(long)]
    pub cast_weights: bool,
    /// Refuse weights that the model has no use for, of which else a warning tells
    #[arg(long)]
    pub require_all_weights: bool,
}

/// A name, and what it stands for in the words of the model's format.
pub type NamedPlace = (String, String);

/// Outputs of a model whose file doesn't say which they are.
#[derive(Debug, Clone, Default, Args)]
pub struct OutputOptions {
    /// Make this the output of a model whose file doesn't say which they are, such as 'logits=tensor:211', 'y=name:softmax' or
    /// 'cache=buffer:3'; may be repeated
    #[arg(long = "output", value_name = "NAME=PLACE", value_parser = named_place)]
    pub outputs: Vec<NamedPlace>,
}

/// The tensors that a model is run on.
#[derive(Debug, Clone, Args)]
pub struct Inputs {
    /// An input as a .npy file; without NAME= the next input in order; with several ranks R:[NAME=]FILE.npy for rank R; may
    /// be repeated
    #[arg(long = "input", value_name = "[NAME=]FILE.npy")]
    pub files: Vec<String>,
    /// Seed of the random inputs that are used when no file is given
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Whether the files have an axis of runs in front, so that their shapes aren't the inputs'.
    #[arg(skip)]
    pub stacked: bool,
    /// The files of inputs that always have the same value.
    #[arg(skip)]
    pub always: Vec<(String, PathBuf)>,
}

/// What `mlc compile` takes as `--output`: where to write, or an output of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A file or a folder.
    File(PathBuf),
    /// An output of the model.
    Place(NamedPlace),
}

/// Reads `--output` of `mlc compile`. What has the form of a place is one.
pub(super) fn output(text: &str) -> Result<Output, std::convert::Infallible> {
    Ok(named_place(text).map_or_else(|_| Output::File(text.into()), Output::Place))
}

impl Output {
    /// The file or folder to write; the last one counts.
    pub fn file(outputs: &[Output]) -> Option<&Path> {
        outputs.iter().rev().find_map(|output| match output {
            Output::File(path) => Some(path.as_path()),
            Output::Place(_) => None,
        })
    }

    /// The outputs of the model.
    pub fn places(outputs: &[Output]) -> Vec<NamedPlace> {
        let places = outputs.iter().filter_map(|output| match output {
            Output::File(_) => None,
            Output::Place(place) => Some(place.clone()),
        });
        places.collect()
    }
}

/// `NAME=buffer:ID`, `NAME=tensor:ID` or `NAME=name:TEXT`.
fn named_place(text: &str) -> Result<NamedPlace, String> {
    let kinds = ["buffer:", "tensor:", "name:"];
    let place = text.match_indices('=').find(|(at, _)| kinds.iter().any(|kind| text[at + 1..].starts_with(kind)));
    match place {
        Some((at, _)) if at > 0 => Ok((text[..at].to_owned(), text[at + 1..].to_owned())),
        _ => Err("it must have the form NAME=buffer:ID, NAME=tensor:ID or NAME=name:TEXT".into()),
    }
}

impl Inputs {
    /// The files whose types are those of the model's inputs.
    pub(super) fn typed(&self) -> &[String] {
        if self.stacked { &[] } else { &self.files }
    }
}

impl BindingOptions {
    /// The part that is for the frontend; weights are in files that it doesn't open.
    pub(super) fn bindings(&self, outputs: &[NamedPlace], updated: Vec<String>) -> Bindings {
        Bindings {
            inputs: self.kept_inputs.clone(),
            places: self.bound.iter().cloned().collect(),
            outputs: outputs.iter().cloned().collect(),
            updated,
            cast: self.cast_weights,
            require_all: self.require_all_weights,
            ..Bindings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_from_files() {
        let place = |name: &str, place: &str| Ok((name.to_owned(), place.to_owned()));
        assert_eq!(named_place("x=buffer:0"), place("x", "buffer:0"));
        assert_eq!(named_place("a=b=name:c=d"), place("a=b", "name:c=d"));
        for wrong in ["x", "=buffer:0", "x=out.tar", "buffer:0", ""] {
            assert!(named_place(wrong).is_err(), "{wrong}");
        }
        let outputs = ["y=tensor:3", "a=b.tar"].map(|text| output(text).unwrap());
        assert_eq!(Output::file(&outputs), Some(Path::new("a=b.tar")));
        assert_eq!(Output::places(&outputs), [("y".to_owned(), "tensor:3".to_owned())]);
    }
}
