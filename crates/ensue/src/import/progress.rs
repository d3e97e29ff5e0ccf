//! How far something long is: a bar where a terminal shows it, a line now and then elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const BAR_CELLS: usize = 30;
const BAR_INTERVAL: Duration = Duration::from_millis(100);
const LINE_INTERVAL: Duration = Duration::from_secs(10);

pub(crate) struct Progress {
    is_terminal: bool,
    began: Instant,
    shown: Option<Instant>,
}

impl Progress {
    pub(crate) fn new() -> Progress {
        Progress { is_terminal: std::io::stderr().is_terminal(), began: Instant::now(), shown: None }
    }

    /// Shows how many of how many bytes are done, if it is time to. What is not known to end has no total.
    pub(crate) fn show(&mut self, done: u64, total: Option<u64>, text: impl FnOnce() -> String) {
        let interval = if self.is_terminal { BAR_INTERVAL } else { LINE_INTERVAL };
        if self.shown.unwrap_or(self.began).elapsed() < interval {
            return;
        }
        self.shown = Some(Instant::now());
        let share = total.filter(|total| *total > 0).map(|total| done.min(total) as f64 / total as f64);
        let percent = share.map(|share| format!("{:3.0} %  ", share * 100.0)).unwrap_or_default();
        if self.is_terminal {
            let bar = share.map(|share| {
                let full = (share * BAR_CELLS as f64) as usize;
                format!("[{}{}] ", "#".repeat(full), " ".repeat(BAR_CELLS - full))
            });
            eprint!("\r\x1b[K{}{percent}{}", bar.unwrap_or_default(), text());
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{percent}{}", text());
        }
    }

    /// Makes room for what is printed next.
    pub(crate) fn clear(&mut self) {
        if self.is_terminal && self.shown.take().is_some() {
            eprint!("\r\x1b[K");
        }
    }
}

/// Bytes as people read them.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{value:.1} {}", UNITS[unit]) }
}
