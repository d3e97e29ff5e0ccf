//! Pops and readers that may wait. Here they do not: what is there is answered, and nothing is answered as nothing.

use super::lists::{self, Moved};
use super::{sorted_sets, streams};
use crate::evaluate::{Evaluation, Halt};
use ensue_resp::request::WaitingPop;
use ensue_types::Reply;

pub(super) fn evaluate(pop: &WaitingPop, evaluation: &mut Evaluation<'_>) -> Result<Reply, Halt> {
    match pop {
        WaitingPop::Element { keys, end } => lists::pop_one(evaluation, keys, *end),
        WaitingPop::Elements { keys, end, count } => lists::pop_first(evaluation, keys, *end, *count),
        WaitingPop::Move { source, target, from, to } => {
            let moved = Moved { source, from: *from, target, to: *to };
            lists::move_to(evaluation, &moved)
        }
        WaitingPop::Member { keys, highest } => sorted_sets::pop_one(evaluation, keys, *highest),
        WaitingPop::Members { keys, highest, count } => {
            sorted_sets::pop_first(evaluation, keys, *highest, *count)
        }
        WaitingPop::Entries(read) => streams::read_streams(evaluation, read),
        WaitingPop::Delivered(read) => streams::read_group(evaluation, read),
    }
}
