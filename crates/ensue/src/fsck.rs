//! `ensue fsck`: says whether the data of a stopped node is whole.

use crate::paint::Paint;
use ensue_server::fsck::{self, Checked, Finding};
use ensue_types::Position;
use std::path::PathBuf;
use std::process::ExitCode;

/// Check the data directory of a stopped node, without changing it
///
/// Exit status: 0 if a start would find everything that was ever known to be durable, 1 if something is damaged, 2 if
/// there is nothing to check or a node is using it.
#[derive(Debug, clap::Args)]
pub(crate) struct FsckArgs {
    /// The `dir` of a node, or the folder of one datacenter in it
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Instead, list what a partition wrote after a position of its own stream: a line of JSON for each write
    #[arg(long, value_name = "PARTITION:POSITION", value_parser = parse_place)]
    writes_after: Option<(u16, Position)>,
}

fn parse_place(text: &str) -> Result<(u16, Position), String> {
    let numbers = text.trim_start_matches('p').split_once(':');
    let place =
        numbers.and_then(|(partition, position)| Some((partition.parse().ok()?, position.parse().ok()?)));
    place.ok_or_else(|| "the number of a partition, a colon and a position, as in 3:1.1200".to_owned())
}

const NOT_CHECKED: u8 = 2;

pub(crate) fn run(args: &FsckArgs) -> anyhow::Result<ExitCode> {
    if let Some((partition, position)) = args.writes_after {
        fsck::writes_after(&args.dir, partition, position, |line| println!("{line}"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let paint = Paint::for_stdout();
    let (mut partitions, mut damaged, mut shapeless) = (0, 0, 0);
    let result = fsck::run(&args.dir, |finding| match finding {
        Finding::Partition(checked) => {
            partitions += 1;
            damaged += u32::from(!checked.report.is_sound());
            print(&checked, paint);
        }
        Finding::NoShape { folder } => {
            shapeless += 1;
            println!(
                "{}: {}; the file `shape` is missing, which says what the data is; its partitions were not checked, and a \
                 start serves nothing. Put it back from a backup or from another node of this datacenter, or see \
                 `ensue recover --help`",
                folder.display(),
                paint.bad("damaged")
            );
        }
    });
    // Status 1 says "damaged", so whatever else goes wrong must not.
    if let Err(error) = result {
        eprintln!("ensue: {error}");
        return Ok(ExitCode::from(NOT_CHECKED));
    }
    println!("{partitions} partitions checked, {damaged} damaged");
    Ok(if damaged + shapeless == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(checked: &Checked, paint: Paint) {
    let Checked { datacenter, partition, report } = checked;
    let verdict = if report.is_sound() { paint.good("sound") } else { paint.bad("damaged") };
    let mut line = format!(
        "{datacenter} {partition}: {verdict}; {} segments of {} bytes, {} entries",
        report.segments, report.log_bytes, report.entries
    );
    if let Some(((from, first), (to, last))) = report.own {
        line += &format!(", own positions {}.{} to {}.{}", from.0, first.number(), to.0, last.number());
    }
    if let Some(recovery) = report.recovery.as_ref().filter(|recovery| recovery.checkpoint > 0) {
        line += &format!(", checkpoint {} of {} items", recovery.checkpoint, recovery.checkpoint_items);
    }
    println!("{line}");
    if report.recovery.as_ref().is_some_and(|recovery| recovery.fresh) {
        println!("  it is empty: a start makes it a new partition");
    }
    if let Some(torn) = report.recovery.as_ref().and_then(|recovery| recovery.torn.as_ref()) {
        println!(
            "  torn tail: {} at byte {}: {}; a start cuts the {} bytes from there, none of which is known to have been durable",
            torn.file, torn.offset, torn.reason, torn.dropped_bytes
        );
    }
    if let Some(error) = &report.error {
        println!("  {error}; what follows it was not read");
    }
    for problem in &report.problems {
        println!("  {problem}");
    }
    let untold = report.problem_count - report.problems.len() as u64;
    if untold > 0 {
        println!("  and {untold} more like these");
    }
}
