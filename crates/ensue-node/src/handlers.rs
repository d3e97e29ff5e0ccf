//! Which handler folds the conflicting values of which key: by patterns, the first that matches.

mod lua;

pub use ensue_script::{HandlerRefused, HandlerWarning};
pub use lua::LuaHandler;

use bytes::Bytes;
use ensue_resp::glob;
use ensue_store::fold::{Fold, Handlers, Newest};
use ensue_types::KeyspaceId;
use std::sync::Arc;

/// One line of the configuration.
#[derive(Clone, Debug)]
pub struct Handler {
    pub keyspace: KeyspaceId,
    /// A pattern as `KEYS` has it.
    pub pattern: Bytes,
    pub fold: Arc<dyn Fold>,
}

/// The handlers of one keyspace, in the order in which they are tried.
#[derive(Debug)]
pub(crate) struct HandlerTable(Vec<(Bytes, Arc<dyn Fold>)>);

impl HandlerTable {
    pub fn of_keyspace(keyspace: KeyspaceId, all: &[Handler]) -> HandlerTable {
        let own = all.iter().filter(|handler| handler.keyspace == keyspace);
        HandlerTable(own.map(|handler| (handler.pattern.clone(), handler.fold.clone())).collect())
    }
}

impl Handlers for HandlerTable {
    fn of(&self, key: &[u8]) -> &dyn Fold {
        let found = self.0.iter().find(|(pattern, _)| glob::matches(pattern, key));
        found.map_or(&Newest, |(_, fold)| fold.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pattern_that_matches_names_the_handler() {
        let handler = |keyspace, pattern: &'static str, name| Handler {
            keyspace: KeyspaceId(keyspace),
            pattern: Bytes::from(pattern),
            fold: ensue_store::fold::by_name(name).expect("built in"),
        };
        let all = [handler(1, "cart:*", "union"), handler(0, "*", "min"), handler(1, "c*", "max")];
        let table = HandlerTable::of_keyspace(KeyspaceId(1), &all);
        let names = [&b"cart:1"[..], b"count", b"other"].map(|key| table.of(key).name().to_owned());
        assert_eq!(names, ["union", "max", "newest"]);
    }
}
