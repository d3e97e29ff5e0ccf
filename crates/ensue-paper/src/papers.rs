//! The papers, each a table of its figures.

pub mod beyond;
pub mod cops;
pub mod eiger;
pub mod orbe;
pub mod pocc;
pub mod tardis;

use crate::claim::{At, Pick};
use crate::figure::{Case, Figure};

/// A paper.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// As the command line has it.
    pub name: &'static str,
    pub title: &'static str,
    pub figures: &'static [Figure],
}

pub const PAPERS: [Paper; 6] =
    [cops::PAPER, eiger::PAPER, orbe::PAPER, pocc::PAPER, tardis::PAPER, beyond::PAPER];

/// Why a figure does not show what its paper says, where an experiment has set one cause apart.
pub const CAUSES: [(&str, &str, &str); 1] = [(
    "beyond",
    "S2",
    "S1 is the same worlds but for the keys, which are on the client's own partition, and keeps nine tenths. What is \
     lost here is lost from 1 to 4 partitions, where three of four operations begin to cross cores, each with a message \
     of its own and one back.",
)];

/// The paper and the figures that these words name, `all` of either; an error says what there is.
pub fn find(paper: &str, figure: Option<&str>) -> Result<Vec<(&'static Paper, &'static Figure)>, String> {
    let papers = PAPERS.iter().filter(|known| paper == "all" || known.name == paper);
    let all: Vec<_> =
        papers.flat_map(|paper| paper.figures.iter().map(move |figure| (paper, figure))).collect();
    if all.is_empty() {
        let names: Vec<&str> = PAPERS.iter().map(|paper| paper.name).collect();
        return Err(format!("no paper {paper}; there are {}, and all", names.join(", ")));
    }
    let Some(wanted) = figure else { return Ok(all) };
    let names: Vec<&str> = all.iter().map(|(_, figure)| figure.name).collect();
    let found: Vec<_> = all.iter().copied().filter(|(_, figure)| is_meant(figure.name, wanted)).collect();
    match found.is_empty() {
        true => Err(format!("no figure {wanted} of {paper}; there are {}", names.join(", "))),
        false => Ok(found),
    }
}

/// `F9` means `F9` and its panels `F9a` and `F9b`, and not `F90`.
fn is_meant(name: &str, wanted: &str) -> bool {
    let mut name = name.to_ascii_lowercase();
    let wanted = wanted.to_ascii_lowercase();
    if name != wanted && name.ends_with(|c: char| c.is_ascii_lowercase()) {
        name.pop();
    }
    name == wanted
}

const fn case<S>(name: &'static str, change: fn(S) -> S) -> Case<S> {
    Case { name, change }
}

const fn first(line: &'static str) -> At {
    At(line, Pick::First)
}

const fn last(line: &'static str) -> At {
    At(line, Pick::Last)
}

const fn at(line: &'static str, point: &'static str) -> At {
    At(line, Pick::Named(point))
}

const fn most(line: &'static str) -> At {
    At(line, Pick::Most)
}

const fn least(line: &'static str) -> At {
    At(line, Pick::Least)
}
