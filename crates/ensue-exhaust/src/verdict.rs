//! The end of an execution: it comes to rest, every datacenter is read, and the oracle of the seeded runs judges.

use super::case::{self, Command, key, value};
use super::client::Client;
use super::state::State;
use ensue_sim::oracle::history::{History, Location, OperationIndex, Outcome, Seen, Written};
use ensue_sim::oracle::{Final, Violation, judge, property};
use ensue_sim::resp::Answer;
use ensue_sim::resp::args;
use ensue_types::DatacenterId;
use std::collections::BTreeMap;

/// The keys of every case.
const NAMES: [&str; 2] = ["x", "y"];
/// Everything has come to rest after this much time in which nothing but timers ran.
const REST_US_MAX: u64 = 30_000_000;
/// How much time passes between two looks.
const LOOK_AGAIN_US: u64 = 200_000;

/// Follows one order of whatever happens by itself, what clients still have to say included, until nothing is left.
pub fn come_to_rest(state: &mut State) -> Result<(), Violation> {
    loop {
        let next = state.steps().first().copied().or_else(|| state.says().next());
        let Some(choice) = next else { return Ok(()) };
        state.take(choice)?;
    }
}

/// The same, and then lets time pass.
pub fn idle(state: &mut State, length_us: u64) -> Result<(), Violation> {
    let until_us = state.elapsed_us() + length_us;
    come_to_rest(state)?;
    while state.pass_time(until_us)? {
        come_to_rest(state)?;
    }
    Ok(())
}

/// Judges an execution in which nothing more happens by itself.
pub fn judge_end(state: &State, clients: usize) -> Result<(), Violation> {
    no_error(state, clients)?;
    let mut state = state.clone();
    let deadline = state.elapsed_us() + REST_US_MAX;
    loop {
        let wrong = match look(&mut state, clients)? {
            Ok(finals) => return judge_history(&state.clients[..clients], &finals),
            Err(wrong) => wrong,
        };
        if state.elapsed_us() >= deadline {
            // What clients saw explains more than "it does not come to rest".
            judge_history(&state.clients[..clients], &[])?;
            return Err(wrong);
        }
        idle(&mut state, LOOK_AGAIN_US)?;
    }
}

/// A datacenter in which nothing was broken answers everything.
fn no_error(state: &State, clients: usize) -> Result<(), Violation> {
    let healthy = state.clients[..clients].iter().filter(|client| !state.is_excused(client.site));
    for client in healthy {
        if let Some(error) = client.answers.iter().find(|answer| answer.error().is_some()) {
            let words =
                format!("client {} is answered {error}, and nothing was broken there", client.session.0);
            return Err(Violation::new(property::AVAILABILITY, words));
        }
    }
    Ok(())
}

/// What every datacenter holds. The inner error: it has not come to rest.
fn look(state: &mut State, clients: usize) -> Result<Result<Vec<Final>, Violation>, Violation> {
    if let Some(client) = state.clients[..clients].iter().find(|client| client.is_waiting()) {
        let words = format!("client {} waits for an answer for ever", client.session.0);
        return Ok(Err(Violation::new(property::PROGRESS, words)));
    }
    let mut finals = Vec::new();
    let mut digests = Vec::new();
    for datacenter in [DatacenterId(0), DatacenterId(1)] {
        let answers = ask(state, datacenter)?;
        if answers.len() < 2 + NAMES.len() {
            let words = format!("{datacenter} does not answer a fresh session");
            return Ok(Err(Violation::new(property::PROGRESS, words)));
        }
        let info = answers[1].text().unwrap_or_default();
        let waiting = info.lines().find_map(|line| line.strip_prefix("ensue_waiting_entries:"));
        if waiting.is_none_or(|count| count.trim() != "0") {
            let words = format!("replicated entries wait in {datacenter} for ever");
            return Ok(Err(Violation::new(property::PROGRESS, words)));
        }
        digests.push(answers[0].to_string());
        finals.push((datacenter, answers[2..].to_vec()));
    }
    if digests[0] != digests[1] {
        return Ok(Err(Violation::new(property::CONVERGENCE, digests.join(" | "))));
    }
    let (mut history, values) = history_of(&state.clients[..clients]);
    Ok(Ok(finals.into_iter().map(|(place, read)| final_of(&mut history, &values, place, &read)).collect()))
}

/// Asks a fresh session for the digest, the figures, and every key.
fn ask(state: &mut State, datacenter: DatacenterId) -> Result<Vec<Answer>, Violation> {
    let mut texts = vec!["CAUSAL DIGEST".to_owned(), "INFO".to_owned()];
    texts.extend(NAMES.iter().map(|name| format!("GET {}", key(name))));
    let commands = texts.iter().map(|text| Command { args: args(text), writes: vec![], reads: vec![] });
    let client = state.connect(datacenter.0, 0, commands.collect())?;
    come_to_rest(state)?;
    let answers = std::mem::take(&mut state.clients[client].answers);
    // Whoever has not been answered by now is not asked again.
    state.clients[client].gone = true;
    Ok(answers)
}

/// Which operation wrote each value.
type Values = BTreeMap<String, OperationIndex>;

fn judge_history(clients: &[Client], finals: &[Final]) -> Result<(), Violation> {
    let (history, _) = history_of(clients);
    judge(&history, finals)
}

/// The first client has said everything before the others began, and they know of it.
fn history_of(clients: &[Client]) -> (History, Values) {
    let mut history = History::default();
    let mut values = Values::new();
    NAMES.iter().for_each(|name| {
        history.location(name);
    });
    for (number, client) in clients.iter().enumerate() {
        let session = history.session();
        for (place, command) in client.program[..client.sent].iter().enumerate() {
            let writes = command.writes.iter().map(|name| (history.location(name), Written::Value)).collect();
            let datacenter = DatacenterId(if client.site.0 < 2 { 0 } else { 1 });
            let index = history.invoke(session, datacenter, 0, vec![command.args.clone()], writes);
            values.insert(value(&client_name(number), place), index);
            let known = (number > 0 && place == 0).then(|| clients[0].program.len().checked_sub(1)).flatten();
            history.operations[index].merges = known;
        }
    }
    let mut index = 0;
    for client in clients {
        for (place, command) in client.program[..client.sent].iter().enumerate() {
            let answer = client.answers.get(place).filter(|answer| answer.error().is_none());
            if let Some(answer) = answer {
                let reads =
                    command.reads.iter().map(|name| history.location(name)).collect::<Vec<Location>>();
                let operation = &mut history.operations[index];
                operation.outcome = Outcome::Done;
                operation.answered_us = 1;
                operation.reads = reads.into_iter().zip(seen(&values, answer)).collect();
            }
            index += 1;
        }
    }
    (history, values)
}

fn final_of(history: &mut History, values: &Values, datacenter: DatacenterId, answers: &[Answer]) -> Final {
    let locations = NAMES.iter().map(|name| history.location(name)).collect::<Vec<Location>>();
    let read = locations.into_iter().zip(answers.iter().flat_map(|answer| seen(values, answer))).collect();
    let texts =
        NAMES.iter().map(|name| (*name).to_owned()).zip(answers.iter().map(Answer::to_string)).collect();
    Final { datacenter, values: read, folded: Vec::new(), sequences: Vec::new(), answers: texts }
}

fn seen(values: &Values, answer: &Answer) -> Vec<Seen> {
    match answer {
        Answer::Array(items) => items.iter().flat_map(|item| seen(values, item)).collect(),
        Answer::Nil => vec![Seen::Nothing],
        // A value that nobody wrote is one of no operation.
        other => vec![Seen::Value(
            other.text().and_then(|text| values.get(text)).copied().unwrap_or(OperationIndex::MAX),
        )],
    }
}

/// The name with which a client's values begin: `before` first, then letters.
pub fn client_name(number: usize) -> String {
    match number {
        0 => "before".to_owned(),
        number => char::from(b'a' + (number as u8 - 1) % 26).to_string(),
    }
}

/// The commands of a client of a case.
pub fn program(number: usize, says: &[&'static str]) -> Vec<Command> {
    case::commands(&client_name(number), says)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Choice, Setting};
    use ensue_sim::rules::Rules;
    use ensue_sim::world::shape::Site;
    use std::rc::Rc;

    #[test]
    fn an_error_is_excused_only_where_something_was_broken() {
        let case = *case::named(Some("album-crash"))[0];
        let mut state = State::new(Rc::new(Setting::new(case, Rules::default()))).expect("it starts");
        let client = state.connect(1, 0, Vec::new()).expect("it connects");
        state.clients[client].answers.push(Answer::Error("UNAVAILABLE for no reason".to_owned()));
        let judged = |state: &State| no_error(state, 1).map_err(|wrong| wrong.property);
        assert_eq!(judged(&state), Err(property::AVAILABILITY));
        state.unleash();
        let process = |datacenter| {
            let shape = Setting::new(case, Rules::default()).shape;
            shape
                .process((0..shape.sites()).map(Site).find(|&s| shape.datacenter(s).0 == datacenter).unwrap())
        };
        let mut elsewhere = state.clone();
        elsewhere.take(Choice::Crash { process: process(0) }).expect("it starts again");
        assert_eq!(judged(&elsewhere), Err(property::AVAILABILITY));
        state.take(Choice::Crash { process: process(1) }).expect("it starts again");
        assert_eq!(judged(&state), Ok(()));
    }
}
