//! A handler of conflicts that is a Lua text.
//!
//! Siblings as the store has them arrive, and are what the text is given; what it returns leaves. It is named by its
//! file, without folders, which may differ from machine to machine; two datacenters with the same name and other texts
//! have different handlers. Where no value stands it is not asked: what was deleted everywhere stays deleted, wherever
//! tombstones are collected first.

use bytes::Bytes;
use ensue_script::{
    HandledSibling, HandlerFailure, HandlerLimits, HandlerRefused, HandlerScript, HandlerWarning,
};
use ensue_store::fold::{Failed, Fold, Folded, counted};
use ensue_types::{Stamp, limits};

const LIMITS: HandlerLimits = HandlerLimits {
    steps_max: limits::HANDLER_STEPS_MAX,
    memory_bytes_max: limits::HANDLER_MEMORY_BYTES_MAX,
    value_bytes_max: limits::HANDLER_VALUE_BYTES_MAX,
};

/// See the module.
#[derive(Debug)]
pub struct LuaHandler {
    /// `lua` and the name of the file.
    name: String,
    script: HandlerScript,
}

impl LuaHandler {
    /// The handler with this text, and what its writer may not have meant; or why it is none.
    pub fn proved(file: &str, text: &[u8]) -> Result<(LuaHandler, Vec<HandlerWarning>), HandlerRefused> {
        let (script, warnings) = HandlerScript::proved(text, LIMITS)?;
        Ok((LuaHandler::new(file, script), warnings))
    }

    /// The same without a proof: for texts of tests, some of which fail on some siblings.
    pub fn unproved(file: &str, text: &[u8]) -> Result<LuaHandler, HandlerRefused> {
        let script = HandlerScript::compile(text, LIMITS).map_err(HandlerRefused::Compile)?;
        Ok(LuaHandler::new(file, script))
    }

    fn new(file: &str, script: HandlerScript) -> LuaHandler {
        LuaHandler { name: format!("lua {}", file.escape_debug()), script }
    }
}

impl Fold for LuaHandler {
    fn name(&self) -> &str {
        &self.name
    }

    fn fold(&self, siblings: &[Folded]) -> Result<Option<Bytes>, Failed> {
        let given: Vec<HandledSibling> = counted(siblings)
            .map(|(sibling, value)| HandledSibling {
                value: value.cloned(),
                stamp: sortable(sibling.stamp),
                datacenter: u32::from(sibling.stamp.datacenter.0) + 1,
            })
            .collect();
        if given.iter().all(|sibling| sibling.value.is_none()) {
            return Ok(None);
        }
        let failed = |why: HandlerFailure| Failed(why.to_string().into());
        self.script.fold(&given).map_err(failed)
    }

    fn identity(&self) -> String {
        format!("{} {}", self.name, self.script.digest())
    }
}

/// As text that sorts as stamps do.
fn sortable(stamp: Stamp) -> String {
    let Stamp { time, datacenter, partition } = stamp;
    format!("{:020}-{:03}-{:05}", time.0, u32::from(datacenter.0) + 1, partition.0)
}

#[cfg(all(test, feature = "scripts"))]
mod tests;
