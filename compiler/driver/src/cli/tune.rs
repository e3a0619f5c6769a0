//! `mlc tune`: measures the schedules of a model's kernels on this machine.

use super::bindings::Inputs;
use super::console::Console;
use super::hardware::Machine;
use super::model::Model;
use super::options::CodeOptions;
use super::subject::{in_model, input_ports, load_for, program_options, read_inputs, renamed};
use super::values::seconds;
use super::words::mismatch;
use crate::files;
use crate::pipeline::{self, CompileOptions, Compiled, Failure, Loaded};
use crate::toolchain::{Program, Toolchain};
use crate::tuning::Tuning;
use clap::Args;
use mlc_ir::{Graph, Tensor};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// `mlc tune`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mlc tune model.onnx --budget 60s -o tuning.json
  mlc compile model.onnx --target host --tuning tuning.json

Each program that is measured has every kernel take another one of its schedules. The file
says which were faster than those that mlc takes by itself, by operator, types and layouts
of a kernel, so that it is good for other models with such kernels, too.")]
pub struct Tune {
    /// The model.
    #[command(flatten)]
    pub model: Model,
    /// What the code is for.
    #[command(flatten)]
    pub code: CodeOptions,
    /// What it runs on.
    #[command(flatten)]
    pub inputs: Inputs,
    /// How long to measure, such as '60s' or '5m'
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = seconds)]
    pub budget: u64,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// What a schedule must save of a kernel's time to be taken instead of the usual one: times differ by as much from run to run.
const LEAST_GAIN: f64 = 0.03;
/// The same of a whole model.
const LEAST_GAIN_IN_ALL: f64 = 0.005;
/// How long a program runs in one go, about.
const BURST: Duration = Duration::from_millis(100);
/// The part of the budget that is for building programs; the rest is for measuring them.
const BUILDING: f64 = 0.6;

/// The shortest time of kernels of a kind, in nanoseconds, by key and schedule.
type Times = BTreeMap<String, BTreeMap<String, u64>>;

/// A program in which kernels take some of their schedules.
struct Trial {
    program: Program,
    compiled: Compiled,
}

/// What builds trials.
struct Builder<'a> {
    graph: &'a Graph,
    options: CompileOptions,
    toolchain: Toolchain,
}

impl Builder<'_> {
    fn compiled(&self, measured: BTreeMap<String, String>) -> Result<Compiled, Vec<mlc_ir::Diagnostic>> {
        let options = CompileOptions { measured, explain: true, ..self.options.clone() };
        pipeline::compile(self.graph, &options, &mut |_, _| {})
    }
}

pub(super) fn tune(arguments: &Tune, console: &Console) -> Result<(), Failure> {
    let (started, budget) = (Instant::now(), Duration::from_secs(arguments.budget));
    let Tune { model, code, inputs, .. } = arguments;
    let machine = Machine { on: None };
    let loaded = load_for(model, code, inputs.typed(), console)?;
    let inputs = renamed(inputs, model, &loaded.aliases);
    let options = program_options(code, &machine, console)?;
    if code.tuning.is_some() || !code.schedules.is_empty() {
        let message = "schedules that are chosen already aren't measured";
        return Err(mismatch(message.into()).with_help("leave '--tuning' and '--schedule' out").into());
    }
    let Loaded { graph, sources, .. } = loaded;
    let builder = Builder { graph: &graph, options, toolchain: machine.toolchain()? };
    let usual = builder.compiled(BTreeMap::new()).map_err(|found| in_model(found, model, sources))?;
    let lists = lists(&usual);
    let most = lists.values().map(Vec::len).max().unwrap_or(1);
    let program = builder.toolchain.build_to_profile(&usual.bundle()?)?;
    let tensors = read_inputs(&inputs, &input_ports(&program.inputs), console)?;
    let mut trials = vec![Trial { program, compiled: usual }];
    let mut times = Times::new();
    let mut one = started.elapsed();
    for number in 1..most {
        if number > 1 && started.elapsed() + one > budget.mul_f64(BUILDING) {
            console.status(&format!("the budget is enough for {number} of {most} schedules of a kernel"));
            break;
        }
        let begun = Instant::now();
        let compiled = builder.compiled(assigned(&lists, number)).map_err(plain)?;
        let program = builder.toolchain.build_to_profile(&compiled.bundle()?)?;
        trials.push(Trial { program, compiled });
        one = begun.elapsed();
    }
    // Another program is built at last.
    let measuring = budget.saturating_sub(one + 8 * BURST);
    let runs = runs_of(&trials[0].program, &tensors)?;
    while trials.len() > 1 {
        for trial in &trials {
            trial.measure(&tensors, runs, &mut times)?;
        }
        if started.elapsed() >= measuring {
            break;
        }
    }
    let found = winners(&lists, &times);
    let schedules = if is_faster(&builder, &trials, &found, &tensors, runs)? { found } else { BTreeMap::new() };
    let tuning = Tuning { target: builder.options.target.name.clone(), schedules };
    files::write_atomically(&arguments.output, tuning.to_json().as_bytes())?;
    let (kinds, better) = (lists.len(), tuning.schedules.len());
    let path = arguments.output.display();
    console.status(&format!("wrote {path}: other schedules for {better} of {kinds} kinds of kernels"));
    Ok(())
}

fn plain(diagnostics: Vec<mlc_ir::Diagnostic>) -> Failure {
    Failure { diagnostics, sources: crate::render::Sources::default() }
}

/// The schedules of each kind of kernels that has several, the one that is taken first.
fn lists(compiled: &Compiled) -> BTreeMap<String, Vec<String>> {
    let choices = compiled.module.kernels.iter().map(|kernel| &kernel.choice);
    let several = choices.filter(|choice| choice.offers.len() > 1);
    several
        .map(|choice| {
            let mut list: Vec<String> = choice.offers.iter().map(|offer| offer.schedule.to_string()).collect();
            let taken = list.remove(choice.taken);
            list.insert(0, taken);
            (choice.key.clone(), list)
        })
        .collect()
}

/// The schedules of a trial: of each kind the one of this number.
fn assigned(lists: &BTreeMap<String, Vec<String>>, number: usize) -> BTreeMap<String, String> {
    lists.iter().map(|(key, list)| (key.clone(), list[number % list.len()].clone())).collect()
}

/// How many runs are a burst.
fn runs_of(program: &Program, inputs: &[Tensor]) -> Result<u32, Failure> {
    let nanos: u64 = program.bench_kernels(inputs, 1)?.iter().sum();
    let count = BURST.as_nanos() / u128::from(nanos.max(1));
    Ok(u32::try_from(count).unwrap_or(u32::MAX).clamp(1, 10_000))
}

impl Trial {
    /// Runs the program and keeps what was shorter than before.
    fn measure(&self, inputs: &[Tensor], runs: u32, times: &mut Times) -> Result<(), Failure> {
        let found = self.program.bench_kernels(inputs, runs)?;
        let mut sums: BTreeMap<(&str, String), u64> = BTreeMap::new();
        for (kernel, nanos) in self.compiled.module.kernels.iter().zip(found) {
            if let Some(taken) = kernel.choice.taken() {
                *sums.entry((&kernel.choice.key, taken.schedule.to_string())).or_default() += nanos;
            }
        }
        for ((key, schedule), nanos) in sums {
            let least = times.entry(key.to_owned()).or_default().entry(schedule).or_insert(nanos);
            *least = nanos.min(*least);
        }
        Ok(())
    }
}

/// The schedules that are faster than those that are taken without them.
fn winners(lists: &BTreeMap<String, Vec<String>>, times: &Times) -> BTreeMap<String, String> {
    let winner = |(key, list): (&String, &Vec<String>)| {
        let measured = times.get(key)?;
        let usual = *measured.get(list.first()?)?;
        let (best, nanos) = measured.iter().min_by_key(|(_, nanos)| **nanos)?;
        ((*nanos as f64) < (1.0 - LEAST_GAIN) * usual as f64).then(|| (key.clone(), best.clone()))
    };
    lists.iter().filter_map(winner).collect()
}

/// Whether a model with the schedules that were found runs faster than without them, kernels together.
fn is_faster(
    builder: &Builder<'_>,
    trials: &[Trial],
    found: &BTreeMap<String, String>,
    inputs: &[Tensor],
    runs: u32,
) -> Result<bool, Failure> {
    let (Some(usual), false) = (trials.first(), found.is_empty()) else { return Ok(false) };
    let tuned = builder.toolchain.build_to_profile(&builder.compiled(found.clone()).map_err(plain)?.bundle()?)?;
    let mut least = [u64::MAX; 2];
    for _ in 0..3 {
        for (least, program) in least.iter_mut().zip([&usual.program, &tuned]) {
            *least = program.bench_kernels(inputs, runs)?.iter().sum::<u64>().min(*least);
        }
    }
    Ok((least[1] as f64) < (1.0 - LEAST_GAIN_IN_ALL) * least[0] as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.into()).collect()
    }

    #[test]
    fn every_schedule_has_its_turn() {
        let lists = BTreeMap::from([("a".into(), list(&["p", "q", "r"])), ("b".into(), list(&["s", "t"]))]);
        let seen: Vec<String> = (0..3).map(|number| assigned(&lists, number).into_values().collect()).collect();
        assert_eq!(seen, ["ps", "qt", "rs"]);
    }

    #[test]
    fn what_is_hardly_faster_is_left_out() {
        let lists = BTreeMap::from([("a".into(), list(&["p", "q"])), ("b".into(), list(&["p", "q"]))]);
        let measured = |usual, other| BTreeMap::from([("p".into(), usual), ("q".into(), other)]);
        let times = Times::from([("a".into(), measured(100, 98)), ("b".into(), measured(100, 90))]);
        assert_eq!(winners(&lists, &times), BTreeMap::from([("b".into(), "q".into())]));
        assert_eq!(winners(&lists, &Times::new()), BTreeMap::new());
    }
}
