//! The paper's examples, each condition by itself, and the judge beside a naive one on random small histories.

use super::*;

/// `R value from until` or `W value from until`, `-` for a write that did not return; one object.
fn history(text: &str) -> History {
    let number = |word: &str| word.parse::<u64>().unwrap();
    let operations = text.split(',').map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Operation {
            process: 0,
            object: ObjectId(1),
            kind: if words[0] == "W" { Kind::Write } else { Kind::Read },
            value: Value(number(words[1])),
            invoked_us: number(words[2]),
            returned_us: (words[3] != "-").then(|| number(words[3])),
        }
    });
    History { operations: operations.collect() }
}

#[track_caller]
fn holds(text: &str, stale: usize) {
    let verdict = judge(&history(text)).unwrap();
    assert_eq!((verdict.violations, verdict.stale_reads), (vec![], stale), "{text}");
}

#[track_caller]
fn fails(text: &str) -> Violation {
    judge(&history(text)).unwrap().violations.pop().unwrap_or_else(|| panic!("nothing is found in {text}"))
}

#[test]
fn the_sequences_of_section_4_1_hold_and_two_reads_of_the_second_are_stale() {
    holds("R 0 1 2, W 1 3 4, W 2 5 6, R 2 7 8, R 2 9 10, W 3 11 12, R 3 13 14", 0);
    holds("R 0 1 2, W 1 3 4, W 2 5 6, R 0 7 8, R 2 9 10, W 3 11 12, R 2 13 14", 2);
}

#[test]
fn a_read_reflects_the_latest_read_or_the_latest_write_and_none_between() {
    let middle = fails("R 0 1 2, W 1 3 4, W 2 5 6, R 1 7 8");
    assert_eq!(middle, Violation::NoOrder { object: ObjectId(1), values: vec![Value(1), Value(2)] });
    holds("R 0 1 2, W 1 3 4, R 1 5 6, W 2 7 8, R 1 9 10, R 1 11 12, R 2 13 14", 2);
    fails("W 1 1 2, R 0 3 4");
}

#[test]
fn a_read_never_goes_back() {
    fails("R 0 1 2, W 1 3 4, R 1 5 6, R 0 7 8");
    holds("R 0 1 2, W 1 3 4, R 1 5 7, R 0 6 8", 1);
}

#[test]
fn nothing_comes_from_the_future_or_from_nobody() {
    assert!(matches!(fails("R 1 1 2, W 1 3 4"), Violation::FromTheFuture(_)));
    assert!(matches!(fails("R 7 1 2"), Violation::Unwritten(_)));
    holds("R 1 1 3, W 1 2 -", 0);
}

#[test]
fn writes_take_effect_between_call_and_return() {
    fails("W 1 1 2, W 2 3 4, R 2 5 6, R 1 7 8");
    holds("W 1 1 4, W 2 2 3, R 2 5 6, W 3 7 8, R 2 9 9", 1);
    holds("W 1 1 4, W 2 2 3, R 1 5 6", 0);
    holds("W 1 1 2, W 2 1 3, R 1 2 5, R 1 6 7", 0);
    fails("W 1 1 4, W 2 2 3, R 1 5 6, R 2 7 8");
}

#[test]
fn a_circle_of_three_is_found() {
    // Three writes overlap; the reads say 1 before 2, 2 before 3, 3 before 1.
    let text = "W 1 1 100, W 2 1 100, W 3 1 100, R 1 10 11, R 2 12 13, R 3 14 15, R 1 16 17";
    assert!(matches!(fails(text), Violation::NoOrder { .. }));
}

/// The replicated read of value 1 is under way while value 2 is written, and a fast read still returns value 0: no one
/// order of all operations explains it, and Algorithm 1 allows it.
#[test]
fn an_answer_under_way_does_not_hinder_delayed_reads() {
    holds("R 0 1 2, W 1 3 5, R 1 4 20, W 2 6 7, R 0 8 9", 1);
}

#[test]
fn what_cannot_be_judged_is_refused() {
    let refuse = |text: &str| judge(&history(text)).unwrap_err();
    assert_eq!(refuse("W 1 1 2, W 1 3 4"), HistoryError::WrittenTwice(ObjectId(1), Value(1)));
    assert_eq!(refuse("W 0 1 2"), HistoryError::WrittenTwice(ObjectId(1), INITIAL));
    assert_eq!(refuse("R 0 1 -"), HistoryError::OpenRead(ObjectId(1)));
    assert_eq!(refuse("R 0 2 1"), HistoryError::Backwards(ObjectId(1)));
}

#[test]
fn stale_reads_in_a_row_are_counted() {
    let verdict =
        judge(&history("R 0 1 2, W 1 3 4, R 0 5 6, R 0 7 8, R 1 9 10, W 2 11 12, R 1 13 14")).unwrap();
    assert_eq!((verdict.reads, verdict.stale_reads, verdict.stale_run_max), (5, 3, 2));
}

/// The definition word by word: tries which reads are fresh, every order of writes and fresh reads, and every order of
/// all reads.
mod naive {
    use super::*;

    pub(super) fn holds(history: &History) -> bool {
        let (writes, reads): (Vec<Operation>, Vec<Operation>) =
            history.operations.iter().partition(|operation| operation.kind == Kind::Write);
        (0..1u32 << reads.len()).any(|fresh| {
            let is_fresh = |place: usize| fresh & (1 << place) != 0;
            let chosen =
                reads.iter().enumerate().filter(|(place, _)| is_fresh(*place)).map(|(_, read)| *read);
            let rest: Vec<Operation> = writes.iter().copied().chain(chosen).collect();
            permutations(rest.len()).into_iter().any(|order| {
                let line: Vec<Operation> = order.iter().map(|&place| rest[place]).collect();
                respects_time(&line) && is_register(&line) && {
                    let states: Vec<Value> = std::iter::once(INITIAL)
                        .chain(line.iter().filter(|one| one.kind == Kind::Write).map(|write| write.value))
                        .collect();
                    none_from_the_future(&writes, &states, &reads)
                        && reads_in_order(&reads, &states, &is_fresh)
                }
            })
        })
    }

    fn precedes(one: &Operation, other: &Operation) -> bool {
        one.returned_us.is_some_and(|returned_us| returned_us < other.invoked_us)
    }

    fn respects_time(line: &[Operation]) -> bool {
        (0..line.len()).all(|later| (0..later).all(|earlier| !precedes(&line[later], &line[earlier])))
    }

    fn is_register(line: &[Operation]) -> bool {
        let mut current = INITIAL;
        line.iter().all(|operation| match operation.kind {
            Kind::Write => {
                current = operation.value;
                true
            }
            Kind::Read => operation.value == current,
        })
    }

    /// The write of what a read returns can take effect before the read returns, and with it all before it.
    fn none_from_the_future(writes: &[Operation], states: &[Value], reads: &[Operation]) -> bool {
        reads.iter().all(|read| {
            let Some(place) = states.iter().position(|state| *state == read.value) else { return false };
            let is_late =
                |write: &Operation| precedes(read, write) && states[..=place].contains(&write.value);
            !writes.iter().any(is_late)
        })
    }

    fn reads_in_order(reads: &[Operation], states: &[Value], is_fresh: &dyn Fn(usize) -> bool) -> bool {
        let state = |read: usize| states.iter().position(|state| *state == reads[read].value);
        permutations(reads.len()).into_iter().any(|order| {
            let line: Vec<Operation> = order.iter().map(|&place| reads[place]).collect();
            respects_time(&line)
                && order.iter().enumerate().all(|(at, &read)| {
                    let previous = at.checked_sub(1).map(|at| order[at]);
                    let goes_back = previous.is_some_and(|previous| state(previous) > state(read));
                    let is_same = previous.is_some_and(|previous| state(previous) == state(read));
                    !goes_back && (is_fresh(read) || is_same)
                })
        })
    }

    fn permutations(count: usize) -> Vec<Vec<usize>> {
        let mut all = vec![vec![]];
        for next in 0..count {
            all = all
                .into_iter()
                .flat_map(|line: Vec<usize>| {
                    (0..=line.len()).map(move |at| {
                        let mut line = line.clone();
                        line.insert(at, next);
                        line
                    })
                })
                .collect();
        }
        all
    }
}

/// Numbers that the seed determines.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }
}

/// At most three writes and three reads, which overlap often.
fn small(random: &mut Random) -> History {
    let (writes, reads) = (random.between(1, 3), random.between(1, 3));
    let mut operations = Vec::new();
    for number in 0..writes + reads {
        let invoked_us = random.below(14);
        let kind = if number < writes { Kind::Write } else { Kind::Read };
        let value = if number < writes { number + 1 } else { random.below(writes + 1) };
        let is_open = kind == Kind::Write && random.below(10) == 0;
        let returned_us = (!is_open).then(|| invoked_us + random.below(5));
        let (object, value) = (ObjectId(1), Value(value));
        operations.push(Operation { process: 0, object, kind, value, invoked_us, returned_us });
    }
    History { operations }
}

#[test]
fn the_judge_agrees_with_the_naive_one() {
    let mut counts = [0; 2];
    for seed in 0..6_000_u64 {
        let history = small(&mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let holds = judge(&history).unwrap().violations.is_empty();
        assert_eq!(holds, naive::holds(&history), "seed {seed}: {history:?}");
        counts[usize::from(holds)] += 1;
    }
    assert!(counts.iter().all(|count| *count > 600), "one sided: {counts:?}");
}

/// The edges word by word, and every pair of values looked at.
fn has_order_by_pairs(object: &Object<'_>) -> bool {
    let mut left: Vec<usize> = (0..object.values.len()).collect();
    loop {
        let is_before =
            |one: usize, other: usize| one != other && object.values[one].is_before(&object.values[other]);
        let ready = left.iter().position(|&other| !left.iter().any(|&one| is_before(one, other)));
        match ready {
            Some(at) => drop(left.swap_remove(at)),
            None => return left.is_empty(),
        }
    }
}

/// A register with thirty values, whose reads are of any moment between a little before and their end.
fn long(random: &mut Random) -> History {
    let lag = 1 + random.below(40);
    let mut operations = Vec::new();
    for number in 0..30 {
        let invoked_us = 10 * number + random.below(20);
        let returned_us = Some(invoked_us + random.below(30));
        let (object, value) = (ObjectId(1), Value(number + 1));
        let write = Operation { process: 0, object, kind: Kind::Write, value, invoked_us, returned_us };
        let seen = Value((invoked_us + random.below(10)).saturating_sub(lag) / 10);
        operations.push(write);
        operations.push(Operation { kind: Kind::Read, value: seen, invoked_us, ..write });
    }
    History { operations }
}

#[test]
fn sorting_finds_an_order_exactly_if_comparing_all_pairs_does() {
    let mut counts = [0; 2];
    for seed in 0..3_000_u64 {
        let history = long(&mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let operations: Vec<&Operation> = history.operations.iter().collect();
        let object = Object::of(ObjectId(1), &operations, &mut Vec::new()).unwrap();
        let found = object.order();
        assert_eq!(found.is_ok(), has_order_by_pairs(&object), "seed {seed}");
        match &found {
            Ok(places) => {
                let places = places.clone();
                for (one, other) in (0..31).flat_map(|one| (0..31).map(move |other| (one, other))) {
                    let is_before = one != other && object.values[one].is_before(&object.values[other]);
                    assert!(!is_before || places[one] < places[other], "seed {seed}");
                }
            }
            Err(circle) => {
                for (at, one) in circle.iter().enumerate() {
                    let place = |value: Value| value.0 as usize;
                    let next = place(circle[(at + 1) % circle.len()]);
                    assert!(object.values[place(*one)].is_before(&object.values[next]), "seed {seed}");
                }
            }
        }
        counts[usize::from(found.is_ok())] += 1;
    }
    assert!(counts.iter().all(|count| *count > 300), "one sided: {counts:?}");
}

/// 300,000 operations of one object: comparing its values in pairs would take minutes.
#[test]
fn many_values_of_one_object_take_no_longer_than_sorting() {
    let mut operations = Vec::new();
    for number in 1..=100_000_u64 {
        let (object, value, invoked_us) = (ObjectId(1), Value(number), 10 * number);
        let returned_us = Some(invoked_us + 15);
        let write = Operation { process: 0, object, kind: Kind::Write, value, invoked_us, returned_us };
        operations.push(write);
        let read = Operation { kind: Kind::Read, invoked_us: invoked_us + 12, ..write };
        operations.extend([read, Operation { invoked_us: invoked_us + 14, ..read }]);
    }
    let mut history = History { operations };
    assert_eq!(judge(&history).unwrap().violations, []);
    // The first value comes back at the end.
    let last = history.operations[history.operations.len() - 1];
    let (invoked_us, returned_us) = (last.invoked_us + 10, Some(last.invoked_us + 11));
    history.operations.push(Operation { value: Value(1), invoked_us, returned_us, ..last });
    assert!(matches!(judge(&history).unwrap().violations[..], [Violation::NoOrder { .. }]));
}
