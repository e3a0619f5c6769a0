//! Filling templates, and numbers as people read them.

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment};
use serde::Serialize;

/// A number of bytes for people.
pub fn bytes(count: u64) -> String {
    match count {
        0..10_240 => format!("{} B", grouped(count)),
        10_240..10_485_760 => format!("{:.1} KiB", count as f64 / 1024.0),
        _ => format!("{:.1} MiB", count as f64 / 1_048_576.0),
    }
}

/// A number with a thin space between its thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let head = digits.len() % 3;
    let groups = digits.as_bytes()[head..].chunks(3).map(|group| String::from_utf8_lossy(group).into_owned());
    let head = (head > 0).then(|| digits[..head].to_owned());
    head.into_iter().chain(groups).collect::<Vec<_>>().join("\u{202f}")
}

/// A text of at most so many characters; what is left out is a sign.
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    kept + "…"
}

/// A coordinate: tenths of pixels are enough.
pub fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// Fills a template. Templates are parts of this crate, and each is filled by tests: a fault in one is shown in its place.
pub fn fill(name: &str, values: impl Serialize) -> String {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_filter("bytes", |count: u64| bytes(count));
    environment.add_filter("grouped", |count: u64| grouped(count));
    environment.add_filter("percent", |share: f64| format!("{:.1} %", 100.0 * share));
    let source = match name {
        "front.xml" => include_str!("templates/front.svg.jinja"),
        "graph.xml" => include_str!("templates/graph.svg.jinja"),
        "memory.xml" => include_str!("templates/memory.svg.jinja"),
        "roofline.xml" => include_str!("templates/roofline.svg.jinja"),
        _ => include_str!("templates/page.html.jinja"),
    };
    environment.render_str(source, Serde(values)).unwrap_or_else(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!([0, 999, 1000, 1234567].map(grouped), ["0", "999", "1\u{202f}000", "1\u{202f}234\u{202f}567"]);
        assert_eq!([9_999, 20_480, 52_428_800].map(bytes), ["9\u{202f}999 B", "20.0 KiB", "50.0 MiB"]);
    }
}
