//! A short table of the operators, derived from the operators themselves.

use super::OpKind;
use std::fmt::Write;

/// Markdown: for each operator its name, what it computes, and its fields.
pub fn ops_table() -> String {
    let mut text = String::from("# Operators\n\n| operator | computes | fields |\n|---|---|---|\n");
    for &kind in OpKind::ALL {
        let documentation = kind.documentation();
        let prefix = format!("`{}`: ", kind.name());
        let documentation = documentation.strip_prefix(&prefix).unwrap_or(&documentation);
        let fields = kind.field_descriptions().iter();
        let fields: Vec<String> = fields.map(|(name, text)| format!("`{name}`: {}", escape(text))).collect();
        let _ = writeln!(text, "| `{}` | {} | {} |", kind.name(), escape(documentation), fields.join("<br>"));
    }
    text
}

/// Text that keeps its meaning in a table cell of Markdown.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('*', "\\*").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_a_row_for_every_operator_and_names_its_fields() {
        let table = ops_table();
        let rows: Vec<&str> = table.lines().skip(4).collect();
        assert_eq!(rows.len(), OpKind::ALL.len());
        for (row, kind) in rows.iter().zip(OpKind::ALL) {
            assert!(row.starts_with(&format!("| `{}` | ", kind.name())), "{row}");
            assert_eq!(row.replace("\\|", "").matches('|').count(), 4, "{row}");
            assert!(kind.field_descriptions().iter().all(|(field, _)| row.contains(&format!("`{field}`: "))), "{row}");
        }
    }
}
