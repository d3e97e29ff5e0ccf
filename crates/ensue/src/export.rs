//! `ensue export`: writes what a running Ensue holds into a snapshot that a Redis or Valkey loads.
//!
//! Keys are found by `SCAN` and read one after the other while clients go on: the file is no snapshot of one moment.

pub(crate) mod streams;
pub(crate) mod values;
pub(crate) mod walk;

use crate::import::target::{Target, words};
use crate::import::{Address, Progress, Report, Stop, shown, size};
use crate::login::LoginArgs;
use crate::paint::Paint;
use anyhow::{Context, bail};
use bytes::Bytes;
use ensue_client::Reply;
use ensue_rdb::dump::DumpError;
use ensue_rdb::{Content, FileVersion, RdbWriter, Value, dump};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use walk::{Dumped, Walk};

/// Write what a running Ensue holds into a file that a Redis or Valkey loads
///
/// Keys are read one after the other while clients go on writing: the file is not a snapshot of one moment. Stop the
/// writers first if it has to be one.
///
/// Exit status: 0 if everything was written, 1 if it failed, 2 if something was left out, which is reported.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// The file to write; it must not exist
    #[arg(long, value_name = "FILE")]
    rdb: PathBuf,
    /// The Ensue to read from
    #[arg(long, value_name = "HOST:PORT")]
    from: Address,
    #[command(flatten)]
    login: LoginArgs,
    /// Version of the format: 9 for Redis 5.0 and later, 10 for 7.0 and later, 11 for 7.2 and later
    #[arg(long, value_name = "VERSION", default_value = "10", value_parser = ["9", "10", "11"])]
    rdb_version: String,
}

pub(crate) const KEYSPACES: u8 = 16;
const INCOMPLETE: u8 = 2;
pub(crate) const UNREADABLE: &str = "keys that cannot be read";
const DATED: &str = "hashes with deadlines of fields";

pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let shown_path = || args.rdb.display().to_string();
    if args.rdb.exists() {
        bail!("{} exists", shown_path());
    }
    let mut target = Target::open(&args.login.with(args.from.options())?)?;
    let mut part = args.rdb.clone().into_os_string();
    part.push(".part");
    let file = File::create(&part).with_context(shown_path)?;
    let version = match args.rdb_version.as_str() {
        "9" => FileVersion::Nine,
        "10" => FileVersion::Ten,
        _ => FileVersion::Eleven,
    };
    let writer = RdbWriter::new(BufWriter::with_capacity(1 << 20, file), version).with_context(shown_path)?;
    let mut export =
        Export { target: &mut target, writer, report: Report::default(), progress: Progress::new() };
    export.about_itself().with_context(shown_path)?;
    let is_whole = export.everything(&stop)?;
    export.progress.clear();
    let Export { writer, report, .. } = export;
    if !is_whole {
        fs::remove_file(&part)?;
        bail!("interrupted: {} was not written", shown_path());
    }
    let file = writer.finish().and_then(|out| out.into_inner().map_err(std::io::IntoInnerError::into_error));
    file.and_then(|file| file.sync_all()).with_context(shown_path)?;
    fs::rename(&part, &args.rdb).with_context(shown_path)?;
    print!("{}", report.text(Paint::for_stdout(), None));
    println!("{} was read key by key: it is not a snapshot of one moment", shown_path());
    Ok(if report.is_complete() { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) })
}

struct Export<'a> {
    target: &'a mut Target,
    writer: RdbWriter<BufWriter<File>>,
    report: Report,
    progress: Progress,
}

impl Export<'_> {
    fn about_itself(&mut self) -> anyhow::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        self.writer.aux("redis-ver", "7.2.0")?;
        self.writer.aux("redis-bits", "64")?;
        self.writer.aux("ctime", &now.to_string())?;
        self.writer.aux("ensue-ver", env!("CARGO_PKG_VERSION"))?;
        Ok(())
    }

    /// Whether it was not interrupted.
    fn everything(&mut self, stop: &Stop) -> anyhow::Result<bool> {
        self.libraries()?;
        for keyspace in 0..KEYSPACES {
            let size = match self.target.run(keyspace, &[words!["DBSIZE"]])?.pop() {
                Some(Reply::Integer(size)) => size as u64,
                Some(Reply::Error(answer)) => {
                    self.report.lose("keyspaces that cannot be read", format!("{keyspace}: {answer}"));
                    continue;
                }
                other => bail!("DBSIZE is answered by {other:?}"),
            };
            if size > 0 && !self.keyspace(keyspace, size, stop)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn libraries(&mut self) -> anyhow::Result<()> {
        let Some(Reply::Bulk(bytes)) = self.target.run(0, &[words!["FUNCTION", "DUMP"]])?.pop() else {
            return Ok(());
        };
        let texts =
            dump::read_libraries(&bytes).map_err(|_| anyhow::anyhow!("FUNCTION DUMP answers no dump"))?;
        for text in texts {
            match self.writer.library(&text)? {
                true => self.report.count("libraries of functions", 1),
                false => {
                    self.report.lose("libraries of functions, which version 9 does not have", shown(&text))
                }
            }
        }
        Ok(())
    }

    fn keyspace(&mut self, keyspace: u8, size_told: u64, stop: &Stop) -> anyhow::Result<bool> {
        let mut walk = Walk::new(keyspace);
        while let Some(keys) = walk.step(self.target)? {
            for portion in walk::portions(self.target, keyspace, &keys)? {
                self.keys(keyspace, portion)?;
            }
            let (done, bytes) = (walk.keys(), self.writer.written());
            self.progress
                .show(done, Some(size_told), || format!("keyspace {keyspace}: {done} keys, {}", size(bytes)));
            if stop.is_asked() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn keys(&mut self, keyspace: u8, keys: &[Bytes]) -> anyhow::Result<()> {
        for (key, read) in keys.iter().zip(walk::read(self.target, keyspace, keys)?) {
            let Dumped { kind, deadline_ms, dump } = match read {
                Ok(dumped) => dumped,
                Err(answers) => {
                    self.report.lose(UNREADABLE, format!("{}: {answers}", shown(key)));
                    continue;
                }
            };
            match dump {
                // It was deleted after the walk had met it.
                Reply::Nil => {}
                // Its dump is in the layout of the newest servers, whatever the file is to be.
                Reply::Bulk(_) | Reply::Error(_) if kind == "stream" => {
                    self.stream(keyspace, key, deadline_ms)?
                }
                Reply::Bulk(bytes) => {
                    match self.writer.dumped(u64::from(keyspace), key, deadline_ms, &bytes)? {
                        Ok(()) => self.report.count_key(&kind),
                        Err(DumpError::TooNew) => self.report.lose(DATED, shown(key)),
                        Err(error) => self
                            .report
                            .lose("keys with a dump that is none", format!("{}: {error:?}", shown(key))),
                    }
                }
                Reply::Error(_) if values::has_parts(&kind) => {
                    self.in_parts(keyspace, key, deadline_ms, &kind)?;
                }
                Reply::Error(answer) => {
                    self.report.lose(
                        format!("keys of type {kind} without a dump"),
                        format!("{}: {answer}", shown(key)),
                    );
                }
                other => self.report.lose(UNREADABLE, format!("{}: {other:?}", shown(key))),
            }
        }
        Ok(())
    }

    /// A key that is too large for a dump.
    fn in_parts(
        &mut self,
        keyspace: u8,
        key: &Bytes,
        deadline_ms: Option<u64>,
        kind: &str,
    ) -> anyhow::Result<()> {
        let value = match values::read(self.target, keyspace, key, kind)? {
            Ok(Value::DatedHash(_)) => {
                self.report.lose(DATED, shown(key));
                return Ok(());
            }
            Ok(value) => value,
            Err(answer) => {
                self.report.lose(UNREADABLE, format!("{}: {answer}", shown(key)));
                return Ok(());
            }
        };
        self.writer.entry(u64::from(keyspace), key, deadline_ms, &Content::Value(value))?;
        self.report.count_key(kind);
        Ok(())
    }

    fn stream(&mut self, keyspace: u8, key: &Bytes, deadline_ms: Option<u64>) -> anyhow::Result<()> {
        match streams::read(self.target, keyspace, key)? {
            Ok(stream) => {
                self.writer.entry(u64::from(keyspace), key, deadline_ms, &Content::Stream(stream))?;
                self.report.count_key("stream");
            }
            Err(answer) => {
                self.report.lose("streams that cannot be read", format!("{}: {answer}", shown(key)))
            }
        }
        Ok(())
    }
}
