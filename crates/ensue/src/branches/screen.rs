//! The terminal: how large it is, and how one picture replaces another without flicker.

use std::io::{IsTerminal, Write};

/// Columns where nothing says how many there are.
const COLUMNS_DEFAULT: usize = 100;

/// The size of standard output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    pub columns: usize,
    /// Nothing if it is not a terminal: then all lines are shown.
    rows: Option<usize>,
}

impl Screen {
    pub(super) fn of_stdout() -> Screen {
        let stdout = std::io::stdout();
        let size = if stdout.is_terminal() { rustix::termios::tcgetwinsize(&stdout).ok() } else { None };
        // A terminal that does not know its size says 0.
        let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
        let named = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        Screen {
            columns: size.map(|size| usize::from(size.ws_col)).or(named).unwrap_or(COLUMNS_DEFAULT),
            rows: size.map(|size| usize::from(size.ws_row)),
        }
    }

    /// Puts text in place of what was shown before. Not a terminal: puts it below, after an empty line.
    pub(super) fn show(self, text: &str) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(self.frame(text).as_bytes())?;
        out.flush()
    }

    fn frame(self, text: &str) -> String {
        let Some(rows) = self.rows else { return format!("{text}\n") };
        // Home, each line and what was right of it, then what was below: nothing is blank in between.
        let mut frame = String::from("\x1b[H");
        // The last row stays empty: a line end there would scroll.
        for line in text.lines().take(rows.saturating_sub(1)) {
            frame.push_str(line);
            frame.push_str("\x1b[K\n");
        }
        frame.push_str("\x1b[J");
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_fits_the_terminal_and_clears_what_was_there() {
        let screen = Screen { columns: 80, rows: Some(3) };
        assert_eq!(screen.frame("a\nb\nc\n"), "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J");
        let pipe = Screen { columns: 80, rows: None };
        assert_eq!(pipe.frame("a\nb\n"), "a\nb\n\n");
    }
}
