//! Commands that every partition of the datacenter answers, and SCAN, which goes from one to the next.
//!
//! They walk keyspaces and take no part in snapshots: each partition answers for its own moment. A cursor of SCAN is
//! the owner's cursor times the number of partitions, plus the partition's number; 0 begins and ends.

use crate::command::Fingerprint;
use crate::session::cx::Cx;
use crate::session::plan::combine::Combination;
use crate::session::plan::{Keyspaces, Plan};
use ensue_resp::{CommandSpec, Request};
use ensue_types::{Args, PartitionId, Reply, RequestId};

/// The plan of such a command, or why there is none.
pub(crate) fn plan(cx: &Cx<'_>, spec: &'static CommandSpec, args: Args) -> Result<Plan, Reply> {
    let request = Request::parse_as(spec, &args).map_err(|error| error.reply())?;
    let partitions = cx.core.partitions();
    let fan_out = |how, writes| Plan::fan_out(how, writes, partitions, &args);
    match request {
        Request::Scan { options, .. } => Ok(scan(partitions, options.cursor, args)),
        Request::Size => Ok(fan_out(Combination::Sum, false)),
        Request::Keys { .. } => Ok(fan_out(Combination::Concatenate, false)),
        Request::RandomKey => {
            let RequestId { boot, session, sequence, .. } = cx.request(0);
            let seed = Fingerprint::new().word(boot.into()).word(session.0).word(sequence).finish();
            Ok(fan_out(Combination::Draw { seed }, false))
        }
        Request::Flush { every_keyspace } => {
            let keyspaces = if every_keyspace { Keyspaces::All } else { Keyspaces::Selected };
            Ok(fan_out(Combination::AllOk, true).in_keyspaces(keyspaces))
        }
        _ => Err(Reply::error("ERR internal error: no partition answers this command")),
    }
}

fn scan(partitions: u16, cursor: u64, mut args: Args) -> Plan {
    let partition = (cursor % u64::from(partitions)) as u16;
    args[1] = (cursor / u64::from(partitions)).to_string().into();
    let mut plan = Plan::single(partitions);
    let how = Combination::Scan { partition, partitions };
    plan.add_for_each(how, false, std::iter::once(PartitionId(partition)), &args);
    plan
}
