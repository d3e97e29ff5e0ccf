//! Checks the checksums of one file of a directory that is served meanwhile: a segment of the log that is not written
//! any more, or a checkpoint that counts.
//!
//! A pure reader: carry out the read that [`Scrub::step`] asks for, hand the bytes to [`Scrub::on_read`], until it says
//! what the file is. It looks into no record: that is what a start does, and `fsck`.

use crate::disk::{DiskOp, FileName};
use crate::layout::batch::Seal;
use crate::layout::checkpoint::{
    BLOCK_HEADER_BYTES, BlockHeader, CHECKPOINT_HEADER_BYTES, CheckpointPlace, FOOTER_BYTES, Footer, chain,
};
use crate::log::Lsn;
use crate::scan::{self, Step};
use crate::window::Window;
use bytes::Bytes;

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scrubbed {
    Read(DiskOp),
    /// The file is as it was written.
    Sound,
    /// It is not, from this byte on.
    Damaged {
        offset: u64,
        reason: String,
    },
}

/// See the module.
#[derive(Debug)]
pub struct Scrub {
    window: Window,
    length: u64,
    seal: Seal,
    what: What,
}

#[derive(Debug)]
enum What {
    Segment(Lsn),
    /// How far it is, and what the footer must say so far.
    Checkpoint {
        number: u64,
        part: Part,
        sums: Footer,
    },
}

/// What of a checkpoint comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Header,
    Blocks,
    Nothing,
}

impl Scrub {
    /// Of a file that has this length; nothing if it has no checksums of its own, or is replaced as a whole.
    pub fn new(file: FileName, length: u64, seal: Seal) -> Option<Scrub> {
        let what = match file {
            FileName::Segment(first) => What::Segment(Lsn(first)),
            FileName::Checkpoint(number) => {
                What::Checkpoint { number, part: Part::Header, sums: Footer::default() }
            }
            _ => return None,
        };
        Some(Scrub { window: Window::new(file, 0, length), length, seal, what })
    }

    /// Takes the bytes of the last read; fewer than it asked for mean that the file ends there.
    pub fn on_read(&mut self, offset: u64, bytes: Bytes) {
        self.window.feed(offset, bytes);
    }

    /// Goes on as far as the bytes that are there allow.
    pub fn step(&mut self) -> Scrubbed {
        loop {
            let offset = self.window.offset();
            let step = match &mut self.what {
                What::Segment(first) => match scan::next_batch(&mut self.window, *first, self.seal) {
                    Step::Found(batch) => match scan::records(&batch) {
                        Ok(_) => Step::Found(()),
                        Err(error) => Step::Invalid(error.to_string()),
                    },
                    Step::Read(op) => Step::Read(op),
                    Step::End => Step::End,
                    Step::Invalid(reason) => Step::Invalid(reason),
                },
                What::Checkpoint { number, part, sums } => {
                    checkpoint_step(&mut self.window, self.seal, *number, part, sums)
                }
            };
            return match step {
                Step::Found(()) => continue,
                Step::Read(op) => Scrubbed::Read(op),
                Step::Invalid(reason) => Scrubbed::Damaged { offset, reason },
                Step::End if offset < self.length => {
                    let reason = format!("the file ends here, and had {} bytes", self.length);
                    Scrubbed::Damaged { offset, reason }
                }
                Step::End => Scrubbed::Sound,
            };
        }
    }
}

/// Takes the header, a block or the footer.
fn checkpoint_step(
    window: &mut Window,
    seal: Seal,
    number: u64,
    part: &mut Part,
    sums: &mut Footer,
) -> Step<()> {
    let is_footer = *part == Part::Blocks && window.left() == FOOTER_BYTES as u64;
    let wanted = match part {
        Part::Header => CHECKPOINT_HEADER_BYTES,
        Part::Blocks if is_footer => FOOTER_BYTES,
        Part::Blocks => BLOCK_HEADER_BYTES,
        Part::Nothing => return Step::End,
    };
    if let Some(step) = lacks(window, wanted as u64) {
        return step;
    }
    let taken = match part {
        Part::Header => begin(window, seal, number).map(|()| (Part::Blocks, wanted)),
        _ if is_footer => end(window, seal, sums).map(|()| (Part::Nothing, wanted)),
        _ => match BlockHeader::decode(window.held(), seal) {
            Ok(header) => {
                let total = BLOCK_HEADER_BYTES as u64 + u64::from(header.body_bytes);
                if let Some(step) = lacks(window, total) {
                    return step;
                }
                take_block(window, seal, header, sums).map(|()| (Part::Blocks, total as usize))
            }
            Err(error) => Err(error.to_string()),
        },
    };
    match taken {
        Ok((next, length)) => {
            *part = next;
            window.skip(length);
            Step::Found(())
        }
        Err(reason) => Step::Invalid(reason),
    }
}

fn begin(window: &Window, seal: Seal, number: u64) -> Result<(), String> {
    let place = CheckpointPlace::decode(window.held(), seal).map_err(|error| error.to_string())?;
    if place.number != number {
        return Err(format!("it says that it is checkpoint {}", place.number));
    }
    Ok(())
}

fn take_block(window: &Window, seal: Seal, header: BlockHeader, sums: &mut Footer) -> Result<(), String> {
    let end = BLOCK_HEADER_BYTES + header.body_bytes as usize;
    if seal.checksum(&window.held()[BLOCK_HEADER_BYTES..end]) != header.body_checksum {
        return Err("checksum of the block does not match".into());
    }
    sums.items += u64::from(header.items);
    sums.blocks += 1;
    sums.blocks_checksum = chain(sums.blocks_checksum, header.body_checksum);
    Ok(())
}

fn end(window: &Window, seal: Seal, sums: &Footer) -> Result<(), String> {
    let found = Footer::decode(window.held(), seal).map_err(|error| error.to_string())?;
    if (Footer { synced: sums.synced, ..found }) != *sums {
        return Err("the footer does not match the blocks".into());
    }
    Ok(())
}

/// The read that is missing until so many bytes are held, or that the file has not so many.
fn lacks(window: &Window, bytes: u64) -> Option<Step<()>> {
    if bytes > window.left() {
        return Some(Step::Invalid(format!("{bytes} bytes belong here, {} are left", window.left())));
    }
    if bytes <= window.held().len() as u64 {
        return None;
    }
    window.read().map(Step::Read)
}

#[cfg(test)]
mod tests;
