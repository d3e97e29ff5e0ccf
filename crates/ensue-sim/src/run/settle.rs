//! Quiescence: everything is healed, nobody asks any more, and all datacenters must become one.

use super::Run;
use super::discarded::Discarded;
use super::past_reads;
use crate::oracle::{self, Final, Violation, property};
use crate::resp::args;
use crate::resp::{Answer, Answers};
use crate::workload::Workload;
use crate::workload::clients::Clients;
use crate::workload::finals::Questions;
use crate::world::Happening;
use crate::world::event::ConnectionId;
use crate::world::marks::Mark;
use crate::world::operator::{confirm, confirm_removal, look, look_at_removal};
use crate::world::options::Options;
use crate::world::shape::Site;
use bytes::Bytes;
use ensue_protocol::Availability;
use ensue_types::{Args, CoreId, DatacenterId};

/// Everything must be everywhere, and every tombstone gone, this long after all was healed: the logs are synced every
/// thirty seconds under `appendfsync no` (more often where a seed draws that), and tombstones wait for several syncs.
pub(super) const SETTLE_US_MAX: u64 = 150_000_000;
/// A datacenter whose directories were lost has recovered so long after all was healed, or is given up.
const NURSED_US_MAX: u64 = 60_000_000;
/// How often a session is asked again that waits.
const ASKED_AGAIN: usize = 8;
pub(super) const LOOK_AGAIN_US: u64 = 200_000;
/// Every link is up again so long after the last fault, and has carried a heartbeat.
pub(super) const RECONNECT_US: u64 = 3_000_000;
/// A replica that lags is complete, and is given the lead, within this time.
const OWNERS_SETTLE_US: u64 = 8_000_000;
/// Figures that must come down to nothing, and what it means if they do not.
const UNFINISHED: [(&str, &str); 9] = [
    ("ensue_disk_full", "partitions refuse writes though no disk is full"),
    ("ensue_open_dependency_checks", "questions about dependencies have no answer"),
    ("ensue_waiting_entries", "replicated entries wait for their dependencies"),
    ("ensue_transactions", "transactions do not end"),
    ("ensue_waiting_rows", "changes wait for their turn in a row"),
    ("ensue_waiting_reads", "reads wait for a coordinator"),
    ("ensue_waiting_for_times", "reads wait for times"),
    ("ensue_waiting_pops", "pops wait for elements"),
    ("ensue_cuts", "snapshots are still being read"),
];
const TOMBSTONES: &str = "ensue_tombstones";
/// What is everywhere is shown everywhere after so long at most, where a protocol shows it late.
const SHOWN_US_MAX: u64 = 20_000_000;
/// So many sessions with a past ask again in each datacenter when all is done.
const TOKENS_ASKED_WITH: usize = 2;
/// A fresh session's questions are all answered within this time.
const ANSWER_US_MAX: u64 = 10_000_000;

impl Run {
    /// Waits for convergence, reads everything everywhere, and judges the whole history.
    pub(super) fn settle(&mut self, workload: &mut Workload) -> Result<(), Violation> {
        self.let_owners_settle(workload)?;
        self.nurse(workload)?;
        self.await_removal(workload)?;
        self.await_homes(workload)?;
        if !self.lost().is_empty() {
            return self.settle_without_the_lost(workload);
        }
        let restless = self.come_to_rest(workload)?;
        let finals = self.read_everything(workload);
        self.note_queues(workload)?;
        match finals {
            // What the history says explains more than "it does not come to rest".
            Ok(finals) => {
                self.finals = finals;
                self.judge(workload)?;
            }
            Err(violation) => {
                self.judge(workload)?;
                return Err(violation);
            }
        }
        restless.map_or(Ok(()), Err)?;
        self.ask_with_a_past(workload)?;
        self.past_reads.judge(&self.finals)?;
        self.seal();
        self.count_keys(workload)?;
        self.settle_homes(workload)
    }

    /// Replicated partitions go back to the nodes that are meant to own them, for which sessions there are errors.
    pub(super) fn let_owners_settle(&mut self, clients: &mut dyn Clients) -> Result<(), Violation> {
        match self.world.options.shape.is_replicated() {
            true => self.idle(clients, OWNERS_SETTLE_US),
            false => Ok(()),
        }
    }

    /// Datacenters whose directories were lost or exchanged recover, or say that they cannot and are given up.
    pub(super) fn nurse(&mut self, clients: &mut dyn Clients) -> Result<(), Violation> {
        let deadline = self.world.now() + NURSED_US_MAX;
        self.world.look_after_the_sick();
        while !self.world.sick().is_empty() {
            if self.world.now() > deadline {
                let words =
                    format!("{:?} neither recover their directories nor say why not", self.world.sick());
                return Err(Violation::new(property::PROGRESS, words));
            }
            self.idle(clients, LOOK_AGAIN_US)?;
            self.world.look_after_the_sick();
        }
        Ok(())
    }

    /// The datacenter that is removed says that it is done, though its operator may have been cut off: then another one
    /// says it again. Its machines are off then.
    pub(super) fn await_removal(&mut self, clients: &mut dyn Clients) -> Result<(), Violation> {
        let Some(retiree) = self.world.options.retiree() else { return Ok(()) };
        let deadline = self.world.now() + SETTLE_US_MAX;
        while !self.world.has_retired() {
            if self.world.now() > deadline {
                let words = format!("{retiree} is being removed, and does not come to its end");
                return Err(Violation::new(property::PROGRESS, words));
            }
            self.idle(clients, LOOK_AGAIN_US)?;
            if let Ok(shown) = self.ask(clients, retiree, vec![look_at_removal(retiree)])? {
                if let Some(confirm) = confirm_removal(retiree, &shown[0]) {
                    drop(self.ask(clients, retiree, vec![confirm])?);
                }
            }
        }
        Ok(())
    }

    /// A home that has begun to move has started, when all who take part are there.
    fn await_homes(&mut self, clients: &mut dyn Clients) -> Result<(), Violation> {
        if !self.world.options.says_moving_homes() || !self.lost().is_empty() {
            return Ok(());
        }
        let deadline = self.world.now() + SETTLE_US_MAX;
        for datacenter in self.world.survivors() {
            loop {
                let shown = self.ask(clients, datacenter, vec![args("CAUSAL HOME")])?;
                let serves = |home: &Answer| match home {
                    Answer::Array(words) => words.get(4).and_then(Answer::text) == Some("serves"),
                    _ => false,
                };
                let all_serve = matches!(&shown, Ok(said) if matches!(&said[..],
                    [Answer::Array(homes)] if homes.iter().all(serves)));
                if all_serve {
                    break;
                }
                if self.world.now() > deadline {
                    let words = format!("a home does not start, says {datacenter}: {shown:?}");
                    return Err(Violation::new(property::PROGRESS, words));
                }
                self.idle(clients, LOOK_AGAIN_US)?;
            }
        }
        Ok(())
    }

    /// Whoever had to wait for what others had not sent yet is answered now: in each datacenter sessions with the pasts
    /// of clients ask for one key and for several.
    fn ask_with_a_past(&mut self, workload: &mut Workload) -> Result<(), Violation> {
        // Everything may be everywhere while a link that nobody needed for that is still down: it comes up, and is
        // used.
        self.idle(workload, RECONNECT_US)?;
        for token in workload.latest_tokens(TOKENS_ASKED_WITH) {
            let mut merge = args("CAUSAL MERGE");
            merge.push(Bytes::from(token.text.clone()));
            for datacenter in self.world.survivors() {
                let mut commands = vec![merge.clone()];
                for _ in 0..ASKED_AGAIN {
                    commands.extend(past_reads::QUESTIONS.map(args));
                }
                let mut answers = self.ask(workload, datacenter, commands)??;
                self.past_reads.note(datacenter, &answers[1..]);
                // Clocks may differ, and messages be late, by more than a read may wait: then it is answered when the
                // time that was asked for has come, or to the session as it has fallen back.
                let waits = |answer: &Answer| answer.error().is_some_and(|text| self.is_excused(text));
                if let Some(last) = answers.iter().rposition(|answer| !waits(answer)).filter(|last| *last > 0)
                {
                    answers = answers
                        .into_iter()
                        .enumerate()
                        .filter(|(at, a)| *at == last || !waits(a))
                        .map(|(_, a)| a)
                        .collect();
                }
                // A token that a wild clock has made is refused until the others' time has come so far.
                let wild = self.world.options.clock.wild_ms > 0;
                let made = &workload.history.operations[token.operation];
                let excused = |error: &str| {
                    wild && error.starts_with("CLOCKAHEAD ") || self.world.names_the_unnoticed(error, made)
                };
                let error = answers.iter().find(|answer| answer.error().is_some_and(|error| !excused(error)));
                if let Some(error) = error {
                    let words = format!("{datacenter} answers {error} to a session with a past of before");
                    return Err(Violation::new(property::PROGRESS, words));
                }
            }
        }
        Ok(())
    }

    /// A datacenter is lost for good, and with it what only it had. The others come to have the same of it, discard
    /// what depends on what nobody has, and wait for nothing. What they have shown must still be right, each of them
    /// answers everything, and nothing is gone but what only the lost one had, and what is listed as discarded.
    fn settle_without_the_lost(&mut self, workload: &mut Workload) -> Result<(), Violation> {
        self.declare_the_lost(workload)?;
        self.become_equal(workload)?;
        if self.world.options.promises().causality {
            self.ask_with_a_past(workload)?;
        }
        let datacenters = self.world.options.shape.datacenters;
        let questions = Questions::new(workload, datacenters, self.world.now());
        for datacenter in self.world.survivors() {
            self.ask_everything(workload, datacenter, &questions)?;
        }
        self.seal();
        self.judge_survivors(workload)
    }

    /// The survivors are asked once more: what they list as discarded, now that all of them know it, and everything.
    fn judge_survivors(&mut self, workload: &mut Workload) -> Result<(), Violation> {
        let discarded = self.become_equal(workload)?;
        if !discarded.is_empty() {
            self.marks.add(Mark::Discarded);
        }
        let discarded = Discarded::of(&workload.history, &discarded);
        let lost = self.lost();
        workload.lose_datacenters(&lost, &discarded.keys);
        workload.history.discarded = discarded.named.union(&discarded.meant).copied().collect();
        match self.read_survivors(workload) {
            Ok(finals) => self.finals = finals,
            Err(violation) => {
                self.judge(workload)?;
                return Err(violation);
            }
        }
        self.judge(workload)?;
        if !self.world.options.promises().shows_late {
            self.past_reads.judge(&self.finals)?;
        }
        oracle::judge_discarded(&workload.history, &discarded.named)?;
        self.count_keys(workload)
    }

    /// What survivors answer to the questions of the end, again and again where it is shown late.
    fn read_survivors(&mut self, workload: &mut Workload) -> Result<Vec<Final>, Violation> {
        let datacenters = self.world.options.shape.datacenters;
        let questions = Questions::new(workload, datacenters, self.world.now());
        let deadline = self.world.now() + SHOWN_US_MAX;
        loop {
            let mut answers = Vec::new();
            for datacenter in self.world.survivors() {
                answers.push((datacenter, self.ask_everything(workload, datacenter, &questions)?));
            }
            let read = answers.iter().map(|(datacenter, answers)| questions.read(*datacenter, answers));
            let finals: Result<Vec<Final>, Violation> = read.collect();
            let is_whole = finals.as_ref().is_ok_and(|f| oracle::judge_end(&workload.history, f).is_ok());
            let may_come = self.world.options.promises().shows_late && self.world.now() < deadline;
            if is_whole || !may_come {
                return finals;
            }
            self.idle(workload, LOOK_AGAIN_US)?;
        }
    }

    /// A survivor answers every question of a fresh session. A message of another one may be slow even now: a session
    /// that would wait for it too long is told so, and asks again.
    fn ask_everything(
        &mut self,
        workload: &mut Workload,
        datacenter: DatacenterId,
        questions: &Questions,
    ) -> Result<Vec<Answer>, Violation> {
        let deadline = self.world.now() + SHOWN_US_MAX;
        loop {
            let answers = self.ask(workload, datacenter, questions.texts())??;
            let mut errors = answers.iter().filter_map(Answer::error);
            let error = errors.clone().find(|error| !self.is_late(error)).or_else(|| errors.next());
            let Some(error) = error else { return Ok(answers) };
            if !self.is_late(error) || self.world.now() >= deadline {
                let words = format!("{datacenter} answers error {error} since another datacenter is lost");
                return Err(Violation::new(property::AVAILABILITY, words));
            }
            self.idle(workload, LOOK_AGAIN_US)?;
        }
    }

    /// The datacenters that are gone, and were not removed in good order.
    pub(super) fn lost(&self) -> Vec<DatacenterId> {
        if self.world.has_retired() {
            return Vec::new();
        }
        let survivors = self.world.survivors();
        let all = (0..self.world.options.shape.datacenters).map(DatacenterId);
        all.filter(|datacenter| !survivors.contains(datacenter)).collect()
    }

    /// One survivor is told, whatever was said during the run: it tells the others.
    pub(super) fn declare_the_lost(&mut self, clients: &mut dyn Clients) -> Result<(), Violation> {
        self.idle(clients, RECONNECT_US)?;
        let survivors = self.world.survivors();
        for lost in self.lost() {
            let shown = self.ask(clients, survivors[0], vec![look(lost)])??;
            let answers = match confirm(lost, &shown[0], false) {
                Some(confirmed) => self.ask(clients, survivors[0], vec![confirmed])??,
                None => shown,
            };
            if let Some(error) = answers[0].error() {
                let words = format!("{} answers {error} when {lost} is declared dead", survivors[0]);
                return Err(Violation::new(property::PROGRESS, words));
            }
        }
        Ok(())
    }

    /// What a dead datacenter had sent to one survivor all of them have in the end.
    fn become_equal(&mut self, workload: &mut Workload) -> Result<Vec<String>, Violation> {
        let deadline = self.world.now() + SETTLE_US_MAX;
        loop {
            let mut digests = Vec::new();
            let mut lists = Vec::new();
            let mut named = Vec::new();
            let mut left = [0; UNFINISHED.len()];
            let mut untold = None;
            let mut parted = 0;
            for datacenter in self.world.survivors() {
                let questions = ["CAUSAL DIGEST", "CAUSAL DIGEST 1", "CAUSAL DISCARDED", "INFO"].map(args);
                let answers = self.ask(workload, datacenter, questions.to_vec())??;
                digests.push(format!("{} and {}", answers[0], answers[1]));
                lists.push(lines(&answers[2]));
                named.push(updates(lists.last().expect("it was just pushed")));
                untold = untold.or(add_unfinished(&answers[3], &mut left));
                for lost in self.lost() {
                    parted += figure(&answers[3], &format!("ensue_parted_{lost}_partitions")).unwrap_or(0);
                }
            }
            let everywhere =
                self.lost().len() * lists.len() * usize::from(self.world.options.shape.partitions);
            let unfinished = left.into_iter().zip(UNFINISHED).find(|(count, _)| *count > 0);
            let equal = digests.iter().all(|digest| *digest == digests[0]);
            let listed = named.iter().all(|updates| *updates == named[0]);
            let known = !self.world.options.promises().goes_by_times || parted == everywhere as u64;
            if equal && listed && known && unfinished.is_none() && untold.is_none() {
                return Ok(lists.swap_remove(0));
            }
            if self.world.now() > deadline {
                return Err(match unfinished {
                    Some((count, (_, what))) => {
                        Violation::new(property::PROGRESS, format!("{count} {what} since one is dead"))
                    }
                    None if untold.is_some() => {
                        let words = format!("INFO does not say {}", untold.unwrap_or_default());
                        Violation::new(property::PROGRESS, words)
                    }
                    None if !known => {
                        let words = format!("{parted} of {everywhere} partitions know what was lost");
                        Violation::new(property::PROGRESS, words)
                    }
                    None if equal => {
                        let words = format!("lists of what was discarded: {lists:#?}");
                        Violation::new(property::DISCARDED, words)
                    }
                    None => {
                        let words = format!("digests of those that are left: {}", digests.join(" | "));
                        Violation::new(property::CONVERGENCE, words)
                    }
                });
            }
            self.idle(workload, LOOK_AGAIN_US)?;
        }
    }

    /// Whether a protocol that waits for other datacenters may say this when one of them never comes back.
    fn is_excused(&self, error: &str) -> bool {
        self.is_parted(error) || self.is_late(error)
    }

    /// Whether a protocol that waits for other datacenters may say this while a message of one of them is on its way.
    fn is_late(&self, error: &str) -> bool {
        match self.world.options.promises().availability {
            Availability::Blocks => error.starts_with("BLOCKED "),
            Availability::FallsBack => error.starts_with("FALLBACK "),
            Availability::Always => false,
        }
    }

    /// What a session had seen may have been discarded with a dead datacenter.
    fn is_parted(&self, error: &str) -> bool {
        error.starts_with("DISCARDED ") && !self.lost().is_empty()
    }

    /// Looks again and again until all digests agree and no tombstone is left. What is wrong, if time runs out.
    fn come_to_rest(&mut self, workload: &mut Workload) -> Result<Option<Violation>, Violation> {
        let deadline = self.world.now() + rest_us_max(&self.world.options);
        loop {
            let looked = self.look(workload)?;
            let Some(wrong) = looked else { return Ok(None) };
            if self.world.now() > deadline {
                // What never becomes visible explains every difference that follows from it.
                return if wrong.property == property::PROGRESS { Err(wrong) } else { Ok(Some(wrong)) };
            }
            self.idle(workload, LOOK_AGAIN_US)?;
        }
    }

    fn look(&mut self, workload: &mut Workload) -> Result<Option<Violation>, Violation> {
        let mut digests = Vec::new();
        let mut tombstones = 0;
        let mut left = [0; UNFINISHED.len()];
        for datacenter in self.world.survivors() {
            let commands = vec![args("CAUSAL DIGEST"), args("CAUSAL DIGEST 1"), args("INFO")];
            let answers = match self.ask(workload, datacenter, commands)? {
                Ok(answers) => answers,
                Err(violation) => return Ok(Some(violation)),
            };
            if let Some(error) = answers[0].error() {
                let words = format!("{datacenter} answers {error}");
                return Ok(Some(Violation::new(property::PROGRESS, words)));
            }
            self.marks.add(Mark::Digest);
            digests.push(format!("{} and {}", answers[0], answers[1]));
            let kept = figure(&answers[2], TOMBSTONES);
            let untold = kept.is_none().then_some(TOMBSTONES);
            if let Some(name) = untold.or(add_unfinished(&answers[2], &mut left)) {
                let words = format!("INFO of {datacenter} does not say {name}");
                return Ok(Some(Violation::new(property::PROGRESS, words)));
            }
            tombstones += kept.unwrap_or(0);
        }
        if let Some((count, (_, what))) = left.into_iter().zip(UNFINISHED).find(|(count, _)| *count > 0) {
            let words = format!("{count} {what} for ever");
            return Ok(Some(Violation::new(property::PROGRESS, words)));
        }
        if digests.iter().any(|digest| *digest != digests[0]) {
            return Ok(Some(Violation::new(
                property::CONVERGENCE,
                format!("digests: {}", digests.join(" | ")),
            )));
        }
        if tombstones > 0 {
            return Ok(Some(Violation::new(property::TOMBSTONES, format!("{tombstones} are left"))));
        }
        Ok(None)
    }

    fn read_everything(&mut self, workload: &mut Workload) -> Result<Vec<Final>, Violation> {
        let datacenters = self.world.options.shape.datacenters;
        let questions = Questions::new(workload, datacenters, self.world.now());
        let late = self.world.options.promises().shows_late;
        let deadline = self.world.now() + if late { SHOWN_US_MAX } else { 0 };
        loop {
            let finals = self.read_once(workload, &questions);
            let whole =
                late && finals.as_ref().is_ok_and(|f| oracle::judge_end(&workload.history, f).is_ok());
            if whole || self.world.now() >= deadline {
                return finals;
            }
            self.idle(workload, LOOK_AGAIN_US)?;
        }
    }

    fn read_once(&mut self, workload: &mut Workload, questions: &Questions) -> Result<Vec<Final>, Violation> {
        let mut finals = Vec::new();
        for datacenter in self.world.survivors() {
            let answers = self.ask(workload, datacenter, questions.texts())??;
            finals.push(questions.read(datacenter, &answers)?);
        }
        Ok(finals)
    }

    /// Asks a fresh session. The inner error: no answer in time.
    pub(super) fn ask(
        &mut self,
        clients: &mut dyn Clients,
        datacenter: DatacenterId,
        commands: Vec<Args>,
    ) -> Result<Result<Vec<Answer>, Violation>, Violation> {
        let site: Site = self.world.options.shape.site(datacenter, CoreId(0));
        let connection = self.world.connect(site);
        let count = commands.len();
        self.world.send(connection, commands);
        let answers = self.collect(clients, connection, count)?;
        self.world.close(connection);
        if answers.len() < count {
            let words =
                format!("{datacenter} answered {} of {count} commands of a fresh session", answers.len());
            return Ok(Err(Violation::new(property::PROGRESS, words)));
        }
        Ok(Ok(answers))
    }

    fn collect(
        &mut self,
        clients: &mut dyn Clients,
        wanted: ConnectionId,
        count: usize,
    ) -> Result<Vec<Answer>, Violation> {
        let mut incoming = Answers::default();
        let mut answers = Vec::new();
        // Each of them may wait, one after another.
        let until = self.world.now() + ANSWER_US_MAX + clients.waits_us(&self.world) * count as u64;
        while answers.len() < count {
            match self.world.step(until) {
                None => break,
                Some(Happening::Answer { connection, bytes, .. }) if connection == wanted => {
                    incoming.extend(&bytes);
                    let wrong = |why| Violation::new(property::PROTOCOL, why);
                    while let Some(answer) = incoming.pop().map_err(wrong)? {
                        answers.push(answer);
                    }
                }
                Some(other) => self.on_happening(clients, other, false)?,
            }
        }
        Ok(answers)
    }

    pub(super) fn idle(&mut self, clients: &mut dyn Clients, length_us: u64) -> Result<(), Violation> {
        let until = self.world.now() + length_us;
        while let Some(happening) = self.world.step(until) {
            self.on_happening(clients, happening, false)?;
        }
        Ok(())
    }
}

/// How long it may take in this world: a deadline that a wild clock has set may lie as far ahead as the clock was.
fn rest_us_max(options: &Options) -> u64 {
    SETTLE_US_MAX + 1_000 * options.clock.wild_ms
}

/// The lines of an array, in order.
fn lines(answer: &Answer) -> Vec<String> {
    let Answer::Array(items) = answer else { return vec![answer.to_string()] };
    let mut lines: Vec<String> =
        items.iter().map(|item| item.text().unwrap_or_default().to_owned()).collect();
    lines.sort();
    lines
}

/// The updates of a list, as every survivor names them. A survivor may list an update as lost with another of two dead
/// datacenters, and as a deletion if a flush had hidden it there before it was discarded.
fn updates(lines: &[String]) -> Vec<String> {
    let update = |line: &String| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        line["lost_with"].take();
        for effect in line["effects"].as_array_mut().into_iter().flatten() {
            let members = effect.as_object_mut().expect("an effect has members");
            if members.remove("put").is_some() {
                members.insert("delete".to_owned(), true.into());
            }
        }
        line.to_string()
    };
    let mut updates: Vec<String> = lines.iter().map(update).collect();
    updates.sort_unstable();
    updates
}

/// Adds what a datacenter has unfinished. The figure that it does not tell, if there is one.
fn add_unfinished(info: &Answer, left: &mut [u64; UNFINISHED.len()]) -> Option<&'static str> {
    let mut untold = None;
    for (left, (name, _)) in left.iter_mut().zip(UNFINISHED) {
        match figure(info, name) {
            Some(number) => *left += number,
            None => untold = Some(name),
        }
    }
    untold
}

/// A figure of `INFO`, if it is there.
pub(super) fn figure(info: &Answer, name: &str) -> Option<u64> {
    let line = info.text()?.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{UNFINISHED, add_unfinished, rest_us_max};
    use crate::resp::Answer;
    use crate::rules::Rules;
    use crate::world::options::Options;

    /// Seed 60005337 of `orbe-clock`: rows with the deadlines of a wild clock were deleted two minutes after the last
    /// fault, and their tombstones were still waiting for the syncs that come every thirty seconds.
    #[test]
    fn what_a_wild_clock_has_set_has_time_to_pass() {
        let worlds = (0..1_000).map(|seed| Options::draw(seed, Rules::default()));
        let wild: Vec<Options> = worlds.filter(|options| options.clock.wild_ms > 0).collect();
        // To be deleted a row waits for a round that has begun without it, and then for its own; so does the tombstone.
        let rounds_us = 4 * 30_000_000;
        for options in &wild {
            assert!(rest_us_max(options) > 1_000 * options.clock.wild_ms + rounds_us, "{:?}", options.clock);
        }
        assert!(!wild.is_empty());
    }

    #[test]
    fn a_figure_that_is_not_there_is_not_zero() {
        let lines = UNFINISHED.map(|(name, _)| format!("{name}:2\r\n"));
        let (mut left, info) = ([1; UNFINISHED.len()], |text: String| Answer::Bulk(text.into_bytes()));
        assert_eq!(add_unfinished(&info(lines.concat()), &mut left), None);
        assert_eq!(left, [3; UNFINISHED.len()]);
        assert_eq!(add_unfinished(&info(lines[..8].concat()), &mut left), Some("ensue_cuts"));
        assert_eq!(add_unfinished(&Answer::Error("ERR".to_owned()), &mut left), Some("ensue_cuts"));
    }
}
