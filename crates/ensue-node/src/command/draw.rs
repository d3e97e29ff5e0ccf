//! Elements drawn by chance: what `SRANDMEMBER` and `ZRANDMEMBER` answer.
//!
//! All elements arrive, and how many are asked for; those that are drawn leave. The draws of an evaluation differ from
//! each other, and are the same whenever it is evaluated again.

use crate::command::walk::chance;
use crate::evaluate::{ANSWER_TOO_LONG, Evaluation, Halt};
use ensue_types::{Reply, limits};

/// What was drawn.
pub(super) enum Drawn<T> {
    /// Where no number was asked for.
    One(Option<T>),
    Several(Vec<T>),
}

/// Without a count one of them; with one so many different ones, or if it is negative so many that may be the same.
pub(super) fn some_of<T: Clone>(
    evaluation: &mut Evaluation<'_>,
    mut all: Vec<T>,
    count: Option<i64>,
) -> Result<Drawn<T>, Halt> {
    // Commands of one transaction draw each for itself.
    evaluation.seed = evaluation.seed.wrapping_add(1);
    let draw =
        |number: usize, among: usize| (chance(evaluation, number as u64) % among.max(1) as u64) as usize;
    let Some(count) = count else { return Ok(Drawn::One(all.get(draw(0, all.len())).cloned())) };
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if count >= 0 {
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
    // Counted before it is made: the client chooses the number.
    if wanted > limits::ANSWER_BYTES_MAX / DRAWN_BYTES {
        return Err(Halt::Error(ANSWER_TOO_LONG));
    }
    Ok(Drawn::Several((0..wanted).map(|number| all[draw(number, all.len())].clone()).collect()))
}

/// What an element of an answer takes in memory at the least.
const DRAWN_BYTES: usize = size_of::<Reply>();
