//! `ensue backup`: copies what the disks of a datacenter hold at one moment, while it serves.

mod manifest;
mod moment;
pub(crate) mod restore;

use crate::import::target::{Target, Words, words};
use crate::import::{Address, Progress, Stop, size};
use crate::login::LoginArgs;
use crate::paint::Paint;
use anyhow::{Context, bail};
use bytes::Bytes;
use ensue_client::Reply;
use ensue_server::fsck::{self, Finding};
use manifest::{Entry, Manifest};
use moment::{Kept, Node};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// Copy what a datacenter holds at one moment, while it serves
///
/// The copy is a folder below DIR that is named after the time: a data directory that `ensue fsck` reads and that
/// `ensue restore` writes into another cluster. Files that the newest copy in DIR has already are not read again: they
/// get a second name, so that each copy is whole by itself and can be deleted by itself. Every byte is checked at the
/// end. Of several nodes all are copied, at one time, through the one that is named.
///
/// Exit status: 0 if there is a copy and it is sound, 1 if not.
#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// Where the copies are
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// A node of the datacenter, whichever
    #[arg(long, value_name = "HOST:PORT")]
    from: Address,
    #[command(flatten)]
    login: LoginArgs,
}

/// Bytes that one question asks for.
const CHUNK_BYTES: u64 = 1 << 20;
/// Bytes at the end of what an earlier copy has that are compared.
const COMPARED_BYTES: u64 = 16 << 10;
/// Questions that are sent before their answers are read.
const CHUNKS_AT_ONCE: u64 = 8;

pub(crate) fn run(args: &BackupArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let began = SystemTime::now();
    let name = name_of(began)?;
    let folder = args.to.join(&name);
    fs::create_dir_all(&args.to).with_context(|| args.to.display().to_string())?;
    let earlier = earlier(&args.to)?;
    let mut source = open(args)?;
    // Two at once would write into each other's files, which earlier copies share.
    fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let kept = match moment::keep(args, &mut source, &name) {
        Ok(kept) => kept,
        Err(error) => {
            let _ = fs::remove_dir(&folder);
            return Err(error);
        }
    };
    let copy = Copy { name: &name, folder: &folder, earlier: earlier.as_ref(), stop: &stop };
    let copied = copy.make(&mut source, &kept);
    // Whatever came of it, nothing is kept over there any more.
    let end = |node: &Node| node.words(words!["END", name.clone()]);
    let ended = source.run(0, &kept.nodes.iter().map(end).collect::<Vec<_>>());
    let (manifest, reused) = match copied {
        Ok(copied) => copied,
        Err(error) => {
            let _ = fs::remove_dir_all(&folder);
            return Err(error);
        }
    };
    ended?;
    let (partitions, damaged) = check(&folder)?;
    if damaged > 0 {
        bail!("{}: {damaged} of {partitions} partitions are damaged", folder.display());
    }
    manifest.save(&folder)?;
    let bytes = manifest.bytes();
    let (paint, fetched) = (Paint::for_stdout(), bytes - reused);
    println!("{}", folder.display());
    println!(
        "{partitions} partitions, {} in {} files, of which {} were read and {} had been there before; {}",
        size(bytes),
        manifest.files.len(),
        size(fetched),
        size(reused),
        paint.good("sound")
    );
    Ok(ExitCode::SUCCESS)
}

fn open(args: &BackupArgs) -> anyhow::Result<Target> {
    Target::open(&args.login.with(args.from.options())?)
}

/// `20261127T014501Z`.
fn name_of(time: SystemTime) -> anyhow::Result<String> {
    let seconds = time.duration_since(UNIX_EPOCH)?.as_secs();
    let time = time::OffsetDateTime::from_unix_timestamp(i64::try_from(seconds)?)?;
    let (year, month, day) = (time.year(), u8::from(time.month()), time.day());
    let (hour, minute, second) = time.to_hms();
    Ok(format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z"))
}

/// How many partitions a copy has, and how many of them are damaged.
fn check(folder: &Path) -> anyhow::Result<(u32, u32)> {
    let (mut partitions, mut damaged) = (0, 0);
    fsck::run(folder, |finding| match finding {
        Finding::Partition(checked) => {
            partitions += 1;
            damaged += u32::from(!checked.report.is_sound());
        }
        Finding::NoShape { .. } => damaged += 1,
    })?;
    Ok((partitions, damaged))
}

/// The newest copy that there is. One that cannot be read is no reason to make none.
fn earlier(copies: &Path) -> anyhow::Result<Option<(PathBuf, Manifest)>> {
    let newest = Manifest::newest_folder(copies)?;
    Ok(newest.and_then(|folder| Some((folder.clone(), Manifest::load(&folder).ok()?))))
}

fn expect_ok(reply: Option<Reply>) -> anyhow::Result<()> {
    match reply {
        Some(Reply::Status(_)) => Ok(()),
        Some(Reply::Error(words)) => bail!("the node answers: {words}"),
        other => bail!("the node answers {other:?}"),
    }
}

/// One copy while it is made.
struct Copy<'a> {
    name: &'a str,
    folder: &'a Path,
    /// Where the newest earlier copy is, and what it has.
    earlier: Option<&'a (PathBuf, Manifest)>,
    stop: &'a Stop,
}

impl Copy<'_> {
    /// What the copy has, and how many bytes of it an earlier one had.
    fn make(&self, source: &mut Target, kept: &Kept) -> anyhow::Result<(Manifest, u64)> {
        let datacenter = self.datacenter(source, &kept.files)?;
        let total = kept.files.iter().map(|(_, file)| file.length).sum();
        let (mut progress, mut done, mut reused) = (Progress::new(), 0, 0);
        for (node, file) in &kept.files {
            let path = self.folder.join(&datacenter).join(&file.name);
            fs::create_dir_all(path.parent().unwrap_or(self.folder))?;
            if self.is_there(file, &path) {
                reused += file.length;
            } else {
                let known = self.begin_with_earlier(source, *node, file, &path)?;
                reused += known;
                let mut options = File::options();
                let out = options.append(true).create_new(known == 0).open(&path);
                let mut out = out.with_context(|| path.display().to_string())?;
                self.fetch(source, *node, file, known, |bytes| {
                    let written = done + bytes.1;
                    progress.show(written, Some(total), || format!("{} of {}", size(written), size(total)));
                    out.write_all(bytes.0)
                })?;
                out.sync_all()?;
            }
            done += file.length;
        }
        progress.clear();
        let files = kept.files.iter().map(|(_, file)| file.clone()).collect();
        Ok((Manifest { datacenter, files, pieces: kept.pieces.clone() }, reused))
    }

    /// The name of the datacenter, which is that of the folder: the file `shape` says it.
    fn datacenter(&self, source: &mut Target, files: &[(Node, Entry)]) -> anyhow::Result<String> {
        let shape = files.iter().find(|(_, file)| file.name == "shape");
        let (node, shape) = shape.context("the copy has no file `shape`")?;
        let mut text = Vec::new();
        self.fetch(source, *node, shape, 0, |(bytes, _)| text.write_all(bytes))?;
        let text = String::from_utf8_lossy(&text);
        let name = text.lines().find_map(|line| line.strip_prefix("datacenter\tdatacenter\t"));
        let name = name.context("the file `shape` names no datacenter")?;
        check_name(name)?;
        Ok(name.to_owned())
    }

    /// Gives the same file of an earlier copy a second name here, if there is one.
    fn is_there(&self, file: &Entry, path: &Path) -> bool {
        let Some((folder, earlier)) = self.earlier else { return false };
        let same = folder.join(&earlier.datacenter).join(&file.name);
        earlier.files.contains(file)
            && fs::metadata(&same).is_ok_and(|found| found.len() == file.length)
            && fs::hard_link(same, path).is_ok()
    }

    /// Copies what an earlier copy has of a file that has grown since, and says how much that is: a file that ends
    /// there with the same bytes begins with the same ones, since nothing is ever written but at its end.
    fn begin_with_earlier(
        &self,
        source: &mut Target,
        node: Node,
        file: &Entry,
        path: &Path,
    ) -> anyhow::Result<u64> {
        let Some((folder, earlier)) = self.earlier else { return Ok(0) };
        let shorter = |known: &&Entry| known.name == file.name && known.length < file.length;
        let Some(known) = earlier.files.iter().find(shorter).filter(|known| known.length > 0) else {
            return Ok(0);
        };
        let same = folder.join(&earlier.datacenter).join(&file.name);
        let compared = known.length.min(COMPARED_BYTES);
        let mut end = vec![0; compared as usize];
        let found = File::open(&same).and_then(|copy| copy.read_exact_at(&mut end, known.length - compared));
        let reply = source.run(0, &[self.read(node, file, known.length - compared, compared)])?.pop();
        let is_same = found.is_ok() && matches!(reply, Some(Reply::Bulk(bytes)) if bytes[..] == end[..]);
        if !is_same {
            return Ok(0);
        }
        fs::copy(&same, path).with_context(|| path.display().to_string())
    }

    fn read(&self, node: Node, file: &Entry, offset: u64, length: u64) -> Words {
        let [offset, length] = [offset, length].map(|number| number.to_string());
        node.words(words!["READ", self.name.to_owned(), file.name.clone(), offset, length])
    }

    /// Reads a file from there on, and hands out its bytes with how many there were up to their end.
    fn fetch(
        &self,
        source: &mut Target,
        node: Node,
        file: &Entry,
        from: u64,
        mut take: impl FnMut((&[u8], u64)) -> std::io::Result<()>,
    ) -> anyhow::Result<()> {
        let mut offset = from;
        while offset < file.length {
            if self.stop.is_asked() {
                bail!("interrupted: there is no copy");
            }
            let offsets = (0..CHUNKS_AT_ONCE).map(|chunk| offset + chunk * CHUNK_BYTES);
            let commands: Vec<Words> = offsets
                .take_while(|offset| *offset < file.length)
                .map(|offset| self.read(node, file, offset, CHUNK_BYTES))
                .collect();
            for reply in source.run(0, &commands)? {
                let bytes: Bytes = match reply {
                    Reply::Bulk(bytes) if !bytes.is_empty() => bytes,
                    Reply::Error(words) => bail!("{}: the node answers: {words}", file.name),
                    _ => bail!("{}: the node answers with no bytes", file.name),
                };
                offset += bytes.len() as u64;
                take((&bytes, offset))?;
            }
        }
        Ok(())
    }
}

/// How many partitions the file `shape` of a node says that there are.
fn partitions_of(source: &mut Target, node: Node, name: &str, shape: &Entry) -> anyhow::Result<u16> {
    let length = shape.length.min(CHUNK_BYTES).to_string();
    let read = words!["READ", name.to_owned(), shape.name.clone(), "0", length];
    match source.run(0, &[node.words(read)])?.pop() {
        Some(Reply::Bulk(text)) => partitions_in(&String::from_utf8_lossy(&text)),
        other => bail!("the file `shape` is not read: {other:?}"),
    }
}

/// How many partitions a file `shape` says that there are.
fn partitions_in(shape: &str) -> anyhow::Result<u16> {
    let number = shape.lines().find_map(|line| line.strip_prefix("cluster\tpartitions\t"));
    Ok(number.context("the file `shape` names no partitions")?.parse()?)
}

fn entry(reply: &Reply) -> anyhow::Result<Entry> {
    let Reply::Array(parts) = reply else { bail!("the node names a file as {reply:?}") };
    let [Reply::Bulk(name), Reply::Integer(length), Reply::Integer(checksum)] = parts.as_slice() else {
        bail!("the node names a file as {reply:?}");
    };
    let name = String::from_utf8(name.to_vec()).context("the node names a file that is no text")?;
    check_name(&name)?;
    Ok(Entry { name, length: u64::try_from(*length)?, checksum: u32::try_from(*checksum)? })
}

/// A node shall not make us write elsewhere.
fn check_name(name: &str) -> anyhow::Result<()> {
    let mut parts = Path::new(name).components();
    if name.is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
        bail!("the node names a file '{}'", name.escape_debug());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn names_are_times_and_stay_in_order() {
        let name = name_of(UNIX_EPOCH + Duration::from_secs(1_795_743_901)).unwrap();
        assert_eq!(name, "20261127T014501Z");
    }

    #[test]
    fn a_node_writes_nowhere_else() {
        for good in ["shape", "p0003/log-0000000000000000"] {
            assert!(check_name(good).is_ok());
        }
        for bad in ["", "/etc/passwd", "../x", "p0000/../../x", "."] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
