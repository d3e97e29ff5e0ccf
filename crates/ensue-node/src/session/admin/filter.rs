//! Which connections `CLIENT LIST` shows and `CLIENT KILL` closes, by their lines.

use bytes::Bytes;
use ensue_resp::{CommandError, number};
use ensue_types::Reply;

/// Which connections are meant: those that all of these accept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    ids: Option<Vec<u64>>,
    address: Option<String>,
    local_address: Option<String>,
    kind: Option<ClientKind>,
    user: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientKind {
    Normal,
    Subscriber,
    /// There are none.
    Replica,
}

/// What `CLIENT KILL` closes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kill {
    pub(crate) filter: Filter,
    /// The connection that asks stays open.
    pub(crate) skip_me: bool,
    /// Asked by an address alone: answered with `OK`, or an error if there is none.
    pub(crate) by_address: bool,
}

impl Filter {
    /// What follows `CLIENT LIST`.
    pub(crate) fn new(words: &[Bytes]) -> Result<Filter, Reply> {
        match words {
            [] => Ok(Filter::default()),
            [word, kind] if word.eq_ignore_ascii_case(b"type") => {
                Ok(Filter { kind: Some(client_kind(kind)?), ..Filter::default() })
            }
            [word, ids @ ..] if word.eq_ignore_ascii_case(b"id") && !ids.is_empty() => {
                let parse = |id: &Bytes| number::parse_i64(id).and_then(|id| u64::try_from(id).ok());
                let ids: Option<Vec<u64>> = ids.iter().map(parse).collect();
                let ids = Some(ids.ok_or(Reply::error("ERR Invalid client ID"))?);
                Ok(Filter { ids, ..Filter::default() })
            }
            _ => Err(CommandError::Syntax.reply()),
        }
    }

    /// Keeps the lines that the filter accepts.
    pub(crate) fn apply(&self, lines: &str) -> String {
        lines.split_inclusive('\n').filter(|line| self.accepts(line)).collect()
    }

    /// Whether the connection of a line is meant.
    pub(crate) fn accepts(&self, line: &str) -> bool {
        let field = |name: &str| {
            line.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        };
        let is = |name: &str, wanted: &Option<String>| {
            wanted.as_ref().is_none_or(|wanted| field(name) == Some(wanted.as_str()))
        };
        let id = field("id").and_then(|id| id.parse::<u64>().ok());
        let subscribes =
            ["sub", "psub", "ssub"].iter().any(|name| field(name).is_some_and(|count| count != "0"));
        let kind = if subscribes { ClientKind::Subscriber } else { ClientKind::Normal };
        self.ids.as_ref().is_none_or(|ids| id.is_some_and(|id| ids.contains(&id)))
            && is("addr", &self.address)
            && is("laddr", &self.local_address)
            && is("user", &self.user)
            && self.kind.is_none_or(|wanted| wanted == kind)
    }
}

impl Kill {
    /// Whose connections are meant, if only those of one user are.
    pub(crate) fn user(&self) -> Option<&str> {
        self.filter.user.as_deref()
    }

    /// What follows `CLIENT KILL`: an address, or pairs of a word and a value.
    pub(crate) fn new(words: &[Bytes]) -> Result<Kill, Reply> {
        let text = |word: &Bytes| String::from_utf8_lossy(word).into_owned();
        if let [address] = words {
            let filter = Filter { address: Some(text(address)), ..Filter::default() };
            return Ok(Kill { filter, skip_me: false, by_address: true });
        }
        let mut kill = Kill { filter: Filter::default(), skip_me: true, by_address: false };
        for pair in words.chunks(2) {
            let [word, value] = pair else { return Err(CommandError::Syntax.reply()) };
            match word.to_ascii_lowercase().as_slice() {
                b"id" => {
                    let id =
                        number::parse_i64(value).and_then(|id| u64::try_from(id).ok()).filter(|id| *id > 0);
                    let id = id.ok_or(Reply::error("ERR client-id should be greater than 0"))?;
                    kill.filter.ids = Some(vec![id]);
                }
                b"addr" => kill.filter.address = Some(text(value)),
                b"laddr" => kill.filter.local_address = Some(text(value)),
                b"type" => kill.filter.kind = Some(client_kind(value)?),
                b"user" => kill.filter.user = Some(text(value)),
                b"skipme" if value.eq_ignore_ascii_case(b"yes") => kill.skip_me = true,
                b"skipme" if value.eq_ignore_ascii_case(b"no") => kill.skip_me = false,
                _ => return Err(CommandError::Syntax.reply()),
            }
        }
        Ok(kill)
    }
}

fn client_kind(word: &[u8]) -> Result<ClientKind, Reply> {
    match word.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(ClientKind::Normal),
        b"pubsub" => Ok(ClientKind::Subscriber),
        b"master" | b"replica" | b"slave" => Ok(ClientKind::Replica),
        _ => Err(Reply::Error(format!("ERR Unknown client type '{}'", String::from_utf8_lossy(word)).into())),
    }
}
