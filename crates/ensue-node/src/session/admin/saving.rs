//! `BGSAVE`, `SAVE`, `BGREWRITEAOF` and `LASTSAVE`: checkpoints that an operator asks for.
//!
//! Every partition of the datacenter is asked. It answers at once: a checkpoint that it begins ends later, as those do
//! that it begins by itself.

use crate::session::plan::Plan;
use crate::session::plan::combine::Combination;
use bytes::Bytes;
use ensue_resp::CommandError;
use ensue_types::{Args, Reply};

/// What every partition is asked.
pub(crate) fn plan(partitions: u16, name: &str, args: &Args) -> Result<Plan, Reply> {
    let (word, how): (&'static [u8], _) = match (name, &args[1..]) {
        ("lastsave", _) => (b"when", Combination::Least),
        ("bgsave", [word]) if word.eq_ignore_ascii_case(b"schedule") => (b"schedule", Combination::First),
        ("bgsave", [_, ..]) => return Err(CommandError::Syntax.reply()),
        ("bgsave", []) => (b"bgsave", Combination::First),
        ("save", _) => (b"save", Combination::First),
        _ => (b"bgrewriteaof", Combination::First),
    };
    let question = [&b"causal"[..], b"checkpoint", word].map(Bytes::from_static).to_vec();
    Ok(Plan::fan_out(how, false, partitions, &question))
}
