//! Archives of the Model Library Format that hold a graph. Any build of mlc opens archives and runs their code; this compiles them.

use super::frontend::{Frontend, ModelFile};
use super::outcome::loaded;
use crate::bundle;
use crate::format::Format;
use crate::pipeline::failure::{Failure, in_file};
use crate::pipeline::model::Loaded;
use crate::render::Sources;
use mlc_archive::{Archive, Metadata};
use mlc_ir::Diagnostic;

pub(super) const FRONTEND: Frontend = Frontend { format: Format::Mlf, load, operators: None, contents: None };

/// Makes a graph of an archive's graph and C functions.
fn load(&ModelFile { path, bytes, options }: &ModelFile<'_>) -> Result<Loaded, Failure> {
    let read = || {
        let archive = Archive::read(bytes)?;
        let metadata = Metadata::read(&archive)?;
        let model = bundle::select(&metadata, &options.model_name)?.clone();
        Ok::<_, Diagnostic>((archive, metadata, model))
    };
    let (archive, metadata, model) = read().map_err(|error| in_file(path, vec![error]))?;
    let imported = mlc_mlf::import(&archive, &metadata, &model, &options.import_options());
    loaded(path, Format::Mlf, imported, Vec::new(), Sources::new())
}
