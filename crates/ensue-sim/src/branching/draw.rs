//! What clients of branches do next: which transactions they begin, what they read and write, how they commit and
//! merge, what they ask about the states, and what nonsense they say.

use super::clients::Open;
use crate::random::Random;
use crate::resp::args;
use ensue_types::Args;

/// Kinds of steps outside of a transaction, with their usual weights.
const OUTSIDE: [(Outside, u64); 11] = [
    (Outside::Read, 15),
    (Outside::Write, 15),
    (Outside::Multi, 8),
    (Outside::Whole, 20),
    (Outside::Begin, 14),
    (Outside::Merge, 10),
    (Outside::Question, 14),
    (Outside::Checkout, 3),
    (Outside::Defaults, 2),
    (Outside::Log, 4),
    (Outside::Nonsense, 2),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    Read,
    Write,
    Multi,
    /// A transaction in one go.
    Whole,
    Begin,
    Merge,
    Question,
    Checkout,
    Defaults,
    Log,
    Nonsense,
}

const NONSENSE: [&str; 24] = [
    "BRANCH",
    "BRANCH FOO",
    "BRANCH BEGIN NOISE",
    "BRANCH BEGIN SERIALIZABILITY",
    "BRANCH BEGIN ANY AND",
    "BRANCH BEGIN STATE",
    "BRANCH BEGIN STATE 99999.0",
    "BRANCH BEGIN K-BRANCHING 0",
    "BRANCH MERGE STATE 0.0",
    "BRANCH MERGE NO-BRANCHING",
    "BRANCH COMMIT STATE x",
    "BRANCH COMMIT K-BRANCHING -1",
    "BRANCH GET",
    "BRANCH GET r0 99999.0",
    "BRANCH GET r0 1.0.0",
    "BRANCH LOG COUNT x",
    "BRANCH LOG COUNT 18446744073709551615 0.0",
    "BRANCH CHECKOUT",
    "BRANCH CHECKOUT 18446744073709551615.255.4294967295",
    "BRANCH DIFF 0.0",
    "BRANCH CEILING zz",
    "BRANCH FORKPOINTS 0.0 1.7",
    "BRANCH CONFLICTS nope",
    "BRANCH DEFAULTS END",
];

const BEGINS: [&str; 9] = [
    "ANCESTOR",
    "ANY",
    "ANY",
    "PARENT",
    "STATE @",
    "STATE @ @ OR ANY",
    "ANCESTOR AND NO-BRANCHING",
    "ANCESTOR AND K-BRANCHING 3",
    "NO-BRANCHING OR PARENT",
];

const ENDS: [&str; 12] = [
    "ANY",
    "READ-COMMITTED",
    "SERIALIZABILITY",
    "SNAPSHOT-ISOLATION",
    "SERIALIZABILITY AND NO-BRANCHING",
    "SERIALIZABILITY AND K-BRANCHING 3",
    "SNAPSHOT-ISOLATION AND K-BRANCHING 2",
    "NO-BRANCHING",
    "SERIALIZABILITY AND NO-BRANCHING OR SNAPSHOT-ISOLATION",
    "STATE @",
    "ANCESTOR",
    "SERIALIZABILITY AND SNAPSHOT-ISOLATION",
];

/// Draws the commands of one step.
pub struct Drawer<'a> {
    pub random: &'a mut Random,
    /// Ids that were seen lately, by anybody.
    pub ids: &'a [String],
    /// Keys of each class.
    pub keys: usize,
    pub ceiling_rate: u64,
    /// Whose step it is, and which one: what it writes is named after both.
    pub name: String,
    pub count: u32,
}

/// A step: what is said, and how the client stands afterwards if all goes well.
#[derive(Debug, Default)]
pub struct Draft {
    pub commands: Vec<Args>,
    pub leaves: bool,
}

impl Drawer<'_> {
    /// The commands of a step.
    pub fn step(&mut self, open: Option<&Open>) -> Draft {
        match open {
            Some(open) => self.inside(open),
            None => Draft { commands: self.outside(), leaves: false },
        }
    }

    fn value(&mut self) -> String {
        self.count += 1;
        format!("v{}-{}", self.name, self.count)
    }

    /// A write that nobody else does: it names its transaction.
    fn tag(&mut self) -> Args {
        let value = self.value();
        args(&format!("SET t{} {value}", &value[1..]))
    }

    fn id(&mut self) -> String {
        match self.ids.len() {
            0 => "0.0".to_owned(),
            length if self.random.chance(800) => {
                self.ids[length - 1 - self.random.index(length.min(12))].clone()
            }
            length => self.ids[self.random.index(length)].clone(),
        }
    }

    fn filled(&mut self, text: &str) -> String {
        let mut filled = String::new();
        for (at, part) in text.split('@').enumerate() {
            if at > 0 {
                filled += &self.id();
            }
            filled += part;
        }
        filled
    }

    fn key(&mut self, class: &str) -> String {
        format!("{class}{}", self.random.index(self.keys))
    }

    fn read(&mut self) -> Args {
        let text = match self.random.weighted(&[8, 3, 2, 2, 2, 1]) {
            0 => format!("GET {}", self.key("r")),
            1 => format!("GET {}", self.key("c")),
            2 => format!("MGET {} {} {}", self.key("r"), self.key("c"), self.key("d")),
            3 => format!("HGETALL {}", self.key("h")),
            4 => format!("SMEMBERS {}", self.key("s")),
            _ => format!("GET {}", self.key("e")),
        };
        args(&text)
    }

    fn write(&mut self) -> Args {
        let text = match self.random.weighted(&[8, 4, 3, 3, 2, 2, 1, 1]) {
            0 => format!("SET {} {}", self.key("r"), self.value()),
            1 => format!("INCRBY {} {}", self.key("c"), self.random.between(1, 9)),
            2 => format!("HSET {} f{} {}", self.key("h"), self.random.below(4), self.value()),
            3 => format!("SADD {} {}", self.key("s"), self.value()),
            4 => format!("SET {} {}", self.key("d"), self.value()),
            5 => format!("DEL {}", self.key("d")),
            6 => format!("SET {} {}", self.key("e"), self.value()),
            _ => format!("PEXPIRE {} {}", self.key("e"), self.random.between(1, 400)),
        };
        args(&text)
    }

    fn body(&mut self) -> Vec<Args> {
        let count = self.random.between(1, 4);
        (0..count).map(|_| if self.random.chance(500) { self.read() } else { self.write() }).collect()
    }

    fn begin(&mut self, usual: u64) -> Args {
        if self.random.chance(usual) {
            return args("BRANCH BEGIN");
        }
        let constraint = self.random.pick(&BEGINS);
        args(&format!("BRANCH BEGIN {}", self.filled(constraint)))
    }

    fn commit(&mut self) -> Args {
        if self.random.chance(400) {
            return args("BRANCH COMMIT");
        }
        let constraint = self.random.pick(&ENDS);
        args(&format!("BRANCH COMMIT {}", self.filled(constraint)))
    }

    /// What shows what has just become of it: where the session stands, or the newest states.
    fn look(&mut self, commands: &mut Vec<Args>) {
        if self.random.chance(750) {
            commands.push(args("BRANCH SESSION"));
        }
        if self.random.chance(600) {
            commands.push(args("BRANCH LOG COUNT 4"));
        }
    }

    fn outside(&mut self) -> Vec<Args> {
        if self.random.chance(self.ceiling_rate) {
            let named = if self.random.chance(400) { "BRANCH CEILING" } else { "BRANCH CEILING @" };
            return vec![args(&self.filled(named))];
        }
        let weights = OUTSIDE.map(|(_, weight)| weight);
        let mut commands = Vec::new();
        match OUTSIDE[self.random.weighted(&weights)].0 {
            Outside::Read => {
                commands.push(self.read());
                self.look(&mut commands);
            }
            Outside::Write => {
                commands.push(self.write());
                self.look(&mut commands);
            }
            Outside::Multi => {
                commands.push(args("MULTI"));
                commands.extend(self.body());
                if self.random.chance(800) {
                    commands.push(self.tag());
                }
                commands.push(args("EXEC"));
                self.look(&mut commands);
            }
            Outside::Whole => {
                commands.push(self.begin(600));
                commands.extend(self.body());
                if self.random.chance(800) {
                    commands.push(self.tag());
                }
                commands.push(self.commit());
                self.look(&mut commands);
            }
            Outside::Begin => commands.push(self.begin(500)),
            Outside::Merge => commands.push(self.merge()),
            Outside::Question => commands.push(self.question()),
            Outside::Checkout => {
                commands.push(args(&self.filled("BRANCH CHECKOUT @")));
                self.look(&mut commands);
            }
            Outside::Defaults => commands.push(self.defaults()),
            Outside::Log => commands.push(args("BRANCH LOG COUNT 0")),
            Outside::Nonsense => commands.push(args(self.random.pick(&NONSENSE))),
        }
        commands
    }

    fn merge(&mut self) -> Args {
        let text = self.random.pick(&["", "", "", "", " ANCESTOR", " STATE @ @", " STATE @ @ @"]);
        args(&format!("BRANCH MERGE{}", self.filled(text)))
    }

    fn defaults(&mut self) -> Args {
        let (begin, end) = (self.random.pick(&BEGINS[..3]), self.random.pick(&ENDS[..5]));
        let text = match self.random.below(3) {
            0 => format!("BRANCH DEFAULTS BEGIN {begin}"),
            1 => format!("BRANCH DEFAULTS END {end}"),
            _ => "BRANCH DEFAULTS BEGIN ANCESTOR END SERIALIZABILITY".to_owned(),
        };
        args(&text)
    }

    fn question(&mut self) -> Args {
        let key = self.random.pick(&["r", "c", "h", "s", "d"]);
        let key = self.key(key);
        let text = match self.random.below(11) {
            0 => "BRANCH LIST".to_owned(),
            1 => "BRANCH LOG COUNT 20".to_owned(),
            2 => "BRANCH LOG COUNT 10 @".to_owned(),
            3 => "BRANCH FORKPOINTS @ @".to_owned(),
            4 => "BRANCH FORKPOINTS @ @ @".to_owned(),
            5 => "BRANCH CONFLICTS @ @ @".to_owned(),
            6 => "BRANCH DIFF @ @".to_owned(),
            7 => format!("BRANCH GET {key} @ @"),
            8 => "BRANCH SESSION".to_owned(),
            9 => "BRANCH CONFLICTS @ @".to_owned(),
            _ => self.random.pick(&["BRANCH INFO", "BRANCH DIGEST", "BRANCH DIGEST LEAVES"]).to_owned(),
        };
        args(&self.filled(&text))
    }

    fn inside(&mut self, open: &Open) -> Draft {
        let mut draft = Draft::default();
        if open.is_merge && self.random.chance(500) {
            draft.commands = self.merging(open);
            if !draft.commands.is_empty() {
                return draft;
            }
        }
        match self.random.weighted(&[45, 35, 5, 8, 3, 2, 2]) {
            0 => draft.commands = self.body(),
            1 => {
                for (key, sum) in &open.sums {
                    draft.commands.push(args(&format!("SET {key} {sum}")));
                }
                // A merge of counters alone may be an equal one of somebody else's.
                let tagged = match open.is_merge {
                    false => 800,
                    true if open.has_written => 1000,
                    true if open.sums.is_empty() => 900,
                    true => 500,
                };
                if self.random.chance(tagged) {
                    let tag = self.tag();
                    draft.commands.push(tag);
                }
                let commit = self.commit();
                draft.commands.push(commit);
                self.look(&mut draft.commands);
            }
            2 => draft.commands.push(args("BRANCH ABORT")),
            3 => draft.commands.push(self.question()),
            4 => draft.leaves = true,
            5 => draft.commands.push(args(self.random.pick(&[
                "BRANCH BEGIN",
                "BRANCH MERGE",
                "BRANCH CHECKOUT 0.0",
            ]))),
            _ => draft.commands.push(args(self.random.pick(&NONSENSE))),
        }
        draft
    }

    /// What a merge asks: where its branches forked, what both have written, and the counters among these.
    fn merging(&mut self, open: &Open) -> Vec<Args> {
        let Some(points) = &open.fork_points else {
            return vec![args("BRANCH FORKPOINTS"), args("BRANCH CONFLICTS")];
        };
        let unknown = |key: &&String| !open.sums.iter().any(|(known, _)| known == *key);
        let Some(key) = open.counters.iter().find(unknown) else { return Vec::new() };
        let ids: Vec<&str> = points.iter().map(|(id, _)| id.as_str()).collect();
        vec![args(&format!("BRANCH GET {key}")), args(&format!("BRANCH GET {key} {}", ids.join(" ")))]
    }
}
