//! Prints the story: colours and pauses on a terminal, neither elsewhere, and no pauses when told to be fast.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::thread;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(900);

pub(super) struct Narrator {
    colours: bool,
    pauses: bool,
}

impl Narrator {
    pub(super) fn new(fast: bool) -> Narrator {
        let terminal = std::io::stdout().is_terminal();
        Narrator { colours: terminal && std::env::var_os("NO_COLOR").is_none(), pauses: terminal && !fast }
    }

    pub(super) fn title(&self, text: &str) {
        self.print(format_args!("\n{}\n", self.paint("1", text)));
    }

    /// A new act.
    pub(super) fn act(&self, number: u32, text: &str) {
        self.pause();
        self.print(format_args!("\n{}\n", self.paint("1;36", &format!("{number}. {text}"))));
    }

    /// What happens, in plain words.
    pub(super) fn tell(&self, text: impl Display) {
        self.print(format_args!("   {text}\n"));
        self.pause();
    }

    /// What somebody does in a datacenter, and what comes back.
    pub(super) fn command(&self, who: &str, datacenter: usize, words: &[&str], answer: &str) {
        let place =
            self.paint(DATACENTER_COLOURS[(datacenter - 1) % 3], &format!("{who:>5} in dc{datacenter}"));
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        self.print(format_args!(
            "   {place}  {}  {}\n",
            words.join(" "),
            self.paint("2", &format!("-> {answer}"))
        ));
        self.pause();
    }

    /// A command line that the reader could type.
    pub(super) fn shell(&self, line: &str) {
        self.print(format_args!("   {}\n", self.paint("35", &format!("$ {line}"))));
    }

    pub(super) fn good(&self, text: impl Display) {
        self.print(format_args!("   {}\n", self.paint("32", &format!("OK  {text}"))));
        self.pause();
    }

    pub(super) fn bad(&self, text: impl Display) {
        self.print(format_args!("   {}\n", self.paint("1;31", &format!("!!  {text}"))));
        self.pause();
    }

    /// The last line.
    pub(super) fn verdict(&self, kept: bool, text: &str) {
        let colour = if kept { "1;32" } else { "1;31" };
        self.print(format_args!("\n{} {text}\n", self.paint(colour, "VERDICT:")));
    }

    fn print(&self, text: std::fmt::Arguments<'_>) {
        let mut out = std::io::stdout().lock();
        // A reader who has closed the pipe has heard enough.
        let _ = out.write_fmt(text);
        let _ = out.flush();
    }

    fn pause(&self) {
        if self.pauses {
            thread::sleep(PAUSE);
        }
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }
}

const DATACENTER_COLOURS: [&str; 3] = ["33", "34", "32"];

fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("\"{word}\"") } else { word.into() }
}
