//! Which connections `CLIENT LIST` shows.

use bytes::Bytes;
use ensue_resp::{CommandError, number};
use ensue_types::Reply;

/// Which connections `CLIENT LIST` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    All,
    None,
    Ids(Vec<u64>),
}

impl Filter {
    pub(crate) fn new(words: &[Bytes]) -> Result<Filter, Reply> {
        match words {
            [] => Ok(Filter::All),
            [word, kind] if word.eq_ignore_ascii_case(b"type") => {
                match kind.to_ascii_lowercase().as_slice() {
                    b"normal" => Ok(Filter::All),
                    b"master" | b"replica" | b"slave" | b"pubsub" => Ok(Filter::None),
                    _ => {
                        let kind = String::from_utf8_lossy(kind).into_owned();
                        Err(Reply::Error(format!("ERR Unknown client type '{kind}'").into()))
                    }
                }
            }
            [word, ids @ ..] if word.eq_ignore_ascii_case(b"id") && !ids.is_empty() => {
                let parse = |id: &Bytes| number::parse_i64(id).and_then(|id| u64::try_from(id).ok());
                let ids: Option<Vec<u64>> = ids.iter().map(parse).collect();
                ids.map(Filter::Ids).ok_or(Reply::error("ERR Invalid client ID"))
            }
            _ => Err(CommandError::Syntax.reply()),
        }
    }

    /// Keeps the lines that the filter accepts.
    pub(crate) fn apply(&self, lines: &str) -> String {
        let accepts = |line: &&str| match self {
            Filter::All => true,
            Filter::None => false,
            Filter::Ids(ids) => ids.iter().any(|id| line.starts_with(&format!("id={id} "))),
        };
        lines.split_inclusive('\n').filter(accepts).collect()
    }
}
