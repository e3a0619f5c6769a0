//! [`Mode`]: a target together with the flags that its code is compiled with for a test.

use crate::program::{Build, STRICT};
use mlc_codegen::{FloatingPoint, Target, VectorSpelling};
use mlc_ir::Objective;

/// A target with the flags that its code is compiled with.
#[derive(Debug, Clone)]
pub struct Mode {
    /// Name in tables.
    pub name: String,
    /// The target.
    pub target: Target,
    /// The C compiler's flags.
    pub build: Build,
}

impl Mode {
    /// The generic target: its code must be strict C99 without a warning.
    pub fn generic(sanitize: bool) -> Mode {
        let build = Build::with(STRICT);
        let build = if sanitize { build.sanitized() } else { build };
        Mode { name: if sanitize { "generic, sanitized" } else { "generic" }.into(), target: Target::generic(), build }
    }

    /// The schedules of a microcontroller on this machine: its code must be strict C99, too. `None` for machines whose vectors this
    /// one hasn't.
    pub fn microcontroller(name: &str, sanitize: bool) -> Option<Mode> {
        let plain = |target: &Target| target.name == name && target.vectors == VectorSpelling::None;
        Target::embedded().into_iter().find(plain).map(|target| Mode::elsewhere(target, sanitize))
    }

    /// The code of any target on this machine, which it must be made for without that target's vectors: strict C99.
    pub fn elsewhere(target: Target, sanitize: bool) -> Mode {
        let generic = Mode::generic(sanitize);
        let name = if sanitize { format!("{}, sanitized", target.name) } else { target.name.clone() };
        Mode { name, target, ..generic }
    }

    /// The same target with code that keeps to floating-point operations as closely as asked for.
    pub fn with_floating_point(self, floating_point: FloatingPoint) -> Mode {
        let target = self.target.with_floating_point(floating_point);
        let contract = target.c_flags.iter().filter(|flag| flag.starts_with("-ffp-contract=")).cloned();
        let flags = self.build.flags.iter().cloned().chain(contract).collect();
        Mode { target, build: Build { flags, ..self.build }, ..self }
    }

    /// The same with code that is made for an objective, compiled by the same flags.
    pub fn with_objective(self, objective: Objective) -> Mode {
        Mode {
            name: format!("{}, {}", self.name, objective.name()),
            target: self.target.with_objective(objective),
            ..self
        }
    }

    /// The same without the C compiler's optimisation: most of its time.
    pub fn unoptimised(self) -> Mode {
        let flags = self.build.flags.into_iter().map(|flag| if flag.starts_with("-O") { "-O0".into() } else { flag });
        let build = Build { compiler: self.build.compiler, flags: flags.collect() };
        Mode { name: format!("{}, -O0", self.name), build, ..self }
    }

    /// The same with further flags, which take the place of earlier ones that say otherwise.
    pub fn with_flags<'a>(self, flags: impl IntoIterator<Item = &'a str>) -> Mode {
        let mut mode = self;
        for flag in flags {
            mode.name += &format!(", {flag}");
            mode.build.flags.push(flag.to_owned());
        }
        mode
    }

    /// The same with a C compiler of a name.
    pub fn compiled_by(self, compiler: &str) -> Mode {
        let build = Build { compiler: compiler.to_owned(), ..self.build };
        Mode { name: format!("{}, {compiler}", self.name), build, ..self }
    }

    /// The machine that runs the tests.
    pub fn host(sanitize: bool) -> Mode {
        let target = host_target();
        let own = target.c_flags.iter().map(String::as_str).filter(|flag| !flag.starts_with("-O"));
        let build = Build::with(own.chain(["-Wall", "-Wextra", "-Werror"]));
        let build = if sanitize { build.sanitized() } else { build };
        Mode { name: if sanitize { "host, sanitized" } else { "host" }.into(), target, build }
    }
}

/// The machine that runs the tests.
pub fn host_target() -> Target {
    mlc::targets::find("host").unwrap_or_else(Target::generic)
}
