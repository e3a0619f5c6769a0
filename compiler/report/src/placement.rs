//! [`Placement`]: where the nodes of a diagram are in a picture, in layers from top to bottom.

use crate::diagram::{Diagram, DiagramNode};
use dagre::graph::{Graph, GraphOptions};
use dagre::{EdgeLabel, LayoutOptions, NodeLabel, Ranker};

/// Height of a node.
pub const NODE_HEIGHT: f64 = 50.0;

/// Width of a character of a node's text, about.
const CHARACTER: f64 = 6.7;

/// Characters of a line of a node's text that are shown.
pub const SHOWN: usize = 34;

/// Nodes up to which the layers are those that make edges shortest. More get layers that are found faster.
const SHORT_EDGES: usize = 600;

/// A picture's coordinates, in pixels from the upper left corner.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Placement {
    /// Width of the picture.
    pub width: f64,
    /// Height of the picture.
    pub height: f64,
    /// For each node its left, its top and its width.
    pub nodes: Vec<(f64, f64, f64)>,
    /// For each edge the points that it goes through.
    pub edges: Vec<Vec<(f64, f64)>>,
}

impl Placement {
    /// Places a diagram by Sugiyama's method.
    pub fn of(diagram: &Diagram) -> Placement {
        let options = GraphOptions { directed: true, multigraph: true, compound: false };
        let mut graph: Graph<NodeLabel, EdgeLabel> = Graph::with_options(options);
        for (number, node) in diagram.nodes.iter().enumerate() {
            let label = NodeLabel { width: width(node), height: NODE_HEIGHT, ..NodeLabel::default() };
            graph.set_node(number.to_string(), Some(label));
        }
        for (number, edge) in diagram.edges.iter().enumerate() {
            let (from, to, name) = (edge.from.to_string(), edge.to.to_string(), number.to_string());
            graph.set_edge(from, to, Some(EdgeLabel::default()), Some(&name));
        }
        let ranker = if diagram.nodes.len() > SHORT_EDGES { Ranker::TightTree } else { Ranker::NetworkSimplex };
        let options = LayoutOptions { nodesep: 24.0, edgesep: 12.0, ranksep: 34.0, ranker, ..LayoutOptions::default() };
        dagre::layout(&mut graph, Some(options));
        let place = |number: usize| {
            let label = graph.node(&number.to_string());
            let (x, y) = label.map_or((0.0, 0.0), |label| (label.x.unwrap_or(0.0), label.y.unwrap_or(0.0)));
            let width = width(&diagram.nodes[number]);
            (x - width / 2.0, y - NODE_HEIGHT / 2.0, width)
        };
        let points = |(number, edge): (usize, &crate::DiagramEdge)| {
            let label = graph.edge(&edge.from.to_string(), &edge.to.to_string(), Some(&number.to_string()));
            label.map_or_else(Vec::new, |label| label.points.iter().map(|point| (point.x, point.y)).collect())
        };
        let placed = Placement {
            width: 0.0,
            height: 0.0,
            nodes: (0..diagram.nodes.len()).map(place).collect(),
            edges: diagram.edges.iter().enumerate().map(points).collect(),
        };
        placed.at_the_corner()
    }

    /// Moved so that nothing is left of or above the corner, with the picture's size.
    fn at_the_corner(mut self) -> Placement {
        /// Room around everything.
        const MARGIN: f64 = 12.0;
        let nodes = self.nodes.iter().flat_map(|&(x, y, width)| [(x, y), (x + width, y + NODE_HEIGHT)]);
        let all: Vec<(f64, f64)> = nodes.chain(self.edges.iter().flatten().copied()).collect();
        let least = |of: fn(&(f64, f64)) -> f64| all.iter().map(of).fold(f64::INFINITY, f64::min);
        let most = |of: fn(&(f64, f64)) -> f64| all.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
        if all.is_empty() {
            return self;
        }
        let (left, top) = (least(|point| point.0) - MARGIN, least(|point| point.1) - MARGIN);
        (self.width, self.height) = (most(|point| point.0) + MARGIN - left, most(|point| point.1) + MARGIN - top);
        self.nodes.iter_mut().for_each(|node| (node.0, node.1) = (node.0 - left, node.1 - top));
        self.edges.iter_mut().flatten().for_each(|point| *point = (point.0 - left, point.1 - top));
        self
    }
}

/// Width of a node: that of its longest line.
fn width(node: &DiagramNode) -> f64 {
    let lines = [node.operator.chars().count() + 1, node.name.chars().count(), types(node).chars().count()];
    let longest = lines.into_iter().max().unwrap_or(0).min(SHOWN);
    (longest as f64 * CHARACTER + 20.0).max(80.0)
}

/// The types of a node's results as one line.
pub fn types(node: &DiagramNode) -> String {
    node.results.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DiagramEdge;

    fn diagram(names: &[&str], edges: &[(usize, usize)]) -> Diagram {
        let node = |name: &&str| DiagramNode {
            name: (*name).to_owned(),
            operator: "map".into(),
            kind: "elementwise",
            results: vec!["f32[1]".into()],
            text: String::new(),
            origins: Vec::new(),
            constants: Vec::new(),
            rules: Vec::new(),
            kernels: Vec::new(),
        };
        let edges = edges.iter().map(|&(from, to)| DiagramEdge { from, to, r#type: "f32[1]".into() });
        Diagram { nodes: names.iter().map(node).collect(), edges: edges.collect() }
    }

    #[test]
    fn operands_are_above_results_and_no_nodes_meet() {
        let placed = Placement::of(&diagram(&["a", "b", "c", "d"], &[(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)]));
        let [a, b, c, d] = [0, 1, 2, 3].map(|number| placed.nodes[number]);
        assert!(a.1 + NODE_HEIGHT < b.1 && b.1 + NODE_HEIGHT < d.1);
        assert!(b.0 + b.2 < c.0 || c.0 + c.2 < b.0, "{b:?} {c:?}");
        assert!(placed.edges.iter().all(|points| points.len() >= 2));
    }

    #[test]
    fn two_edges_between_the_same_nodes_are_two() {
        let placed = Placement::of(&diagram(&["a", "b"], &[(0, 1), (0, 1)]));
        assert_ne!(placed.edges[0], placed.edges[1]);
    }

    #[test]
    fn nothing_is_outside_of_the_picture() {
        let placed = Placement::of(&diagram(&["a", "b", "c"], &[(0, 2)]));
        for &(x, y, width) in &placed.nodes {
            assert!(x >= 0.0 && y >= 0.0 && x + width <= placed.width && y + NODE_HEIGHT <= placed.height);
        }
        assert_eq!(Placement::of(&Diagram::default()), Placement::default());
    }
}
