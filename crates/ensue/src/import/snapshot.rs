//! Imports of files: a snapshot, or an append-only file with all that belongs to it.

use super::applier::Applier;
use super::loader::{Existing, Loader};
use super::progress::{Progress, size};
use super::state::State;
use super::target::Target;
use super::{ImportArgs, Stop};
use anyhow::{Context, bail};
use ensue_rdb::{AofItem, AofReader, Damage, Manifest, RdbReader};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

const READ_BYTES: usize = 1 << 20;

/// Imports a snapshot.
pub(crate) fn run(
    args: &ImportArgs,
    path: &Path,
    target: &mut Target,
    state: &mut State,
    stop: &Stop,
) -> anyhow::Result<()> {
    let databases = args.databases();
    let mut loader = Loader::new(target, &databases, state, existing(args));
    load(path, &mut loader, stop, &mut Progress::new())
}

fn existing(args: &ImportArgs) -> Existing {
    if args.replace { Existing::Replace } else { Existing::Keep }
}

/// Imports a snapshot up to its end or an interruption.
pub(crate) fn load(
    path: &Path,
    loader: &mut Loader<'_>,
    stop: &Stop,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let (file, total) = open(path)?;
    let damaged = || path.display().to_string();
    let mut reader = RdbReader::new(BufReader::with_capacity(READ_BYTES, file)).with_context(damaged)?;
    while !stop.is_asked() {
        let item = match reader.next_item() {
            Ok(Some(item)) => item,
            Ok(None) => break,
            Err(error) => {
                // What stands before the damage is there.
                loader.flush()?;
                return Err(error).with_context(damaged);
            }
        };
        loader.take(item, reader.offset())?;
        let keys = loader.state.report.keys();
        progress.show(reader.offset(), Some(total), || format!("{keys} keys, {}", size(reader.offset())));
    }
    loader.flush()?;
    progress.clear();
    Ok(())
}

fn open(path: &Path) -> anyhow::Result<(File, u64)> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let total = file.metadata()?.len();
    Ok((file, total))
}

/// Imports an append-only file, or the files of a folder that a manifest names.
pub(crate) fn run_append_only(
    args: &ImportArgs,
    path: &Path,
    target: &mut Target,
    state: &mut State,
    stop: &Stop,
) -> anyhow::Result<()> {
    let files = files(path)?;
    let mut applier = Applier::new(args.databases(), state.database);
    let mut progress = Progress::new();
    for (index, file) in files.iter().enumerate().skip(state.file as usize) {
        let is_last = index + 1 == files.len();
        let databases = args.databases();
        let mut reading = Reading { target, state, applier: &mut applier, stop, progress: &mut progress };
        reading.file(file, is_last, &databases, existing(args))?;
        if stop.is_asked() {
            return Ok(());
        }
        (state.file, state.done, state.window_end) = (index as u64 + 1, 0, 0);
        state.save()?;
    }
    if applier.is_amid_transaction() {
        state.report.lose(
            "transactions without their end",
            files.last().map_or(String::new(), |file| file.display().to_string()),
        );
    }
    Ok(())
}

/// The files in the order in which they are read.
fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let manifest = if path.is_dir() {
        let mut manifests = Vec::new();
        for entry in fs::read_dir(path)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "manifest") {
                manifests.push(path);
            }
        }
        match &manifests[..] {
            [manifest] => manifest.clone(),
            [] => bail!("{} has no manifest: name the file itself", path.display()),
            _ => bail!("{} has several manifests: name one of them", path.display()),
        }
    } else if path.extension().is_some_and(|extension| extension == "manifest") {
        path.into()
    } else {
        return Ok(vec![path.into()]);
    };
    let shown = || manifest.display().to_string();
    let text = fs::read_to_string(&manifest).with_context(shown)?;
    let names = Manifest::parse(&text).with_context(shown)?.files;
    let folder = manifest.parent().unwrap_or(Path::new("."));
    Ok(names.iter().map(|name| folder.join(name)).collect())
}

/// What reading one of them needs.
struct Reading<'a> {
    target: &'a mut Target,
    state: &'a mut State,
    applier: &'a mut Applier,
    stop: &'a Stop,
    progress: &'a mut Progress,
}

impl Reading<'_> {
    fn file(
        &mut self,
        path: &Path,
        is_last: bool,
        databases: &super::databases::Databases,
        existing: Existing,
    ) -> anyhow::Result<()> {
        let (file, total) = open(path)?;
        let damaged = || path.display().to_string();
        let mut reader = AofReader::new(BufReader::with_capacity(READ_BYTES, file)).with_context(damaged)?;
        let mut before = 0;
        while !self.stop.is_asked() {
            let item = {
                // Entries of a snapshot are taken until the first command comes.
                let mut loader = Loader::new(self.target, databases, self.state, existing);
                loop {
                    match reader.next_item() {
                        Ok(Some(AofItem::Item(item))) => {
                            loader.take(item, reader.offset())?;
                            let keys = loader.state.report.keys();
                            self.progress.show(reader.offset(), Some(total), || format!("{keys} keys"));
                        }
                        other => {
                            loader.flush()?;
                            break other;
                        }
                    }
                    if self.stop.is_asked() {
                        return loader.flush();
                    }
                }
            };
            match item {
                Ok(Some(item)) => {
                    self.command(item, before, reader.offset())?;
                    before = reader.offset();
                }
                Ok(None) => break,
                // As Redis does: what a crash has cut off was never acknowledged.
                Err(error)
                    if is_last && reader.is_amid_commands() && error.damage() == Some(Damage::Truncated) =>
                {
                    self.state
                        .report
                        .lose("the last command, which is cut off", format!("{}: {error}", path.display()));
                    break;
                }
                Err(error) => {
                    self.applier.flush(self.target, self.state)?;
                    return Err(error).with_context(damaged);
                }
            }
            let commands = self.state.report.of("commands applied");
            self.progress.show(reader.offset(), Some(total), || format!("{commands} commands"));
        }
        self.applier.flush(self.target, self.state)?;
        if !self.applier.is_amid_transaction() {
            self.state.done = self.state.done.max(reader.offset());
        }
        self.progress.clear();
        Ok(())
    }

    /// Takes a command, which stands between these offsets.
    fn command(&mut self, item: AofItem, before: u64, offset: u64) -> anyhow::Result<()> {
        match item {
            // What goes before a transaction is not applied again if it is interrupted.
            AofItem::Command(command)
                if offset > self.state.done && command[0].eq_ignore_ascii_case(b"MULTI") =>
            {
                self.applier.flush(self.target, self.state)?;
                self.save(before)?;
                self.applier.take(command, self.target, self.state)?;
            }
            AofItem::Command(command)
                if offset > self.state.done || command[0].eq_ignore_ascii_case(b"SELECT") =>
            {
                self.applier.take(command, self.target, self.state)?;
            }
            AofItem::TooLong if offset > self.state.done => {
                self.state
                    .report
                    .lose("commands that are longer than Ensue takes one", format!("at byte {offset}"));
            }
            _ => {}
        }
        self.save(offset)
    }

    /// Everything up to there is done, unless something waits.
    fn save(&mut self, offset: u64) -> anyhow::Result<()> {
        if self.applier.is_idle() && !self.applier.is_amid_transaction() && offset > self.state.done {
            self.state.done = offset;
            self.state.database = self.applier.database();
            self.state.save()?;
        }
        Ok(())
    }
}
