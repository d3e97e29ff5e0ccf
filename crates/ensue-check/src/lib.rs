//! Decides from what clients did and saw, and from nothing else, whether a store kept its promises.
//!
//! A history comes in (`history`), verdicts go out. Nothing here knows Ensue: any store's clients can write one.

pub mod history;
pub mod reference;
