//! Commands on keys with a home: which are executed here, which are sent to the home, and the wait for its answer
//! (decision 33).
//!
//! - A command is sent to the home of its keys if it writes one of them, or if the keyspace reads them at home.
//! - All its keys, or all keys of its `MULTI`, must then have the same home; otherwise the command is rejected.
//! - On the answer: the session's next command in that keyspace waits until the past in the answer is visible here.
//! - On a timeout: the command may have been executed. Without a link nothing is sent.
//! - A command that may wait is asked in rounds, until the client's time is over (`home_waits`).

use super::contexts::Contexts;
use super::core_state::CoreState;
use super::cx::Cx;
use super::failure::Failure;
use super::home_requests::Unsent;
use super::home_waits::Wait;
use super::put_back;
use super::step::Step;
use crate::homes::{MOVING, STABLE_AT_HOME, checked_keys, has_homes, home_of, is_on_keys};
use ensue_resp::request::Blocking;
use ensue_resp::{CommandSpec, Flags, Route};
use ensue_types::{Args, Context, DatacenterId, KeyspaceId, Mode, Reply, Rule, partition_of};
use ensue_wire::{Address, CoreName, HomeOutcome, HomeRequest, Message};

/// A command with its row of the table.
pub(super) type Command<'a> = (&'static CommandSpec, &'a Args);

/// Where commands run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    Here,
    Away(DatacenterId),
    Refused(Reply),
}

/// Waiting for `HomeAnswer`.
#[derive(Clone, Debug)]
pub(super) struct AtHome {
    number: u64,
    keyspace: KeyspaceId,
    datacenter: DatacenterId,
    /// Of a command that may wait there.
    wait: Option<Box<Wait>>,
}

/// Where a command of the selected keyspace runs, or those of one `MULTI`.
pub(super) fn place<'a>(
    core: &CoreState,
    contexts: &Contexts,
    commands: impl IntoIterator<Item = Command<'a>>,
) -> Place {
    let (config, keyspace) = (&core.config, contexts.selected());
    let lines = core.homes.lines();
    if lines.is_empty() || !has_homes(lines, keyspace) {
        return Place::Here;
    }
    let mut reads_there =
        config.home_reads.contains(&keyspace) || !core.protocol(keyspace).capabilities().causality;
    let (mut homes, mut others) = (Vec::new(), false);
    for (spec, args) in commands {
        reads_there |= writes(spec);
        for key in keys(spec, args) {
            match home_of(lines, keyspace, key) {
                Some(home) if homes.contains(&home) => {}
                Some(home) => homes.push(home),
                None => others = true,
            }
        }
    }
    match homes[..] {
        _ if !reads_there || !Rule::HomeCommandsRunAtHome.holds() => Place::Here,
        [] => Place::Here,
        [_] if others => Place::Refused(HOME_AND_OTHERS),
        [home] if home == config.topology.datacenter => Place::Here,
        [_] if is_stable(contexts.own()) => Place::Refused(STABLE_AT_HOME),
        [home] => Place::Away(home),
        _ => Place::Refused(SEVERAL_HOMES),
    }
}

/// The one datacenter elsewhere at which these keys are watched, if they have their home there.
pub(super) fn watch_place<'a>(
    core: &CoreState,
    contexts: &Contexts,
    keys: impl IntoIterator<Item = &'a bytes::Bytes>,
) -> Place {
    let (config, keyspace) = (&core.config, contexts.selected());
    let own = config.topology.datacenter;
    let home = |key: &bytes::Bytes| home_of(core.homes.lines(), keyspace, key).unwrap_or(own);
    let mut homes: Vec<DatacenterId> = keys.into_iter().map(home).collect();
    homes.dedup();
    match homes[..] {
        _ if !Rule::HomeCommandsRunAtHome.holds() => Place::Here,
        [] => Place::Here,
        [home] if home == own => Place::Here,
        [_] if is_stable(contexts.own()) => Place::Refused(STABLE_AT_HOME),
        [home] => Place::Away(home),
        _ => Place::Refused(WATCHED_APART),
    }
}

/// Where a `MULTI` runs whose watched keys these are: where they are watched.
pub(super) fn place_of_watched<'a>(
    core: &CoreState,
    contexts: &Contexts,
    check: &Args,
    commands: impl IntoIterator<Item = Command<'a>>,
) -> Place {
    let (lines, keyspace) = (core.homes.lines(), contexts.selected());
    let commands: Vec<Command<'a>> = commands.into_iter().collect();
    match watch_place(core, contexts, checked_keys(check)) {
        Place::Here => match place(core, contexts, commands) {
            Place::Away(_) => Place::Refused(WATCHED_APART),
            place => place,
        },
        Place::Away(home) => {
            let mut keys = commands.iter().flat_map(|(spec, args)| keys(spec, args));
            match keys.all(|key| home_of(lines, keyspace, key) == Some(home)) {
                true => Place::Away(home),
                false => Place::Refused(WATCHED_APART),
            }
        }
        refused => refused,
    }
}

/// Whether this datacenter is the home of all keys of a request, which has some.
pub(super) fn is_home_of(core: &CoreState, request: &HomeRequest) -> bool {
    let mut keys = request.commands.iter().flat_map(keys_of).peekable();
    let own = Some(core.config.topology.datacenter);
    keys.peek().is_some() && keys.all(|key| home_of(core.homes.lines(), request.keyspace, key) == own)
}

/// The commands that put back what a request has popped for nobody, which was answered so.
pub(super) fn put_back(request: &HomeRequest, reply: &Reply) -> Option<Vec<Args>> {
    let Blocking { pop, .. } = Blocking::parse(request.commands.first()?)?;
    Some(vec![put_back::put_back(&pop, reply)?])
}

/// Whether a session reads only what is stable: it may not see what others have written where it reads.
pub(super) fn is_stable(context: &Context) -> bool {
    context.causes.times().is_ok_and(|vector| vector.mode == Mode::Stable)
}

/// Sends commands to the home of their keys.
pub(super) fn send(
    cx: &mut Cx<'_>,
    datacenter: DatacenterId,
    commands: Vec<Args>,
    transaction: bool,
) -> Step<AtHome> {
    let command = commands.first().filter(|_| !transaction);
    let round_ms = cx.core.config.tuning.home_round_ms;
    let wait = command.and_then(|args| Wait::begin(cx.now, args, round_ms)).map(Box::new);
    ask(cx, datacenter, commands, transaction, wait)
}

fn ask(
    cx: &mut Cx<'_>,
    datacenter: DatacenterId,
    commands: Vec<Args>,
    transaction: bool,
    wait: Option<Box<Wait>>,
) -> Step<AtHome> {
    let keyspace = cx.keyspace();
    let topology = &cx.core.config.topology;
    let spec = |args: &Args| args.first().and_then(|name| ensue_resp::lookup(name));
    let specs = commands.iter().filter_map(|args| Some((spec(args)?, args)));
    let may_write = specs.clone().any(|(spec, _)| writes(spec));
    let first = commands.iter().flat_map(keys_of).next();
    let Some(partition) = first.map(|key| partition_of(key, cx.spread())) else { return Step::Ready };
    let home = CoreName { datacenter, core: cx.core.placement.owner(topology, datacenter, partition) };
    let request = HomeRequest {
        boot: cx.core.config.boot,
        number: 0,
        home_boot: 0,
        below: 0,
        keyspace,
        context: past(cx),
        transaction,
        waits_ms: wait.as_ref().map_or(0, |wait| wait.round_ms(cx.now)),
        abandoned: false,
        commands,
    };
    cx.requests.ask(1);
    let request = match cx.core.home_requests.begin(cx.requests.session(), home, request) {
        Ok(request) => request,
        Err(why) => return Step::answer(unsent(cx, datacenter, why)),
    };
    if may_write {
        cx.requests.mark_write();
    }
    let tuning = &cx.core.config.tuning;
    let patience_ms = tuning.home_wait_ms + tuning.request_timeout_ms;
    match wait.as_ref().map_or(Some(0), |wait| wait.remaining_ms(cx.now)) {
        Some(waits_ms) => cx.begin(0, patience_ms.saturating_add(waits_ms)),
        None => {
            cx.begin(0, patience_ms);
            cx.requests.clear_deadline();
        }
    }
    let waiting = AtHome { number: request.number, keyspace, datacenter, wait };
    send_to(cx.core, home, request);
    Step::Waits(waiting)
}

fn send_to(core: &mut CoreState, home: CoreName, request: HomeRequest) {
    let to = Address::Core { datacenter: home.datacenter, core: home.core };
    core.send(to, request.context.time, Message::HomeRequest(request));
}

/// A home shall not execute a request any more, and put back what it has popped for nobody.
pub(super) fn abandon(core: &mut CoreState, number: u64) {
    if let Some((home, request)) = core.home_requests.abandon(number) {
        send_to(core, home, request);
    }
}

impl AtHome {
    /// Whether it waits for the answer of this number.
    pub(super) fn waits_for(&self, number: u64) -> bool {
        self.number == number
    }

    /// The command that waits for somebody else, if it may do so.
    pub(super) fn waiting(&self) -> Option<&Args> {
        self.wait.as_ref().map(|wait| wait.args())
    }

    pub(super) fn on_answer(self, cx: &mut Cx<'_>, outcome: HomeOutcome) -> Step<AtHome> {
        cx.core.home_requests.end(self.number);
        match outcome {
            HomeOutcome::Executed { context, reply } => {
                let protocol = cx.core.protocol(self.keyspace);
                if protocol.capabilities().causality && Rule::WaitForWhatHappenedAtHome.holds() {
                    cx.contexts.await_later(protocol, self.keyspace, context);
                }
                match self.wait {
                    Some(wait) if wait.goes_on_after(cx.now, &reply) => wait
                        .request_again(cx.now, |args, wait| {
                            ask(cx, self.datacenter, vec![args], false, Some(wait))
                        }),
                    _ if reply == MOVING => self.on_moved(cx, reply),
                    _ => Step::answer(reply),
                }
            }
            HomeOutcome::Refused { reply } if reply == NOT_HOME => self.on_moved(cx, reply),
            HomeOutcome::Refused { reply } => Step::answer(reply),
            HomeOutcome::Withdrawn => self.request_anew(cx, "does not hear this datacenter any more"),
            HomeOutcome::Forgotten if self.wait.as_ref().is_some_and(|wait| !wait.may_write()) => {
                self.request_anew(cx, "was restarted before it answered")
            }
            HomeOutcome::Forgotten => {
                Step::Failed(no_answer(cx, self.datacenter, "was restarted before it answered"))
            }
        }
    }

    /// Nothing was executed, since the home is elsewhere: what waits does so there, if that is known.
    fn on_moved(self, cx: &mut Cx<'_>, reply: Reply) -> Step<AtHome> {
        match self.home_now(cx) != self.datacenter {
            true => self.request_anew(cx, "has moved"),
            false => Step::answer(reply),
        }
    }

    /// The home of the keys of what waits, as it is known now.
    fn home_now(&self, cx: &Cx<'_>) -> DatacenterId {
        let first = self.wait.as_ref().and_then(|wait| keys_of(wait.args()).next().cloned());
        let home = first.and_then(|key| home_of(cx.core.homes.lines(), self.keyspace, &key));
        home.unwrap_or(self.datacenter)
    }

    /// Its place at the home is lost, and nothing was executed: it waits there again, or at the present home. If that
    /// is this datacenter, the client sends it again.
    pub(super) fn request_anew(self, cx: &mut Cx<'_>, why: &'static str) -> Step<AtHome> {
        let (home, own) = (self.home_now(cx), cx.core.config.topology.datacenter);
        match self.wait {
            Some(wait) if wait.may_begin_anew() && home != own => {
                wait.request_again(cx.now, |args, wait| ask(cx, home, vec![args], false, Some(wait)))
            }
            _ => {
                let home = name(cx, self.datacenter);
                let words = format!(
                    "HOMEAWAY {home}, the home of these keys, {why}: nothing was executed, try again"
                );
                Step::answer(Reply::Error(words.into()))
            }
        }
    }

    /// Nobody waits for its answer any more.
    pub(super) fn abandon(&self, cx: &mut Cx<'_>) {
        abandon(cx.core, self.number);
    }

    pub(super) fn on_timeout(self, cx: &mut Cx<'_>) -> Step<AtHome> {
        match self.wait {
            Some(_) => self.abandon(cx),
            None => cx.core.home_requests.end(self.number),
        }
        Step::Failed(no_answer(cx, self.datacenter, "did not answer in time"))
    }
}

/// The session's past in the selected keyspace, with what it did at homes.
fn past(cx: &Cx<'_>) -> Context {
    let mut past = cx.contexts.own().clone();
    if let Some(awaited) = cx.contexts.awaited(cx.keyspace()) {
        past.time = past.time.max(awaited.time);
        if cx.protocol().merge(&mut past.causes, &awaited.causes).is_err() {
            past.causes = awaited.causes.clone();
        }
    }
    past
}

/// Whether a command is about the session's pasts in all keyspaces: what is published carries them, and `FLUSHALL`
/// deletes what they hold.
pub(super) fn is_about_all_keyspaces(spec: &CommandSpec) -> bool {
    spec.route == Route::AllPartitions || matches!(spec.name, "publish" | "spublish")
}

fn writes(spec: &CommandSpec) -> bool {
    spec.is_write() && !spec.flags.contains(Flags::READONLY)
}

/// The keys of a command that goes to their home, those of `WATCH` and of what checks what is watched among them.
fn keys_of(args: &Args) -> impl Iterator<Item = &bytes::Bytes> {
    let spec = args.first().and_then(|name| ensue_resp::lookup(name));
    let watched = spec.filter(|spec| spec.name == "watch").map(|_| &args[1..]).unwrap_or_default();
    let own = spec.into_iter().flat_map(move |spec| keys(spec, args));
    checked_keys(args).chain(watched).chain(own)
}

/// The keys of a command; none of one that cannot be read.
fn keys<'a>(spec: &CommandSpec, args: &'a Args) -> impl Iterator<Item = &'a bytes::Bytes> + use<'a> {
    let args = if is_on_keys(spec) { &args[..] } else { &[] };
    ensue_resp::keys(spec, args)
}

fn name(cx: &Cx<'_>, datacenter: DatacenterId) -> String {
    cx.core.config.topology.name_of(datacenter)
}

fn no_answer(cx: &Cx<'_>, datacenter: DatacenterId, what: &'static str) -> Failure {
    Failure::NoAnswerAtHome { home: name(cx, datacenter), what }
}

fn unsent(cx: &Cx<'_>, datacenter: DatacenterId, why: Unsent) -> Reply {
    let what = match why {
        Unsent::Away => "cannot be reached: nothing was executed, try again when it is back",
        Unsent::TooMany => "has too many requests without an answer: nothing was executed, try again later",
    };
    Reply::Error(format!("HOMEAWAY {}, the home of these keys, {what}", name(cx, datacenter)).into())
}

/// A request at a datacenter that is not the home of its keys.
pub(super) const NOT_HOME: Reply =
    Reply::error("HOMEAWAY this datacenter is not the home of all these keys: nothing was executed");
/// A request beyond those that a home executes at once.
pub(super) const HOME_IS_BUSY: Reply = Reply::error(
    "HOMEAWAY the home of these keys has too many requests: nothing was executed, try again later",
);
/// A session that shares its past by a name.
pub(super) const SHARED: Reply = Reply::error(
    "ERR keys with a home elsewhere are not written in a shared causal session: nothing was executed; leave it with \
     CAUSAL SESSION",
);

/// The answer to a `WATCH`, and to an `EXEC`.
const WATCHED_APART: Reply = Reply::error(
    "CROSSHOME the keys that are watched, and those of the transaction, must have the same home: nothing was executed",
);
const SEVERAL_HOMES: Reply = Reply::error(
    "CROSSHOME the keys have different homes, and are not changed or read together: nothing was executed",
);
const HOME_AND_OTHERS: Reply = Reply::error(
    "CROSSHOME some of the keys have a home and others have none, so they are not changed or read together: nothing \
     was executed",
);
