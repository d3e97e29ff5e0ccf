//! Decides from what clients did and saw, and from nothing else, whether a store kept its promises.
//!
//! A history comes in (`history`, from a file by `format` or made by `builder`), verdicts go out (`report`). What is
//! judged is in `property`, and defined in `docs/checking.md`. Nothing here knows Ensue: any store's clients can
//! write a history.

pub mod agreement;
pub mod builder;
pub mod delay_once;
pub mod draw;
pub mod explain;
pub mod fast;
pub mod format;
pub mod generate;
pub mod history;
pub mod property;
pub mod random;
pub mod reference;
pub mod report;
mod tables;

pub use fast::check;
pub use history::History;
pub use property::Property;
pub use report::{Options, Report, Verdict};
