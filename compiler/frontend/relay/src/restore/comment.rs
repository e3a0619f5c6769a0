//! The comment behind a node: `mlc "name" from "origin" "origin"`.

use super::finding::{at, unlike};
use crate::lexer::{Kind, Place, lex};
use mlc_import::Fault;
use mlc_ir::{Code, Diagnostic, Graph, NodeId};
use std::sync::Arc;

pub(super) struct NodeComment {
    pub name: String,
    origins: Vec<Arc<str>>,
}

impl NodeComment {
    pub fn parse(comment: Option<&str>, place: Place) -> Result<NodeComment, Diagnostic> {
        let wrong = || unlike(place, "the comment with the node's name is missing, or isn't as mlc writes it");
        let tokens = lex(comment.unwrap_or_default()).map_err(|_| wrong())?;
        let mut kinds = tokens.iter().map(|token| &token.kind).peekable();
        let (Some(Kind::Word("mlc")), Some(Kind::Text(name))) = (kinds.next(), kinds.next()) else {
            return Err(wrong());
        };
        let mut parsed = NodeComment { name: name.clone(), origins: Vec::new() };
        if kinds.next_if(|kind| **kind == Kind::Word("from")).is_some() {
            while let Some(Kind::Text(origin)) = kinds.next_if(|kind| matches!(kind, Kind::Text(_))) {
                parsed.origins.push(origin.as_str().into());
            }
        }
        if kinds.next() == Some(&Kind::End) { Ok(parsed) } else { Err(wrong()) }
    }

    /// Gives a node its origins. Its name must be new.
    pub fn settle(&self, graph: &mut Graph, node: NodeId, place: Place) -> Result<(), Diagnostic> {
        if *graph.node(node).name != *self.name {
            let message = format!("there are two nodes \"{}\"", self.name);
            return Err(at(place, Fault::new(Code::DuplicateDefinition, message)));
        }
        graph.origins_mut(node).extend(self.origins.iter().cloned());
        Ok(())
    }
}
