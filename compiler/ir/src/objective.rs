//! [`Objective`]: what a program is made for.

use crate::prices::Weights;
use serde::{Deserialize, Serialize};

/// What a program is made for: speed, or little of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Speed, whatever memory it takes.
    #[default]
    Speed,
    /// Small code.
    Size,
    /// Little memory that can be written.
    Ram,
    /// Speed, and small code where that costs next to nothing.
    Balanced,
}

impl Objective {
    /// All of them.
    pub const ALL: [Objective; 4] = [Objective::Speed, Objective::Size, Objective::Ram, Objective::Balanced];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Objective::Speed => "speed",
            Objective::Size => "size",
            Objective::Ram => "ram",
            Objective::Balanced => "balanced",
        }
    }

    /// What the parts of a cost are worth to it.
    pub const fn weights(self) -> Weights {
        match self {
            Objective::Speed => Weights::speed(),
            Objective::Size => Weights::size(),
            Objective::Ram => Weights::ram(),
            Objective::Balanced => Weights::balanced(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    #[test]
    fn descriptions_name_objectives_as_the_command_line_does() {
        for objective in Objective::ALL {
            let text: StrDeserializer<'_, Error> = objective.name().into_deserializer();
            assert_eq!(Objective::deserialize(text), Ok(objective));
        }
    }
}
