//! What differs between the two sides of a key, in words: the first difference that is found.
//!
//! Both values are read once more, page by page: what has an order side by side, and what has none by asking each side
//! for the elements of a page of the other. No value is held whole.

mod elements;
mod streams;

use super::answer;
use super::fingerprint::{Seen, Verdict, are_near};
use super::kind::Kind;
use super::pages::Pages;
use super::reader::field_deadlines_of;
use super::side::Side;
use super::suspects::Suspect;
use crate::import::shown;
use crate::import::target::words;
use bytes::Bytes;
use elements::Element;
use ensue_client::Reply;

/// Bytes of a value that are shown.
const SHOWN_BYTES: usize = 48;

/// Why there is no explanation.
enum Trouble {
    /// A side answered this.
    Answer(String),
    Connection(anyhow::Error),
}

impl From<anyhow::Error> for Trouble {
    fn from(error: anyhow::Error) -> Trouble {
        Trouble::Connection(error)
    }
}

impl From<String> for Trouble {
    fn from(words: String) -> Trouble {
        Trouble::Answer(words)
    }
}

pub(crate) struct Explanation<'a> {
    pub(crate) left: &'a mut Side,
    pub(crate) right: &'a mut Side,
    pub(crate) key: &'a Bytes,
    pub(crate) tolerance_ms: u64,
}

impl Explanation<'_> {
    /// What differs. A key may have changed since it was judged.
    pub(crate) fn words(&mut self, suspect: &Suspect) -> anyhow::Result<String> {
        let words = match (&suspect.left, &suspect.right, suspect.verdict) {
            (Seen::Unreadable(words), _, _) => Ok(Some(format!("left answers: {words}"))),
            (_, Seen::Unreadable(words), _) => Ok(Some(format!("right answers: {words}"))),
            (Seen::Row(row), Seen::Missing, _) => Ok(Some(format!("a {}, only left", row.kind.name()))),
            (Seen::Missing, Seen::Row(row), _) => Ok(Some(format!("a {}, only right", row.kind.name()))),
            (Seen::Row(left), Seen::Row(right), Verdict::OtherType) => {
                Ok(Some(format!("a {} left, a {} right", left.kind.name(), right.kind.name())))
            }
            (Seen::Row(left), Seen::Row(right), Verdict::OtherDeadline)
                if !are_near(left.deadline_ms, right.deadline_ms, self.tolerance_ms) =>
            {
                Ok(Some(deadlines(left.deadline_ms, right.deadline_ms)))
            }
            (Seen::Row(_), Seen::Row(_), Verdict::OtherDeadline) => self.field_deadline(),
            (Seen::Row(row), Seen::Row(_), _) => self.value(&row.kind),
            (Seen::Missing, Seen::Missing, _) => Ok(None),
        };
        match words {
            Ok(words) => Ok(words.unwrap_or_else(|| "it has changed since".into())),
            Err(Trouble::Answer(words)) => Ok(format!("cannot be read again: {words}")),
            Err(Trouble::Connection(error)) => Err(error),
        }
    }

    /// The first field whose deadlines differ by more than the tolerance, or one that only one side has.
    pub(crate) fn field_deadlines(&mut self) -> anyhow::Result<Option<String>> {
        match self.field_deadline() {
            Ok(words) => Ok(words),
            Err(Trouble::Answer(words)) => Ok(Some(words)),
            Err(Trouble::Connection(error)) => Err(error),
        }
    }

    fn field_deadline(&mut self) -> Result<Option<String>, Trouble> {
        let mut pages = Pages::new(Kind::Hash, self.key.clone());
        while let Some(page) = next_page(self.left, &mut pages)? {
            let names: Vec<Bytes> = answer::texts(&page)?.into_iter().step_by(2).collect();
            if names.is_empty() {
                continue;
            }
            let question = [field_deadlines_of(self.key, &names)];
            let left = self.left.run(&question)?.pop().unwrap_or(Reply::Nil);
            let right = self.right.run(&question)?.pop().unwrap_or(Reply::Nil);
            let pairs = answer::list(&left)?.iter().zip(answer::list(&right)?);
            for (name, (left, right)) in names.iter().zip(pairs) {
                let [left, right] = [answer::integer(left)?, answer::integer(right)?];
                let [left, right] = [u64::try_from(left).ok(), u64::try_from(right).ok()];
                if !are_near(left, right, self.tolerance_ms) {
                    return Ok(Some(format!("field {}: {}", cut(name), deadlines(left, right))));
                }
            }
        }
        Ok(None)
    }

    fn value(&mut self, kind: &Kind) -> Result<Option<String>, Trouble> {
        match kind {
            Kind::String => self.string(),
            Kind::List => self.list(),
            Kind::Stream => self.stream(),
            Kind::Hash | Kind::Set | Kind::SortedSet => self.elements(kind),
            Kind::BoundedCounter | Kind::Other(_) => self.whole(kind),
        }
    }

    fn string(&mut self) -> Result<Option<String>, Trouble> {
        let mut pages = self.two(Kind::String);
        let mut passed = 0;
        loop {
            let (left, right) = self.next_of_two(&mut pages)?;
            let text = |page: &Option<Reply>| page.as_ref().and_then(answer::text);
            let (Some(left), Some(right)) = (text(&left), text(&right)) else { return Ok(None) };
            if passed == 0 && left.starts_with(b"HYLL") && right.starts_with(b"HYLL") {
                return self.hyperloglog();
            }
            if left != right {
                let place = left.iter().zip(&right).take_while(|(one, other)| one == other).count();
                // Some bytes before the first that differs tell where one is.
                let from = place.saturating_sub(SHOWN_BYTES / 4);
                let (left, right) = (&left[from.min(left.len())..], &right[from.min(right.len())..]);
                let sizes = self.sizes("STRLEN")?;
                let from =
                    if passed + from == 0 { String::new() } else { format!(" from byte {}", passed + from) };
                return Ok(Some(format!(
                    "{} left, {} right{from} ({sizes} bytes)",
                    begin(left),
                    begin(right)
                )));
            }
            passed += left.len();
        }
    }

    fn hyperloglog(&mut self) -> Result<Option<String>, Trouble> {
        let sizes = self.sizes("PFCOUNT")?;
        Ok(Some(format!("a HyperLogLog with other registers: about {sizes} elements")))
    }

    fn list(&mut self) -> Result<Option<String>, Trouble> {
        let mut pages = self.two(Kind::List);
        let mut begin = 0;
        loop {
            let (left, right) = self.next_of_two(&mut pages)?;
            let elements = |page: Option<Reply>| page.as_ref().map_or(Ok(Vec::new()), answer::texts);
            let (left, right) = (elements(left)?, elements(right)?);
            for place in 0..left.len().max(right.len()) {
                let name = format!("element {}", begin + place);
                if let Some(words) = of_two(&name, left.get(place), right.get(place)) {
                    let sizes = self.sizes("LLEN")?;
                    return Ok(Some(format!("{words} ({sizes} elements)")));
                }
            }
            if left.is_empty() {
                return Ok(None);
            }
            begin += left.len();
        }
    }

    fn whole(&mut self, kind: &Kind) -> Result<Option<String>, Trouble> {
        let question = [kind.whole(self.key)];
        let left = self.left.run(&question)?.pop().as_ref().and_then(answer::text);
        let right = self.right.run(&question)?.pop().as_ref().and_then(answer::text);
        Ok(match kind {
            Kind::Other(name) => Some(format!("values of type {name}, whose dumps differ")),
            _ => of_two("value", left.as_ref(), right.as_ref()),
        })
    }

    /// Finds an element of one side that the other side has not, or has with another value.
    fn elements(&mut self, kind: &Kind) -> Result<Option<String>, Trouble> {
        for is_from_left in [true, false] {
            let mut pages = Pages::new(kind.clone(), self.key.clone());
            let (from, to) = match is_from_left {
                true => (&mut *self.left, &mut *self.right),
                false => (&mut *self.right, &mut *self.left),
            };
            while let Some(page) = next_page(from, &mut pages)? {
                let found = elements::of_page(kind, &page)?;
                let questions: Vec<_> =
                    found.iter().map(|element| element.question(kind, self.key)).collect();
                for (element, reply) in found.iter().zip(to.run(&questions)?) {
                    let other = Element::answered(kind, &element.name, &reply)?;
                    let (left, right) = if is_from_left {
                        (Some(element), other.as_ref())
                    } else {
                        (other.as_ref(), Some(element))
                    };
                    if let Some(words) = elements::difference(kind, left, right) {
                        return Ok(Some(words));
                    }
                }
            }
        }
        Ok(None)
    }

    fn two(&self, kind: Kind) -> [Pages; 2] {
        [(); 2].map(|()| Pages::new(kind.clone(), self.key.clone()))
    }

    fn next_of_two(&mut self, pages: &mut [Pages; 2]) -> Result<(Option<Reply>, Option<Reply>), Trouble> {
        let [left, right] = pages;
        Ok((next_page(self.left, left)?, next_page(self.right, right)?))
    }

    /// What both sides answer to a command about sizes.
    fn sizes(&mut self, command: &'static str) -> Result<String, Trouble> {
        let question = [words![command, self.key.clone()]];
        let size = |side: &mut Side| -> Result<String, Trouble> {
            let reply = side.run(&question)?.pop();
            let text = reply.as_ref().and_then(answer::text).unwrap_or_else(|| Bytes::from_static(b"?"));
            Ok(String::from_utf8_lossy(&text).into_owned())
        };
        Ok(format!("{} and {}", size(self.left)?, size(self.right)?))
    }
}

fn next_page(side: &mut Side, pages: &mut Pages) -> Result<Option<Reply>, Trouble> {
    let Some(command) = pages.command() else { return Ok(None) };
    let reply = side.run(&[command])?.pop().unwrap_or(Reply::Nil);
    Ok(Some(pages.take(reply)?))
}

/// Something that both sides may have, if they differ in it.
fn of_two(name: &str, left: Option<&Bytes>, right: Option<&Bytes>) -> Option<String> {
    match (left, right) {
        (Some(left), Some(right)) if left == right => None,
        (None, None) => None,
        (Some(left), Some(right)) => Some(format!("{name}: {} left, {} right", cut(left), cut(right))),
        (Some(left), None) => Some(format!("{name} is only left: {}", cut(left))),
        (None, Some(right)) => Some(format!("{name} is only right: {}", cut(right))),
    }
}

/// Deadlines that differ.
fn deadlines(left: Option<u64>, right: Option<u64>) -> String {
    match (left, right) {
        (Some(left), Some(right)) => {
            let seconds = left.abs_diff(right) as f64 / 1_000.0;
            let order = if left < right { "earlier left" } else { "later left" };
            format!("expires at {left} left, at {right} right: {seconds:.3} s {order}")
        }
        (Some(left), None) => format!("expires at {left} left, never right"),
        (None, Some(right)) => format!("expires never left, at {right} right"),
        (None, None) => "expires never".into(),
    }
}

/// A value as people read it, as far as there is room, and how long it is.
pub(crate) fn cut(bytes: &[u8]) -> String {
    let length = if bytes.len() > SHOWN_BYTES { format!(" ({} bytes)", bytes.len()) } else { String::new() };
    begin(bytes) + &length
}

/// What stands at the beginning of a text.
fn begin(bytes: &[u8]) -> String {
    let rest = if bytes.len() > SHOWN_BYTES { "…" } else { "" };
    shown(&bytes[..bytes.len().min(SHOWN_BYTES)]) + rest
}

#[cfg(test)]
mod tests;
