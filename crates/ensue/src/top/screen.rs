//! The terminal while it is drawn on, and as it was before when that ends: by a key, a signal, an error or a panic.

use ratatui::{DefaultTerminal, Frame};
use std::io;

/// The terminal, taken until this is dropped.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: DefaultTerminal,
}

impl Screen {
    /// Takes it, for drawing and for keys. A panic of any thread gives it back before its message is written.
    pub(super) fn take() -> io::Result<Screen> {
        match ratatui::try_init() {
            Ok(terminal) => Ok(Screen { terminal }),
            Err(error) => {
                // Raw mode may be on already, and what failed came after it.
                ratatui::restore();
                Err(error)
            }
        }
    }

    pub(super) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(picture).map(|_| ())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
