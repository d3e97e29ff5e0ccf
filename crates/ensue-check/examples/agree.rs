//! Compares the two checkers on as many random histories as asked for, from a first seed.
//!
//!     cargo run --release -p ensue-check --example agree -- 100000 0

use ensue_check::agreement;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let mut number = |default: u64| words.next().map_or(Ok(default), |word| word.parse());
    let (Ok(count), Ok(first)) = (number(100_000), number(0)) else {
        eprintln!("usage: agree [HISTORIES [FIRST SEED]]");
        return ExitCode::from(2);
    };
    let agreement = agreement::compare(first..first.saturating_add(count));
    println!("{agreement}");
    if agreement.disagreements.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
