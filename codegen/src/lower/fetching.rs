//! Constants that are copied into the arena ahead of the parts that read them, from a memory that is slow to read: [`take`] says which, [`begins`] when.
//!
//! While a part that has such constants computes, and all parts behind it that have none, those of the next one are on their way. So the
//! constants of two parts lie in the arena at a time, where whatever else lives leaves room for them.

use super::fetch::{Fetch, Fetched};
use super::homes::{Buffer, BufferId, BufferKind};
use super::maker::Item;
use super::part::{Binding, Part, Routine};
use crate::kernels::Packed;

/// Has each item read its constants of at least so many bytes in the arena. Gives those of each item; none without a limit.
pub(super) fn take(items: &mut [Item], buffers: &mut Vec<Buffer>, least: Option<usize>) -> Vec<Vec<Fetched>> {
    let mut all = vec![Vec::new(); items.len()];
    if let Some(least) = least {
        for (item, own) in items.iter_mut().zip(&mut all) {
            Taking { buffers, least, own }.part(&mut item.part);
        }
    }
    all
}

/// The constants of a part while they are taken.
struct Taking<'a> {
    buffers: &'a mut Vec<Buffer>,
    least: usize,
    own: &'a mut Vec<Fetched>,
}

impl Taking<'_> {
    fn part(&mut self, part: &mut Part) {
        match part {
            Part::Step(step) if matches!(step.routine, Routine::Kernel(_)) => {
                step.bindings.iter_mut().for_each(|binding| self.binding(binding));
            }
            // Other functions may ask for what isn't known of them, of a constant's place, too.
            Part::Step(_) | Part::Exchange(_) | Part::Fetch(_) => {}
            Part::Loop(code) => code.body.iter_mut().for_each(|part| self.part(part)),
            Part::Stripe(code) => {
                code.acts.iter_mut().flat_map(|act| &mut act.body).for_each(|part| self.part(part));
            }
        }
    }

    fn binding(&mut self, binding: &mut Binding) {
        let (name, value, offset) = match binding {
            Binding::Packed { name, value } => (name.clone(), value.clone(), 0),
            Binding::Buffer { buffer, offset, .. } => {
                let Buffer { kind: BufferKind::Constant(value), values, .. } = &self.buffers[*buffer] else { return };
                (values.first().cloned().unwrap_or_default(), Packed::from(value.clone()), *offset)
            }
            Binding::Scratch { .. } => return,
        };
        if value.ty().bytes() < self.least {
            return;
        }
        let (dtype, known) = (value.ty().dtype, self.own.iter().find(|fetched| fetched.value == value));
        let buffer = known.map_or(self.buffers.len(), |fetched| fetched.buffer);
        if known.is_none() {
            let (kind, bytes, values) = (BufferKind::Arena, value.ty().bytes(), vec![format!("fetched {name}")]);
            self.buffers.push(Buffer { kind, bytes, alignment: 1, values });
            self.own.push(Fetched { name, value, buffer });
        }
        *binding = Binding::Buffer { buffer, offset, dtype, constant: true };
    }
}

/// For each item of an order that takes constants: its place, and the place before which they begin to be copied, that of the last one
/// before it that takes any.
pub(super) fn begins(order: &[usize], all: &[Vec<Fetched>]) -> Vec<(usize, usize)> {
    let places: Vec<usize> = (0..order.len()).filter(|&place| !all[order[place]].is_empty()).collect();
    places.iter().copied().zip([0].into_iter().chain(places.iter().copied())).collect()
}

/// Positions before which constants begin to be copied, each with a buffer that is written from then on.
pub(super) fn uses(parts: &[Part]) -> Vec<(usize, BufferId)> {
    let (mut position, mut uses) = (0, Vec::new());
    for part in parts {
        if let Part::Fetch(Fetch::Begin(list)) = part {
            uses.extend(list.iter().map(|fetched| (position, fetched.buffer)));
        }
        position += part.positions();
    }
    uses
}
