//! `CAUSAL` and its subcommands: the session's past as something that the client can hold.
//!
//! What waits has a module of its own: `merge`, `replicas`, `shared`. A keyspace whose protocol carries no causality
//! refuses them by name, `DIGEST` and `HELP` excepted; one that looks for no conflicts refuses `CONFLICTS`.

use super::combine::Combination;
use super::parallel::Then;
use super::plan::Plan;
use super::token::Token;
use super::turn::Turn;
use bytes::Bytes;
use ensue_resp::{CommandError, number};
use ensue_types::{Args, KeyspaceId, Reply, limits, partition_of};

/// How long MERGE and WAIT wait unless told.
const TIMEOUT_MS: u64 = 1_000;
/// Longest name of a shared context.
const SESSION_NAME_BYTES_MAX: usize = 256;

impl Turn<'_> {
    pub(super) fn causal(&mut self, args: Args) {
        let subcommand = args[1].to_ascii_lowercase();
        let carries = self.desk.protocol(self.session.keyspace).capabilities().causality;
        match (subcommand.as_slice(), &args[2..]) {
            (b"help", []) => self.reply(&Reply::Array(HELP.iter().map(|&line| status(line)).collect())),
            (b"digest", rest) if rest.len() <= 1 => self.causal_digest(rest.first()),
            (b"token" | b"merge" | b"wait" | b"session", _) if !carries => {
                let reply = self.no_causality();
                self.reply(&reply);
            }
            (b"token", []) => self.causal_token(),
            (b"merge", [token, rest @ ..]) => match timeout(rest) {
                Ok(timeout_ms) => self.causal_merge(token, timeout_ms),
                Err(error) => self.reply(&error),
            },
            (b"wait", [datacenters, rest @ ..]) => match (number::parse_i64(datacenters), timeout(rest)) {
                (Some(wanted), Ok(timeout_ms)) if wanted >= 0 => self.causal_wait(wanted, timeout_ms),
                (_, Err(error)) => self.reply(&error),
                _ => self.reply(&CommandError::NotInteger.reply()),
            },
            (b"session", rest) if rest.len() <= 1 => self.causal_session(rest.first()),
            (b"dead", [name, words @ ..]) => self.causal_dead(name, words),
            (b"readmit", [name]) => self.causal_readmit(name),
            (b"readmit", _) => self.reply(&CommandError::wrong_arity("causal|readmit").reply()),
            (b"help", _) => self.reply(&CommandError::wrong_arity("causal|help").reply()),
            (b"digest", _) => self.reply(&CommandError::wrong_arity("causal|digest").reply()),
            (b"discarded", []) => {
                let args = vec![Bytes::from_static(b"causal"), Bytes::from_static(b"discarded")];
                self.ask_everywhere(Combination::Concatenate, false, &[self.session.keyspace], &args);
            }
            (b"conflicts", rest) if rest.len() <= 1 => self.causal_conflicts(rest.first()),
            (b"conflicts", _) => self.reply(&CommandError::wrong_arity("causal|conflicts").reply()),
            (b"discarded", _) => self.reply(&CommandError::wrong_arity("causal|discarded").reply()),
            (b"dead", _) => self.reply(&CommandError::wrong_arity("causal|dead").reply()),
            (b"token", _) => self.reply(&CommandError::wrong_arity("causal|token").reply()),
            (b"merge", _) => self.reply(&CommandError::wrong_arity("causal|merge").reply()),
            (b"wait", _) => self.reply(&CommandError::wrong_arity("causal|wait").reply()),
            (b"session", _) => self.reply(&CommandError::wrong_arity("causal|session").reply()),
            _ => self.reply(&CommandError::unknown_subcommand("causal", &args[1]).reply()),
        }
    }

    fn causal_token(&mut self) {
        let token = Token { keyspace: self.session.keyspace, context: self.session.context().clone() };
        self.reply(&Reply::bulk(token.encode()));
    }

    /// Joins or leaves a shared context. The session's past so far goes into it with its next step.
    fn causal_session(&mut self, name: Option<&Bytes>) {
        if name.is_some_and(|name| name.len() > SESSION_NAME_BYTES_MAX) {
            return self.reply(&Reply::error("ERR the name of a causal session is too long"));
        }
        // The client's own bytes would keep all that came with them in memory.
        let name = name.filter(|name| !name.is_empty());
        self.session.shared = name.map(|name| Bytes::copy_from_slice(name));
        self.session.fresh = false;
        self.reply(&Reply::OK);
    }

    fn causal_digest(&mut self, keyspace: Option<&Bytes>) {
        let keyspace = match keyspace {
            None => Some(self.session.keyspace),
            Some(number) => self.keyspace_of(number),
        };
        let Some(keyspace) = keyspace else { return self.reply(&KEYSPACE_OUT_OF_RANGE) };
        let args = vec![Bytes::from_static(b"causal"), Bytes::from_static(b"digest")];
        self.ask_everywhere(Combination::Digest, false, &[keyspace], &args);
    }

    /// The owner of a key lists what stands there beside each other; without a key, all list the conflicts that they saw.
    fn causal_conflicts(&mut self, key: Option<&Bytes>) {
        let keyspace = self.session.keyspace;
        let protocol = self.desk.protocol(keyspace);
        if !protocol.needs().previous_versions {
            let words = format!(
                "ERR keyspace {} uses protocol {}, which looks for no conflicts",
                keyspace.0,
                protocol.name()
            );
            return self.reply(&Reply::Error(words.into()));
        }
        let mut args = vec![Bytes::from_static(b"causal"), Bytes::from_static(b"conflicts")];
        let Some(key) = key else {
            return self.ask_everywhere(Combination::Concatenate, false, &[keyspace], &args);
        };
        args.push(key.clone());
        let mut plan = Plan::single(self.desk.partitions());
        plan.add_at(partition_of(key, self.desk.spread(keyspace)), false, args);
        self.ask(1);
        self.execute_in_parallel(plan, &[keyspace], Then::Answer);
    }

    /// Every partition of this datacenter looks again at another datacenter that it refuses.
    fn causal_readmit(&mut self, name: &Bytes) {
        let topology = &self.desk.config.topology;
        match topology.datacenter_named(name) {
            None => self.reply(&Reply::error("ERR there is no datacenter of this name")),
            Some(datacenter) if datacenter == topology.datacenter => {
                self.reply(&Reply::error(
                    "ERR this is the datacenter itself; name the one that is refused here",
                ));
            }
            Some(_) => {
                let args = vec![Bytes::from_static(b"causal"), Bytes::from_static(b"readmit"), name.clone()];
                self.ask_everywhere(Combination::AllOk, true, &[self.session.keyspace], &args);
            }
        }
    }

    fn no_causality(&self) -> Reply {
        let (keyspace, protocol) = (self.session.keyspace, self.desk.protocol(self.session.keyspace).name());
        let words =
            format!("ERR keyspace {} uses protocol {protocol}, which carries no causality", keyspace.0);
        Reply::Error(words.into())
    }

    /// The keyspace of this number, if the configuration has it.
    pub(super) fn keyspace_of(&self, number: &[u8]) -> Option<KeyspaceId> {
        let index = number::parse_i64(number).and_then(|number| u8::try_from(number).ok())?;
        (usize::from(index) < self.session.contexts.len()).then_some(KeyspaceId(index))
    }
}

/// Reads `[TIMEOUT ms]`.
fn timeout(words: &[Bytes]) -> Result<u64, Reply> {
    match words {
        [] => Ok(TIMEOUT_MS),
        [word, ms] if word.eq_ignore_ascii_case(b"timeout") => number::parse_i64(ms)
            .and_then(|ms| u64::try_from(ms).ok())
            .filter(|&ms| ms <= limits::CAUSAL_TIMEOUT_MS_MAX)
            .ok_or(Reply::error("ERR timeout is not an integer or out of range")),
        _ => Err(CommandError::Syntax.reply()),
    }
}

fn status(line: &'static str) -> Reply {
    Reply::Status(line.into())
}

pub(super) const KEYSPACE_OUT_OF_RANGE: Reply = Reply::error("ERR DB index is out of range");

const HELP: [&str; 27] = [
    "CAUSAL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "TOKEN",
    "    Return this connection's causal past in the selected keyspace, as text.",
    "MERGE <token> [TIMEOUT <milliseconds>]",
    "    Wait until this datacenter has everything the token depends on, then add it to this connection's past.",
    "WAIT <datacenters> [TIMEOUT <milliseconds>]",
    "    Wait until that many datacenters, this one included, hold this connection's past durably; return how many do.",
    "SESSION [<name>]",
    "    Share one causal past with every connection of this datacenter that names it; without a name, leave it.",
    "DIGEST [<keyspace>]",
    "    Return a digest of a keyspace, equal in all datacenters once they have received the same writes.",
    "DEAD <datacenter>",
    "    Show what is known of a datacenter that may be lost for good, and a digest of that.",
    "DEAD <datacenter> CONFIRM <digest> [FORCE]",
    "    Declare it lost for good: all others agree on what they have of it and go on without it, for ever.",
    "DISCARDED",
    "    List the updates of all keyspaces that were discarded here with dead datacenters, each as a line of JSON.",
    "CONFLICTS [<key>]",
    "    List the values of a key that stand beside each other, or the conflicts seen here, each as a line of JSON.",
    "HELP",
    "    Print this help.",
    "Errors:",
    "    NOTYET        this datacenter has not received everything a token depends on",
    "    NEVERISSUED   a token names what this datacenter itself has never issued",
    "    DISCARDED     a token's past was lost with a dead datacenter",
    "    CLOCKAHEAD    a token is from further in the future than clocks may differ",
    "    UNAVAILABLE   a partition did not answer; UNKNOWN the same of a write",
];
