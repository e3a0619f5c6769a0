//! The options of models of several ranks.

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// How ranks exchange messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TransportKind {
    /// As processes that 'mpirun' starts
    #[default]
    Mpi,
    /// As threads of one process
    Threads,
}

/// The options of models of several ranks.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Several ranks")]
pub struct RanksOptions {
    /// How ranks exchange messages
    #[arg(long, value_enum, default_value_t)]
    pub transport: TransportKind,
    /// How long a rank waits for another one before all of them give up
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub timeout: Duration,
    /// Write what each rank did when, for Chrome's trace viewer or Perfetto
    #[arg(long, value_name = "FILE.json")]
    pub timeline: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| "it is no number".to_owned())?;
    let duration =
        Duration::try_from_secs_f64(seconds).ok().filter(|duration| (1e-3..1e9).contains(&duration.as_secs_f64()));
    duration.ok_or_else(|| "it must be positive and finite".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_positive() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        for wrong in ["0", "-1", "nan", "inf", "x", "1e300"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
