//! `ensue restore`: writes a backup into a running cluster, of whatever shape.
//!
//! The backup is a data directory, and only a node knows what its log means: so one is started on a copy of it, on this
//! machine only and linked with nobody, and what it shows is written key by key to the cluster, whose datacenters get
//! it as they get every write. So the new cluster may have other partitions, nodes, datacenters and protocols.

use super::manifest::Manifest;
use super::moment::partition_of;
use super::{check, check_file, partitions_in};
use crate::export::walk::{self, Dumped, Walk};
use crate::export::{KEYSPACES, UNREADABLE, streams, values};
use crate::import::pieces;
use crate::import::target::{Target, Words, words};
use crate::import::{Address, Progress, Report, Stop, shown};
use crate::login::LoginArgs;
use crate::memory;
use crate::paint::Paint;
use anyhow::{Context, bail};
use bytes::Bytes;
use ensue_client::{Connection, Options, Reply};
use ensue_rdb::{Content, dump};
use ensue_server::shutdown::stop;
use ensue_server::{Config, Machine, Running, log, secret};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Write a backup into a running cluster
///
/// Any datacenter of the cluster will do: it replicates what is written to the others. The cluster may have other
/// partitions, nodes, datacenters and protocols than the one that the backup is of. Tokens of before do not count
/// there. Of a keyspace with branches the main branch is restored.
///
/// Exit status: 0 if everything was restored, 1 if it failed, 2 if something was not restored, which is reported, 3 if
/// it was interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    /// A folder that `ensue backup` made, or one of several, of which the newest is taken
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// The Ensue to write to
    #[arg(long, value_name = "HOST:PORT")]
    to: Address,
    #[command(flatten)]
    login: LoginArgs,
    /// Replace keys that exist. Without it they are left as they are and reported
    #[arg(long)]
    replace: bool,
    /// Where the backup is copied to while it is read: it takes as much room there
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    work: PathBuf,
}

/// How long a node may take to read a backup, and to stop.
const PATIENCE: Duration = Duration::from_secs(600);
/// A longer dump is written in pieces: the command that takes it whole has a bound.
const DUMP_BYTES_MAX: usize = 4 << 20;
/// How a server begins that a command changes more than one entry takes.
const TOO_MUCH: &str = "ERR too much for one write";
const EXIST: &str = "keys that exist already";
const INCOMPLETE: u8 = 2;
const INTERRUPTED: u8 = 3;

pub(crate) fn run(args: &RestoreArgs) -> anyhow::Result<ExitCode> {
    let stop_asked = Stop::on_signals()?;
    let folder = match Manifest::load(&args.from) {
        Ok(_) => args.from.clone(),
        Err(error) => Manifest::newest_folder(&args.from)?.ok_or(error)?,
    };
    let manifest = Manifest::load(&folder)?;
    verify(&folder, &manifest)?;
    println!("restoring {}", folder.display());
    let mut target = Target::open(&args.login.with(args.to.options())?)?;
    target.wait_for_it(&stop_asked);
    let work = Work::new(&args.work, &folder, &manifest)?;
    let reader = Reader::start(&work, &manifest.datacenter)?;
    let mut source = Target::open(&Options { answer_timeout: PATIENCE, ..reader.options() })?;
    let mut restore = Restore {
        source: &mut source,
        target: &mut target,
        replace: args.replace,
        report: Report::default(),
        progress: Progress::new(),
    };
    let whole = restore.everything(&stop_asked);
    restore.progress.clear();
    let report = restore.report;
    reader.stop();
    let rest = match whole {
        Ok(true) => None,
        Ok(false) => Some("it is not at its end"),
        Err(_) => Some("it failed before its end"),
    };
    print!("{}", report.text(Paint::for_stdout(), rest));
    if !matches!(whole, Ok(true)) {
        println!("the same command with --replace begins again");
    }
    if !whole? {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(if report.is_complete() { ExitCode::SUCCESS } else { ExitCode::from(INCOMPLETE) })
}

/// Everything that the backup says it has is there and sound.
fn verify(folder: &Path, manifest: &Manifest) -> anyhow::Result<()> {
    for file in &manifest.files {
        check_file(&folder.join(&manifest.datacenter).join(&file.name), file)?;
    }
    verify_partitions(folder, manifest)?;
    let (partitions, damaged) = check(folder)?;
    if !damaged.is_empty() {
        let (folder, damaged) = (folder.display(), damaged.len());
        bail!("{folder}: {damaged} of {partitions} partitions are damaged; `ensue fsck` says where");
    }
    Ok(())
}

/// No partition is missing, from whichever node it came.
fn verify_partitions(folder: &Path, manifest: &Manifest) -> anyhow::Result<()> {
    let shape = folder.join(&manifest.datacenter).join("shape");
    let text = fs::read_to_string(&shape).with_context(|| shape.display().to_string())?;
    let has = |partition| manifest.files.iter().any(|file| partition_of(&file.name) == Some(partition));
    let Some(missing) = (0..partitions_in(&text)?).find(|partition| !has(*partition)) else { return Ok(()) };
    let of_node = manifest.pieces.iter().find(|piece| piece.partitions.contains(&missing));
    let of_node = of_node.map(|piece| format!(", which node {} had,", piece.node)).unwrap_or_default();
    bail!(
        "{}: partition {missing}{of_node} is not in it: a part of a datacenter is not restored",
        folder.display()
    )
}

/// A copy of a backup that a node may write in; gone when this is dropped.
struct Work {
    folder: PathBuf,
}

impl Work {
    fn new(below: &Path, backup: &Path, manifest: &Manifest) -> anyhow::Result<Work> {
        // Nobody has made this folder, in this process or another one, and nobody else reads it.
        let folder = below.join(format!("ensue-restore-{}", drawn()?));
        let made = fs::DirBuilder::new().mode(0o700).create(&folder);
        made.with_context(|| folder.display().to_string())?;
        let work = Work { folder };
        for file in &manifest.files {
            let name = Path::new(&manifest.datacenter).join(&file.name);
            let (from, to) = (backup.join(&name), work.folder.join(&name));
            fs::create_dir_all(to.parent().unwrap_or(&work.folder))
                .with_context(|| to.display().to_string())?;
            fs::copy(&from, &to).with_context(|| to.display().to_string())?;
        }
        // The reader is one replica of each partition.
        let shape = work.folder.join(&manifest.datacenter).join("shape");
        let text = fs::read_to_string(&shape).with_context(|| shape.display().to_string())?;
        fs::write(&shape, without_replicas(&text, &manifest.datacenter))?;
        Ok(work)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("{} stays: {error}", self.folder.display());
        }
    }
}

/// Sixteen letters that nobody can foresee.
fn drawn() -> anyhow::Result<String> {
    let bytes = secret::random().context("the machine gives no random bytes")?;
    Ok(bytes[..8].iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A file `shape` that says nothing of replicas in its datacenter.
fn without_replicas(shape: &str, datacenter: &str) -> String {
    let says = format!("\treplicas in {datacenter}\t");
    let lines = shape.lines().filter(|line| !line.contains(&says));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The node that shows what the backup has.
struct Reader {
    node: Running,
    port: u16,
    password: String,
}

impl Reader {
    fn start(work: &Work, datacenter: &str) -> anyhow::Result<Reader> {
        let written = fs::read_to_string(work.folder.join(datacenter).join("configuration"))?;
        let path = work.folder.join("reader.conf");
        let (port, peer_port) = (free_port()?, free_port()?);
        let password = drawn()?;
        let text = configuration(&written, datacenter, &work.folder, [port, peer_port])?;
        fs::write(&path, format!("{text}requirepass {password}\n"))?;
        let config = Config::load(Some(&path), &[], std::iter::empty())?;
        log::set_level(log::Level::Warning);
        let node = ensue_server::start(&config, &Machine::of_this_process(1).with_memory(memory::report))?;
        let reader = Reader { node, port, password };
        reader.wait_until_it_serves()?;
        Ok(reader)
    }

    /// Other users of the machine reach its port, too.
    fn options(&self) -> Options {
        Options { password: Some(self.password.clone()), ..Options::local(self.port) }
    }

    fn wait_until_it_serves(&self) -> anyhow::Result<()> {
        let until = Instant::now() + PATIENCE;
        let mut connection = Connection::open(&self.options())?;
        loop {
            match connection.call(&[b"DBSIZE"])? {
                Reply::Integer(_) => return Ok(()),
                // However much there is to read: it goes on.
                Reply::Error(words) if words.starts_with("LOADING") => {
                    thread::sleep(Duration::from_millis(50))
                }
                answer if Instant::now() > until => bail!("the backup is not served: {answer:?}"),
                _ => thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    fn stop(self) {
        stop(vec![self.node]);
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// What the reader's node is told: what the data depends on, as it was, and nothing of where it was served.
fn configuration(
    written: &str,
    datacenter: &str,
    dir: &Path,
    [port, peer_port]: [u16; 2],
) -> anyhow::Result<String> {
    let mut lines = Vec::new();
    let (mut unused_port, mut has_own) = (1, false);
    for line in written.lines() {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            // The reader is linked with nobody: what is read in its home would not be read at all.
            "keyspace" if value.split(' ').nth(1).is_some_and(|setting| setting.starts_with("home")) => {}
            "cluster-name" | "partitions" | "keyspace" => lines.push(line.to_owned()),
            // Nobody answers there: the reader is linked with nobody.
            "node" => {
                let mut words: Vec<&str> = value.split(' ').collect();
                let own = words.first() == Some(&datacenter);
                // The reader has what all nodes of the datacenter had.
                if own && std::mem::replace(&mut has_own, true) {
                    continue;
                }
                let place = format!("127.0.0.1:{}", if own { peer_port } else { unused_port });
                unused_port += 16;
                *words.get_mut(1).context("a `node` line of the backup names no address")? = &place;
                if own {
                    words.truncate(2);
                }
                lines.push(format!("node {}", words.join(" ")));
            }
            // What was not set has no value.
            name if name.starts_with("branch-") && !value.is_empty() => lines.push(line.to_owned()),
            _ => {}
        }
    }
    lines.push(format!("self {datacenter}"));
    lines.push(format!("port {port}"));
    lines.push("bind 127.0.0.1".into());
    lines.push("protected-mode yes".into());
    lines.push(format!("dir \"{}\"", dir.display()));
    lines.push(String::new());
    Ok(lines.join("\n"))
}

/// From the reader to the cluster.
struct Restore<'a> {
    source: &'a mut Target,
    target: &'a mut Target,
    replace: bool,
    report: Report,
    progress: Progress,
}

/// A key with its dump.
struct Whole<'k> {
    key: &'k Bytes,
    kind: String,
    deadline_ms: Option<u64>,
    dump: Bytes,
}

impl Restore<'_> {
    /// Whether it was not interrupted.
    fn everything(&mut self, stop: &Stop) -> anyhow::Result<bool> {
        self.libraries()?;
        for keyspace in 0..KEYSPACES {
            let size = match self.source.run(keyspace, &[words!["DBSIZE"]])?.pop() {
                Some(Reply::Integer(size)) => u64::try_from(size).unwrap_or(0),
                other => bail!("the backup's keyspace {keyspace} cannot be read: {other:?}"),
            };
            if size > 0 && !self.keyspace(keyspace, size, stop)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn libraries(&mut self) -> anyhow::Result<()> {
        let Some(Reply::Bulk(dump)) = self.source.run(0, &[words!["FUNCTION", "DUMP"]])?.pop() else {
            return Ok(());
        };
        let mut command = words!["FUNCTION", "RESTORE", dump];
        command.extend(self.replace.then(|| Bytes::from_static(b"REPLACE")));
        if let Some(Reply::Error(answer)) = self.target.run(0, &[command])?.pop() {
            self.report.lose("libraries of functions", answer);
        }
        Ok(())
    }

    fn keyspace(&mut self, keyspace: u8, size: u64, stop: &Stop) -> anyhow::Result<bool> {
        let mut walk = Walk::new(keyspace);
        while let Some(keys) = walk.step(self.source)? {
            for portion in walk::portions(self.source, keyspace, &keys)? {
                self.keys(keyspace, portion)?;
            }
            let done = walk.keys();
            self.progress.show(done, Some(size), || format!("keyspace {keyspace}: {done} of {size} keys"));
            if stop.is_asked() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn keys(&mut self, keyspace: u8, keys: &[Bytes]) -> anyhow::Result<()> {
        let mut whole: Vec<Whole<'_>> = Vec::new();
        for (key, read) in keys.iter().zip(walk::read(self.source, keyspace, keys)?) {
            match read {
                // Its deadline has come.
                Ok(Dumped { dump: Reply::Nil, .. }) => {}
                Ok(Dumped { kind, deadline_ms, dump: Reply::Bulk(dump) }) => {
                    let one = Whole { key, kind, deadline_ms, dump };
                    match one.dump.len() > DUMP_BYTES_MAX {
                        true => self.unpacked(keyspace, &one)?,
                        false => whole.push(one),
                    }
                }
                Ok(Dumped { kind, deadline_ms, dump: Reply::Error(_) }) if kind == "stream" => {
                    self.stream(keyspace, key, deadline_ms)?;
                }
                Ok(Dumped { kind, deadline_ms, dump: Reply::Error(_) }) if values::has_parts(&kind) => {
                    match values::read(self.source, keyspace, key, &kind)? {
                        Ok(value) => {
                            self.in_pieces(keyspace, key, &Content::Value(value), &kind, deadline_ms)?
                        }
                        Err(answer) => self.report.lose(UNREADABLE, format!("{}: {answer}", shown(key))),
                    }
                }
                Ok(Dumped { dump, .. }) => {
                    self.report.lose(UNREADABLE, format!("{}: {dump:?}", shown(key)));
                }
                Err(answers) => self.report.lose(UNREADABLE, format!("{}: {answers}", shown(key))),
            }
        }
        self.at_once(keyspace, &whole)
    }

    /// Each of them by one command, but for those that are too much for one.
    fn at_once(&mut self, keyspace: u8, keys: &[Whole<'_>]) -> anyhow::Result<()> {
        let command = |one: &Whole<'_>| {
            let deadline = one.deadline_ms.unwrap_or(0).to_string();
            let mut command = words!["RESTORE", one.key.clone(), deadline, one.dump.clone(), "ABSTTL"];
            command.extend(self.replace.then(|| Bytes::from_static(b"REPLACE")));
            command
        };
        let commands: Vec<Words> = keys.iter().map(command).collect();
        for (one, reply) in keys.iter().zip(self.target.run(keyspace, &commands)?) {
            match reply {
                Reply::Error(answer) if answer.starts_with("BUSYKEY") => {
                    self.report.lose(EXIST, shown(one.key));
                }
                Reply::Error(answer) if answer.starts_with(TOO_MUCH) => self.unpacked(keyspace, one)?,
                Reply::Error(answer) => {
                    self.report.lose("keys that cannot be written", format!("{}: {answer}", shown(one.key)));
                }
                _ => self.report.count_key(&one.kind),
            }
        }
        Ok(())
    }

    /// A key whose value is too large for one command.
    fn unpacked(&mut self, keyspace: u8, one: &Whole<'_>) -> anyhow::Result<()> {
        let content = match dump::read_own(&one.dump) {
            Ok(dump::Dumped::Value(value)) => Content::Value(value),
            Ok(dump::Dumped::Stream(stream)) => Content::Stream(stream),
            Err(error) => {
                self.report.lose(UNREADABLE, format!("{}: {error:?}", shown(one.key)));
                return Ok(());
            }
        };
        self.in_pieces(keyspace, one.key, &content, &one.kind, one.deadline_ms)
    }

    /// A stream that has no dump is read and written entry by entry.
    fn stream(&mut self, keyspace: u8, key: &Bytes, deadline_ms: Option<u64>) -> anyhow::Result<()> {
        let stream = match streams::read(self.source, keyspace, key)? {
            Ok(stream) => Content::Stream(stream),
            Err(answer) => {
                self.report.lose("streams that cannot be read", format!("{}: {answer}", shown(key)));
                return Ok(());
            }
        };
        self.in_pieces(keyspace, key, &stream, "stream", deadline_ms)
    }

    /// Writes a key with plain commands: a large value is no one command.
    fn in_pieces(
        &mut self,
        keyspace: u8,
        key: &Bytes,
        content: &Content,
        kind: &str,
        deadline_ms: Option<u64>,
    ) -> anyhow::Result<()> {
        let first = if self.replace { words!["DEL", key.clone()] } else { words!["EXISTS", key.clone()] };
        let exists = self.target.run(keyspace, &[first])?.pop() == Some(Reply::Integer(1));
        if exists && !self.replace {
            self.report.lose(EXIST, shown(key));
            return Ok(());
        }
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64;
        let commands = pieces::commands(key, content, deadline_ms, now_ms);
        let written = self.target.run_value(keyspace, key, &commands);
        let refused = match &written {
            Ok(replies) => replies.iter().find(|reply| reply.is_error()).map(|answer| format!("{answer:?}")),
            Err(error) => Some(format!("{error:#}")),
        };
        let Some(refused) = refused else {
            self.report.count_key(kind);
            return Ok(());
        };
        // Half a key must not be taken for the key, neither by readers nor when this is done again.
        let removed = self.target.run(keyspace, &[words!["DEL", key.clone()]]);
        let is_removed =
            matches!(removed.as_ref().map(|replies| replies.first()), Ok(Some(Reply::Integer(_))));
        let rest = if is_removed { "" } else { "; a part of it is there" };
        self.report.lose("keys that cannot be written whole", format!("{}: {refused}{rest}", shown(key)));
        written.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reader_has_the_data_s_settings_and_none_of_its_doors() {
        let written = "port 6379\nself dc2\nnode dc1 10.0.0.1:16379 cores 2\nnode dc2 10.0.1.1:16379 cores 4\n\
                       node dc2 10.0.1.2:16379 cores 4\nreplicas 1 dc2:3\nrequirepass (hidden)\npartitions 8\nkeyspace 3 protocol pocc\nkeyspace 3 home lock:* dc1\n\
                       keyspace 3 home-reads yes\nbranch-collection optimistic\n\
                       branch-merging-datacenter \n                       tls-port 6380\ncluster-name shop\n";
        let text = configuration(written, "dc2", Path::new("/tmp/w"), [7000, 7001]).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "node dc1 127.0.0.1:1 cores 2",
                "node dc2 127.0.0.1:7001",
                "partitions 8",
                "keyspace 3 protocol pocc",
                "branch-collection optimistic",
                "cluster-name shop",
                "self dc2",
                "port 7000",
                "bind 127.0.0.1",
                "protected-mode yes",
                "dir \"/tmp/w\"",
            ]
        );
    }

    #[test]
    fn the_reader_is_the_only_replica() {
        let shape =
            "ensue 2\ncluster\tpartitions\t8\ncluster\treplicas in dc1\t3\ncluster\treplicas in dc2\t3\n";
        let read = without_replicas(shape, "dc2");
        assert_eq!(read, "ensue 2\ncluster\tpartitions\t8\ncluster\treplicas in dc1\t3\n");
        assert_eq!(partitions_in(&read).unwrap(), 8);
    }

    #[test]
    fn a_part_of_a_datacenter_is_refused_by_name() {
        let folder = std::env::temp_dir().join(format!("ensue-restore-test-{}", std::process::id()));
        fs::create_dir_all(folder.join("dc1")).unwrap();
        fs::write(folder.join("dc1/shape"), "ensue 2\ncluster\tpartitions\t2\n").unwrap();
        let file = |name: &str| super::super::manifest::Entry { name: name.into(), length: 1, checksum: 0 };
        let pieces = vec![super::super::manifest::Piece { node: 7, partitions: vec![1] }];
        let files = vec![file("p0000/superblock"), file("p0001/superblock")];
        let mut manifest = Manifest { datacenter: "dc1".into(), files, pieces };
        assert!(verify_partitions(&folder, &manifest).is_ok());
        manifest.files.pop();
        let refused = verify_partitions(&folder, &manifest).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert!(refused.contains("partition 1, which node 7 had, is not in it"), "{refused}");
    }
}
