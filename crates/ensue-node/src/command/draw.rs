//! Elements drawn by chance: what `SRANDMEMBER`, `HRANDFIELD`, `ZRANDMEMBER` and `SPOP` answer.
//!
//! A key arrives, and how many of its elements are asked for; those that are drawn leave. Of a large row the evaluation
//! draws them by their places (`evaluate/drawn.rs`), of another one all are looked at. The draws of an evaluation
//! differ from each other, and are the same whenever it is evaluated again.

use crate::command::walk::chance;
use crate::evaluate::{ANSWER_TOO_LONG, Draw, Evaluation, Halt};
use ensue_store::cell::Content;
use ensue_store::row::Kind;
use ensue_types::{Column, Reply, limits};

type Element = (Column, Content);

/// What was drawn.
pub(super) enum Drawn {
    /// Where no number was asked for.
    One(Option<Element>),
    Several(Vec<Element>),
}

/// Without a count one of them; with one so many different ones, or if it is negative so many that may be the same.
pub(super) fn some_of(
    evaluation: &mut Evaluation<'_>,
    key: &[u8],
    kind: Kind,
    count: Option<i64>,
) -> Result<Drawn, Halt> {
    // Commands of one transaction draw each for itself.
    evaluation.seed = evaluation.seed.wrapping_add(1);
    let wanted = count.map_or(1, |count| usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX));
    let different = count.is_none_or(|count| count >= 0);
    // Counted before it is made: the client chooses the number.
    let fits = different || wanted <= limits::ANSWER_BYTES_MAX / DRAWN_BYTES;
    if fits {
        if let Some(drawn) = evaluation.drawn(key, kind, Draw { count: wanted, different })? {
            return Ok(match count {
                None => Drawn::One(drawn.into_iter().next()),
                Some(_) => Drawn::Several(drawn),
            });
        }
    }
    let mut all = evaluation.columns(key, kind)?;
    let seed = evaluation.seed;
    let draw = |number: usize, among: usize| (chance(seed, number as u64) % among.max(1) as u64) as usize;
    if count.is_none() {
        return Ok(Drawn::One(all.get(draw(0, all.len())).cloned()));
    }
    if different {
        // The beginning of a random order.
        let wanted = wanted.min(all.len());
        for place in 0..wanted {
            let other = place + draw(place, all.len() - place);
            all.swap(place, other);
        }
        all.truncate(wanted);
        return Ok(Drawn::Several(all));
    }
    if all.is_empty() {
        return Ok(Drawn::Several(Vec::new()));
    }
    if !fits {
        return Err(Halt::Error(ANSWER_TOO_LONG));
    }
    Ok(Drawn::Several((0..wanted).map(|number| all[draw(number, all.len())].clone()).collect()))
}

/// What an element of an answer takes in memory at the least.
const DRAWN_BYTES: usize = size_of::<Reply>();
