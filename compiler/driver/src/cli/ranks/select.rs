//! What belongs to which rank, and whether the ranks fit each other.

use crate::cli::model::Model;
use crate::cli::options::CodeOptions;
use crate::cli::words::mismatch;
use crate::pipeline::{Failure, Loaded};
use mlc_ir::ranks::{Misfit, schedule};
use mlc_ir::{Diagnostic, Graph};
use std::path::{Path, PathBuf};

/// Splits what is given for a rank, `R:…`.
///
/// # Errors
/// When it is for no rank.
pub fn of_rank(text: &str, option: &str, count: usize) -> Result<(usize, String), Diagnostic> {
    let parsed = text.split_once(':').and_then(|(rank, rest)| Some((rank.parse::<usize>().ok()?, rest)));
    match parsed {
        Some((rank, rest)) if rank < count => Ok((rank, rest.to_owned())),
        Some((rank, _)) => Err(mismatch(format!("{option} is given for rank {rank}, there are {count} ranks"))),
        None => Err(mismatch(format!("'{option} {text}' doesn't say for which rank it is"))
            .with_help(format!("with several models, it is {option} R:{text} for rank R"))),
    }
}

/// The model of each rank: the options for all of them, with the paths and weights of its own.
///
/// # Errors
/// When weights are for no rank.
pub fn models(model: &Model, further: &[PathBuf]) -> Result<Vec<Model>, Diagnostic> {
    let paths: Vec<&PathBuf> = std::iter::once(&model.path).chain(further).collect();
    let mut models: Vec<Model> =
        paths.iter().map(|path| Model { path: (*path).clone(), weights: Vec::new(), ..model.clone() }).collect();
    for weights in &model.weights {
        let (rank, file) = of_rank(&weights.to_string_lossy(), "--weights", paths.len())?;
        models[rank].weights.push(file.into());
    }
    Ok(models)
}

/// Checks that models fit each other; `files` has the file of each.
///
/// # Errors
/// `MLC0113`: all that doesn't fit, in the files.
pub fn check(graphs: &[&Graph], files: &[&Path]) -> Result<(), Failure> {
    let in_file = |Misfit { rank, fault }| match files.get(rank) {
        Some(file) => fault.in_file(&file.display().to_string()),
        None => fault,
    };
    schedule(graphs).map(drop).map_err(|misfits| misfits.into_iter().map(in_file).collect::<Vec<_>>().into())
}

/// Whether models are those of several ranks, which are compiled to an archive each.
///
/// # Errors
/// When they are, and have several names.
pub fn are_ranks(code: &CodeOptions, loaded: &[Loaded]) -> Result<bool, Diagnostic> {
    if loaded.len() < 2 || loaded.iter().all(|loaded| loaded.graph.distribution.is_none()) {
        return Ok(false);
    }
    if code.model_names.len() > 1 {
        return Err(mismatch("several ranks have one name".into()).with_help("give --model-name once"));
    }
    Ok(true)
}

/// The name of a rank's model in C.
pub fn rank_name(name: &str, rank: usize) -> String {
    format!("{name}_rank{rank}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_say_for_which_rank_they_are() {
        assert_eq!(of_rank("1:x=a:b.npy", "--input", 2).unwrap(), (1, "x=a:b.npy".into()));
        assert!(of_rank("2:a.npy", "--input", 2).unwrap_err().message.contains("there are 2 ranks"));
        assert!(of_rank("x=a.npy", "--input", 2).unwrap_err().help.unwrap().contains("--input R:x=a.npy"));
    }
}
