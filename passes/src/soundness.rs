//! The soundness check: every rule is tried on random instances of its own sampler, both sides are evaluated and compared,
//! and mutants of the right side must be told apart.

use crate::canonicalise::builder::{Builder, Provenance};
use crate::rewrite::{Class, Exactness, Match, Rule, Search, Term, View};
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{Attribute, Category, FieldValue, Generator, Graph, Literal, NodeId, Op, Tensor, Value, Values};
use std::collections::BTreeMap;

/// Instances per rule.
const INSTANCES: u64 = 60;
/// At least this many of them must match.
const ACCEPTED: usize = 15;

/// Evaluates every node of a graph for random inputs; `None` when an operator has no result for them.
pub(crate) fn evaluate(graph: &Graph, seed: u64) -> Option<BTreeMap<NodeId, Vec<Tensor>>> {
    let mut generator = Generator::new(seed);
    let mut values: BTreeMap<NodeId, Vec<Tensor>> = BTreeMap::new();
    for &input in graph.inputs() {
        values.insert(input, vec![generator.tensor(&graph.node(input).results[0])]);
    }
    for id in graph.topological_order() {
        if values.contains_key(&id) {
            continue;
        }
        let node = graph.node(id);
        let operands = graph.operands(id);
        let references: Vec<&Tensor> = operands.iter().map(|value| &values[&value.node][value.slot as usize]).collect();
        let results = node.op.evaluate(&references, &node.results).ok()?;
        values.insert(id, results);
    }
    Some(values)
}

/// The largest difference, relative to the magnitude of the left side's elements.
pub(crate) fn difference(left: &Tensor, right: &Tensor) -> f64 {
    if left.ty() != right.ty() {
        return f64::INFINITY;
    }
    if let (Values::Integer(left), Values::Integer(right)) = (left.values(), right.values()) {
        return if left == right { 0.0 } else { f64::INFINITY };
    }
    let (left, right) = (left.to_floats(), right.to_floats());
    let scale = left.iter().filter(|x| x.is_finite()).fold(1.0, |largest: f64, x| largest.max(x.abs()));
    let one = |x: f64, y: f64| match (x.is_nan(), y.is_nan()) {
        (true, true) => 0.0,
        (false, false) if x == y => 0.0,
        (false, false) => (x - y).abs() / scale,
        _ => f64::INFINITY,
    };
    left.iter().zip(&right).map(|(&x, &y)| one(x, y)).fold(0.0, f64::max)
}

fn tolerance(rule: &Rule) -> f64 {
    match rule.exactness {
        Exactness::Exact => 0.0,
        Exactness::Reassociation => 2e-5,
    }
}

/// A builder that neither simplifies nor folds, holding the graph as it is.
fn raw(graph: &Graph) -> Builder<'static> {
    let mut builder = Builder::new("raw", &[], false);
    builder.import(graph).unwrap();
    builder
}

/// All matches of a rule in a graph.
fn matches(rule: &Rule, view: &Builder<'_>) -> Vec<(Class, Term)> {
    match rule.search {
        Search::Groups(find) => find(view),
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

use crate::rewrite::Application;

/// The right side as a value of the builder, when it type-checks and has the left side's type.
fn right_side(builder: &mut Builder<'_>, left: Class, term: &Term) -> Option<Value> {
    let right = builder.build(term, &Provenance { name: "right".into(), ..Provenance::default() }, 0).ok()?;
    (builder.ty(right) == builder.ty(left)).then(|| builder.value_of(right))
}

fn mutants_of_value(value: &FieldValue) -> Vec<FieldValue> {
    match value {
        FieldValue::Bool(value) => vec![FieldValue::Bool(!value)],
        FieldValue::Integer(value) => vec![FieldValue::Integer(value + 1), FieldValue::Integer(value - 1)],
        FieldValue::Float(value) => vec![FieldValue::Float(mlc_ir::Float(value.0 + 0.5))],
        FieldValue::Literal(literal) => {
            vec![FieldValue::Literal(Literal::of(literal.dtype(), literal.to_f64() + 1.0))]
        }
        FieldValue::Word(_) => ["sum", "maximum", "add", "multiply", "negate", "relu", "minimum"]
            .iter()
            .map(|word| FieldValue::Word((*word).to_owned()))
            .filter(|word| word != value)
            .collect(),
        FieldValue::Operator(op) => {
            mutants_of_op(op).into_iter().map(|op| FieldValue::Operator(Box::new(op))).collect()
        }
        FieldValue::List(list) => {
            let mut mutants = Vec::new();
            for index in 0..list.len() {
                for mutant in mutants_of_value(&list[index]) {
                    let mut copy = list.clone();
                    copy[index] = mutant;
                    mutants.push(FieldValue::List(copy));
                }
                if index > 0 && list[index] != list[index - 1] {
                    let mut copy = list.clone();
                    copy.swap(index, index - 1);
                    mutants.push(FieldValue::List(copy));
                }
            }
            mutants
        }
        FieldValue::Attribute(attribute) if attribute.ty().dtype.is_float() && attribute.ty().elements() > 0 => {
            let tensor = attribute.to_tensor();
            let floats: Vec<f64> = tensor.to_floats().iter().map(|value| value + 1.0).collect();
            vec![FieldValue::Attribute(Attribute::from_tensor(&Tensor::from_floats(tensor.ty().clone(), floats)))]
        }
        FieldValue::Expression(expression) => {
            let count = expression.operand_count() as u32;
            let rotated = expression.renumber(|k| (k + 1) % count.max(1));
            if rotated == *expression { Vec::new() } else { vec![FieldValue::Expression(rotated)] }
        }
        _ => Vec::new(),
    }
}

fn mutants_of_op(op: &Op) -> Vec<Op> {
    let fields: Vec<(String, FieldValue)> =
        op.fields().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let mut mutants = Vec::new();
    for index in 0..fields.len() {
        for mutant in mutants_of_value(&fields[index].1) {
            let mut copy = fields.clone();
            copy[index].1 = mutant;
            mutants.extend(op.kind().with_fields(&copy).ok());
        }
    }
    mutants
}

/// The term with one field changed somewhere.
fn mutants_of_term(term: &Term) -> Vec<Term> {
    let Term::Apply(op, operands) = term else { return Vec::new() };
    let mut mutants: Vec<Term> =
        mutants_of_op(op).into_iter().map(|op| Term::Apply(Box::new(op), operands.clone())).collect();
    for index in 0..operands.len() {
        for mutant in mutants_of_term(&operands[index]) {
            let mut copy = operands.clone();
            copy[index] = mutant;
            mutants.push(Term::Apply(op.clone(), copy));
        }
    }
    mutants
}

/// Which of the right sides differ from the left side for random inputs.
fn differing(builder: &Builder<'_>, left: Value, rights: &[Value], tolerance: f64, seed: u64) -> Vec<bool> {
    let Some(values) = evaluate(&builder.graph, seed) else { return vec![false; rights.len()] };
    let at = |value: &Value| &values[&value.node][value.slot as usize];
    rights.iter().map(|right| difference(at(&left), at(right)) > tolerance).collect()
}

/// Numbers of instances that matched, of mutants tried and of mutants told apart.
#[derive(Default)]
struct Outcome {
    accepted: usize,
    mutants: usize,
    killed: usize,
    perturbed: usize,
}

fn check_instance(rule: &Rule, graph: &Graph, seed: u64, outcome: &mut Outcome) {
    let found = matches(rule, &raw(graph));
    let mut matched = false;
    for (left, term) in found {
        let mut builder = raw(graph);
        let Some(right) = right_side(&mut builder, left, &term) else { continue };
        let left_value = builder.value_of(left);
        let Some(values) = evaluate(&builder.graph, seed) else { continue };
        matched = true;
        let error = difference(&values[&left_value.node][0], &values[&right.node][0]);
        assert!(
            error <= tolerance(rule),
            "{} is wrong by {error} on sample {seed}: {term:?}\n{:?}",
            rule.name,
            builder.graph
        );
        let mutants: Vec<Value> = mutants_of_term(&term)
            .iter()
            .take(40)
            .filter_map(|mutant| right_side(&mut builder, left, mutant))
            .filter(|&mutant| mutant != right)
            .collect();
        outcome.mutants += mutants.len();
        outcome.killed +=
            differing(&builder, left_value, &mutants, tolerance(rule), seed).iter().filter(|killed| **killed).count();
        let ty = builder.graph.ty(right).clone();
        if ty.dtype.is_float() && ty.elements() > 0 {
            let ones = builder.graph.add_constant("one", Literal::of(ty.dtype, 1.0).to_attribute());
            let add = crate::sketch::binary(BinaryFunction::Add);
            let moved: Value = builder.graph.add(add, &[right, ones], "moved").unwrap().into();
            outcome.perturbed += usize::from(differing(&builder, left_value, &[moved], tolerance(rule), seed)[0]);
        }
    }
    outcome.accepted += usize::from(matched);
}

/// Checks one rule; panics with a counterexample.
fn check(rule: &Rule) {
    let mut outcome = Outcome::default();
    for seed in 0..INSTANCES {
        let mut generator = Generator::new(seed);
        let graph = (rule.sample)(&mut generator);
        check_instance(rule, &graph, seed, &mut outcome);
    }
    let Outcome { accepted, mutants, killed, perturbed } = outcome;
    assert!(accepted >= ACCEPTED, "{} matches only {accepted} of {INSTANCES} samples of its own", rule.name);
    assert!(mutants == 0 || killed > 0, "none of {mutants} mutants of {} was told apart", rule.name);
    assert!(killed + perturbed > 0, "the comparison for {} tells nothing apart", rule.name);
}

#[test]
fn every_rule_agrees_with_the_evaluator() {
    let mut names = std::collections::BTreeSet::new();
    for rule in crate::pipeline::all_rules() {
        assert!(names.insert(rule.name), "two rules are called {}", rule.name);
        assert!(!rule.reason.is_empty());
        check(&rule);
    }
}

#[test]
fn a_wrong_rule_is_caught() {
    let mut wrong =
        crate::canonicalise::rules::all().into_iter().find(|rule| rule.name == "compose-transposes").unwrap();
    wrong.search = Search::Each(&[mlc_ir::OpKind::Transpose], |m| {
        let inner = m.inner(0);
        inner
            .iter()
            .filter(|inner| inner.op.category() == Category::Movement)
            .map(|inner| Term::apply(m.op.clone(), [inner.operands[0].into()]))
            .collect()
    });
    assert!(std::panic::catch_unwind(|| check(&wrong)).is_err());
}
