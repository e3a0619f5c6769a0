//! Inheritance between objects of the `.op` grammar: an object is a deep copy of its base into which its own members are merged.

use super::tree::{Kind, Member, Tree};

/// What copying may cost over all objects, in bytes of text and values together. A chain of large objects would
/// otherwise grow without bounds.
const MOST_COPIED: usize = 16 << 20;

/// Merges objects into copies of others, as long as that costs little.
#[derive(Default)]
pub(super) struct Heirs {
    copied: usize,
}

impl Heirs {
    /// The base with an object's members merged into it; `None` when too much has been copied.
    pub fn inherit(&mut self, base: &Tree, own: Tree) -> Option<Tree> {
        self.copied = self.copied.saturating_add(cost(base));
        if self.copied > MOST_COPIED {
            return None;
        }
        Some(merge(base.clone(), own))
    }
}

fn cost(tree: &Tree) -> usize {
    let own = match &tree.kind {
        // A copied text is shared, but everything in it is looked at again.
        Kind::Text(text) => text.as_str().len(),
        Kind::List(list) => list.iter().map(cost).sum(),
        Kind::Object(members) => members.iter().map(|member| cost(&member.value)).sum(),
        _ => 0,
    };
    own + size_of::<Member>()
}

fn merge(base: Tree, own: Tree) -> Tree {
    let kind = match (base.kind, own.kind) {
        (Kind::Object(base), Kind::Object(own)) => Kind::Object(merge_objects(base, own)),
        (Kind::List(base), Kind::List(own)) => Kind::List(merge_lists(base, own)),
        (_, own) => without_deletions(own),
    };
    Tree { kind, place: own.place }
}

fn merge_objects(mut members: Vec<Member>, own: Vec<Member>) -> Vec<Member> {
    for Member { name, place, value } in own {
        let known = members.iter().position(|member| member.name == name);
        match (known, &value.kind) {
            (Some(index), Kind::Deletion) => {
                members.remove(index);
            }
            (None, Kind::Deletion) => {}
            (Some(index), _) => {
                let Member { name, value: base, .. } = members.remove(index);
                members.insert(index, Member { name, place, value: merge(base, value) });
            }
            (None, _) => members.push(Member { name, place, value: closed(value) }),
        }
    }
    members
}

/// Element by element; a deletion leaves no hole.
fn merge_lists(base: Vec<Tree>, own: Vec<Tree>) -> Vec<Tree> {
    let mut base = base.into_iter();
    let mut merged = Vec::new();
    for value in own {
        match (base.next(), &value.kind) {
            (_, Kind::Deletion) => {}
            (Some(base), _) => merged.push(merge(base, value)),
            (None, _) => merged.push(closed(value)),
        }
    }
    merged.extend(base);
    merged
}

/// A value that has no base: what it deletes isn't there anyway.
pub(super) fn closed(tree: Tree) -> Tree {
    Tree { kind: without_deletions(tree.kind), place: tree.place }
}

fn without_deletions(kind: Kind) -> Kind {
    let stays = |tree: &Tree| !matches!(tree.kind, Kind::Deletion);
    match kind {
        Kind::Object(members) => {
            let members = members.into_iter().filter(|member| stays(&member.value));
            Kind::Object(members.map(|member| Member { value: closed(member.value), ..member }).collect())
        }
        Kind::List(list) => Kind::List(list.into_iter().filter(stays).map(closed).collect()),
        kind => kind,
    }
}
