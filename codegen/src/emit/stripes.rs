//! Stripes as C: a function with a loop of turns, in which each kernel asks whether the turn is one of its own.

use super::arguments::{FED, GIVEN, parameter};
use super::emitter::{Emitter, Scope};
use crate::loops::{Helpers, Intrinsic};
use crate::lower::{Act, Ring, RowWalk, Stripe};
use std::collections::BTreeSet;

impl Emitter {
    /// The function of a stripe at a position, and the variables of its caller that it takes.
    pub(super) fn stripe(
        &mut self,
        scope: Scope<'_>,
        code: &Stripe,
        position: usize,
        name: &str,
    ) -> (String, BTreeSet<String>) {
        let feeding = scope.program.feeding.filter(|feeding| scope.program.is_at(*feeding, position));
        let fed = feeding.map(|feeding| feeding.act);
        let mut writer = StripeWriter { emitter: self, scope, code, position, walks: 0, used: BTreeSet::new() };
        let (mut before, mut turns, mut next) = (String::new(), String::new(), position + 1);
        for (number, act) in code.acts.iter().enumerate() {
            if let Some(ring) = &act.ring {
                let place = writer.address(ring.binding);
                before += &beginning(ring, &place);
            }
            turns += &writer.act(act, fed == Some(number), next);
            next += act.body.iter().map(crate::lower::Part::positions).sum::<usize>();
        }
        let (start, end) = match fed.map(|fed| &code.acts[fed].turns) {
            Some(own) => {
                writer.used.extend([FED, GIVEN].map(str::to_owned));
                let turn = |rows: &str| {
                    let (first, period) = (own.first, own.period);
                    let times = if period > 1 { format!("{rows} * {period}") } else { rows.to_owned() };
                    let turn = if first > 0 { format!("{first} + {times}") } else { times };
                    format!("{rows} < {} ? {turn} : {}", own.computed, code.turns)
                };
                before = format!("  if ({FED} == 0) {{\n{}  }}\n", indented(&before));
                before += &format!("  const int32_t end = {};\n", turn(GIVEN));
                // What is done before the first row is there is done with it.
                let start = if own.first > 0 { format!("{FED} == 0 ? 0 : {}", turn(FED)) } else { turn(FED) };
                (start, "end".to_owned())
            }
            None => ("0".to_owned(), code.turns.to_string()),
        };
        let used = writer.used;
        let parameters: Vec<String> = used.iter().map(|name| parameter(name)).collect();
        let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
        let text = format!(
            "\n{}static void {name}({parameters}) {{\n  int32_t turn = 0;\n{before}  \
             for (turn = {start}; turn < {end}; ++turn) {{\n{turns}  }}\n}}\n",
            code.comment,
        );
        (text, used)
    }
}

/// The statements that make the border in a ring, and rows of it before the first ones. One that slides is several times as large: there, what
/// is computed isn't written before.
fn beginning(ring: &Ring, place: &str) -> String {
    let Ring { border, row, slides, .. } = *ring;
    let Some((before, behind)) = ring.around.filter(|_| slides > 1) else {
        return format!("  (void)memset({place}, {border}, {});\n", ring.bytes);
    };
    let mut text = format!("  (void)memset({place}, {border}, {});\n", ring.kept());
    if before + behind > 0 {
        let (first, count) = (ring.kept() - behind, (ring.bytes - ring.kept()) / row);
        let around =
            format!("(void)memset({place} + {first} + (ptrdiff_t)turn * {row}, {border}, {});", before + behind);
        text += &format!("  for (turn = 0; turn < {count}; ++turn) {{\n    {around}\n  }}\n");
    }
    if behind > 0 {
        text += &format!("  (void)memset({place} + {}, {border}, {behind});\n", ring.bytes - behind);
    }
    text
}

struct StripeWriter<'a, 'p> {
    emitter: &'a mut Emitter,
    scope: Scope<'p>,
    code: &'p Stripe,
    position: usize,
    /// Walks so far.
    walks: usize,
    /// Variables of the calling function.
    used: BTreeSet<String>,
}

impl StripeWriter<'_, '_> {
    fn address(&mut self, number: usize) -> String {
        let argument = self.emitter.argument(self.scope, (self.position, number), &self.code.bindings[number]);
        self.used.extend(argument.variable.clone());
        argument.as_operand()
    }

    /// What one does in a turn, whose first part has a position; `is_fed` if its rows are given one after the other.
    fn act(&mut self, act: &Act, is_fed: bool, position: usize) -> String {
        let turns = &act.turns;
        let mut own = BTreeSet::new();
        let mut inside = String::new();
        for walk in &act.walks {
            inside += &self.walk(walk, is_fed, &mut own);
        }
        let calls = self.emitter.sequence(self.scope, &act.body, position, 1);
        self.used.extend(calls.used.into_iter().filter(|name| !own.contains(name)));
        inside += &calls.text.lines().map(|line| format!("  {line}\n")).collect::<String>();
        let mut text = String::new();
        if let Some(ring) = &act.ring {
            let place = self.address(ring.binding);
            let time = since(turns.first, turns.period);
            if ring.kept() > 0 && ring.moves(turns.appended) > 0 {
                let moved = self.moved_up(ring, &place);
                text += &match ring.slides {
                    1 => format!("    {moved}\n"),
                    slides => format!("    if ({time} > 0 && {time} % {slides} == 0) {{\n      {moved}\n    }}\n"),
                };
            }
            if turns.computed < turns.appended {
                let place = match ring.slides {
                    1 => place,
                    slides => format!("{place} + (ptrdiff_t)({time} % {slides}) * {}", ring.appended),
                };
                let border = format!("(void)memset({place} + {}, {}, {});", ring.kept(), ring.border, ring.appended);
                let end = turns.first + (turns.computed - 1) * turns.period;
                inside =
                    format!("    if (turn <= {end}) {{\n{}    }} else {{\n      {border}\n    }}\n", indented(&inside));
            }
        }
        text += &inside;
        let conditions = self.conditions(act);
        match conditions.is_empty() {
            true => format!("    {{\n{}    }}\n", indented(&text)),
            false => format!("    if ({}) {{\n{}    }}\n", conditions.join(" && "), indented(&text)),
        }
    }

    /// The statement that moves rows up.
    fn moved_up(&mut self, ring: &Ring, place: &str) -> String {
        let (appended, kept) = (ring.slides * ring.appended, ring.kept());
        match ring.routine {
            Some(routine) => {
                let name = self.emitter.intrinsics.call(Intrinsic::Routine(routine));
                format!("{name}({place} + {appended}, {place}, {kept});")
            }
            None => format!("(void)memmove({place}, {place} + {appended}, {kept});"),
        }
    }

    /// Which turns are its own.
    fn conditions(&self, act: &Act) -> Vec<String> {
        let turns = &act.turns;
        let last = turns.first + (turns.appended - 1) * turns.period;
        let mut conditions = Vec::new();
        if turns.first > 0 {
            conditions.push(format!("turn >= {}", turns.first));
        }
        if last + turns.period < self.code.turns {
            conditions.push(format!("turn <= {last}"));
        }
        if turns.period > 1 {
            conditions.push(format!("{} % {} == 0", since(turns.first, 1), turns.period));
        }
        conditions
    }

    /// Names the rows of a turn.
    fn walk(&mut self, walk: &RowWalk, is_fed: bool, own: &mut BTreeSet<String>) -> String {
        let (what, qualifier) = if walk.constant { ("slice", "const ") } else { ("row", "") };
        let ty = if walk.constant { "const uint8_t" } else { "uint8_t" };
        let name = format!("{what}{}", self.walks);
        self.walks += 1;
        self.emitter.variables.insert(walk.rows, (name.clone(), name.clone()));
        own.insert(name.clone());
        let whole = self.address(walk.whole);
        let time = since(walk.first, walk.period);
        let time = match walk.slides {
            Some(slides) => format!("({time} % {slides})"),
            None if is_fed => format!("({time} - {FED})"),
            None => time,
        };
        // Those of rings are addresses of bytes.
        let cast = format!("({ty} *)");
        let bytes = if whole.starts_with(&cast) { whole } else { cast + &whole };
        format!("    {qualifier}void *const {name} = {bytes} + (ptrdiff_t){time} * {};\n", walk.stride)
    }
}

/// Periods of so many turns since the first one's own.
fn since(first: usize, period: usize) -> String {
    let turns = if first == 0 { "turn".to_owned() } else { format!("(turn - {first})") };
    if period > 1 { format!("({turns} / {period})") } else { turns }
}

pub(super) fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}
