//! [`optimize`], which runs the [`stages`](crate::stages) of the optimiser one after the other.

use crate::canonicalise::{self, Canonicalised, canonicalise, simplify};
use crate::cost::WorkPrices;
use crate::egraph::extract::{Goal, PriceList, Problem, Selection};
use crate::egraph::rebuild::{Rebuilt, from_egraph};
use crate::egraph::saturate::{Budget, Saturation, saturate};
use crate::egraph::space::Space;
use crate::egraph::{explain, regions};
use crate::report::{Explanation, SaturationReport, StageReport, Step};
use crate::rewrite::Rule;
use crate::stages::{self, Stage, Work};
use indexmap::{IndexMap, IndexSet};
use mlc_ir::ops::Loop;
use mlc_ir::{
    Category, Code, Diagnostic, Graph, Location, NodeId, Op, OperatorError, Prices, Subgraph, Weights, verify,
};
use std::rc::Rc;
use std::sync::Arc;

pub use crate::report::OptimizeReport;

/// The stages, in the order in which they run.
#[derive(Debug, Clone)]
pub struct Pipeline {
    /// See [`Stage`].
    pub stages: Vec<Stage>,
}

impl Default for Pipeline {
    fn default() -> Self {
        Pipeline { stages: stages::all() }
    }
}

/// Every rule of the default pipeline once, in the order of first use.
pub fn all_rules() -> Vec<Rule> {
    let mut rules: IndexMap<&'static str, Rule> = IndexMap::new();
    for rule in Pipeline::default().stages.iter().flat_map(Stage::rules) {
        rules.entry(rule.name).or_insert(*rule);
    }
    rules.into_values().collect()
}

/// What the caller chooses.
#[derive(Debug, Clone)]
pub struct OptimizeOptions {
    /// What the target pays.
    pub prices: Rc<dyn Prices>,
    /// What time, flash and memory are worth.
    pub weights: Weights,
    /// How much each saturation may do.
    pub budget: Budget,
    /// Whether the report explains every changed node; slower.
    pub explain: bool,
    /// The stage after which to stop.
    pub stop_after: Option<String>,
    /// Larger graphs are cut into regions of so many operators.
    pub region: usize,
    /// Whether rules that round otherwise are left out.
    pub exact: bool,
}

impl Default for OptimizeOptions {
    fn default() -> Self {
        OptimizeOptions {
            prices: Rc::new(WorkPrices),
            weights: Weights { time: 1, flash: 1, ram: 0 },
            budget: Budget::default(),
            explain: false,
            stop_after: None,
            region: regions::LIMIT,
            exact: false,
        }
    }
}

impl OptimizeOptions {
    /// Whether a rule may be applied.
    fn keeps(&self, rule: &Rule) -> bool {
        !self.exact || rule.exactness.rounds_alike()
    }
}

/// Runs the default pipeline. `observer` sees the graph after each stage, under the stage's name.
///
/// # Errors
/// When the graph breaks an invariant, before or after a stage.
pub fn optimize(
    graph: Graph,
    options: &OptimizeOptions,
    observer: &mut dyn FnMut(&str, &Graph),
) -> Result<(Graph, OptimizeReport), Diagnostic> {
    Pipeline::default().run(graph, options, observer)
}

/// For each node of the present graph, by name, the steps that made it.
type History = IndexMap<Arc<str>, IndexSet<Step>>;

impl Pipeline {
    /// Runs the stages. `observer` sees the graph after each, under the stage's name.
    ///
    /// # Errors
    /// When the graph breaks an invariant, before or after a stage.
    pub fn run(
        &self,
        mut graph: Graph,
        options: &OptimizeOptions,
        observer: &mut dyn FnMut(&str, &Graph),
    ) -> Result<(Graph, OptimizeReport), Diagnostic> {
        checked(&graph, "input")?;
        let mut report = OptimizeReport::default();
        let mut history = History::new();
        let mut left = &self.stages[..];
        while !left.is_empty() {
            let is_last = |stage: &Stage| options.stop_after.as_deref() == Some(stage.name);
            let saturates = |stage: &Stage| matches!(stage.work, Work::Saturate(_));
            let goes_on =
                |at: usize| !is_last(&left[at]) && saturates(&left[at]) && left.get(at + 1).is_some_and(saturates);
            let count = (0..left.len()).find(|&at| !goes_on(at)).map_or(left.len(), |at| at + 1);
            let (decision, further) = left.split_at(count);
            let mut reports: Vec<StageReport> =
                decision.iter().map(|stage| StageReport::new(stage.name, graph.len())).collect();
            graph = Decision { stages: decision, options }.run(graph, &mut reports, &mut history)?;
            let last = &decision[count - 1];
            reports[count - 1].nodes.1 = graph.len();
            report.stages.extend(reports);
            observer(last.name, &graph);
            if is_last(last) {
                break;
            }
            left = further;
        }
        if options.explain {
            report.explanations = explanations(&graph, &history);
        }
        Ok((graph, report))
    }
}

/// Stages that fill one e-graph, of which the cheapest graph is taken at the end; or one stage of another kind.
struct Decision<'a> {
    stages: &'a [Stage],
    options: &'a OptimizeOptions,
}

impl Decision<'_> {
    /// Runs the stages on a graph, and before that on the bodies of its loops. What they leave is brought to canonical form.
    fn run(&self, mut graph: Graph, reports: &mut [StageReport], history: &mut History) -> Result<Graph, Diagnostic> {
        let last = self.stages.len() - 1;
        let name = self.stages[last].name;
        let failed = |error: OperatorError| failure(name, &error);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        for id in nodes {
            let Op::Loop(op) = graph.node(id).op.clone() else { continue };
            // A body's nodes have names of their own, which the history of the graph around it would mix up with others.
            let body = self.run(op.body.graph().clone(), reports, &mut History::new())?;
            graph.replace_op(id, Loop { body: Subgraph::new(body), ..op }).map_err(failed)?;
        }
        match &self.stages[last].work {
            Work::Canonicalise(passes) => {
                let first: Vec<Rule> = passes.first().map_or_else(Vec::new, |pass| pass.rules.clone());
                let work = (simplify as Rebuild, first);
                graph = rewritten(&graph, name, work, self.options, &mut reports[last], history).map_err(failed)?;
                checked(&graph, name)?;
            }
            Work::Saturate(_) => {
                graph = self.saturated(graph, reports, history).map_err(failed)?;
                checked(&graph, name)?;
            }
            Work::Transform(transform) => {
                graph = transform(&graph).map_err(failed)?;
                checked(&graph, name)?;
            }
        }
        let work = (canonicalise as Rebuild, canonicalise::rules::all());
        let graph = rewritten(&graph, name, work, self.options, &mut reports[last], history).map_err(failed)?;
        checked(&graph, name)?;
        Ok(graph)
    }

    fn saturated(
        &self,
        graph: Graph,
        reports: &mut [StageReport],
        history: &mut History,
    ) -> Result<Graph, OperatorError> {
        let rules = |stage: &Stage| stage.rules().filter(|rule| self.options.keeps(rule)).copied().collect();
        let stages: Vec<(&'static str, Vec<Rule>)> =
            self.stages.iter().map(|stage| (stage.name, rules(stage))).collect();
        let mut run = Regions { stages, options: self.options, reports, before: history, after: History::new() };
        let result = if graph.len() <= self.options.region {
            run.region(graph)?
        } else {
            regions::each(&graph, self.options.region, |region| run.region(region))?
        };
        if self.options.explain {
            *history = run.after;
        }
        Ok(result)
    }
}

/// The first broken invariant, if any, with the stage that left it.
fn checked(graph: &Graph, stage: &str) -> Result<(), Diagnostic> {
    let Err(findings) = verify(graph) else { return Ok(()) };
    let count = findings.len();
    let first = findings.into_iter().next();
    let mut first =
        first.unwrap_or_else(|| Diagnostic::error(Code::InvalidGraph, Location::default(), "invalid graph"));
    first.notes.push(format!("found after stage {stage}; {count} findings in all"));
    Err(first)
}

fn failure(stage: &str, error: &OperatorError) -> Diagnostic {
    Diagnostic::error(Code::InvalidGraph, Location::default(), format!("stage {stage} built a graph in which {error}"))
}

/// Rebuilds a graph by rules.
type Rebuild = fn(&Graph, &[Rule]) -> Result<(Graph, Canonicalised), OperatorError>;

fn rewritten(
    graph: &Graph,
    stage: &'static str,
    (rebuild, mut rules): (Rebuild, Vec<Rule>),
    options: &OptimizeOptions,
    report: &mut StageReport,
    history: &mut History,
) -> Result<Graph, OperatorError> {
    rules.retain(|rule| options.keeps(rule));
    let (graph, done) = rebuild(graph, &rules)?;
    for (rule, count) in done.fired {
        *report.fired.entry(rule).or_default() += count;
    }
    for (name, rules) in done.steps {
        history.entry(name).or_default().extend(rules.into_iter().map(|rule| Step { stage, rule }));
    }
    Ok(graph)
}

/// Saturating stages at work on one region after the other.
struct Regions<'a> {
    stages: Vec<(&'static str, Vec<Rule>)>,
    options: &'a OptimizeOptions,
    reports: &'a mut [StageReport],
    before: &'a History,
    after: History,
}

impl Regions<'_> {
    fn region(&mut self, graph: Graph) -> Result<Graph, OperatorError> {
        let budget = self.options.budget.for_graph(graph.len());
        let mut space = Space::into_egraph(graph, self.options.explain);
        let goal = Goal { prices: &*self.options.prices, weights: self.options.weights };
        let mut prices = PriceList::new(goal);
        let mut earlier: Option<Selection> = None;
        let last = self.stages.len() - 1;
        for (number, ((_, rules), report)) in self.stages.iter().zip(self.reports.iter_mut()).enumerate() {
            let budget = Budget { nodes: budget.nodes.saturating_add(space.made().len()), ..budget };
            let saturation = saturate(&mut space, rules, budget);
            let is_new = !saturation.fired.is_empty();
            report.record(&space, saturation);
            // What is cheapest so far says to the next rules where to look first.
            if number < last && (is_new || earlier.is_none()) {
                earlier = Problem::new(&space, &mut prices).solve(&space, earlier.as_ref());
                earlier.iter().for_each(|selection| space.prefer(&selection.nodes));
            }
        }
        let cyclic = || OperatorError::Evaluation("values depend on themselves".into());
        let selection = Problem::new(&space, &mut prices).solve(&space, earlier.as_ref()).ok_or_else(cyclic)?;
        let rebuilt = from_egraph(&space, &selection)?;
        if let Some(report) = self.reports.last_mut() {
            report.decided(&selection);
        }
        if self.options.explain {
            let chains = explain::chains(&mut space, &rebuilt, &selection);
            self.after.extend(continued(self.before, &space.source, &rebuilt, &chains, &self.stages));
        }
        Ok(rebuilt.graph)
    }
}

impl StageReport {
    fn new(name: &'static str, nodes: usize) -> StageReport {
        StageReport { name, fired: IndexMap::new(), refused: IndexMap::new(), nodes: (nodes, nodes), saturation: None }
    }

    fn record(&mut self, space: &Space, saturation: Saturation) {
        let total = self.saturation.get_or_insert_with(SaturationReport::default);
        total.nodes += space.egraph.total_size();
        total.classes += space.egraph.number_of_classes();
        total.iterations = total.iterations.max(saturation.iterations);
        total.stop.push(saturation.stop);
        for (rule, count) in saturation.fired {
            *self.fired.entry(rule).or_default() += count;
        }
        for (rule, count) in saturation.refused {
            *self.refused.entry(rule).or_default() += count;
        }
    }

    fn decided(&mut self, selection: &Selection) {
        let total = self.saturation.get_or_insert_with(SaturationReport::default);
        total.cost_before = total.cost_before.saturating_add(selection.cost_before);
        total.cost_after = total.cost_after.saturating_add(selection.cost_after);
    }
}

/// The history of the rebuilt graph: that of the nodes each new node replaces, and the rules that joined them.
fn continued(
    history: &History,
    source: &Graph,
    rebuilt: &Rebuilt,
    chains: &IndexMap<NodeId, Vec<String>>,
    stages: &[(&'static str, Vec<Rule>)],
) -> History {
    let mut next = History::new();
    for (new, (_, made_of)) in &rebuilt.made_of {
        let mut steps: IndexSet<Step> = IndexSet::new();
        for old in made_of {
            steps.extend(history.get(&source.node(*old).name).into_iter().flatten().copied());
        }
        for name in chains.get(new).into_iter().flatten() {
            let step = stages.iter().find_map(|(stage, rules)| {
                let rule = rules.iter().find(|rule| rule.name == name)?;
                Some(Step { stage, rule: rule.name })
            });
            steps.extend(step);
        }
        next.insert(rebuilt.graph.node(*new).name.clone(), steps);
    }
    next
}

fn explanations(graph: &Graph, history: &History) -> Vec<Explanation> {
    let mut explanations = Vec::new();
    for id in graph.topological_order() {
        let node = graph.node(id);
        let steps: Vec<Step> = history.get(&node.name).into_iter().flatten().copied().collect();
        if node.op.category() == Category::Source || steps.is_empty() {
            continue;
        }
        let operator = match &node.op {
            Op::Kernel(kernel) => format!("kernel({})", kernel.anchor.name()),
            op => op.name().to_owned(),
        };
        let value = node.name.to_string();
        let origins = node.origins.iter().map(|origin| origin.to_string()).collect();
        explanations.push(Explanation { value, operator, origins, steps });
    }
    explanations
}
