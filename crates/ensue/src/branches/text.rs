//! The states as text: `*` for a state, `|`, `/`, `\` and `_` for the lines between, one state a line.

use super::layout::{Layout, Strand};
use super::state::State;
use crate::paint::Paint;

/// What is drawn at one place of a line.
#[derive(Clone, Copy, Debug)]
struct Cell {
    mark: char,
    colour: usize,
}

const EMPTY: Cell = Cell { mark: ' ', colour: 0 };

/// The whole graph, each line no wider than `columns`.
pub(super) fn graph(states: &[State], layout: &Layout, columns: usize, paint: Paint) -> String {
    let mut text = String::new();
    let mut above: &[Strand] = &[];
    for (state, row) in states.iter().zip(&layout.rows) {
        let mut line = Line::default();
        for strand in above {
            line.put(2 * strand.to, '|', strand.colour);
        }
        line.put(2 * row.lane, '*', row.colour);
        let room = columns.saturating_sub(line.cells.len() + 1);
        text.push_str(&format!("{} {}\n", line.painted(paint), label(state, room, paint)));
        for line in between(&row.strands) {
            text.push_str(&line.painted(paint));
            text.push('\n');
        }
        above = &row.strands;
    }
    if !above.is_empty() {
        let mut line = Line::default();
        for strand in above {
            line.put(2 * strand.to, ':', strand.colour);
        }
        text.push_str(&format!("{} {}\n", line.painted(paint), paint.dim("older states are not shown")));
    }
    text
}

/// The lines between two states: none where all goes straight on, one for steps to a neighbour, two for what goes
/// further.
fn between(strands: &[Strand]) -> Vec<Line> {
    let furthest = strands.iter().map(|strand| strand.from.abs_diff(strand.to)).max().unwrap_or(0);
    let count = furthest.min(2);
    let mut lines: Vec<Line> = (0..count).map(|_| Line::default()).collect();
    // Underscores first: whatever else is at their place is drawn over them.
    for strand in strands.iter().filter(|strand| strand.from.abs_diff(strand.to) > 1) {
        let (low, high) = (strand.from.min(strand.to), strand.from.max(strand.to));
        for place in 2 * low + 2..=2 * high - 2 {
            lines[0].put(place, '_', strand.colour);
        }
    }
    for strand in strands {
        draw(strand, &mut lines);
    }
    lines
}

fn draw(strand: &Strand, lines: &mut [Line]) {
    let &Strand { from, to, colour } = strand;
    let Some(last) = lines.len().checked_sub(1) else { return };
    let is_near = from.abs_diff(to) == 1;
    for (number, line) in lines.iter_mut().enumerate() {
        match to.cmp(&from) {
            std::cmp::Ordering::Equal => line.put(2 * from, '|', colour),
            // A step to the left is the last thing it does, a step to the right the first, so that they do not meet.
            std::cmp::Ordering::Less if is_near && number < last => line.put(2 * from, '|', colour),
            std::cmp::Ordering::Less if number < last => line.put(2 * from - 1, '/', colour),
            std::cmp::Ordering::Less => line.put(2 * to + 1, '/', colour),
            std::cmp::Ordering::Greater if is_near && number > 0 => line.put(2 * to, '|', colour),
            std::cmp::Ordering::Greater if number == 0 => line.put(2 * from + 1, '\\', colour),
            std::cmp::Ordering::Greater => line.put(2 * to - 1, '\\', colour),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Line {
    cells: Vec<Cell>,
}

impl Line {
    fn put(&mut self, place: usize, mark: char, colour: usize) {
        if self.cells.len() <= place {
            self.cells.resize(place + 1, EMPTY);
        }
        self.cells[place] = Cell { mark, colour };
    }

    fn painted(&self, paint: Paint) -> String {
        let paint_cell = |cell: &Cell| match cell.mark {
            ' ' => " ".into(),
            mark => paint.lane(cell.colour, &mark.to_string()),
        };
        self.cells.iter().map(paint_cell).collect()
    }
}

/// Id, site, flags and keys, cut where the room ends.
fn label(state: &State, room: usize, paint: Paint) -> String {
    let mut room = room;
    let mut words = Vec::new();
    let mut add = |word: &str, painted: String, room: &mut usize| {
        *room = room.saturating_sub(word.chars().count() + 1);
        words.push(painted);
    };
    let id = state.id.to_string();
    let name = if state.has("above") { paint.dim(&id) } else { paint.bold(&id) };
    add(&id, name, &mut room);
    let site = if state.id.is_root() { "root".to_string() } else { state.id.site_name() };
    add(&site, paint.dim(&site), &mut room);
    let shown = ["leaf", "ceiling", "above"].into_iter().filter(|flag| state.has(flag));
    let flags = shown.collect::<Vec<_>>().join(", ");
    if !flags.is_empty() {
        let flags = format!("({flags})");
        add(&flags, if state.is_leaf() { paint.good(&flags) } else { paint.notable(&flags) }, &mut room);
    }
    let keys = shortened(&state.keys, room);
    if !keys.is_empty() {
        words.push(keys);
    }
    words.join(" ")
}

/// As many keys as there is room for, and how many are left out.
pub(super) fn shortened(keys: &[String], room: usize) -> String {
    let mut text = String::new();
    for (number, key) in keys.iter().enumerate() {
        let left = keys.len() - number;
        let longer = if text.is_empty() { key.clone() } else { format!("{text} {key}") };
        // Unless it is the last one, there must still be room to say how many are not shown.
        let more = if left > 1 { format!(" +{}", left - 1).len() } else { 0 };
        if longer.chars().count() + more > room {
            let rest = if text.is_empty() { format!("+{left}") } else { format!("{text} +{left}") };
            return if rest.chars().count() <= room { rest } else { String::new() };
        }
        text = longer;
    }
    text
}

#[cfg(test)]
mod tests;
