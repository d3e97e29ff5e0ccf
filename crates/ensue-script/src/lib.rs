//! Scripts: Lua texts, known by the digest of their bytes, run against commands that somebody else carries out.
//!
//! A text, keys and arguments arrive, and [`Calls`], who executes commands; an [`Outcome`] leaves. Values are converted
//! as Redis converts them. The same script with the same answers to its commands gives the same outcome: there is no
//! clock, no chance and nothing of the machine in reach of a script. It is bounded by steps and by memory, and what is
//! stopped there is told apart from what failed by itself, so that the caller can undo it. This crate knows no rows, no
//! partitions and no sessions; which commands there are is the caller's matter. A handler of conflicts is a script
//! without commands: siblings arrive, a value leaves ([`HandlerScript`]).

mod handlers;
mod libraries;
#[cfg(feature = "luau")]
mod number;
mod scripts;
mod sha1;

#[cfg(feature = "luau")]
mod engine;
#[cfg(not(feature = "luau"))]
#[path = "engine/absent.rs"]
mod engine;

pub use handlers::{
    HandledSibling, HandlerFailure, HandlerLimits, HandlerRefused, HandlerScript, HandlerWarning,
};
pub use libraries::{Function, Libraries, Library};
pub use scripts::{
    Call, Called, Calls, Growth, Invocation, Limits, Outcome, Run, Script, Scripts, says_no_writes,
};
pub use sha1::Sha1;

#[cfg(all(test, feature = "luau"))]
mod tests;
