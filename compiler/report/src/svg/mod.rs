//! Pictures as SVG: the graph, the memory plan, the roofline, programs between memory and time. Each stands alone, and the page has the same ones.

mod axis;
mod front;
mod graph;
mod memory;
mod roofline;

pub use front::front;
pub use graph::graph;
pub use memory::memory;
pub use roofline::roofline;

/// A picture as a file of its own, with its colours in it.
pub fn alone(picture: &str) -> String {
    let style =
        format!("<style>:root {{ color-scheme: light dark; }}\n{}</style>", include_str!("../templates/picture.css"));
    // A picture's first element has attributes only.
    let inside = picture.find('>').map_or(0, |end| end + 1);
    let (head, rest) = picture.split_at(inside);
    let head = head.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1);
    format!("{head}{style}{rest}")
}
