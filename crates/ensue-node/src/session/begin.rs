//! What a session looks at before a command begins: whether it has to wait, what has to be told before, and what is to
//! be noted of it.

use super::access::scripts::shown as scripts_shown;
use super::admin::client::Client;
use super::causal::shared;
use super::commands::batch::Run;
use super::commands::queue::Queue;
use super::connection::{Lifecycle, Parts};
use super::cx::Cx;
use super::homes::{self, Place};
use super::monitor;
use super::pause;
use super::plan::{Plan, scripts};
use bytes::Bytes;
use ensue_resp::{CommandSpec, Flags, Route};
use ensue_types::{Args, KeyspaceId};
use ensue_wire::ChannelKind;

/// The keyspace in which the next command waits for what the session did at a home of keys, or, at a home, for the past
/// of a session elsewhere. What goes to a home waits there.
pub(super) fn awaited(cx: &Cx<'_>, session: &Parts) -> Option<KeyspaceId> {
    let first = cx.contexts.first_awaited()?;
    let args = session.queue.front().filter(|args| shared::uses_context(args, session.multi.is_some()))?;
    let spec = args.first().and_then(|name| ensue_resp::lookup(name))?;
    let (place, is_about_all) = match &session.multi {
        Some(multi) => {
            let place = homes::place(cx.core, cx.contexts, multi.commands());
            (place, multi.specs().into_iter().any(homes::is_about_all_keyspaces))
        }
        None => {
            let place = homes::place(cx.core, cx.contexts, [(spec, args)]);
            (place, homes::is_about_all_keyspaces(spec))
        }
    };
    match place {
        Place::Away(_) => None,
        _ if is_about_all => Some(first),
        _ => cx.contexts.awaited(cx.keyspace()).map(|_| cx.keyspace()),
    }
}

/// Notes a command that may turn out to be slow, shows it to who monitors, and notes the keys that it reads if its
/// client is told of changes.
pub(super) fn note(cx: &mut Cx<'_>, client: &Client, spec: &'static CommandSpec, args: &Args) {
    cx.core.note_slow(client.id(), (spec, args), (client.address(), client.name()));
    show(cx, client, spec, args);
    if spec.route != Route::Session {
        note_reads(cx, std::iter::once((spec, args)));
    }
}

/// Shows a command to who monitors, but for those of operators, and without passwords.
pub(super) fn show(cx: &mut Cx<'_>, client: &Client, spec: &'static CommandSpec, args: &Args) {
    // The reset of a client that monitors would be the first that comes after it.
    let monitors = || cx.core.channels.count(client.id(), ChannelKind::Monitor) > 0;
    let resets_itself = || spec.name == "reset" && monitors();
    let is_hidden =
        spec.flags.contains(Flags::SKIP_MONITOR) && spec.route != Route::Script || resets_itself();
    if cx.core.is_monitored() && !is_hidden && !spec.flags.contains(Flags::ADMIN) {
        let line = monitor::line(cx.now, cx.keyspace(), client.address(), spec.name, scripts_shown(args));
        cx.core.show_command(client.id(), line);
    }
}

/// The same of the commands that are taken out of the queue together.
pub(super) fn note_run(cx: &mut Cx<'_>, client: &Client, queue: &Queue, run: &Run) {
    if !run.may_be_slow() && !cx.core.notes_all() {
        return;
    }
    for args in queue.iter().take(run.taken(cx, queue)) {
        if let Some(spec) = args.first().and_then(|name| ensue_resp::lookup(name)) {
            note(cx, client, spec, args);
        }
    }
}

/// Notes which keys a client reads that is told of changes, before they are read.
pub(super) fn note_reads<'c>(
    cx: &mut Cx<'_>,
    commands: impl Iterator<Item = (&'static CommandSpec, &'c Args)>,
) {
    let client = cx.requests.session();
    if cx.core.tracking.is_empty() {
        return;
    }
    cx.core.tracking.begin(client);
    if !cx.core.tracking.notes_next(client) {
        return;
    }
    for (spec, args) in commands {
        let reads = spec.flags.contains(Flags::READONLY) && spec.route != Route::Script;
        cx.core.tracking.order(client, ensue_resp::keys(spec, args), reads);
        // What a script reads is said by whoever runs it; elsewhere, it may be all that it names.
        if spec.route == Route::Script && homes::place(cx.core, cx.contexts, [(spec, args)]) == Place::Here {
            cx.core.tracking.begin_script(client);
        } else if spec.flags.contains(Flags::READONLY) || spec.route == Route::Script {
            cx.core.note_reads(client, ensue_resp::keys(spec, args));
        }
    }
}

/// What a pause does to the next command of a client.
pub(super) enum Held {
    Not,
    /// It waits, for so many milliseconds if nobody ends the pause before.
    ForMs(u64),
    /// A partition knows whether it writes, and is asked by this.
    Unless(Plan),
}

/// Whether the next command of a client is held back by a pause. One that is refused for its arguments is not.
pub(super) fn held(cx: &Cx<'_>, session: &Parts) -> Held {
    let remaining_ms = |writes| cx.core.pause.remaining_ms(cx.now, writes);
    let (Some(ms), Lifecycle::Open) = (remaining_ms(true), session.lifecycle) else { return Held::Not };
    let holds_all = remaining_ms(false).is_some();
    let known = |args: &Args| args.first().and_then(|name| ensue_resp::lookup(name));
    let front = session.queue.front().and_then(|args| known(args).map(|spec| (spec, args)));
    let front = front.filter(|(spec, args)| ensue_resp::check_arity(spec, args.len()));
    if session.visits && front.is_some_and(|(spec, _)| pause::is_of_an_observer(spec)) {
        return Held::Not;
    }
    let Some((spec, args)) = front.filter(|_| !holds_all) else {
        return if holds_all { Held::ForMs(ms) } else { Held::Not };
    };
    let writes = match &session.multi {
        Some(multi) if spec.name == "exec" => {
            multi.commands().any(|(spec, args)| pause::counts_as_write(spec, args))
        }
        _ => pause::counts_as_write(spec, args),
    };
    match scripts::query_whether_it_reads(spec, args, cx.core.partitions()).filter(|_| writes) {
        Some(plan) => Held::Unless(plan),
        None if writes => Held::ForMs(ms),
        None => Held::Not,
    }
}

/// What tells all partitions of the script of a command, if they need not know it.
pub(super) fn unknown_script(cx: &Cx<'_>, args: &Args) -> Option<Plan> {
    let spec = args.first().and_then(|name| ensue_resp::lookup(name))?;
    let is_new = scripts::has_text(spec.name)
        && ensue_resp::check_arity(spec, args.len())
        && !cx.core.scripts.contains(&args[1])
        && !cx.protocol().needs().branches;
    let load = || vec![Bytes::from_static(b"script"), Bytes::from_static(b"load"), args[1].clone()];
    is_new.then(|| scripts::load(cx.core.partitions(), &load()))
}
