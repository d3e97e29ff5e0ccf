//! What commands are called in keyspace events, as Redis calls them.
//!
//! The changes that a command has made arrive, one an effect; one or two a key leave, with names. What arrives from
//! another datacenter is named after what it did to the row, since the command does not travel.

use crate::evaluate::Evaluation;
use bytes::Bytes;
use ensue_resp::Request;
use ensue_resp::request::{
    Bits, Blocking, Bounded, Cardinality, End, Fields, GetExpiry, GroupChange, List, SetAlgebra,
    SetOperation, SetOperator, SortedRange, SortedSet, Stream, WaitingPop, Whole,
};
use ensue_store::keyspace::{Happened, Written};
use ensue_store::row::Kind;

/// Names the changes that were noted after so many.
pub(super) fn name(request: &Request, evaluation: &mut Evaluation<'_>, after: usize) {
    let changes = evaluation.take_written(after);
    let mut named: Vec<Written> = Vec::new();
    let new = evaluation.take_new();
    let is_first = |named: &[Written], key: &Option<Bytes>| !named.iter().any(|one| one.key == *key);
    for change in &changes {
        let Some(key) = change.key.as_ref().filter(|_| is_first(&named, &change.key)) else { continue };
        let of_key = || changes.iter().filter(|other| other.key == change.key);
        let is_gone = evaluation.is_absent(key);
        let event = event_of(request, key, is_gone);
        let with = |event| Written { event: Some(event), ..change.clone() };
        if !is_gone && new.contains(key) {
            named.push(with("new"));
        }
        // Reading for a group makes consumers; what is pending has no events.
        let has_event = event != "xgroup-createconsumer" || evaluation.has_made_consumer();
        named.push(with(if has_event { event } else { "" }));
        let sets_deadline = matches!(request, Request::Set { .. } | Request::Whole(_))
            && of_key().any(|other| other.change == Happened::Deadline);
        if sets_deadline && !is_gone {
            named.push(with("expire"));
        }
        if is_gone && event != "del" {
            named.push(with("del"));
        }
    }
    evaluation.put_written(named);
}

/// Names the first change that was noted after so many, and nothing of the others: that by which a row is gone.
pub(crate) fn name_first(evaluation: &mut Evaluation<'_>, after: usize, event: &'static str) {
    let first = evaluation.take_written(after).into_iter().next();
    let named = first.map(|written| Written { event: Some(event), ..written });
    evaluation.put_written(named.into_iter().collect());
}

/// Names what deleted a field whose deadline had passed, and its row if that was all.
pub(crate) fn name_expired(evaluation: &mut Evaluation<'_>, after: usize) {
    let Some(first) = evaluation.take_written(after).into_iter().next() else { return };
    let is_gone = first.key.as_ref().is_some_and(|key| evaluation.is_absent(key));
    let named = |event| Written { event: Some(event), ..first.clone() };
    let events = ["hexpired"].into_iter().chain(is_gone.then_some("del"));
    evaluation.put_written(events.map(named).collect());
}

/// What is told of a change that came from elsewhere.
pub(crate) fn of_change(change: Happened) -> &'static str {
    match change {
        Happened::Put(Kind::Text) => "set",
        Happened::Put(Kind::Hash) => "hset",
        Happened::Put(Kind::Set) => "sadd",
        Happened::Put(Kind::SortedSet) => "zadd",
        Happened::Put(Kind::List) => "rpush",
        Happened::Put(Kind::Stream) => "xadd",
        Happened::Put(Kind::Bounded) => "bincrby",
        Happened::Removed(Kind::Text) => "del",
        Happened::Removed(Kind::Hash) => "hdel",
        Happened::Removed(Kind::Set) => "srem",
        Happened::Removed(Kind::SortedSet) => "zrem",
        Happened::Removed(Kind::List) => "lrem",
        Happened::Removed(Kind::Stream) => "xdel",
        Happened::Removed(Kind::Bounded) => "del",
        Happened::Deadline => "expire",
        Happened::FieldDeadline => "hexpire",
        Happened::Everything => "",
    }
}

/// The letter of the class of an event in `notify-keyspace-events`.
pub(crate) fn class_of(event: &str) -> char {
    match event {
        "new" => 'n',
        "expired" => 'x',
        "evicted" => 'e',
        "del" | "expire" | "persist" | "rename_from" | "rename_to" | "copy_to" | "restore" | "move_to" => 'g',
        "set" | "append" | "setrange" | "setbit" | "incrby" | "incrbyfloat" | "pfadd" => '$',
        "bcreate" | "bincrby" | "bdecrby" => '$',
        "sortstore" | "linsert" | "lset" | "lrem" | "ltrim" | "lpush" | "rpush" | "lpop" | "rpop" => 'l',
        "sadd" | "srem" | "spop" | "sinterstore" | "sunionstore" | "sdiffstore" => 's',
        "hset" | "hdel" | "hincrby" | "hincrbyfloat" | "hexpire" | "hexpired" | "hpersist" => 'h',
        _ if event.starts_with('x') => 't',
        _ => 'z',
    }
}

fn event_of(request: &Request, key: &Bytes, is_gone: bool) -> &'static str {
    use Request::{
        Algebra, Append, Delete, Elements, Expire, Geo, GetDelete, GetExpire, HashDelete, HashIncrementBy,
        HashIncrementByFloat, HashSet, HashSetIfAbsent, IncrementBy, IncrementByFloat, Persist, Set, SetAdd,
        SetIfAbsent, SetMany, SetManyIfAbsent, SetRange, SetRemove, Sorted, Streams,
    };
    match request {
        Delete { .. } | GetDelete { .. } | Request::DeleteIf { .. } => "del",
        Expire { .. } | GetExpire { .. } if is_gone => "del",
        Expire { .. } => "expire",
        GetExpire { expiry: GetExpiry::Persist, .. } | Persist { .. } => "persist",
        GetExpire { .. } => "expire",
        Set { .. } | SetIfAbsent { .. } | SetMany { .. } | SetManyIfAbsent { .. } => "set",
        Append { .. } => "append",
        SetRange { .. } => "setrange",
        IncrementBy { .. } => "incrby",
        IncrementByFloat { .. } => "incrbyfloat",
        Request::Bits(Bits::Combine { .. }) if is_gone => "del",
        Request::Bits(Bits::Combine { .. }) => "set",
        Request::Bits(_) => "setbit",
        HashSet { .. } | HashSetIfAbsent { .. } => "hset",
        HashDelete { .. } => "hdel",
        HashIncrementBy { .. } => "hincrby",
        HashIncrementByFloat { .. } => "hincrbyfloat",
        Request::Fields(fields) => of_fields(fields),
        SetAdd { .. } => "sadd",
        SetRemove { .. } => "srem",
        Algebra(algebra) => of_sets(algebra, key, is_gone),
        Sorted(sorted) => of_sorted_sets(sorted, is_gone),
        Geo(_) if is_gone => "del",
        Geo(_) => "geosearchstore",
        Elements(list) => of_lists(list, key),
        Streams(stream) => of_streams(stream),
        Request::Blocking(blocking) => of_pops(blocking, key),
        Request::Cardinality(Cardinality::Add { .. } | Cardinality::Merge { .. }) => "pfadd",
        Request::Bounded(bounded) => of_counters(bounded),
        Request::Whole(Whole::Copy { .. }) => "copy_to",
        Request::Whole(Whole::Restore { .. }) if is_gone => "del",
        Request::Whole(Whole::Restore { .. }) => "restore",
        Request::Whole(Whole::Sort(_)) if is_gone => "del",
        Request::Whole(Whole::Sort(_)) => "sortstore",
        _ => "set",
    }
}

/// Rights that move change nothing that anybody reads but `BGET RIGHTS`, and have no event.
fn of_counters(bounded: &Bounded) -> &'static str {
    match bounded {
        Bounded::Create { .. } => "bcreate",
        Bounded::Change { amount, .. } if *amount < 0 => "bdecrby",
        Bounded::Change { .. } => "bincrby",
        Bounded::Get { .. } | Bounded::Move { .. } | Bounded::Balance { .. } => "",
    }
}

fn of_fields(fields: &Fields) -> &'static str {
    match fields {
        Fields::GetDelete { .. } => "hdel",
        Fields::SetExpire { .. } => "hset",
        Fields::Persist { .. } | Fields::GetExpire { expiry: GetExpiry::Persist, .. } => "hpersist",
        Fields::Expire { .. } | Fields::Lifetime { .. } | Fields::GetExpire { .. } => "hexpire",
    }
}

fn of_sets(algebra: &SetAlgebra, key: &Bytes, is_gone: bool) -> &'static str {
    match algebra {
        SetAlgebra::CombineStore { .. } if is_gone => "del",
        SetAlgebra::CombineStore { operator: SetOperator::Union, .. } => "sunionstore",
        SetAlgebra::CombineStore { operator: SetOperator::Intersection, .. } => "sinterstore",
        SetAlgebra::CombineStore { operator: SetOperator::Difference, .. } => "sdiffstore",
        SetAlgebra::Pop { .. } => "spop",
        SetAlgebra::Move { target, .. } if target == key => "sadd",
        _ => "srem",
    }
}

fn of_sorted_sets(sorted: &SortedSet, is_gone: bool) -> &'static str {
    match sorted {
        SortedSet::Add { .. } => "zadd",
        SortedSet::Increment { .. } => "zincr",
        SortedSet::RemoveRange { range: SortedRange::Rank(_), .. } => "zremrangebyrank",
        SortedSet::RemoveRange { range: SortedRange::Score { .. }, .. } => "zremrangebyscore",
        SortedSet::RemoveRange { .. } => "zremrangebylex",
        SortedSet::Pop { highest, .. } | SortedSet::PopFirst { highest, .. } => popped(*highest),
        SortedSet::RangeStore { .. } | SortedSet::CombineStore { .. } if is_gone => "del",
        SortedSet::RangeStore { .. } => "zrangestore",
        SortedSet::CombineStore { operation: SetOperation::Union { .. }, .. } => "zunionstore",
        SortedSet::CombineStore { operation: SetOperation::Intersection { .. }, .. } => "zinterstore",
        SortedSet::CombineStore { .. } => "zdiffstore",
        _ => "zrem",
    }
}

fn popped(highest: bool) -> &'static str {
    if highest { "zpopmax" } else { "zpopmin" }
}

fn pushed(end: End) -> &'static str {
    if end == End::Left { "lpush" } else { "rpush" }
}

fn taken(end: End) -> &'static str {
    if end == End::Left { "lpop" } else { "rpop" }
}

fn of_lists(list: &List, key: &Bytes) -> &'static str {
    match list {
        List::Push { end, .. } => pushed(*end),
        List::Pop { end, .. } | List::PopFirst { end, .. } => taken(*end),
        List::Insert { .. } => "linsert",
        List::Set { .. } => "lset",
        List::Trim { .. } => "ltrim",
        List::Move { target, to, .. } if target == key => pushed(*to),
        List::Move { from, .. } => taken(*from),
        _ => "lrem",
    }
}

fn of_pops(blocking: &Blocking, key: &Bytes) -> &'static str {
    match &blocking.pop {
        WaitingPop::Element { end, .. } | WaitingPop::Elements { end, .. } => taken(*end),
        WaitingPop::Move { target, to, .. } if target == key => pushed(*to),
        WaitingPop::Move { from, .. } => taken(*from),
        WaitingPop::Member { highest, .. } | WaitingPop::Members { highest, .. } => popped(*highest),
        WaitingPop::Entries(_) | WaitingPop::Delivered(_) => "xgroup-createconsumer",
    }
}

fn of_streams(stream: &Stream) -> &'static str {
    match stream {
        Stream::Add { .. } => "xadd",
        Stream::Trim { .. } => "xtrim",
        Stream::Delete { .. } => "xdel",
        Stream::SetId { .. } => "xsetid",
        Stream::Group { change, .. } => match change {
            GroupChange::Create { .. } => "xgroup-create",
            GroupChange::Set(_) => "xgroup-setid",
            GroupChange::Destroy => "xgroup-destroy",
            GroupChange::CreateConsumer(_) => "xgroup-createconsumer",
            GroupChange::DeleteConsumer(_) => "xgroup-delconsumer",
        },
        _ => "xgroup-createconsumer",
    }
}
