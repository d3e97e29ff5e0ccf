//! The processor time that processes of this machine have used, from `/proc`.

use crate::error::LoadError;
use std::fs;
use std::io;

/// Clock ticks a second of `/proc/PID/stat`, which Linux shows to programs as a hundred everywhere.
const TICKS_PER_SECOND: u64 = 100;

/// Nanoseconds that all threads of these processes have run.
pub fn processor_ns(pids: &[u32]) -> Result<u64, LoadError> {
    let each = pids.iter().map(|pid| one(*pid).map_err(|error| LoadError::Process { pid: *pid, error }));
    each.sum()
}

/// The scheduler counts nanoseconds, but of living threads only; where it does not say, ticks of ten milliseconds.
fn one(pid: u32) -> io::Result<u64> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        let ran: Option<u64> = text.split_whitespace().next().and_then(|word| word.parse().ok());
        match ran {
            Some(ran) => sum += ran,
            None => return ticks(&fs::read_to_string(format!("/proc/{pid}/stat"))?),
        }
    }
    Ok(sum)
}

/// Fields 14 and 15, counted behind the name, which may hold blanks.
fn ticks(stat: &str) -> io::Result<u64> {
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = after_name.split_whitespace().skip(11).take(2).map(|word| word.parse::<u64>().ok());
    match (fields.next().flatten(), fields.next().flatten()) {
        (Some(user), Some(system)) => Ok((user + system) * (1_000_000_000 / TICKS_PER_SECOND)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests;
