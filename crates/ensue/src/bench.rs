//! `ensue bench`: a load on any server that speaks the Redis protocol, or one of the benchmarks with a name of their
//! own.

mod branches;
mod cpu;
mod load;
mod paper;

use std::process::ExitCode;

/// Put a load on any server that speaks the Redis protocol, or run another benchmark
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_long_help = load::LEGEND)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    benchmark: Option<Benchmark>,
    #[command(flatten)]
    load: load::LoadArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Benchmark {
    Branches(branches::BranchesArgs),
    Cpu(Box<cpu::CpuArgs>),
    Paper(paper::PaperArgs),
}

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    match &args.benchmark {
        Some(Benchmark::Branches(args)) => branches::run(args),
        Some(Benchmark::Cpu(args)) => cpu::run(args),
        Some(Benchmark::Paper(args)) => paper::run(args),
        None => load::run(&args.load),
    }
}
