//! What a handler of conflicts must show before it is used: on random siblings, the same in every process.
//!
//! A handler is refused that fails on siblings it may meet, or that comes to two things in two interpreters: the
//! siblings are made small and told. What only surprises is a warning: readers never see what a handler makes of a
//! value that stands alone, and what it makes of equal values is for its writer to decide. Order and repetition are not
//! tried, because a handler is always given a sorted set. Whether a fold of folds is the fold of all is not, either:
//! all siblings are kept, and are folded anew when one comes.

use super::{HandledSibling, HandlerFailure, HandlerLimits, HandlerScript};
use bytes::Bytes;
use std::fmt;

/// Sets of siblings that are tried. The same for a text in every process: what one datacenter takes, each takes.
const SETS: usize = 400;
const SIBLINGS_MAX: u64 = 8;
/// Sets that are tried to make one smaller that a handler must not meet.
const TRIALS_MAX: usize = 2_000;
/// The same where the handler comes to its bounds: each trial may cost all that a call may take.
const COSTLY_TRIALS_MAX: usize = 50;
/// Words of the handler's own text that are tried as values.
const WORDS_MAX: usize = 64;
/// Bytes of a value that are told.
const TOLD_BYTES_MAX: usize = 48;

/// Why a handler is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerRefused {
    Compile(String),
    Fails { siblings: String, why: HandlerFailure },
    Differs { siblings: String, one: String, other: String },
}

impl fmt::Display for HandlerRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandlerRefused::Compile(words) => write!(f, "it does not compile: {words}"),
            HandlerRefused::Fails { siblings, why } => {
                write!(f, "it makes nothing of {siblings}: {why}; a handler makes something of all values")
            }
            HandlerRefused::Differs { siblings, one, other } => {
                write!(f, "it makes {one} of {siblings}, and {other} another time: datacenters would differ")
            }
        }
    }
}

impl std::error::Error for HandlerRefused {}

/// What a handler does that its writer may not have meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerWarning {
    /// It would change a value that stands alone; readers see that value as it was written.
    Alone { value: String, makes: String },
    /// It makes something else of a value that two datacenters wrote.
    Twice { value: String, makes: String },
}

impl fmt::Display for HandlerWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandlerWarning::Alone { value, makes } => write!(
                f,
                "it would make {makes} of {value} alone, which is never asked: a value without a conflict is shown as \
                 it was written"
            ),
            HandlerWarning::Twice { value, makes } => {
                write!(f, "where two datacenters write {value} at once, it makes {makes}")
            }
        }
    }
}

type Made = Result<Option<Bytes>, HandlerFailure>;

impl HandlerScript {
    /// Compiles a text, and refuses it if it is no handler.
    pub fn proved(
        text: &[u8],
        limits: HandlerLimits,
    ) -> Result<(HandlerScript, Vec<HandlerWarning>), HandlerRefused> {
        let handler = HandlerScript::compile(text, limits).map_err(HandlerRefused::Compile)?;
        let mut draw = Draw::new(text);
        let (mut alone, mut twice) = (None, None);
        for _ in 0..SETS {
            let siblings = draw.siblings();
            if let Some(refused) = handler.refusal(&siblings) {
                let smaller = handler.smaller(siblings, &refused);
                return Err(handler.refusal(&smaller).unwrap_or(refused));
            }
            let value = siblings.iter().find_map(|sibling| sibling.value.clone()).unwrap_or_default();
            let makes = |times: usize| {
                let same: Vec<HandledSibling> =
                    (0..times).map(|at| sibling(at, Some(value.clone()))).collect();
                let made = handler.fold(&same);
                (made != Ok(Some(value.clone()))).then(|| (told(&value), shown(&made)))
            };
            alone = alone.or_else(|| makes(1));
            twice = twice.or_else(|| makes(2));
        }
        let alone = alone.map(|(value, makes)| HandlerWarning::Alone { value, makes });
        let twice = twice.map(|(value, makes)| HandlerWarning::Twice { value, makes });
        Ok((handler, alone.into_iter().chain(twice).collect()))
    }

    /// Why this set refutes the handler, if it does.
    fn refusal(&self, siblings: &[HandledSibling]) -> Option<HandlerRefused> {
        let one = self.fold(siblings);
        if let Err(why) = one {
            return Some(HandlerRefused::Fails { siblings: all_told(siblings), why });
        }
        let other = self.fold_anew(siblings);
        (one != other).then(|| HandlerRefused::Differs {
            siblings: all_told(siblings),
            one: shown(&one),
            other: shown(&other),
        })
    }

    /// A smaller set that refutes the handler, too.
    fn smaller(&self, mut siblings: Vec<HandledSibling>, refused: &HandlerRefused) -> Vec<HandledSibling> {
        let mut trials = match refused {
            HandlerRefused::Fails { why: HandlerFailure::Steps | HandlerFailure::Memory, .. } => {
                COSTLY_TRIALS_MAX
            }
            _ => TRIALS_MAX,
        };
        loop {
            let candidates = steps_down(&siblings).into_iter().take(trials);
            let Some(smaller) = candidates.inspect(|_| trials -= 1).find(|one| self.refusal(one).is_some())
            else {
                return siblings;
            };
            siblings = smaller;
        }
    }
}

/// The sets that are one step smaller: without a sibling, or with half of a value.
fn steps_down(siblings: &[HandledSibling]) -> Vec<Vec<HandledSibling>> {
    let mut all = Vec::new();
    let without = |at: usize| {
        let mut fewer = siblings.to_vec();
        fewer.remove(at);
        fewer
    };
    if siblings.len() > 2 {
        all.extend((0..siblings.len()).map(without));
    }
    for at in 0..siblings.len() {
        let Some(value) = siblings[at].value.as_ref().filter(|value| !value.is_empty()) else { continue };
        let half = value.len() / 2;
        for part in [value.slice(..half), value.slice(half..), value.slice(..value.len() - 1)] {
            if part.len() < value.len() {
                let mut shorter = siblings.to_vec();
                shorter[at].value = Some(part);
                all.push(shorter);
            }
        }
    }
    let has_value = |set: &Vec<HandledSibling>| set.iter().any(|sibling| sibling.value.is_some());
    all.retain(has_value);
    all
}

/// The sibling at this place, as a datacenter of its own wrote it.
fn sibling(at: usize, value: Option<Bytes>) -> HandledSibling {
    let datacenter = at as u32 + 1;
    HandledSibling { value, stamp: format!("{:020}-{datacenter:03}-{:05}", at + 1, 0), datacenter }
}

fn all_told(siblings: &[HandledSibling]) -> String {
    let one = |sibling: &HandledSibling| sibling.value.as_ref().map_or("nil".to_owned(), |value| told(value));
    let all: Vec<String> = siblings.iter().map(one).collect();
    format!("{{{}}}", all.join(", "))
}

fn told(value: &[u8]) -> String {
    let begin = value[..value.len().min(TOLD_BYTES_MAX)].escape_ascii();
    let more = if value.len() > TOLD_BYTES_MAX { "..." } else { "" };
    format!("\"{begin}\"{more}")
}

fn shown(made: &Made) -> String {
    match made {
        Ok(Some(value)) => told(value),
        Ok(None) => "nil".to_owned(),
        Err(why) => format!("an error ({why})"),
    }
}

/// Random siblings. The seed is a constant.
struct Draw {
    state: u64,
    /// Texts that a handler may know.
    words: Vec<Vec<u8>>,
}

impl Draw {
    fn new(text: &[u8]) -> Draw {
        let known = ["a", "b", "milk", "tea", "true", "null", "x-1", "\u{e4}"];
        let mut words: Vec<Vec<u8>> = known.iter().map(|word| word.as_bytes().to_vec()).collect();
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let own = text.split(|&byte| !is_word(byte)).filter(|word| !word.is_empty());
        own.for_each(|word| {
            if words.len() < WORDS_MAX && !words.iter().any(|known| known == word) {
                words.push(word.to_vec());
            }
        });
        Draw { state: 0, words }
    }

    /// The generator is SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Two siblings or more, one of which has a value: of others no handler is asked.
    fn siblings(&mut self) -> Vec<HandledSibling> {
        let count = 2 + self.below(SIBLINGS_MAX - 1).min(self.below(SIBLINGS_MAX - 1));
        let mut values: Vec<Option<Bytes>> = Vec::new();
        for _ in 0..count {
            let value = match self.below(8) {
                0 => None,
                1 if !values.is_empty() => values[self.below(values.len() as u64) as usize].clone(),
                _ => Some(self.value()),
            };
            values.push(value);
        }
        if values.iter().all(Option::is_none) {
            values[0] = Some(self.value());
        }
        let first = self.below(SIBLINGS_MAX);
        let siblings = values.into_iter().enumerate().map(|(at, value)| HandledSibling {
            datacenter: ((at as u64 + first) % SIBLINGS_MAX) as u32 + 1,
            ..sibling(at, value)
        });
        siblings.collect()
    }

    fn value(&mut self) -> Bytes {
        let text = match self.below(12) {
            0 => Vec::new(),
            1 | 2 => self.number(),
            3 | 4 => self.word(),
            5 | 6 => self.several(b","),
            7 => self.several(b"\n"),
            8 => self.json(2),
            9 => self.broken_json(),
            10 => {
                let length = self.below(32);
                (0..length).map(|_| self.next() as u8).collect()
            }
            _ => self.long(),
        };
        Bytes::from(text)
    }

    fn number(&mut self) -> Vec<u8> {
        let whole = self.below(1_000);
        let text = match self.below(8) {
            0 => format!("-{whole}"),
            1 => format!("{whole}.{}", self.below(1_000)),
            2 => format!("{whole}e{}", self.below(400)),
            3 => format!(" {whole} "),
            4 => format!("{}", self.next()),
            5 => ["inf", "nan", "-0", "0x1F", "1_000"][self.below(5) as usize].to_owned(),
            _ => whole.to_string(),
        };
        text.into_bytes()
    }

    fn word(&mut self) -> Vec<u8> {
        let at = self.below(self.words.len() as u64) as usize;
        self.words[at].clone()
    }

    fn several(&mut self, separator: &[u8]) -> Vec<u8> {
        let count = self.below(6);
        let all: Vec<Vec<u8>> =
            (0..count).map(|_| if self.below(3) == 0 { self.number() } else { self.word() }).collect();
        all.join(separator)
    }

    fn json(&mut self, depth: u64) -> Vec<u8> {
        let quoted = |text: Vec<u8>| [b"\"", &text[..], b"\""].concat();
        let count = self.below(4);
        match self.below(if depth == 0 { 3 } else { 5 }) {
            0 => quoted(self.word()),
            1 => self.below(1_000).to_string().into_bytes(),
            2 => ["true", "false", "null", "-1.5"][self.below(4) as usize].as_bytes().to_vec(),
            3 => {
                let all: Vec<Vec<u8>> = (0..count).map(|_| self.json(depth - 1)).collect();
                [&b"["[..], &all.join(&b','), &b"]"[..]].concat()
            }
            _ => {
                let member = |draw: &mut Draw| [quoted(draw.word()), draw.json(depth - 1)].join(&b':');
                let all: Vec<Vec<u8>> = (0..count).map(|_| member(self)).collect();
                [&b"{"[..], &all.join(&b','), &b"}"[..]].concat()
            }
        }
    }

    fn broken_json(&mut self) -> Vec<u8> {
        let whole = self.json(2);
        let length = self.below(whole.len() as u64) as usize;
        whole[..length].to_vec()
    }

    /// Mostly some kilobytes, and one in some dozens as long as a document.
    fn long(&mut self) -> Vec<u8> {
        let length = if self.below(16) == 0 { 64 << 10 } else { self.below(4 << 10) };
        let separator = [&b","[..], b"\n", b" ", b""][self.below(4) as usize];
        let mut text = Vec::new();
        while (text.len() as u64) < length {
            text.extend(self.word());
            text.extend(separator);
        }
        text
    }
}
