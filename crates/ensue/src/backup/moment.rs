//! One moment of all nodes of a datacenter: what each of them has kept of it, and which of them had which partition.
//!
//! All nodes are asked at once to hold their cores for some milliseconds, through the one that is connected to. Each
//! says how long its steps took. Between asking and being answered, by the clock here, its cores certainly stood still
//! from the answer, less what it took after the hold and the hold itself, to the question, with what it took before the
//! hold and the hold itself. If these times of all nodes have a moment in common, what they have kept is of that
//! moment, as if one node had kept it (`ensue-server`, `backup`); if not, they are asked again to hold for longer. No
//! clock is compared with another one.
//!
//! Of a replicated partition the owner's files count, if nobody was in a later term who could have made another owner
//! by then: most voters say so. A node that is not reached is left out; if its replicas are needed, there is no copy.

use super::manifest::{Entry, Piece};
use super::{BackupArgs, entry, open};
use crate::import::target::{Target, Words, words};
use anyhow::bail;
use bytes::Bytes;
use ensue_client::Reply;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// A node of the datacenter, and the words that reach it; the only one is reached without words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node(pub(super) Option<u16>);

impl Node {
    pub(super) fn words(self, rest: Words) -> Words {
        let mut all = words!["CAUSAL", "BACKUP"];
        if let Some(number) = self.0 {
            all.extend(words!["NODE", number.to_string()]);
        }
        all.extend(rest);
        all
    }
}

/// What is copied.
pub(super) struct Kept {
    pub(super) nodes: Vec<Node>,
    pub(super) files: Vec<(Node, Entry)>,
    pub(super) pieces: Vec<Piece>,
}

/// How long the nodes are asked to hold: longer each time that they did not all stand still.
const HOLDS_MS: [u64; 4] = [20, 50, 100, 200];
/// How often they are asked, and how long nobody asks: an owner may be on its way to another node.
const TRIES: usize = 15;
const PAUSE: Duration = Duration::from_millis(400);
/// What clocks that run at different rates can be wrong by, in the second that this takes.
const MARGIN: Duration = Duration::from_micros(500);
/// Files that every node has, of which one is enough.
const COMMON: [&str; 3] = ["configuration", "shape", "datacenters"];
const STANDINGS: &str = "standings";

/// Has the datacenter keep what its disks hold at one moment.
pub(super) fn keep(args: &BackupArgs, source: &mut Target, name: &str) -> anyhow::Result<Kept> {
    let nodes = match source.run(0, &[words!["CAUSAL", "BACKUP", "NODES"]])?.pop() {
        Some(Reply::Integer(nodes)) => u16::try_from(nodes)?,
        Some(Reply::Error(words)) => bail!("the node answers: {words}"),
        other => bail!("the node answers {other:?}"),
    };
    if nodes == 1 {
        let node = Node(None);
        super::expect_ok(source.run(0, &[node.words(words!["BEGIN", name.to_owned()])])?.pop())?;
        let files = list(source, node, name)?.into_iter().map(|file| (node, file)).collect();
        return Ok(Kept { nodes: vec![node], files, pieces: Vec::new() });
    }
    let mut links = Vec::new();
    for number in 0..nodes {
        let mut link = open(args)?;
        // The first question of a connection takes longer.
        link.run(0, &[words!["CAUSAL", "BACKUP", "NODES"]])?;
        links.push((number, link));
    }
    let (mut apart, mut why) = (0, String::new());
    for _ in 0..TRIES {
        let hold_ms = HOLDS_MS[apart.min(HOLDS_MS.len() - 1)];
        let asked = hold_all(&mut links, name, hold_ms);
        let together = stood_still_together(&asked);
        if !together {
            apart += 1;
        }
        let kept = match together {
            true => put_together(source, &asked, name)?,
            false => Err(not_together(&asked)),
        };
        match kept {
            Ok(kept) => return Ok(kept),
            Err(words) => why = words,
        }
        for number in 0..nodes {
            let end = Node(Some(number)).words(words!["END", name.to_owned()]);
            // Nothing may be kept there.
            let _ = source.run(0, &[end]);
        }
        thread::sleep(PAUSE);
    }
    bail!("there is no copy: {why}");
}

/// When a node was asked and answered, by the clock here, and how long its steps took.
#[derive(Clone, Copy, Debug)]
struct Stood {
    asked: Instant,
    answered: Instant,
    before: Duration,
    held: Duration,
    after: Duration,
}

type Asked = (u16, Result<Stood, String>);

fn hold_all(links: &mut [(u16, Target)], name: &str, hold_ms: u64) -> Vec<Asked> {
    thread::scope(|scope| {
        let asking: Vec<_> = links
            .iter_mut()
            .map(|(number, link)| (*number, scope.spawn(move || hold(link, *number, name, hold_ms))))
            .collect();
        let answer = |asking: thread::ScopedJoinHandle<'_, Result<Stood, String>>| {
            asking.join().unwrap_or_else(|_| Err("it was not asked".into()))
        };
        asking.into_iter().map(|(number, asking)| (number, answer(asking))).collect()
    })
}

fn hold(link: &mut Target, number: u16, name: &str, hold_ms: u64) -> Result<Stood, String> {
    let begin = words!["BEGIN", name.to_owned(), "HOLD", hold_ms.to_string()];
    let asked = Instant::now();
    let reply = link.run(0, &[Node(Some(number)).words(begin)]);
    let answered = Instant::now();
    let us = |reply: &Reply| match reply {
        Reply::Integer(us) => u64::try_from(*us).ok().map(Duration::from_micros),
        _ => None,
    };
    match reply.map_err(|error| format!("{error:#}"))?.pop() {
        Some(Reply::Array(parts)) => match parts.iter().map(us).collect::<Option<Vec<_>>>().as_deref() {
            Some(&[before, held, after]) => Ok(Stood { asked, answered, before, held, after }),
            _ => Err(format!("it answers {parts:?}")),
        },
        Some(Reply::Error(words)) => Err(words.into_owned()),
        other => Err(format!("it answers {other:?}")),
    }
}

/// Whether there was a moment at which all nodes that answered stood still.
fn stood_still_together(asked: &[Asked]) -> bool {
    let stood = || asked.iter().filter_map(|(_, stood)| stood.as_ref().ok());
    // An answer that took no time on its way came when the node had said it.
    let begin = stood()
        .map(|stood| stood.answered - stood.after.min(stood.answered - stood.asked) - stood.held)
        .max();
    let end = stood().map(|stood| stood.asked + stood.before + stood.held).min();
    matches!((begin, end), (Some(begin), Some(end)) if begin + MARGIN <= end)
}

fn not_together(asked: &[Asked]) -> String {
    match asked.iter().find_map(|(number, stood)| Some((number, stood.as_ref().err()?))) {
        Some((number, why)) => format!("node {number}: {why}"),
        None => {
            "the nodes did not stand still at one time: they, or the links between them, are too slow".into()
        }
    }
}

/// The files of all nodes as those of one; or why they are not whole.
fn put_together(source: &mut Target, asked: &[Asked], name: &str) -> anyhow::Result<Result<Kept, String>> {
    let mut lists = Vec::new();
    let mut standings = Vec::new();
    for (number, _) in asked.iter().filter(|(_, stood)| stood.is_ok()) {
        let node = Node(Some(*number));
        let files = list(source, node, name)?;
        if let Some(file) = files.iter().find(|file| file.name == STANDINGS) {
            let read = words!["READ", name.to_owned(), STANDINGS, "0", file.length.to_string()];
            let Some(Reply::Bulk(text)) = source.run(0, &[node.words(read)])?.pop() else {
                return Ok(Err(format!("node {number} does not say what its replicas are")));
            };
            standings.extend(read_standings(*number, &text)?);
        }
        lists.push((*number, files));
    }
    let partitions = match lists.first().map(|(_, files)| files.iter().find(|file| file.name == "shape")) {
        Some(Some(shape)) => super::partitions_of(source, Node(Some(lists[0].0)), name, shape)?,
        _ => return Ok(Err("no node says what the data is".into())),
    };
    let owners = match standings.is_empty() {
        true => owners_of_files(partitions, &lists),
        false => owners_of_groups(partitions, &standings),
    };
    let owners = match owners {
        Ok(owners) => owners,
        Err(words) => {
            let unreached = asked.iter().find_map(|(number, stood)| Some((number, stood.as_ref().err()?)));
            let unreached = unreached.map(|(number, why)| format!("; node {number}: {why}"));
            return Ok(Err(words + &unreached.unwrap_or_default()));
        }
    };
    let mut kept = Kept { nodes: Vec::new(), files: Vec::new(), pieces: Vec::new() };
    for (place, (number, files)) in lists.into_iter().enumerate() {
        let node = Node(Some(number));
        let is_wanted = |file: &Entry| match partition_of(&file.name) {
            Some(partition) => owners.get(&partition) == Some(&number),
            None => place == 0 && COMMON.contains(&file.name.as_str()),
        };
        kept.files.extend(files.into_iter().filter(is_wanted).map(|file| (node, file)));
        kept.nodes.push(node);
        let partitions = owners.iter().filter(|(_, owner)| **owner == number);
        kept.pieces
            .push(Piece { node: number, partitions: partitions.map(|(partition, _)| *partition).collect() });
    }
    Ok(Ok(kept))
}

fn list(source: &mut Target, node: Node, name: &str) -> anyhow::Result<Vec<Entry>> {
    match source.run(0, &[node.words(words!["LIST", name.to_owned()])])?.pop() {
        Some(Reply::Array(files)) => files.iter().map(entry).collect(),
        Some(Reply::Error(words)) => bail!("the node answers: {words}"),
        _ => bail!("the node does not say which files there are"),
    }
}

/// `p0003/superblock` is of partition 3.
pub(super) fn partition_of(file: &str) -> Option<u16> {
    file.split_once('/')?.0.strip_prefix('p')?.parse().ok()
}

/// Without replicas each partition is on one node.
fn owners_of_files(partitions: u16, lists: &[(u16, Vec<Entry>)]) -> Result<BTreeMap<u16, u16>, String> {
    let mut owners = BTreeMap::new();
    for (number, files) in lists {
        for partition in files.iter().filter_map(|file| partition_of(&file.name)) {
            if owners.insert(partition, *number).is_some_and(|other| other != *number) {
                return Err(format!("partition {partition} is on more than one node"));
            }
        }
    }
    match (0..partitions).find(|partition| !owners.contains_key(partition)) {
        Some(partition) => Err(format!("no node that was reached has partition {partition}")),
        None => Ok(owners),
    }
}

/// What a replica was to its group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Standing {
    node: u16,
    partition: u16,
    term: Option<u64>,
    /// The nodes that have votes, if it leads.
    leads: Option<Vec<u16>>,
}

fn read_standings(node: u16, text: &Bytes) -> anyhow::Result<Vec<Standing>> {
    let text = String::from_utf8_lossy(text);
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let (Some(partition), Some(term), Some(role)) = (words.next(), words.next(), words.next()) else {
            bail!("node {node} says of a replica '{line}'");
        };
        let voters = words.next().unwrap_or_default().split(',').filter(|word| !word.is_empty());
        let leads = (role == "leads").then(|| voters.map(str::parse).collect::<Result<Vec<u16>, _>>());
        let term = if term == "-" { None } else { Some(term.parse()?) };
        found.push(Standing { node, partition: partition.parse()?, term, leads: leads.transpose()? });
    }
    Ok(found)
}

/// With replicas each partition is owned by the one who leads in the latest term, if most voters know of none later.
fn owners_of_groups(partitions: u16, standings: &[Standing]) -> Result<BTreeMap<u16, u16>, String> {
    let owner = |partition| {
        let group = || standings.iter().filter(move |standing| standing.partition == partition);
        let leader = group().filter(|standing| standing.leads.is_some()).max_by_key(|standing| standing.term);
        let leader = leader.ok_or_else(|| format!("nobody owned partition {partition}"))?;
        let voters = leader.leads.clone().unwrap_or_default();
        let agrees = |standing: &&Standing| {
            voters.contains(&standing.node) && standing.term.is_some_and(|term| Some(term) <= leader.term)
        };
        if group().any(|standing| standing.term > leader.term)
            || 2 * group().filter(agrees).count() <= voters.len()
        {
            return Err(format!(
                "partition {partition} was getting another owner, or too few of its nodes were reached"
            ));
        }
        Ok((partition, leader.node))
    };
    (0..partitions).map(owner).collect()
}

#[cfg(test)]
mod tests;
