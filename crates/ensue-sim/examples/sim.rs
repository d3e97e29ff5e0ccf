//! The `sim` subcommand without the rest of the binary: `cargo run -p ensue-sim --example sim -- --seeds 100`.

use ensue_sim::cli::{SimOptions, run};

fn main() {
    let mut options = SimOptions { shrink_seconds: 60, ..SimOptions::default() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|value| value.parse().ok());
        match word.as_str() {
            "--seeds" => options.seeds = number(),
            "--seed" => options.seed = number(),
            "--start" => options.start = number().unwrap_or(0),
            "--threads" => options.threads = number().unwrap_or(0) as usize,
            "--break" => options.broken = words.next(),
            "--protocol" => options.protocol = words.next(),
            "--scenario" => options.scenario = words.next().map(Into::into),
            "--breaks" => options.breaks = Some(Vec::new()),
            "--record" => options.record = words.next().map(Into::into),
            "--shrink-seconds" => options.shrink_seconds = number().unwrap_or(0),
            "--losing" => options.losing = true,
            "--losing-directories" => options.losing_directories = true,
            "--joining" => options.joining = true,
            "--retiring" => options.retiring = true,
            "--wild-clocks" => options.wild_clocks = true,
            "--keep-going" => options.keep_going = true,
            "--trace" => options.trace = true,
            other => {
                eprintln!("unknown option {other}");
                std::process::exit(2);
            }
        }
    }
    std::process::exit(run(&options));
}
