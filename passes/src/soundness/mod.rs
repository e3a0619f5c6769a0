//! The soundness check of the rules, in three parts. Every rule is tried on random instances of its own sampler, where every
//! mutant of its right side must be told apart. Every rule is tried on the whole [`corpus`]: samples of all rules, near misses
//! of them and random graphs. And all that with extreme [`numbers`] as well as with ordinary ones, where the rule's class of
//! exactness promises something for them.

#[path = "../../tests/common/mod.rs"]
mod common;
mod conditions;
mod corpus;
mod equivalent;
mod mutants;
mod numbers;

use crate::canonicalise::simplifier::{Provenance, Simplifier};
use crate::rewrite::{Application, Class, Exactness, Match, Rule, Search, Term, View};
use mlc_ir::{Generator, Graph, NodeId, Tensor, Value, parallel, text};
use numbers::{Numbers, evaluate, excess, has_finite_constants, overflow};
use std::collections::{BTreeMap, BTreeSet};

/// Instances per rule at least.
const INSTANCES: u64 = 60;
/// Instances per rule at most: as many as it takes to tell all mutants apart.
const MOST: u64 = 1500;
/// At least this many of the first ones must match.
const ACCEPTED: usize = 15;

/// A builder that neither simplifies nor folds, holding the graph as it is.
fn raw(graph: &Graph) -> Simplifier<'static> {
    let mut builder = Simplifier::new("raw", &[], false);
    builder.import(graph).unwrap();
    builder
}

/// All matches of a rule in a graph.
fn matches(rule: &Rule, view: &Simplifier<'_>) -> Vec<(Class, Term)> {
    match rule.search {
        Search::Groups(find) => find(view),
        Search::Watch(watch) => watch().find(view),
        Search::Each(kinds, find) => {
            let mut found = Vec::new();
            for class in view.classes() {
                for application in view.applications(class) {
                    if kinds.contains(&application.op.kind()) {
                        let Application { op, operands } = application;
                        let terms = find(&Match { view, op, operands, ty: view.ty(class) });
                        found.extend(terms.into_iter().map(|term| (class, term)));
                    }
                }
            }
            found
        }
    }
}

/// The right side as a value of the builder, when it type-checks and has the left side's type.
fn right_side(builder: &mut Simplifier<'_>, left: Class, term: &Term) -> Option<Value> {
    let right = builder.build(term, &Provenance { name: "right".into(), ..Provenance::default() }, 0).ok()?;
    (builder.ty(right) == builder.ty(left)).then(|| builder.value_of(right))
}

/// The value, when it could be computed.
fn at(values: &BTreeMap<NodeId, Vec<Tensor>>, value: Value) -> Option<&Tensor> {
    values.get(&value.node).map(|results| &results[value.slot as usize])
}

/// What a rule that is wrong on a graph shows: the graph, with both sides as further outputs.
fn counterexample(rule: &Rule, builder: &Simplifier<'_>, left: Value, right: Value, excess: f64) -> String {
    let mut graph = builder.graph.clone();
    graph.add_output("left", left);
    graph.add_output("right", right);
    graph.remove_dead();
    format!("{} ({}) is wrong by {excess}\n{}", rule.name, rule.reason, text::print(&graph))
}

/// Tries rules on one graph. Gives how many of them match.
fn try_rules(rules: &[Rule], graph: &Graph, seed: u64, numbers: Numbers) -> Result<usize, String> {
    let graph = numbers.in_constants(graph, &mut Generator::new(seed));
    let mut builder = raw(&graph);
    let own: Vec<NodeId> = builder.graph.node_ids().collect();
    let mut pairs: Vec<(&Rule, Value, Value)> = Vec::new();
    for rule in rules.iter().filter(|rule| numbers.are_promised(rule.exactness)) {
        for (left, term) in matches(rule, &raw(&graph)) {
            let right = right_side(&mut builder, left, &term);
            pairs.extend(right.map(|right| (rule, builder.value_of(left), right)));
        }
    }
    if pairs.is_empty() {
        return Ok(0);
    }
    let values = evaluate(&builder.graph, seed, numbers);
    let excused = !has_finite_constants(&graph) || overflow(&builder.graph, &own, &values);
    let mut matching = BTreeSet::new();
    for (rule, left, right) in pairs {
        let Some(expected) = at(&values, left) else { continue };
        matching.insert(rule.name);
        if excused && rule.exactness != Exactness::Exact {
            continue;
        }
        let found = at(&values, right);
        let excess = found.map_or(f64::INFINITY, |found| excess(rule.exactness, expected, found, numbers));
        if excess > 0.0 {
            return Err(counterexample(rule, &builder, left, right, excess));
        }
    }
    Ok(matching.len())
}

/// The mutants of a rule's right side: those that were told apart, and those that weren't yet, by name.
#[derive(Default)]
struct Mutants {
    killed: BTreeSet<String>,
    alive: BTreeSet<String>,
}

impl Mutants {
    fn try_on(&mut self, rule: &Rule, graph: &Graph, seed: u64) {
        let view = raw(graph);
        for (left, term) in matches(rule, &view) {
            let mut builder = raw(graph);
            let left_value = builder.value_of(left);
            let right = right_side(&mut builder, left, &term);
            let mut built: Vec<(String, Value)> = Vec::new();
            let mut all = mutants::term(&term, left, &view);
            all.push(("one more".to_owned(), one_more(&term, view.ty(left))));
            for (name, mutant) in all.into_iter().filter(|(name, _)| !self.killed.contains(name)) {
                let value = right_side(&mut builder, left, &mutant);
                built.extend(
                    value.filter(|&value| value != left_value && Some(value) != right).map(|value| (name, value)),
                );
            }
            let values = evaluate(&builder.graph, seed, Numbers::Ordinary);
            let Some(expected) = at(&values, left_value) else { continue };
            for (name, value) in built {
                if at(&values, value)
                    .is_none_or(|found| excess(rule.exactness, expected, found, Numbers::Ordinary) > 0.0)
                {
                    self.alive.remove(&name);
                    self.killed.insert(name);
                } else if !self.killed.contains(&name) {
                    self.alive.insert(name);
                }
            }
        }
    }
}

/// The term with one added to it, so that a term without fields has a mutant too.
fn one_more(term: &Term, ty: &mlc_ir::TensorType) -> Term {
    let one = mlc_ir::ops::Constant { value: mlc_ir::Literal::of(ty.dtype, 1.0).to_attribute() };
    if ty.dtype == mlc_ir::DType::Bool {
        return Term::apply(mlc_ir::ops::Unary { function: mlc_ir::scalar::UnaryFunction::Not }, [term.clone()]);
    }
    let add = mlc_ir::ops::Binary { function: mlc_ir::scalar::BinaryFunction::Add };
    Term::apply(add, [term.clone(), Term::apply(one, [])])
}

/// Checks one rule on its own samples.
fn check_samples(rule: &Rule) -> Result<(), String> {
    let mut mutants = Mutants::default();
    let mut accepted = 0;
    let unexpected = |mutants: &Mutants| -> Vec<String> {
        mutants.alive.iter().filter(|name| equivalent::reason(rule.name, name).is_none()).cloned().collect()
    };
    for seed in 0..MOST {
        if seed >= INSTANCES && unexpected(&mutants).is_empty() {
            break;
        }
        let graph = (rule.sample)(&mut Generator::new(seed));
        for numbers in Numbers::ALL.into_iter().filter(|_| seed < INSTANCES) {
            let matching =
                try_rules(&[*rule], &graph, seed, numbers).map_err(|error| format!("sample {seed}: {error}"))?;
            accepted += usize::from(matching > 0 && numbers == Numbers::Ordinary);
        }
        mutants.try_on(rule, &graph, seed);
    }
    let unexpected = unexpected(&mutants);
    if accepted < ACCEPTED {
        return Err(format!("{} matches only {accepted} of {INSTANCES} samples of its own", rule.name));
    }
    if !unexpected.is_empty() {
        return Err(format!("no sample of {} tells these mutants apart: {}", rule.name, unexpected.join("; ")));
    }
    let alive: BTreeSet<String> = mutants.alive.iter().map(|name| equivalent::pattern(name)).collect();
    let stale: Vec<&str> = equivalent::mutants(rule.name).filter(|name| !alive.contains(*name)).collect();
    if stale.is_empty() { Ok(()) } else { Err(format!("{}: told apart, or none: {}", rule.name, stale.join("; "))) }
}

/// Tries rules on all graphs of the corpus.
fn check_corpus(rules: &[Rule], corpus: &[(String, Graph)]) -> Result<(), String> {
    let seeds: Vec<usize> = (0..corpus.len()).collect();
    let tried = parallel::map(&seeds, 2, |&seed| {
        let (name, graph) = &corpus[seed];
        let special = Numbers::ALL[seed % Numbers::ALL.len()];
        [Numbers::Ordinary, special].into_iter().try_for_each(|numbers| {
            let tried = try_rules(rules, graph, seed as u64, numbers);
            tried.map(|_| ()).map_err(|error| format!("{name}, {numbers:?}: {error}"))
        })
    });
    tried.into_iter().collect()
}

#[test]
fn every_rule_agrees_with_the_evaluator() {
    let mut names = BTreeSet::new();
    let mut errors = Vec::new();
    for rule in crate::pipeline::all_rules() {
        assert!(names.insert(rule.name), "two rules are called {}", rule.name);
        assert!(!rule.reason.is_empty());
        errors.extend(check_samples(&rule).err());
    }
    let unknown = equivalent::rules().filter(|rule| !names.contains(rule));
    errors.extend(unknown.map(|rule| format!("mutants of {rule} are named, a rule that isn't there")));
    assert!(errors.is_empty(), "{}", errors.join("\n\n"));
}

#[test]
fn every_rule_holds_on_the_samples_of_all_others_and_on_random_graphs() {
    let rules = crate::pipeline::all_rules();
    let corpus = corpus::graphs(&rules);
    if check_corpus(&rules, &corpus).is_err() {
        // One counterexample for each rule that is wrong.
        let errors: Vec<String> = rules.iter().filter_map(|rule| check_corpus(&[*rule], &corpus).err()).collect();
        panic!("{}", errors.join("\n\n"));
    }
}
