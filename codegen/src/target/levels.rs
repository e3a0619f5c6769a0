//! Machines of several levels: one archive has kernels for each, and picks when it runs.

use super::Target;
use crate::names::identifier;
use serde::ser::Serializer;

/// Targets by their names.
pub(super) fn by_names<S: Serializer>(targets: &[Target], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(targets.iter().map(|target| &target.name))
}

impl Target {
    /// Its name as a part of a C identifier.
    pub fn identifier(&self) -> String {
        identifier(&self.name)
    }

    /// How the names end of files that have a level's kernels.
    pub fn level_files(&self) -> String {
        format!("_{}_lib1.c", self.identifier())
    }

    /// Options by which the C compiler makes code for one of the levels, behind those for all.
    pub fn level_flags(&self, level: &Target) -> Vec<String> {
        level.c_flags.iter().filter(|flag| !self.c_flags.contains(flag)).cloned().collect()
    }

    /// Options by which the C compiler makes code for all levels of what a file is only for one of them, behind those for all; none of other
    /// files.
    pub fn flags_of_file(&self, path: &str) -> Vec<String> {
        let level = self.levels.iter().find(|level| path.ends_with(&level.level_files()));
        level.map_or_else(Vec::new, |level| self.level_flags(level))
    }
}

#[cfg(test)]
mod tests {
    use crate::target::{FloatingPoint, Target};
    use mlc_ir::Objective;

    fn all() -> Target {
        Target::computers().into_iter().find(|target| target.name == "x86-64").unwrap()
    }

    #[test]
    fn levels_are_targets_each_with_more_than_the_one_before() {
        let target = all();
        let known = Target::computers();
        assert_eq!(target.levels.len(), 3);
        assert!(target.levels.iter().all(|level| known.contains(level) && level.processor.is_some()));
        let widths: Vec<usize> = target.levels.iter().map(|level| level.vector_bytes).collect();
        assert_eq!(widths, [16, 32, 64]);
        assert!(target.levels.iter().all(|level| level.alignment == target.alignment && level.levels.is_empty()));
    }

    #[test]
    fn files_of_a_level_have_its_options() {
        let target = all();
        assert_eq!(target.flags_of_file("src/kws_x86_64_v3_lib1.c"), ["-march=x86-64-v3"]);
        assert_eq!(target.flags_of_file("kws_x86_64_v4_lib1.c"), ["-march=x86-64-v4", "-mprefer-vector-width=512"]);
        assert!(["kws_lib0.c", "kws_lib2.c", "kws_lib1.c"].iter().all(|file| target.flags_of_file(file).is_empty()));
    }

    #[test]
    fn what_code_is_made_for_holds_for_all_levels() {
        let target = all().with_objective(Objective::Size).with_floating_point(FloatingPoint::Strict);
        for level in &target.levels {
            assert_eq!((level.objective, level.floating_point), (Objective::Size, FloatingPoint::Strict));
            assert!(target.level_flags(level).iter().all(|flag| flag.starts_with("-m")), "{level:?}");
        }
    }
}
