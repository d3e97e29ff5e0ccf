//! The fast checker: a million operations in seconds.

use crate::history::History;
use crate::report::{Options, Reason, Report, Verdict};

/// Judges a history by the properties of the options.
pub fn check(_history: &History, options: &Options) -> Report {
    let undecided = || Verdict::Undecided(Reason { text: "this property is not judged yet".into(), line: 0 });
    let verdicts = options.properties.iter().map(|&property| (property, undecided())).collect();
    Report { verdicts, notes: Vec::new() }
}
