//! Text that should be a recorded history: it is refused, or it says the same after it was written and read again, and
//! a small one is judged without a panic.

use crate::cursor::Cursor;
use ensue_check::format::Format;
use ensue_check::report::Options;

/// Transactions above which a history is only read.
const JUDGED_MAX: usize = 64;

/// The first byte picks the form.
pub fn run(data: &[u8]) {
    let mut cursor = Cursor::new(data);
    let format = Format::ALL[usize::from(cursor.byte()) % Format::ALL.len()];
    let Ok(history) = format.read(&mut cursor.rest()) else { return };
    let mut text = Vec::new();
    if history.truncated_at_line.is_none() && format.write(&history, &mut text).is_ok() {
        let again = format
            .read(&mut &text[..])
            .unwrap_or_else(|error| panic!("what was written is refused: {error}"));
        let mut text_again = Vec::new();
        format.write(&again, &mut text_again).expect("what was read from our own text can be written");
        assert_eq!(text, text_again, "writing and reading again changes a history");
    }
    if history.transactions.len() <= JUDGED_MAX {
        let _ = ensue_check::check(&history, &Options::default());
    }
}
