//! Commands on bounded counters.
//!
//! A request arrives, an answer leaves. A datacenter changes a counter by rights of its own alone (`ensue_types`
//! `escrow`), so every answer is exact in it, and no bound is passed anywhere. A session that does not see what its
//! datacenter has done (of `ha-pocc`, after it fell back) is refused.

use crate::evaluate::{Evaluation, Halt, Held, effect_bytes};
use bytes::Bytes;
use ensue_resp::CommandError;
use ensue_resp::request::Bounded;
use ensue_types::escrow::{counter_name, share_name};
use ensue_types::{Column, DatacenterId, Gift, Refused, Reply, Side, Stamp, Terms, limits};

pub(super) fn evaluate(request: &Bounded, evaluation: &mut Evaluation<'_>) -> Result<Reply, Halt> {
    match request {
        Bounded::Create { key, initial, lower, upper } => {
            let maker = evaluation.own_datacenter();
            create(evaluation, key, Terms { maker, initial: *initial, lower: *lower, upper: *upper })
        }
        Bounded::Change { key, amount } => change(evaluation, key, *amount),
        Bounded::Get { key, rights } => {
            let held = evaluation.escrow(key)?;
            Ok(match held {
                None => Reply::Nil,
                Some(held) if !rights => Reply::Integer(held.counter.value()),
                Some(held) => described(evaluation, &held),
            })
        }
        Bounded::Move { key, to, amount, side } => give(evaluation, key, (to, *amount), *side),
        Bounded::Balance { key, others, home } => balance(evaluation, key, others, *home),
    }
}

fn create(evaluation: &mut Evaluation<'_>, key: &Bytes, terms: Terms) -> Result<Reply, Halt> {
    if evaluation.escrow(key)?.is_some() {
        return Ok(super::flag(false));
    }
    let name = Column::Escrow(counter_name(Stamp::ZERO));
    let bytes = effect_bytes(key, &name, terms.to_bytes().len());
    evaluation.check_room(bytes.saturating_add(evaluation.bytes_to_clear(key)))?;
    evaluation.begin_write(key)?;
    evaluation.put_counter(key, terms);
    Ok(super::flag(true))
}

fn change(evaluation: &mut Evaluation<'_>, key: &Bytes, amount: i128) -> Result<Reply, Halt> {
    let mut held = to_write(evaluation, key)?;
    let own = evaluation.own_datacenter();
    held.counter.change(own, amount).map_err(|why| refused(evaluation, &held, why, amount.unsigned_abs()))?;
    let value = held.counter.value();
    if amount != 0 {
        write(evaluation, key, held)?;
    }
    Ok(Reply::Integer(value))
}

fn give(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    (to, amount): (&Bytes, i64),
    side: Option<Side>,
) -> Result<Reply, Halt> {
    let own = evaluation.own_datacenter();
    let to = evaluation.keyspace().sites().named(to).ok_or(CommandError::Argument("no such datacenter"))?;
    if to == own {
        return Err(CommandError::Argument("the rights are of this datacenter already").into());
    }
    let mut held = to_write(evaluation, key)?;
    let side = match (side, held.counter.terms.lower, held.counter.terms.upper) {
        (Some(Side::Down), None, _) | (Some(Side::Up), _, None) => return Err(Halt::Error(NO_BOUND)),
        (Some(side), ..) => side,
        (None, Some(_), _) => Side::Down,
        (None, None, _) => Side::Up,
    };
    let amount = amount.unsigned_abs();
    held.counter
        .give(own, Gift { to, side, amount })
        .map_err(|why| refused(evaluation, &held, why, amount.into()))?;
    let left = held.counter.rights(own, side).unwrap_or_default();
    write(evaluation, key, held)?;
    Ok(rights(Some(left)))
}

/// What a datacenter gives by itself. Of a key with a home all rights are of use there, and nowhere else.
fn balance(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    others: &[DatacenterId],
    home: Option<DatacenterId>,
) -> Result<Reply, Halt> {
    let own = evaluation.own_datacenter();
    let has_counters = evaluation.clear_loose_shares(key);
    let Some(mut held) = evaluation.escrow_to_write(key)? else { return Ok(super::flag(has_counters)) };
    let gifts = match home {
        Some(home) if home == own => Vec::new(),
        Some(home) if others.contains(&home) => held.counter.all_to(own, home),
        Some(_) => Vec::new(),
        None => held.counter.gifts(own, others),
    };
    let mut given = false;
    for gift in gifts {
        given |= held.counter.give(own, gift).is_ok();
    }
    if given {
        write(evaluation, key, held)?;
    }
    Ok(super::flag(true))
}

/// The counter that a command is going to change.
fn to_write(evaluation: &mut Evaluation<'_>, key: &Bytes) -> Result<Held, Halt> {
    let held = evaluation.escrow_to_write(key)?.ok_or(CommandError::NoSuchKey)?;
    if held.hides_own() && evaluation.is_stable() {
        return Err(Halt::Error(HIDDEN));
    }
    Ok(held)
}

fn write(evaluation: &mut Evaluation<'_>, key: &Bytes, held: Held) -> Result<(), Halt> {
    let name = Column::Escrow(share_name(&counter_name(Stamp::ZERO), DatacenterId(0)));
    evaluation.check_room(effect_bytes(key, &name, limits::SHARE_BYTES_MAX))?;
    evaluation.begin_write(key)?;
    evaluation.put_share(key, held);
    Ok(())
}

fn refused(evaluation: &Evaluation<'_>, held: &Held, why: Refused, asked: u128) -> Halt {
    let Refused::Spent(side, here) = why else { return CommandError::IncrementOverflow.into() };
    let (own, sites) = (evaluation.own_datacenter(), evaluation.keyspace().sites());
    let of = |place: u8| DatacenterId(place);
    let there = (0..sites.names.len() as u8).map(of).filter(|of| *of != own);
    let elsewhere: Vec<String> = there
        .filter_map(|of| {
            let has = held.counter.rights(of, side).filter(|has| *has > 0)?;
            Some(format!("{has} in {}", sites.name(of)))
        })
        .collect();
    let way = if side == Side::Down { "lower" } else { "raise" };
    let others = if elsewhere.is_empty() { "none elsewhere".to_owned() } else { elsewhere.join(", ") };
    Halt::Error(Reply::Error(
        format!(
            "SPENT {here} rights to {way} the counter are here, {asked} are needed; as known here, {others}"
        )
        .into(),
    ))
}

fn described(evaluation: &Evaluation<'_>, held: &Held) -> Reply {
    let (sites, counter) = (evaluation.keyspace().sites(), &held.counter);
    let own = evaluation.own_datacenter();
    let bound = |bound: Option<i64>| bound.map_or(Reply::Nil, Reply::Integer);
    let of = |of: DatacenterId| Side::BOTH.map(|side| rights(counter.rights(of, side)));
    let [down, up] = of(own);
    let each = (0..sites.names.len() as u8).map(DatacenterId);
    let all = each.map(|one| (Reply::bulk(sites.name(one)), Reply::Array(of(one).into()))).collect();
    let pair = |name: &'static str, value: Reply| (Reply::bulk(name), value);
    Reply::Map(vec![
        pair("value", Reply::Integer(counter.value())),
        pair("min", bound(counter.terms.lower)),
        pair("max", bound(counter.terms.upper)),
        pair("down", down),
        pair("up", up),
        pair("datacenters", Reply::Map(all)),
    ])
}

fn rights(rights: Option<i128>) -> Reply {
    rights.map_or(Reply::Nil, |rights| Reply::Integer(i64::try_from(rights).unwrap_or(i64::MAX)))
}

const NO_BOUND: Reply =
    Reply::error("ERR the counter has no bound on that side, and nobody needs rights for it");
const HIDDEN: Reply = Reply::error(
    "BLOCKED the session does not see all that its datacenter has done to the counter; nothing was changed",
);
