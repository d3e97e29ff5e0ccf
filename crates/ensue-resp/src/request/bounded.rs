//! Commands on bounded counters: numbers that pass neither of their bounds in any datacenter.
//!
//! Arguments of the right number arrive, a request leaves. Whether there are rights left to move the value is the
//! evaluator's question, and so is which datacenter a name is of.

use super::{integer, is_word};
use crate::CommandError;
use bytes::Bytes;
use ensue_types::escrow::ESCROW_MAX;
use ensue_types::{DatacenterId, Side};

/// What the owner of a bounded counter evaluates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bounded {
    /// `BCREATE`: 1 if it was made, 0 if a counter was there.
    Create { key: Bytes, initial: i64, lower: Option<i64>, upper: Option<i64> },
    /// `BINCRBY` and `BDECRBY`: the new value.
    Change { key: Bytes, amount: i128 },
    /// `BGET`: the value, and with `RIGHTS` all that is known of the counter.
    Get { key: Bytes, rights: bool },
    /// `BMOVE`: the rights that are left here.
    Move { key: Bytes, to: Bytes, amount: i64, side: Option<Side> },
    /// What a datacenter does by itself: gives rights to those of these that have few, or all to the one where the
    /// key has its home. No command does that.
    Balance { key: Bytes, others: Vec<DatacenterId>, home: Option<DatacenterId> },
}

impl Bounded {
    pub(super) fn is_write(&self) -> bool {
        !matches!(self, Bounded::Get { .. })
    }

    pub(super) fn key(&self) -> &Bytes {
        match self {
            Bounded::Create { key, .. } | Bounded::Change { key, .. } | Bounded::Get { key, .. } => key,
            Bounded::Move { key, .. } | Bounded::Balance { key, .. } => key,
        }
    }
}

pub(super) fn parse(name: &'static str, args: &[Bytes]) -> Result<Option<Bounded>, CommandError> {
    let key = args[1].clone();
    Ok(Some(match name {
        "bcreate" => create(key, &args[2], &args[3..])?,
        "bincrby" => Bounded::Change { key, amount: integer(&args[2])?.into() },
        "bdecrby" => Bounded::Change { key, amount: -i128::from(integer(&args[2])?) },
        "bget" => match &args[2..] {
            [] => Bounded::Get { key, rights: false },
            [word] if is_word(word, "RIGHTS") => Bounded::Get { key, rights: true },
            _ => return Err(CommandError::Syntax),
        },
        "bmove" => {
            let side = match &args[4..] {
                [] => None,
                [word] if is_word(word, "DOWN") => Some(Side::Down),
                [word] if is_word(word, "UP") => Some(Side::Up),
                _ => return Err(CommandError::Syntax),
            };
            let amount = integer(&args[3])?;
            if amount <= 0 {
                return Err(CommandError::Argument("amount must be positive"));
            }
            Bounded::Move { key, to: args[2].clone(), amount, side }
        }
        _ => return Ok(None),
    }))
}

/// The initial value, and `MIN` and `MAX`.
fn create(key: Bytes, initial: &Bytes, options: &[Bytes]) -> Result<Bounded, CommandError> {
    let within = |argument: &Bytes| match integer(argument)? {
        number if (-ESCROW_MAX..=ESCROW_MAX).contains(&number) => Ok(number),
        _ => Err(CommandError::Argument("initial value and bounds must be between -2^62 and 2^62")),
    };
    let (mut lower, mut upper) = (None, None);
    for option in options.chunks(2) {
        let [word, bound] = option else { return Err(CommandError::Syntax) };
        let place = match word {
            word if is_word(word, "MIN") => &mut lower,
            word if is_word(word, "MAX") => &mut upper,
            _ => return Err(CommandError::Syntax),
        };
        if place.replace(within(bound)?).is_some() {
            return Err(CommandError::Syntax);
        }
    }
    let initial = within(initial)?;
    if lower.is_some_and(|lower| initial < lower) || upper.is_some_and(|upper| initial > upper) {
        return Err(CommandError::Argument("the initial value is not within the bounds"));
    }
    Ok(Bounded::Create { key, initial, lower, upper })
}
