//! Colour for people: where output goes to a terminal and `NO_COLOR` is not set; plain text everywhere else.

use std::io::IsTerminal;

/// Whether to use colour on standard output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    pub(crate) fn for_stdout() -> Paint {
        Paint { on: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() }
    }

    #[cfg(test)]
    pub(crate) fn off() -> Paint {
        Paint { on: false }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.wrap("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.wrap("31", text)
    }

    pub(crate) fn notable(self, text: &str) -> String {
        self.wrap("33", text)
    }

    pub(crate) fn command(self, text: &str) -> String {
        self.wrap("36", text)
    }

    /// One of twelve colours, again from the first after the last.
    pub(crate) fn lane(self, number: usize, text: &str) -> String {
        const CODES: [&str; 12] = ["31", "32", "33", "34", "35", "36", "91", "92", "93", "94", "95", "96"];
        self.wrap(CODES[number % CODES.len()], text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }
}
