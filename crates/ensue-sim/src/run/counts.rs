//! Which keys there are, in three ways that must agree when no key goes any more: `DBSIZE`, `KEYS *`, and a `SCAN` from
//! its first cursor to its last.
//!
//! All this is asked when everything else was, so that the hashes of a run do not tell of it.

use super::Run;
use super::settle::LOOK_AGAIN_US;
use crate::oracle::{Violation, property};
use crate::resp::{Answer, args};
use crate::workload::clients::Clients;
use ensue_types::DatacenterId;

/// So many answers of a `SCAN` are enough for all keys of a run.
const SCANS_MAX: usize = 1_000;
/// Keys whose deadlines have passed are no longer counted so long after everything has come to rest.
const COUNTED_US_MAX: u64 = 20_000_000;

/// What a datacenter says of its keys.
#[derive(Debug, Default)]
struct Counts {
    size: i64,
    /// Before and after they were counted.
    keys: [Vec<String>; 2],
    scanned: Vec<String>,
    is_scanned: bool,
}

impl Run {
    /// Asks every datacenter until its answers agree.
    pub(super) fn count_keys(&mut self, clients: &mut dyn Clients) -> Result<(), Violation> {
        let deadline = self.world.now() + COUNTED_US_MAX;
        for datacenter in self.world.survivors() {
            loop {
                let counts = self.counts(clients, datacenter)?;
                if counts.agree() {
                    break;
                }
                if self.world.now() > deadline {
                    let words = format!("{datacenter} does not agree with itself: {counts:?}");
                    return Err(Violation::new(property::COUNTED, words));
                }
                self.idle(clients, LOOK_AGAIN_US)?;
            }
        }
        Ok(())
    }

    fn counts(&mut self, clients: &mut dyn Clients, datacenter: DatacenterId) -> Result<Counts, Violation> {
        let mut counts = Counts::default();
        let mut cursor = "0".to_owned();
        let before = self.ask(clients, datacenter, vec![args("KEYS *")])??;
        for _ in 0..SCANS_MAX {
            let scan = args(&format!("SCAN {cursor}"));
            let answers = self.ask(clients, datacenter, vec![scan])??;
            let Answer::Array(parts) = &answers[0] else { break };
            let [next, found] = &parts[..] else { break };
            counts.scanned.extend(names(found));
            cursor = next.text().unwrap_or_default().to_owned();
            counts.is_scanned = cursor == "0";
            if counts.is_scanned {
                break;
            }
        }
        counts.scanned.sort();
        let after = self.ask(clients, datacenter, ["DBSIZE", "KEYS *"].map(args).to_vec())??;
        counts.size = if let Answer::Integer(size) = after[0] { size } else { -1 };
        counts.keys = [names(&before[0]), names(&after[1])];
        Ok(counts)
    }
}

impl Counts {
    fn agree(&self) -> bool {
        let [before, after] = &self.keys;
        before == after
            && usize::try_from(self.size) == Ok(after.len())
            && self.is_scanned
            && self.scanned == *after
    }
}

fn names(answer: &Answer) -> Vec<String> {
    let Answer::Array(keys) = answer else { return Vec::new() };
    let name = |key: &Answer| String::from_utf8_lossy(key.bytes().unwrap_or_default()).into_owned();
    let mut names: Vec<String> = keys.iter().map(name).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn all_three_agree_only_where_each_key_is_counted_once() {
        let names = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let counts = |size, before, after, scanned| Counts {
            size,
            keys: [names(before), names(after)],
            scanned: names(scanned),
            is_scanned: true,
        };
        assert!(counts(2, "a b", "a b", "a b").agree());
        for wrong in [
            counts(3, "a b", "a b", "a b"),
            counts(-1, "a b", "a b", "a b"),
            counts(2, "a b c", "a b", "a b"),
            counts(2, "a b", "a b", "a"),
            counts(2, "a b", "a b", "a a b"),
            Counts { is_scanned: false, ..counts(2, "a b", "a b", "a b") },
        ] {
            assert!(!wrong.agree(), "{wrong:?}");
        }
    }
}
