//! What an import has carried over, and what it has not, with an example of each.

use crate::paint::Paint;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Counted while it runs, and kept in the state of one that is continued.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Report {
    /// Keys by type.
    keys: BTreeMap<String, u64>,
    /// Commands that were applied, and other things that are no keys.
    others: BTreeMap<String, u64>,
    lost: BTreeMap<String, Lost>,
}

/// Something of one kind that was not carried over.
#[derive(Clone, Debug, PartialEq)]
struct Lost {
    count: u64,
    example: String,
}

/// Longer examples are cut.
const EXAMPLE_CHARACTERS_MAX: usize = 100;

impl Report {
    pub(crate) fn count_key(&mut self, kind: &str) {
        *self.keys.entry(kind.into()).or_default() += 1;
    }

    pub(crate) fn count(&mut self, what: &str, count: u64) {
        *self.others.entry(what.into()).or_default() += count;
    }

    pub(crate) fn lose(&mut self, what: impl Into<String>, example: impl AsRef<str>) {
        let lost = self.lost.entry(what.into()).or_insert_with(|| {
            let characters = example.as_ref().chars();
            Lost { count: 0, example: characters.take(EXAMPLE_CHARACTERS_MAX).collect() }
        });
        lost.count += 1;
    }

    pub(crate) fn keys(&self) -> u64 {
        self.keys.values().sum()
    }

    pub(crate) fn of(&self, what: &str) -> u64 {
        self.others.get(what).copied().unwrap_or_default()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.lost.is_empty()
    }

    /// As people read it; with what is missing of the source because it was not read to its end.
    pub(crate) fn text(&self, paint: Paint, rest: Option<&str>) -> String {
        let mut text = format!("{} keys", self.keys());
        let kinds: Vec<String> = self.keys.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        if !kinds.is_empty() {
            let _ = write!(text, ": {}", kinds.join(", "));
        }
        text.push('\n');
        for (what, count) in &self.others {
            let _ = writeln!(text, "{count} {what}");
        }
        match (self.is_complete(), rest) {
            (true, None) => return text + &paint.good("everything was carried over") + "\n",
            (_, Some(rest)) => {
                let _ = writeln!(text, "{}", paint.bad(rest));
            }
            (false, None) => {}
        }
        if self.is_complete() {
            return text;
        }
        let _ = writeln!(text, "{}", paint.bad("not carried over:"));
        for (what, lost) in &self.lost {
            let _ = writeln!(text, "  {:>8} {what}, such as {}", lost.count, lost.example);
        }
        text
    }

    pub(crate) fn to_json(&self) -> Json {
        let lost = |(what, lost): (&String, &Lost)| (what.clone(), json!([lost.count, lost.example]));
        json!({ "keys": self.keys, "others": self.others, "lost": self.lost.iter().map(lost).collect::<Map<_, _>>() })
    }

    /// Nothing if it is none.
    pub(crate) fn from_json(json: &Json) -> Option<Report> {
        let counts = |name: &str| -> Option<BTreeMap<String, u64>> {
            let pairs = json.get(name)?.as_object()?.iter();
            pairs.map(|(name, count)| Some((name.clone(), count.as_u64()?))).collect()
        };
        let lost = json.get("lost")?.as_object()?.iter().map(|(what, lost)| {
            let (count, example) = (lost.get(0)?.as_u64()?, lost.get(1)?.as_str()?.into());
            Some((what.clone(), Lost { count, example }))
        });
        Some(Report { keys: counts("keys")?, others: counts("others")?, lost: lost.collect::<Option<_>>()? })
    }
}

/// A key, or a command, as people read it.
pub(crate) fn shown(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes[..bytes.len().min(EXAMPLE_CHARACTERS_MAX)].escape_ascii())
}

/// The words of a command as people read them, as far as the first few tell it.
pub(crate) fn shown_command(words: &[bytes::Bytes]) -> String {
    let some: Vec<String> =
        words.iter().take(4).map(|word| word[..word.len().min(40)].escape_ascii().to_string()).collect();
    format!("`{}{}`", some.join(" "), if words.len() > 4 { " …" } else { "" })
}

#[cfg(test)]
mod tests;
