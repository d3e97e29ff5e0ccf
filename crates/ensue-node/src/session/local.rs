//! Commands that the session answers without asking anyone, and the door to those that have a module of their own.

use super::causal::KEYSPACE_OUT_OF_RANGE;
use super::turn::Turn;
use bytes::Bytes;
use ensue_resp::{CommandError, CommandSpec, describe, glob, number};
use ensue_types::{Args, KeyspaceId, Reply};

impl Turn<'_> {
    pub(super) fn session_command(&mut self, spec: &'static CommandSpec, args: Args) {
        match spec.name {
            "auth" => self.auth(&args),
            "causal" => self.causal(args),
            "client" => self.client(&args),
            "config" => self.config(&args),
            "hello" => self.hello(&args),
            "info" => self.info(&args),
            "multi" => self.begin_multi(),
            "quit" => {
                self.reply(&Reply::OK);
                self.close();
            }
            "reset" => self.reset(),
            "select" => self.select(&args),
            _ => {
                let reply = self.local_reply(spec, &args);
                self.reply(&reply);
            }
        }
    }

    /// The answer to a command that neither changes the session nor waits.
    pub(super) fn local_reply(&self, spec: &CommandSpec, args: &Args) -> Reply {
        match spec.name {
            "ping" => match &args[1..] {
                [] => Reply::Status("PONG".into()),
                [message] => Reply::Bulk(message.clone()),
                _ => CommandError::wrong_arity("ping").reply(),
            },
            "echo" => Reply::Bulk(args[1].clone()),
            "time" => self.time(),
            "command" => describe::command(args),
            "cluster" => Reply::error("ERR This instance has cluster support disabled"),
            "unwatch" => Reply::OK,
            // Only inside MULTI, where it was checked to name the selected keyspace.
            "select" => Reply::OK,
            "watch" => WATCH,
            "exec" => Reply::error("ERR EXEC without MULTI"),
            "discard" => Reply::error("ERR DISCARD without MULTI"),
            _ => CommandError::unknown_command(args).reply(),
        }
    }

    fn time(&self) -> Reply {
        let ms = self.now.wall_ms;
        let microseconds = (ms % 1_000) * 1_000;
        Reply::Array(vec![Reply::bulk((ms / 1_000).to_string()), Reply::bulk(microseconds.to_string())])
    }

    fn select(&mut self, args: &Args) {
        let reply = match self.selects(args) {
            Some(keyspace) => {
                self.session.keyspace = keyspace;
                Reply::OK
            }
            None if number::parse_i64(&args[1]).is_none() => CommandError::NotInteger.reply(),
            None => KEYSPACE_OUT_OF_RANGE,
        };
        self.reply(&reply);
    }

    /// The keyspace that a `SELECT` names, if there is one.
    pub(super) fn selects(&self, args: &Args) -> Option<KeyspaceId> {
        self.keyspace_of(args.get(1)?)
    }

    fn config(&mut self, args: &Args) {
        let subcommand = args[1].to_ascii_lowercase();
        let reply = match (subcommand.as_slice(), &args[2..]) {
            (b"get", patterns @ [_, ..]) => self.config_get(patterns),
            (b"set", [name, _, ..]) => Reply::Error(
                format!(
                    "ERR CONFIG SET failed (possibly related to argument '{}') - can't set immutable config",
                    String::from_utf8_lossy(name)
                )
                .into(),
            ),
            (b"resetstat", []) => {
                self.desk.counters = Default::default();
                Reply::OK
            }
            (b"rewrite", []) => Reply::error(
                "ERR CONFIG REWRITE is not supported: the configuration is only read, at the start",
            ),
            (b"help", []) => {
                Reply::Array(CONFIG_HELP.iter().map(|&line| Reply::Status(line.into())).collect())
            }
            (b"get", _) => CommandError::wrong_arity("config|get").reply(),
            (b"set", _) => CommandError::wrong_arity("config|set").reply(),
            (b"resetstat", _) => CommandError::wrong_arity("config|resetstat").reply(),
            (b"rewrite", _) => CommandError::wrong_arity("config|rewrite").reply(),
            (b"help", _) => CommandError::wrong_arity("config|help").reply(),
            _ => CommandError::unknown_subcommand("config", &args[1]).reply(),
        };
        self.reply(&reply);
    }

    fn config_get(&self, patterns: &[Bytes]) -> Reply {
        let patterns: Vec<Vec<u8>> = patterns.iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
        let directives = self.desk.config.directives.iter();
        let matching = directives
            .filter(|(name, _)| patterns.iter().any(|pattern| glob::matches(pattern, name.as_bytes())))
            .map(|(name, value)| (Reply::bulk(name.clone()), Reply::bulk(value.clone())));
        Reply::Map(matching.collect())
    }
}

const WATCH: Reply = Reply::error(
    "ERR WATCH is not supported: a write elsewhere may not have arrived yet, so nothing can be promised of it; use a \
     command that reads to write, or a lock of your own",
);

const CONFIG_HELP: [&str; 9] = [
    "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GET <pattern> [<pattern> ...]",
    "    Return parameters matching the glob-like <pattern> and their values.",
    "SET <directive> <value>",
    "    Refused: parameters are set when the server starts.",
    "RESETSTAT",
    "    Reset statistics reported by the INFO command.",
    "HELP",
    "    Print this help.",
];
