//! How long the threads of this process have run, as Linux says; nothing elsewhere.

use ensue_node::CpuReport;

/// The time so far.
pub(crate) fn report() -> Option<CpuReport> {
    parse(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// The fields stand behind the program's name, which is in parentheses and may hold anything.
fn parse(stat: &str) -> Option<CpuReport> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(FIELDS_BEFORE);
    let mut us = || Some(fields.next()?.parse::<u64>().ok()? * TICK_US);
    Some(CpuReport { user_us: us()?, system_us: us()? })
}

/// Between the name and the time in user mode.
const FIELDS_BEFORE: usize = 11;
/// The kernel gives these times in hundredths of a second on every machine.
const TICK_US: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_linux() {
        let line = "25891 (a) b (c) S 1 25 25 0 -1 4194560 1519 0 12 0 134 57 0 0 20 0 6 0 22 9 6 1";
        assert_eq!(parse(line), Some(CpuReport { user_us: 1_340_000, system_us: 570_000 }));
        assert_eq!(parse("nothing"), None);
    }
}
