//! The values of one key, in blocks of those that replaced each other in one step; and what cannot be among them.

use super::Span;
use super::witness::{self, Place};
use crate::fast::evidence::Evidence;
use crate::fast::reads::{INITIAL, Read};
use crate::history::History;

/// A value: its write and its reads.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub write: Span,
    /// Of the write and all reads: the one that ended first, and the one that began last.
    pub ended_first: Span,
    pub began_last: Span,
    /// The value that was replaced by this one in the step that wrote it, and the one that replaced it so.
    previous: Option<usize>,
    next: Option<usize>,
}

/// Values that stand one behind the other, since each was replaced by the next in one step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub ended_first: Place,
    pub began_last: Place,
}

pub(super) struct Blocks<'a> {
    pub history: &'a History,
    pub key: u32,
    /// The initial state first, then in the order of the writers.
    pub held: Vec<Held>,
    blocks: Vec<Block>,
}

/// When a value was written.
pub(in crate::fast) fn write_of(history: &History, writer: u32) -> Span {
    match writer {
        INITIAL => Span { transaction: INITIAL, start: -1, end: -1 },
        writer => Span::of(history, writer),
    }
}

impl<'a> Blocks<'a> {
    /// The blocks of a key that these wrote, and that was read so; or why they are none.
    pub fn new(
        history: &'a History,
        key: u32,
        writers: &[u32],
        reads: &[Read],
        resolved: &[Read],
    ) -> Result<Blocks<'a>, Evidence> {
        let held = [INITIAL].iter().chain(writers).map(|&writer| {
            let write = write_of(history, writer);
            Held { write, ended_first: write, began_last: write, previous: None, next: None }
        });
        let mut blocks = Blocks { history, key, held: held.collect(), blocks: Vec::new() };
        let place = |writer: u32| match writer {
            INITIAL => 0,
            writer => 1 + writers.binary_search(&writer).expect("who was read from wrote the key"),
        };
        let mut reads: Vec<Read> = reads.iter().chain(resolved).copied().collect();
        reads.sort_unstable_by_key(|read| (read.reader, place(read.writer)));
        reads.dedup();
        if let Some(two) = reads.windows(2).find(|two| two[0].reader == two[1].reader) {
            let values = [two[0], two[1]].map(|read| place(read.writer));
            return Err(witness::two_at_once(&blocks, two[0].reader, values));
        }
        for read in reads {
            let at = place(read.writer);
            blocks.add_read(at, Span::of(history, read.reader))?;
            if let Ok(replaced_by) = writers.binary_search(&read.reader) {
                blocks.replace(at, 1 + replaced_by)?;
            }
        }
        blocks.join()?;
        Ok(blocks)
    }

    fn add_read(&mut self, at: usize, read: Span) -> Result<(), Evidence> {
        let held = &mut self.held[at];
        if read.end < held.write.start {
            return Err(witness::read_before_write(self.history, self.key, held.write, read));
        }
        if read.end < held.ended_first.end {
            held.ended_first = read;
        }
        if read.start > held.began_last.start {
            held.began_last = read;
        }
        Ok(())
    }

    /// The transaction that wrote the other value has read this one in the same step.
    fn replace(&mut self, at: usize, by: usize) -> Result<(), Evidence> {
        if let Some(other) = self.held[at].next {
            return Err(witness::replaced_twice(self, at, [other, by]));
        }
        self.held[at].next = Some(by);
        self.held[by].previous = Some(at);
        Ok(())
    }

    fn join(&mut self) -> Result<(), Evidence> {
        let mut is_joined = vec![false; self.held.len()];
        for first in (0..self.held.len()).filter(|&at| self.held[at].previous.is_none()) {
            let mut block = self.block_of_one(first);
            for at in self.chain(first) {
                is_joined[at] = true;
                let one = self.block_of_one(at);
                // What came before in the block must not be what is demanded to come after this.
                if at != first && one.ended_first.span.end < block.began_last.span.start {
                    return Err(witness::contradicts_itself(self, one.ended_first, block.began_last));
                }
                if one.ended_first.span.end < block.ended_first.span.end {
                    block.ended_first = one.ended_first;
                }
                if one.began_last.span.start > block.began_last.span.start {
                    block.began_last = one.began_last;
                }
            }
            self.blocks.push(block);
        }
        match is_joined.iter().position(|joined| !joined) {
            Some(at) => Err(witness::circle(self, at)),
            None => Ok(()),
        }
    }

    fn block_of_one(&self, at: usize) -> Block {
        let Held { ended_first, began_last, .. } = self.held[at];
        Block {
            ended_first: Place { value: at, span: ended_first },
            began_last: Place { value: at, span: began_last },
        }
    }

    /// This value and those that replaced it, until one of them is this again.
    pub fn chain(&self, first: usize) -> Vec<usize> {
        let mut chain = vec![first];
        let mut at = first;
        while let Some(next) = self.held[at].next.filter(|&next| next != first) {
            chain.push(next);
            at = next;
        }
        chain
    }

    /// Two blocks that must each come before the other.
    pub fn contradiction(&self) -> Option<Evidence> {
        let mut order: Vec<usize> = (0..self.blocks.len()).collect();
        order.sort_by_key(|&at| (self.blocks[at].ended_first.span.end, at));
        let began_last = |at: usize| self.blocks[at].began_last.span.start;
        // Of those that come first by their first end: which began something last, and which is the next in that.
        let mut latest: Vec<[Option<usize>; 2]> = Vec::with_capacity(order.len());
        let mut two = [None, None];
        for &at in &order {
            if two[0].is_none_or(|first| began_last(at) > began_last(first)) {
                two = [Some(at), two[0]];
            } else if two[1].is_none_or(|second| began_last(at) > began_last(second)) {
                two[1] = Some(at);
            }
            latest.push(two);
        }
        order.iter().find_map(|&at| {
            let is_before = |&other: &usize| self.blocks[other].ended_first.span.end < began_last(at);
            let before = order.partition_point(is_before);
            let candidates = latest[before.checked_sub(1)?];
            let other = candidates.into_iter().flatten().find(|&other| other != at)?;
            let is_after = self.blocks[at].ended_first.span.end < began_last(other);
            is_after.then(|| witness::before_each_other(self, self.blocks[other], self.blocks[at]))
        })
    }
}
