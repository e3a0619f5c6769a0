//! [`Schedule`]: a way to compute a kernel, as data; and [`Kind`], what an operator's file says of each kind of schedules that it
//! has: which there are for a kernel, and how one is written.

use super::writer::KernelWriter;
use mlc_ir::Diagnostic;
use std::fmt;

/// A number or a word that a schedule goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Setting {
    /// How many of something.
    Number(usize),
    /// Which of several.
    Word(&'static str),
}

impl From<usize> for Setting {
    fn from(number: usize) -> Setting {
        Setting::Number(number)
    }
}

impl From<&'static str> for Setting {
    fn from(word: &'static str) -> Setting {
        Setting::Word(word)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Number(number) => write!(f, "{number}"),
            Setting::Word(word) => f.write_str(word),
        }
    }
}

/// What sets a schedule apart from others of its kind, by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Settings(Vec<(&'static str, Setting)>);

impl Settings {
    /// The same with one more.
    pub fn with(mut self, name: &'static str, setting: impl Into<Setting>) -> Settings {
        self.0.push((name, setting.into()));
        self
    }

    fn get(&self, name: &str) -> Option<Setting> {
        self.0.iter().find(|(own, _)| *own == name).map(|(_, setting)| *setting)
    }

    /// A number; 0 where it isn't set.
    pub fn number(&self, name: &str) -> usize {
        match self.get(name) {
            Some(Setting::Number(number)) => number,
            _ => 0,
        }
    }

    /// Whether a word is set.
    pub fn is(&self, name: &str, word: &str) -> bool {
        matches!(self.get(name), Some(Setting::Word(own)) if own == word)
    }
}

/// A way to compute a kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Schedule {
    /// Its kind.
    pub kind: &'static str,
    /// Which of that kind.
    pub settings: Settings,
}

impl Schedule {
    /// Whether a text names it: its kind, and any of its settings: `tiles`, `tiles:vectors=2`.
    pub fn is_named(&self, text: &str) -> bool {
        let (kind, settings) = text.split_once(':').unwrap_or((text, ""));
        let has = |setting: &str| self.settings.0.iter().any(|(name, value)| setting == format!("{name}={value}"));
        kind == self.kind && settings.split(',').filter(|setting| !setting.is_empty()).all(has)
    }
}

/// `kind`, or `kind:name=setting,…`
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)?;
        for (number, (name, setting)) in self.settings.0.iter().enumerate() {
            write!(f, "{}{name}={setting}", if number == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}

/// The schedules of one kind that there are for a kernel, each with its place among those of all kinds: lower ones have proved
/// better, of equal ones those that are listed earlier.
pub type Preferences = Vec<(usize, Settings)>;

/// A kind of schedules of an operator.
pub struct Kind<O: 'static> {
    /// What users call it: lower-case words with hyphens.
    pub name: &'static str,
    /// The schedules for a kernel; none where it can't be computed so. Writes nothing.
    pub list: fn(&O, &KernelWriter<'_>) -> Preferences,
    /// Writes one of them.
    pub write: fn(&O, &Settings, &mut KernelWriter<'_>) -> Result<(), Diagnostic>,
    /// Whether each element of an operand has been read for the last time when an element of the first result is stored in its
    /// place, as long as both lie alike.
    pub in_place: bool,
    /// Whether routines do all that counts, so that C compilers lose nothing by pointers that may mean the same memory.
    pub by_routines: bool,
    /// Whether its schedules give up time for small code, so that nothing that is made for speed need look at them.
    pub small: bool,
    /// Whether its schedules do without some of the products, which prices tell from those that do all.
    pub saves_products: bool,
}

impl<O> Kind<O> {
    /// A kind of schedules whose results overwrite no operand.
    pub const fn new(
        name: &'static str,
        list: fn(&O, &KernelWriter<'_>) -> Preferences,
        write: fn(&O, &Settings, &mut KernelWriter<'_>) -> Result<(), Diagnostic>,
    ) -> Kind<O> {
        Kind { name, list, write, in_place: false, by_routines: false, small: false, saves_products: false }
    }

    /// A kind of one schedule, which can compute every kernel of the operator.
    pub const fn only(
        name: &'static str,
        write: fn(&O, &Settings, &mut KernelWriter<'_>) -> Result<(), Diagnostic>,
    ) -> Kind<O> {
        Kind::new(name, |_, _| vec![(0, Settings::default())], write)
    }

    /// The same where the result may overwrite an operand.
    pub const fn in_place(self) -> Kind<O> {
        Kind { in_place: true, ..self }
    }

    /// The same where routines do all that counts.
    pub const fn by_routines(self) -> Kind<O> {
        Kind { by_routines: true, ..self }
    }

    /// The same with schedules that give up time for small code.
    pub const fn small(self) -> Kind<O> {
        Kind { small: true, ..self }
    }

    /// The same with schedules that do without some of the products.
    pub const fn saves_products(self) -> Kind<O> {
        Kind { saves_products: true, ..self }
    }
}

/// An operator that there are schedules for.
pub trait Scheduled: Sized + 'static {
    /// All kinds.
    const KINDS: &'static [Kind<Self>];
}

/// The same, whatever the operator.
pub trait Family {
    /// The schedules for a kernel, those that have proved better first.
    fn schedules(&self, kernel: &KernelWriter<'_>) -> Vec<Schedule>;

    /// Writes the loops of one of them.
    ///
    /// # Errors
    /// When C has no arithmetic for a data type.
    fn write(&self, schedule: &Schedule, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic>;

    /// Whether the first result may overwrite an operand of the same layout.
    fn is_in_place(&self, schedule: &Schedule) -> bool;

    /// Whether routines do all that counts.
    fn is_by_routines(&self, schedule: &Schedule) -> bool;

    /// Whether a schedule gives up time for small code.
    fn is_small(&self, schedule: &Schedule) -> bool;

    /// Whether a schedule does without some of the products.
    fn saves_products(&self, schedule: &Schedule) -> bool;
}

fn kind<O: Scheduled>(schedule: &Schedule) -> Option<&'static Kind<O>> {
    O::KINDS.iter().find(|kind| kind.name == schedule.kind)
}

impl<O: Scheduled> Family for O {
    fn schedules(&self, kernel: &KernelWriter<'_>) -> Vec<Schedule> {
        let listed = |kind: &Kind<O>| {
            let name = kind.name;
            (kind.list)(self, kernel)
                .into_iter()
                .map(move |(place, settings)| (place, Schedule { kind: name, settings }))
        };
        let mut all: Vec<(usize, Schedule)> = O::KINDS.iter().flat_map(listed).collect();
        all.sort_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, schedule)| schedule).collect()
    }

    fn write(&self, schedule: &Schedule, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
        kind::<O>(schedule).map_or(Ok(()), |kind| (kind.write)(self, &schedule.settings, kernel))
    }

    fn is_in_place(&self, schedule: &Schedule) -> bool {
        kind::<O>(schedule).is_some_and(|kind| kind.in_place)
    }

    fn is_by_routines(&self, schedule: &Schedule) -> bool {
        kind::<O>(schedule).is_some_and(|kind| kind.by_routines)
    }

    fn is_small(&self, schedule: &Schedule) -> bool {
        kind::<O>(schedule).is_some_and(|kind| kind.small)
    }

    fn saves_products(&self, schedule: &Schedule) -> bool {
        kind::<O>(schedule).is_some_and(|kind| kind.saves_products)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_named_by_kind_and_settings() {
        let settings = Settings::default().with("vectors", 2).with("weights", "packed");
        let schedule = Schedule { kind: "tiles", settings };
        assert_eq!(schedule.to_string(), "tiles:vectors=2,weights=packed");
        for text in ["tiles", "tiles:vectors=2", "tiles:weights=packed,vectors=2", "tiles:"] {
            assert!(schedule.is_named(text), "{text}");
        }
        for text in ["", "tile", "tiles:vectors=20", "tiles:vectors", "tiles:vectors=2,weights=direct"] {
            assert!(!schedule.is_named(text), "{text}");
        }
    }
}
