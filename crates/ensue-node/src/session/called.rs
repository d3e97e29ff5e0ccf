//! What a script has called, as the partition that ran it says before it answers: it is shown to who monitors, and the
//! keys that it has read are noted if its client is told of changes. What it publishes is given back.

use super::core_state::CoreState;
use super::monitor;
use ensue_resp::{CommandSpec, Flags};
use ensue_types::{Args, KeyspaceId, Now, RequestId};

/// A script of a request has called these commands in a keyspace; if they are not all, then others as well. Gives back
/// those that publish: its session does so when it has its answer.
pub(super) fn on_called(
    core: &mut CoreState,
    now: Now,
    request: RequestId,
    (keyspace, commands, all): (KeyspaceId, &[Args], bool),
) -> Vec<Args> {
    if request.core != core.config.core || request.boot != core.config.boot {
        return Vec::new();
    }
    let client = request.session;
    let known = |args: &Args| args.first().and_then(|name| ensue_resp::lookup(name));
    let commands = || commands.iter().filter_map(|args| Some((known(args)?, args)));
    if core.is_monitored() {
        let is_hidden = |flags: Flags| flags.contains(Flags::SKIP_MONITOR) || flags.contains(Flags::ADMIN);
        for (spec, args) in commands().filter(|(spec, _)| !is_hidden(spec.flags)) {
            let line = monitor::line(now, keyspace, "lua", spec.name, args);
            core.show_command(client, line);
        }
    }
    if core.tracking.notes_script(client) {
        for (spec, args) in commands().filter(|(spec, _)| spec.flags.contains(Flags::READONLY)) {
            core.note_reads(client, ensue_resp::keys(spec, args));
        }
        if !all {
            let pushes = core.tracking.on_everything_of(client);
            core.push_changes(pushes);
        }
    }
    let publishes = |spec: &CommandSpec| matches!(spec.name, "publish" | "spublish");
    commands().filter(|(spec, _)| publishes(spec)).map(|(_, args)| args.clone()).collect()
}
