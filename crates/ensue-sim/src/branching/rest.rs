//! What is asked of a keyspace with branches when everything is at rest, and what must then be the same in every
//! datacenter.

use super::rows::{Key, in_order};
use crate::oracle::history::History;
use crate::resp::{Answer, args};
use ensue_types::Args;
use std::collections::BTreeSet;

/// Figures that must come down to nothing.
const UNFINISHED: [(&str, &str); 2] =
    [("waiting", "commits wait for their parents"), ("transactions", "transactions do not end")];

/// What a `BRANCH INFO` says is not over yet.
pub fn unfinished(info: &Answer) -> Option<String> {
    let count = |name| number(info, name);
    let (name, what) = UNFINISHED.into_iter().find(|(name, _)| count(name) != Some(0))?;
    Some(format!("{:?} {what}", count(name)))
}

/// A figure of a map.
pub fn number(map: &Answer, name: &str) -> Option<u64> {
    let Answer::Array(items) = map else { return None };
    let pair = items.chunks(2).find(|pair| pair[0].text() == Some(name))?;
    match pair.get(1)? {
        Answer::Integer(number) => u64::try_from(*number).ok(),
        other => other.text()?.parse().ok(),
    }
}

/// Every key that anybody wrote.
pub fn written_keys(history: &History) -> BTreeSet<Key> {
    let commands = history.operations.iter().flat_map(|operation| &operation.commands);
    let writes = |command: &&Args| {
        matches!(command.first().map(|word| &word[..]), Some(b"SET" | b"INCRBY" | b"HSET" | b"SADD"))
    };
    commands.filter(writes).filter_map(|command| command.get(1)).map(|key| key.to_vec()).collect()
}

/// What every datacenter is asked about its leaves: each key at each of them, and where they forked.
pub fn questions(keys: &BTreeSet<Key>, leaves: &Answer, is_optimistic: bool) -> Vec<Args> {
    let get = |key: &Key| {
        let mut get = args("BRANCH GET");
        get.push(key.clone().into());
        if let Answer::Array(leaves) = leaves {
            get.extend(leaves.iter().filter_map(Answer::bytes).map(|id| id.to_vec().into()));
        }
        get
    };
    let mut commands: Vec<Args> = keys.iter().map(get).collect();
    // Who collects alone may say that where they forked is not kept, and count more as written.
    if !is_optimistic {
        commands.push(args("BRANCH FORKPOINTS"));
        commands.push(args("BRANCH CONFLICTS"));
    }
    commands
}

/// The first of these questions that was refused here, or answered otherwise than in another datacenter.
pub fn difference(commands: &[Args], here: &[Answer], elsewhere: &[Answer]) -> Option<String> {
    if here.len() != commands.len() || elsewhere.len() != commands.len() {
        return Some(format!("{} questions, {} and {} answers", commands.len(), here.len(), elsewhere.len()));
    }
    commands.iter().zip(here.iter().zip(elsewhere)).find_map(|(command, (here, there))| {
        let key = command.get(2).map(|key| key.to_vec()).unwrap_or_default();
        let is_refused = here.error().is_some();
        // Whether a deadline has come goes by each datacenter's own clock.
        if key.first() == Some(&b'e') && !is_refused {
            return None;
        }
        let sorted = |answer: &Answer| match answer {
            Answer::Array(values) if command.len() > 2 => {
                Answer::Array(values.iter().map(|value| in_order(&key, value)).collect())
            }
            other => other.clone(),
        };
        let asked: Vec<_> = command.iter().map(|word| String::from_utf8_lossy(word)).collect();
        (is_refused || sorted(here) != sorted(there))
            .then(|| format!("{}: {here} here, {there} elsewhere", asked.join(" ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Answer {
        Answer::Bulk(text.as_bytes().to_vec())
    }

    #[test]
    fn what_waits_or_does_not_end_is_unfinished() {
        let info = |waiting, transactions| {
            let figures = [("waiting", waiting), ("transactions", transactions)];
            let pair = |(name, number)| [bulk(name), Answer::Integer(number)];
            Answer::Array(figures.into_iter().flat_map(pair).collect())
        };
        assert_eq!(unfinished(&info(0, 0)), None);
        assert!(unfinished(&info(1, 0)).unwrap().contains("wait for their parents"));
        assert!(unfinished(&info(0, 2)).unwrap().contains("do not end"));
        assert!(unfinished(&Answer::Error("UNAVAILABLE".into())).is_some());
    }

    #[test]
    fn datacenters_that_tell_different_things_differ() {
        let commands = ["BRANCH GET s0 1.0", "BRANCH GET e0 1.0", "BRANCH CONFLICTS"].map(args);
        let told = |members: [&str; 2], deadline: &str, conflict: &str| {
            let members = Answer::Array(members.map(bulk).to_vec());
            vec![
                Answer::Array(vec![members]),
                Answer::Array(vec![bulk(deadline)]),
                Answer::Array(vec![bulk(conflict)]),
            ]
        };
        let first = told(["a", "b"], "v1", "r0");
        // Members of sets come in any order, and deadlines have their own time in each datacenter.
        assert_eq!(difference(&commands, &told(["b", "a"], "v2", "r0"), &first), None);
        assert!(difference(&commands, &told(["a", "c"], "v1", "r0"), &first).unwrap().contains("s0"));
        assert!(difference(&commands, &told(["a", "b"], "v1", "r1"), &first).unwrap().contains("CONFLICTS"));
        let mut refused = first.clone();
        refused[1] = Answer::Error("COLLECTED".into());
        assert!(difference(&commands, &refused, &refused).is_some());
        assert!(difference(&commands, &first[..2], &first).is_some());
    }
}
