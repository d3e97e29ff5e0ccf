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
use std::cell::Cell;
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
/// Rounds of such questions after which the nodes are asked that are not read from: what a node keeps it keeps for a
/// quarter of an hour after the last question. 128 MiB.
const ROUNDS_BETWEEN_ASKING_ALL: u64 = 16;

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
    source.wait_for_it(&stop);
    let (nodes, rounds) = (&kept.nodes, Cell::new(0));
    let copy = Copy { name: &name, folder: &folder, earlier: earlier.as_ref(), nodes, rounds, stop: &stop };
    let copied = copy.make(&mut source, &kept).and_then(|made| copy.check(&mut source, &kept, made));
    // Whatever came of it, nothing is kept over there any more.
    let end = |node: &Node| node.words(words!["END", name.clone()]);
    let ended = source.run(0, &kept.nodes.iter().map(end).collect::<Vec<_>>());
    let saved = copied.and_then(|made| {
        sync_folders(&folder.join(&made.manifest.datacenter))?;
        made.manifest.save(&folder)?;
        File::open(&args.to)?.sync_all()?;
        Ok(made)
    });
    let Made { manifest, reused, partitions } = match saved {
        Ok(made) => made,
        Err(error) => {
            let _ = fs::remove_dir_all(&folder);
            return Err(error);
        }
    };
    ended?;
    let (bytes, reused): (u64, u64) = (manifest.bytes(), reused.iter().sum());
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

/// A partition that is damaged, or what belongs to all of them, and what is wrong.
type Damage = (Option<u16>, String);

/// How many partitions a copy has, and those of them that are damaged.
fn check(folder: &Path) -> anyhow::Result<(u32, Vec<Damage>)> {
    let (mut partitions, mut damaged) = (0, Vec::new());
    fsck::run(folder, |finding| match finding {
        Finding::Partition(checked) => {
            partitions += 1;
            let report = &checked.report;
            let error = report.error.as_ref().map(ToString::to_string);
            if let Some(why) = error.or_else(|| report.problems.first().cloned()) {
                damaged.push((Some(checked.partition.0), why));
            }
        }
        Finding::NoShape { .. } => damaged.push((None, "there is no file `shape`".to_owned())),
    })?;
    Ok((partitions, damaged))
}

/// Whether a file is there as a copy says that it has it: its length, and the checksum of its end.
fn check_file(path: &Path, file: &Entry) -> anyhow::Result<()> {
    let compared = file.length.min(COMPARED_BYTES);
    let open = File::open(path).with_context(|| path.display().to_string())?;
    let found = open.metadata()?.len();
    if found != file.length {
        bail!("{} has {found} bytes, and had {} when the backup was made", path.display(), file.length);
    }
    let mut end = vec![0; compared as usize];
    open.read_exact_at(&mut end, file.length - compared).with_context(|| path.display().to_string())?;
    if crc32fast::hash(&end) != file.checksum {
        bail!("{} is not what it was when the backup was made: its end has another checksum", path.display());
    }
    Ok(())
}

/// Makes the names in a folder, and in the folders below it, durable.
fn sync_folders(folder: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all().with_context(|| folder.display().to_string())
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
    /// All that keep something for it.
    nodes: &'a [Node],
    /// Rounds of questions so far.
    rounds: Cell<u64>,
    stop: &'a Stop,
}

/// A copy that was made.
struct Made {
    manifest: Manifest,
    /// Of each file, the bytes that an earlier copy had.
    reused: Vec<u64>,
    partitions: u32,
}

impl Copy<'_> {
    fn make(&self, source: &mut Target, kept: &Kept) -> anyhow::Result<Made> {
        let datacenter = self.datacenter(source, &kept.files)?;
        let total = kept.files.iter().map(|(_, file)| file.length).sum();
        let (mut progress, mut done, mut reused) = (Progress::new(), 0, Vec::new());
        for (node, file) in &kept.files {
            let path = self.folder.join(&datacenter).join(&file.name);
            fs::create_dir_all(path.parent().unwrap_or(self.folder))?;
            if self.is_there(file, &path) {
                reused.push(file.length);
            } else {
                let known = self.begin_with_earlier(source, *node, file, &path)?;
                reused.push(known);
                self.write(source, (*node, file), &path, known, |of_file| {
                    let written = done + of_file;
                    progress.show(written, Some(total), || format!("{} of {}", size(written), size(total)));
                })?;
            }
            done += file.length;
        }
        progress.clear();
        let files = kept.files.iter().map(|(_, file)| file.clone()).collect();
        let manifest = Manifest { datacenter, files, pieces: kept.pieces.clone() };
        Ok(Made { manifest, reused, partitions: 0 })
    }

    /// Writes a file of which so many bytes are known, and makes it durable.
    fn write(
        &self,
        source: &mut Target,
        (node, file): (Node, &Entry),
        path: &Path,
        known: u64,
        mut show: impl FnMut(u64),
    ) -> anyhow::Result<()> {
        let out = File::options().append(true).create_new(known == 0).open(path);
        let mut out = out.with_context(|| path.display().to_string())?;
        self.fetch(source, node, file, known, |bytes| {
            show(bytes.1);
            out.write_all(bytes.0)
        })?;
        out.sync_all().with_context(|| path.display().to_string())
    }

    /// Reads the copy. What is damaged in a copy that an earlier one had a part of may have been damaged there: it is
    /// read from its nodes once more, which still keep it.
    fn check(&self, source: &mut Target, kept: &Kept, mut made: Made) -> anyhow::Result<Made> {
        let (mut partitions, mut damaged) = check(self.folder)?;
        let was_reused = made.reused.iter().any(|bytes| *bytes > 0);
        if let Some((earlier, _)) = self.earlier.filter(|_| !damaged.is_empty() && was_reused) {
            println!(
                "{} partitions are damaged, and read again without {}",
                damaged.len(),
                earlier.display()
            );
            for ((node, file), reused) in kept.files.iter().zip(&mut made.reused) {
                if damaged.iter().any(|(partition, _)| *partition == moment::partition_of(&file.name)) {
                    let path = self.folder.join(&made.manifest.datacenter).join(&file.name);
                    fs::remove_file(&path).with_context(|| path.display().to_string())?;
                    self.write(source, (*node, file), &path, 0, |_| {})?;
                    *reused = 0;
                }
            }
            (partitions, damaged) = check(self.folder)?;
        }
        if let Some((partition, why)) = damaged.first() {
            let of = partition.map(|partition| format!("partition {partition}: ")).unwrap_or_default();
            bail!("{} of {partitions} partitions are damaged at the datacenter: {of}{why}", damaged.len());
        }
        for file in &made.manifest.files {
            check_file(&self.folder.join(&made.manifest.datacenter).join(&file.name), file)?;
        }
        made.partitions = partitions;
        Ok(made)
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

    /// Questions to all nodes but one, for the sake of being asked: a byte of a file that all of them have.
    fn ask_others(&self, node: Node) -> Vec<Words> {
        let others = self.nodes.iter().filter(|other| **other != node);
        let read = |other: &Node| other.words(words!["READ", self.name.to_owned(), "shape", "0", "1"]);
        others.map(read).collect()
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
            let round = self.rounds.replace(self.rounds.get() + 1);
            if round % ROUNDS_BETWEEN_ASKING_ALL == 0 {
                for reply in source.run(0, &self.ask_others(node))? {
                    if let Reply::Error(words) = reply {
                        bail!("a node answers: {words}");
                    }
                }
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
    fn whoever_is_not_read_from_is_asked_now_and_then() {
        let nodes = [Node(Some(0)), Node(Some(1)), Node(Some(2))];
        let (folder, stop) = (Path::new("copy"), Stop::never());
        let copy =
            Copy { name: "n", folder, earlier: None, nodes: &nodes, rounds: Cell::new(0), stop: &stop };
        let asked = copy.ask_others(nodes[1]);
        let text = |words: &Words| String::from_utf8(words.join(&b' ')).unwrap();
        let expected = ["CAUSAL BACKUP NODE 0 READ n shape 0 1", "CAUSAL BACKUP NODE 2 READ n shape 0 1"];
        assert_eq!(asked.iter().map(text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_file_of_a_copy_is_what_it_was() {
        let folder = std::env::temp_dir().join(format!("ensue-backup-test-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, mut text) = (folder.join("configuration"), vec![7; 20_000]);
        let file = Entry {
            name: "configuration".into(),
            length: 20_000,
            checksum: crc32fast::hash(&text[20_000 - COMPARED_BYTES as usize..]),
        };
        let check = |text: &[u8]| {
            fs::write(&path, text).unwrap();
            check_file(&path, &file)
        };
        let whole = check(&text);
        let shorter = check(&text[1..]);
        text[19_999] = 8;
        let changed = check(&text);
        fs::remove_dir_all(&folder).unwrap();
        assert!(whole.is_ok() && shorter.is_err() && changed.is_err());
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
