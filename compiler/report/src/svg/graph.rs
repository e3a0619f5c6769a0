//! The picture of a graph.

use crate::diagram::Diagram;
use crate::placement::{NODE_HEIGHT, Placement, SHOWN, types};
use crate::template::{fill, shortened, tenths};
use serde::Serialize;
use std::fmt::Write;

#[derive(Serialize)]
struct Picture<'a> {
    id: &'a str,
    width: f64,
    height: f64,
    node_height: f64,
    nodes: Vec<NodeBox<'a>>,
    edges: Vec<EdgePath<'a>>,
}

#[derive(Serialize)]
struct NodeBox<'a> {
    kind: &'a str,
    title: &'a str,
    lines: [String; 3],
    x: f64,
    y: f64,
    width: f64,
}

#[derive(Serialize)]
struct EdgePath<'a> {
    from: usize,
    to: usize,
    path: String,
    title: &'a str,
}

/// Draws a graph: a box for each node with its operator, its name and the types of its results. `id` is a name that no other picture of a
/// page has.
pub fn graph(diagram: &Diagram, id: &str) -> String {
    let placed = Placement::of(diagram);
    let nodes = diagram.nodes.iter().zip(&placed.nodes).map(|(node, &(x, y, width))| NodeBox {
        kind: node.kind,
        title: &node.name,
        lines: [&node.operator, &node.name, &types(node)].map(|text| shortened(text, SHOWN)),
        x: tenths(x),
        y: tenths(y),
        width: tenths(width),
    });
    let edges = diagram.edges.iter().zip(&placed.edges).map(|(edge, points)| EdgePath {
        from: edge.from,
        to: edge.to,
        path: path(points),
        title: &edge.r#type,
    });
    let (nodes, edges) = (nodes.collect(), edges.collect());
    let (width, height) = (placed.width.ceil(), placed.height.ceil());
    fill("graph.xml", Picture { id, width, height, node_height: NODE_HEIGHT, nodes, edges })
}

/// A curve through points: straight at its ends, round where it bends.
fn path(points: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (number, &(x, y)) in points.iter().enumerate() {
        let _ = match number {
            0 => write!(text, "M{} {}", tenths(x), tenths(y)),
            _ if number + 1 == points.len() => write!(text, "L{} {}", tenths(x), tenths(y)),
            _ => {
                let next = points[number + 1];
                let (middle_x, middle_y) = (f64::midpoint(x, next.0), f64::midpoint(y, next.1));
                let bend = [x, y, middle_x, middle_y].map(tenths);
                write!(text, "Q{} {} {} {}", bend[0], bend[1], bend[2], bend[3])
            }
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_go_from_the_first_point_to_the_last() {
        assert_eq!(path(&[(0.0, 0.0), (0.0, 10.04)]), "M0 0L0 10");
        assert_eq!(path(&[(0.0, 0.0), (4.0, 10.0), (0.0, 20.0)]), "M0 0Q4 10 2 15L0 20");
    }
}
