//! What undoes a pop whose answer nobody hears: a push at the end from which it came. A move and what a group has
//! delivered need none: nothing of them is lost.

use bytes::Bytes;
use ensue_resp::number;
use ensue_resp::request::{End, WaitingPop};
use ensue_types::{Args, Reply};

/// The command that puts back what was popped for nobody.
pub(super) fn put_back(pop: &WaitingPop, reply: &Reply) -> Option<Args> {
    let Reply::Array(answer) = reply else { return None };
    let mut args: Args = vec![Bytes::from_static(b"zadd"), bulk(answer.first()?)?];
    match (pop, &answer[1..]) {
        (WaitingPop::Element { end, .. }, [element]) => {
            args[0] = push_at(*end);
            args.push(bulk(element)?);
        }
        (WaitingPop::Elements { end, .. }, [Reply::Array(elements)]) => {
            args[0] = push_at(*end);
            args.extend(elements.iter().rev().filter_map(bulk));
        }
        (WaitingPop::Member { .. }, [member, score]) => args.extend([bulk(score)?, bulk(member)?]),
        (WaitingPop::Members { .. }, [Reply::Array(members)]) => {
            for member in members {
                let Reply::Array(pair) = member else { return None };
                args.extend([bulk(pair.get(1)?)?, bulk(pair.first()?)?]);
            }
        }
        _ => return None,
    }
    Some(args)
}

fn push_at(end: End) -> Bytes {
    Bytes::from_static(if end == End::Left { b"lpush" } else { b"rpush" })
}

fn bulk(reply: &Reply) -> Option<Bytes> {
    match reply {
        Reply::Bulk(bytes) => Some(bytes.clone()),
        Reply::Double(score) => Some(number::f64_bytes(*score)),
        _ => None,
    }
}
