//! Operations of a node, one kind a run, for a tool that counts instructions.
//!
//! Arrives: the name of an operation. Promises: what `measured` is called with is prepared before, and the same in
//! every run; it is called a known number of times. It counts nothing itself: `cargo xtask instructions` runs it under
//! valgrind.

mod operations;
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list"] => {
            operations::all()
                .iter()
                .for_each(|operation| println!("{}\t{}", operation.name, operation.title));
            ExitCode::SUCCESS
        }
        [name] => match operations::all().iter().find(|operation| operation.name == name) {
            Some(operation) => {
                println!("{}", (operation.run)());
                ExitCode::SUCCESS
            }
            None => usage(),
        },
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: ensue-instructions list | NAME");
    ExitCode::FAILURE
}
