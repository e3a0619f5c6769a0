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
    /// Speed, and small code and little memory where they cost next to nothing.
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

    /// What an instruction and a byte are worth to it where graphs are compared. RAM isn't counted: of buffers, only those that live at
    /// the same time add up, which is known when they are planned.
    pub const fn of_graphs(self) -> Weights {
        match self {
            Objective::Speed | Objective::Ram => Weights { time: 16, flash: 1, ram: 0 },
            Objective::Size => Weights { time: 1, flash: 4, ram: 0 },
            Objective::Balanced => Weights { time: 1, flash: 1, ram: 0 },
        }
    }

    /// What the parts of a schedule's cost are worth to it, each relative to that of the fastest one.
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
