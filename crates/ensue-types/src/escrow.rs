//! Bounded counters by escrow: a value that passes neither bound in any datacenter, though each changes it alone.
//!
//! A bound is cut into *rights*: one right to lower the value by one for each unit above the lower bound, one right to
//! raise it for each unit below the upper one. At first all are of the datacenter that made the counter. A datacenter
//! spends only rights of its own; what it adds makes as many rights to take, and the other way round; and it may give
//! rights to another one. After Balegas and others, "Extending Eventually Consistent Cloud Databases for Enforcing
//! Numeric Invariants", 2015.
//!
//! Each datacenter has a [`Ledger`], a row for itself in which every figure only grows and which nobody else writes:
//! what it has added, what it has taken, what it has given to whom. Where the paper replicates that row, a share here
//! holds the rows of all datacenters, as its writer knew them. Merging takes the higher figure of each two, so of any
//! shares, in any order, however often, the result is the same; and since a share carries whatever justified what its
//! writer spent, **every** set of shares shows a value within the bounds, also where shares of different datacenters
//! arrive in no order.
//!
//! ```text
//! name of a counter:  time u64, big endian | datacenter u8         its incarnation; the later one is shown
//! name of a share:    name of its counter | datacenter u8          who writes it
//! terms:   datacenter u8 | initial i64 | has u8: 1 lower, 2 upper | lower i64 | upper i64
//! share:   for each ledger: datacenter u8 | added | taken | gifts u8 | for each: to u8 | down | up      (LEB128)
//! ```

use crate::{DatacenterId, Rule, Stamp};
use bytes::{Buf, BufMut, Bytes};
use std::collections::BTreeMap;

/// Bytes of the name of a counter; that of a share has one more.
const NAME_BYTES: usize = 9;
/// No initial value and no bound is beyond this, to either side.
pub const ESCROW_MAX: i64 = 1 << 62;
/// How much further one datacenter may move a value on a side without a bound than it has moved it back: sixteen of
/// them, and the initial value, are within 64 bits.
const DRIFT_MAX: u128 = 1 << 57;

/// No figure is as high: sums of them are far from the end of their range.
const FIGURE_END: u128 = 1 << 96;

/// The column of a counter, by the write that makes it.
pub fn counter_name(stamp: Stamp) -> Bytes {
    let mut name = Vec::with_capacity(NAME_BYTES);
    name.put_u64(stamp.time.0);
    name.put_u8(stamp.datacenter.0);
    name.into()
}

/// The column of a datacenter's share of a counter.
pub fn share_name(counter: &[u8], datacenter: DatacenterId) -> Bytes {
    [counter, &[datacenter.0]].concat().into()
}

/// The counter and the datacenter that a share is of; nothing of what is a counter itself.
pub fn share_of(name: &[u8]) -> Option<(&[u8], DatacenterId)> {
    let (counter, datacenter) = name.split_at_checked(NAME_BYTES)?;
    Some((counter, DatacenterId(*datacenter.first()?)))
}

/// A direction in which a value moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Towards the lower bound.
    Down,
    /// Towards the upper one.
    Up,
}

impl Side {
    pub const BOTH: [Side; 2] = [Side::Down, Side::Up];
}

/// What is fixed when a counter is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Who has all rights at first.
    pub maker: DatacenterId,
    pub initial: i64,
    pub lower: Option<i64>,
    pub upper: Option<i64>,
}

impl Terms {
    pub fn to_bytes(self) -> Bytes {
        let mut bytes = Vec::with_capacity(2 + 3 * size_of::<i64>());
        bytes.put_u8(self.maker.0);
        bytes.put_i64_le(self.initial);
        bytes.put_u8(u8::from(self.lower.is_some()) | u8::from(self.upper.is_some()) << 1);
        bytes.put_i64_le(self.lower.unwrap_or_default());
        bytes.put_i64_le(self.upper.unwrap_or_default());
        bytes.into()
    }

    pub fn of_bytes(mut bytes: &[u8]) -> Option<Terms> {
        let maker = DatacenterId(bytes.try_get_u8().ok()?);
        let initial = bytes.try_get_i64_le().ok()?;
        let has = bytes.try_get_u8().ok()?;
        let lower = bytes.try_get_i64_le().ok()?;
        let upper = bytes.try_get_i64_le().ok()?;
        let bound = |bit: u8, bound| (has & bit != 0).then_some(bound);
        Some(Terms { maker, initial, lower: bound(1, lower), upper: bound(2, upper) })
    }

    /// How far the initial value is from a bound.
    fn room(&self, side: Side) -> Option<i128> {
        let initial = i128::from(self.initial);
        match side {
            Side::Down => self.lower.map(|lower| initial - i128::from(lower)),
            Side::Up => self.upper.map(|upper| i128::from(upper) - initial),
        }
    }
}

/// What one datacenter has done. Every figure only grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ledger {
    added: u128,
    taken: u128,
    /// Rights given to each other datacenter: to lower the value, and to raise it.
    given: BTreeMap<DatacenterId, [u128; 2]>,
}

impl Ledger {
    fn join(&mut self, other: &Ledger) {
        self.added = self.added.max(other.added);
        self.taken = self.taken.max(other.taken);
        for (to, theirs) in &other.given {
            let ours = self.given.entry(*to).or_default();
            *ours = [ours[0].max(theirs[0]), ours[1].max(theirs[1])];
        }
    }

    fn given_to(&self, to: DatacenterId, side: Side) -> u128 {
        self.given.get(&to).map_or(0, |given| given[side as usize])
    }

    fn given(&self, side: Side) -> u128 {
        self.given.values().map(|given| given[side as usize]).sum()
    }

    /// How far it has moved the value to a side, what it has moved back not counted.
    fn moved(&self, side: Side) -> u128 {
        match side {
            Side::Down => self.taken,
            Side::Up => self.added,
        }
    }
}

/// Why a change is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// So many rights are here.
    Spent(Side, i128),
    /// Without a bound on that side, one datacenter may only move the value so far.
    TooFar,
}

/// Rights that one datacenter gives to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gift {
    pub to: DatacenterId,
    pub side: Side,
    pub amount: u64,
}

/// A counter as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Escrow {
    pub terms: Terms,
    ledgers: BTreeMap<DatacenterId, Ledger>,
}

impl Escrow {
    pub fn new(terms: Terms) -> Escrow {
        Escrow { terms, ledgers: BTreeMap::new() }
    }

    /// Joins what a share knows. What cannot be read is left: shares are written by `share` alone.
    pub fn join(&mut self, mut share: &[u8]) {
        while let Some((datacenter, ledger)) = read_ledger(&mut share) {
            self.ledgers.entry(datacenter).or_default().join(&ledger);
        }
    }

    /// All that is known, as a share says it.
    pub fn share(&self) -> Bytes {
        let mut bytes = Vec::new();
        for (datacenter, ledger) in &self.ledgers {
            bytes.put_u8(datacenter.0);
            put_number(&mut bytes, ledger.added);
            put_number(&mut bytes, ledger.taken);
            bytes.put_u8(ledger.given.len() as u8);
            for (to, given) in &ledger.given {
                bytes.put_u8(to.0);
                given.iter().for_each(|figure| put_number(&mut bytes, *figure));
            }
        }
        bytes.into()
    }

    pub fn value(&self) -> i64 {
        let moved = |ledger: &Ledger| ledger.added as i128 - ledger.taken as i128;
        let value = i128::from(self.terms.initial) + self.ledgers.values().map(moved).sum::<i128>();
        // The bounds, and what one datacenter may do without one, keep it within.
        i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
    }

    /// The rights of a datacenter; nothing where the side has no bound.
    pub fn rights(&self, of: DatacenterId, side: Side) -> Option<i128> {
        let room = self.terms.room(side)?;
        let at_first = if of == self.terms.maker { room } else { 0 };
        let received: u128 = self.ledgers.values().map(|ledger| ledger.given_to(of, side)).sum();
        let received = if Rule::RightsCountOnce.holds() { received } else { 2 * received };
        let of_own = self.ledgers.get(&of).map_or(0, |own| {
            let other = if side == Side::Down { Side::Up } else { Side::Down };
            own.moved(other) as i128 - own.moved(side) as i128 - own.given(side) as i128
        });
        Some(at_first + received as i128 + of_own)
    }

    /// Changes the value on behalf of a datacenter, or says why not.
    pub fn change(&mut self, own: DatacenterId, amount: i128) -> Result<(), Refused> {
        let side = if amount < 0 { Side::Down } else { Side::Up };
        match self.rights(own, side) {
            Some(rights) if rights.unsigned_abs() < amount.unsigned_abs() || rights < 0 => {
                if Rule::RightsAreChecked.holds() {
                    return Err(Refused::Spent(side, rights.max(0)));
                }
            }
            Some(_) => {}
            None => {
                let other = if side == Side::Down { Side::Up } else { Side::Down };
                let own = self.ledgers.get(&own).cloned().unwrap_or_default();
                let drift = own.moved(side).saturating_sub(own.moved(other)) + amount.unsigned_abs();
                if drift > DRIFT_MAX {
                    return Err(Refused::TooFar);
                }
            }
        }
        let ledger = self.ledgers.entry(own).or_default();
        match side {
            Side::Down => ledger.taken += amount.unsigned_abs(),
            Side::Up => ledger.added += amount.unsigned_abs(),
        }
        Ok(())
    }

    /// Gives rights of one datacenter to another one.
    pub fn give(&mut self, own: DatacenterId, gift: Gift) -> Result<(), Refused> {
        let rights = self.rights(own, gift.side).unwrap_or(0);
        if rights < i128::from(gift.amount) {
            return Err(Refused::Spent(gift.side, rights.max(0)));
        }
        let given = self.ledgers.entry(own).or_default().given.entry(gift.to).or_default();
        given[gift.side as usize] += u128::from(gift.amount);
        Ok(())
    }

    /// What a datacenter gives of its own accord: to each of these others that has less than half as much as itself,
    /// its part of the difference. Two that give at the same time do not make a third one the richest by that, and
    /// whoever has one right keeps it, so that none wanders to and fro.
    pub fn gifts(&self, own: DatacenterId, others: &[DatacenterId]) -> Vec<Gift> {
        let mut gifts = Vec::new();
        let sharers = 1 + others.len() as i128;
        for side in Side::BOTH {
            let Some(mut ours) = self.rights(own, side) else { continue };
            let theirs = |to: DatacenterId| self.rights(to, side).unwrap_or_default().max(0);
            let mut poorest: Vec<DatacenterId> = others.to_vec();
            poorest.sort_by_key(|to| theirs(*to));
            for to in poorest {
                let has = theirs(to);
                if ours < 2 || 2 * has >= ours {
                    break;
                }
                let amount = ((ours - has) / sharers).max(1);
                ours -= amount;
                gifts.push(Gift { to, side, amount: u64::try_from(amount).unwrap_or(u64::MAX) });
            }
        }
        gifts
    }

    /// All rights of a datacenter, for the one where the counter alone is changed.
    pub fn all_to(&self, own: DatacenterId, to: DatacenterId) -> Vec<Gift> {
        let gift = |side| {
            let rights = self.rights(own, side).filter(|rights| *rights > 0)?;
            Some(Gift { to, side, amount: u64::try_from(rights).unwrap_or(u64::MAX) })
        };
        Side::BOTH.into_iter().filter_map(gift).collect()
    }
}

fn read_ledger(bytes: &mut &[u8]) -> Option<(DatacenterId, Ledger)> {
    let datacenter = DatacenterId(bytes.try_get_u8().ok()?);
    let (added, taken) = (number(bytes)?, number(bytes)?);
    let mut ledger = Ledger { added, taken, given: BTreeMap::new() };
    for _ in 0..bytes.try_get_u8().ok()? {
        let to = DatacenterId(bytes.try_get_u8().ok()?);
        ledger.given.insert(to, [number(bytes)?, number(bytes)?]);
    }
    Some((datacenter, ledger))
}

fn put_number(bytes: &mut Vec<u8>, mut number: u128) {
    while number > 0x7f {
        bytes.put_u8(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.put_u8(number as u8);
}

fn number(bytes: &mut &[u8]) -> Option<u128> {
    let mut number = 0;
    for shift in (0..u128::BITS).step_by(7) {
        let byte = bytes.try_get_u8().ok()?;
        number |= u128::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number).filter(|number| *number < FIGURE_END);
        }
    }
    None
}

#[cfg(test)]
mod tests;
