//! Algorithm 1 step by step, on requests of the Redis protocol.

use super::*;
use crate::handler;
use crate::handler::redis::RedisHandler;
use crate::lists::Lists;
use crate::outcomes::OUTCOMES_WINDOW;

struct Bench {
    sketcher: Sketcher<RedisHandler>,
    next: u64,
}

impl Bench {
    fn new(sessions: usize) -> Bench {
        Bench::with(|config| config.sessions = sessions)
    }

    fn with(change: impl FnOnce(&mut Config)) -> Bench {
        let mut config = Config::of(&["a", "b", "c", "d"], [9; 32], 5);
        config.table_entries = 64;
        change(&mut config);
        Bench { sketcher: Sketcher::new(&config, RedisHandler).unwrap(), next: 0 }
    }

    fn send(&mut self, words: &[&str]) -> RequestId {
        let mut request = Vec::new();
        ensue_resp::encode::encode_command(words, &mut request);
        self.next += 1;
        self.sketcher.on_request(0, RequestId(self.next), request);
        RequestId(self.next)
    }

    /// The only output.
    #[track_caller]
    fn output(&mut self) -> Output {
        let output = self.sketcher.take_output().expect("an output");
        assert_eq!(self.sketcher.take_output(), None);
        output
    }

    #[track_caller]
    fn fast(&mut self) -> (Exchange, Replica) {
        match self.output() {
            Output::Fast { exchange, replica, .. } => (exchange, replica),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn replicated(&mut self) -> Exchange {
        match self.output() {
            Output::Replicated { exchange, .. } => exchange,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn answer(&mut self) -> (String, Path) {
        match self.output() {
            Output::Answer { response, path, .. } => (String::from_utf8(response).unwrap(), path),
            other => panic!("{other:?}"),
        }
    }

    /// The replica that was asked answers.
    fn reply_fast(&mut self, exchange: Exchange, response: &str) {
        let replica = match self.sketcher.sessions.work(exchange) {
            Some(Work::Fast(read)) => read.replica,
            _ => Replica(0),
        };
        self.sketcher.on_fast_answer(0, exchange, replica, response.into());
    }

    fn reply(&mut self, exchange: Exchange, response: &str, sequence: u64) {
        self.sketcher.on_replicated_answer(0, exchange, response.into(), Sequence(sequence));
    }

    /// A replicated read of this key has had this response.
    fn learn(&mut self, key: &str, response: &str, sequence: u64) {
        self.send(&["GET", key]);
        let exchange = self.replicated();
        self.reply(exchange, response, sequence);
        self.answer();
    }
}

#[test]
fn the_first_read_is_replicated_and_the_second_is_fast() {
    let mut bench = Bench::new(4);
    bench.send(&["GET", "k"]);
    let exchange = bench.replicated();
    bench.reply(exchange, "v", 1);
    assert_eq!(bench.answer(), ("v".into(), Path::Replicated));
    bench.send(&["GET", "k"]);
    let (exchange, _) = bench.fast();
    bench.reply_fast(exchange, "v");
    assert_eq!(bench.answer(), ("v".into(), Path::Fast));
    assert_eq!(bench.sketcher.statistics().fast, 1);
}

#[test]
fn writes_are_replicated_and_enter_no_table() {
    let mut bench = Bench::new(4);
    bench.send(&["SET", "k", "v"]);
    let exchange = bench.replicated();
    bench.reply(exchange, "OK", 1);
    assert_eq!(bench.answer(), ("OK".into(), Path::Replicated));
    assert!(bench.sketcher.table().is_empty());
}

#[test]
fn a_wrong_answer_is_replaced_and_its_replica_is_named() {
    let mut bench = Bench::new(4);
    bench.learn("k", "v", 1);
    bench.send(&["GET", "k"]);
    let (exchange, replica) = bench.fast();
    bench.reply_fast(exchange, "lie");
    let exchange = bench.replicated();
    bench.reply(exchange, "v", 2);
    assert_eq!(bench.answer(), ("v".into(), Path::FailedFast));
    let statistics = bench.sketcher.statistics();
    let named = &statistics.replicas[replica.0 as usize];
    assert_eq!((named.unagreed, named.stale, named.fresh), (1, 0, 0));
    assert_eq!(statistics.transitions, 0);
    bench.sketcher.on_lie(Replica(2));
    assert_eq!(bench.sketcher.statistics().liars(), ["c"]);
}

#[test]
fn a_change_is_confirmed_and_an_old_answer_is_caught() {
    let mut bench = Bench::new(4);
    bench.learn("k", "old", 1);
    bench.send(&["GET", "k"]);
    let (exchange, fresh) = bench.fast();
    bench.reply_fast(exchange, "new");
    let exchange = bench.replicated();
    bench.reply(exchange, "new", 3);
    assert_eq!(bench.answer(), ("new".into(), Path::FailedFast));
    assert_eq!(bench.sketcher.statistics().replicas[fresh.0 as usize].fresh, 1);
    assert_eq!(bench.sketcher.statistics().transitions, 1);
    bench.send(&["GET", "k"]);
    let (exchange, _) = bench.fast();
    bench.reply_fast(exchange, "old");
    let exchange = bench.replicated();
    bench.reply(exchange, "new", 4);
    bench.answer();
    assert_eq!(bench.sketcher.statistics().stale_caught(), 1);
}

#[test]
fn the_second_look_up_decides_and_an_older_sequence_number_changes_nothing() {
    let mut bench = Bench::new(4);
    bench.learn("k", "old", 1);
    bench.send(&["GET", "k"]);
    let (fast, _) = bench.fast();
    bench.send(&["GET", "k"]);
    let (other, _) = bench.fast();
    bench.reply_fast(other, "new");
    let other = bench.replicated();
    bench.reply(other, "new", 9);
    bench.answer();
    bench.reply_fast(fast, "old");
    let fast = bench.replicated();
    bench.reply(fast, "old", 2);
    assert_eq!(bench.answer().0, "old", "it was issued before, and may be answered so");
    bench.send(&["GET", "k"]);
    let (fast, _) = bench.fast();
    bench.reply_fast(fast, "old");
    bench.replicated();
}

#[test]
fn late_and_unknown_answers_do_nothing() {
    let mut bench = Bench::new(1);
    bench.learn("k", "v", 1);
    bench.send(&["GET", "k"]);
    let (exchange, replica) = bench.fast();
    assert_eq!(bench.sketcher.next_deadline_us(), Some(FAST_PATIENCE_US));
    bench.sketcher.on_tick(FAST_PATIENCE_US - 1);
    assert_eq!(bench.sketcher.take_output(), None);
    bench.sketcher.on_tick(FAST_PATIENCE_US);
    let call = bench.replicated();
    assert_eq!(bench.sketcher.statistics().replicas[replica.0 as usize].silent, 1);
    bench.reply_fast(exchange, "v");
    bench.reply_fast(call, "v");
    bench.reply(exchange, "v", 2);
    bench.reply(Exchange { session: 7, attempt: 1 }, "v", 2);
    assert_eq!(bench.sketcher.take_output(), None);
    bench.reply(call, "v", 2);
    assert_eq!(bench.answer(), ("v".into(), Path::FailedFast));
}

#[test]
fn requests_wait_for_a_session_in_order_and_too_many_are_refused() {
    let mut bench = Bench::new(1);
    bench.send(&["SET", "a", "1"]);
    let first = bench.replicated();
    for _ in 0..WAITING_REQUESTS_MAX {
        bench.send(&["SET", "b", "2"]);
    }
    let id = bench.send(&["SET", "c", "3"]);
    assert_eq!(bench.output(), Output::Refuse { id, reason: Refusal::Busy });
    bench.reply(first, "OK", 1);
    assert!(matches!(bench.sketcher.take_output(), Some(Output::Answer { id: RequestId(1), .. })));
    assert!(matches!(bench.sketcher.take_output(), Some(Output::Replicated { .. })));
}

#[test]
fn only_the_replica_that_was_asked_answers() {
    let mut bench = Bench::new(1);
    bench.learn("k", "v", 1);
    bench.send(&["GET", "k"]);
    let (exchange, asked) = bench.fast();
    for other in (0..4).map(Replica).filter(|replica| *replica != asked) {
        bench.sketcher.on_fast_answer(0, exchange, other, b"v".to_vec());
        assert_eq!(bench.sketcher.take_output(), None);
    }
    bench.sketcher.on_fast_answer(0, exchange, asked, b"v".to_vec());
    assert_eq!(bench.answer(), ("v".into(), Path::Fast));
}

#[test]
fn a_request_without_an_answer_is_refused_and_its_session_is_free() {
    let mut bench = Bench::new(1);
    let id = bench.send(&["SET", "k", "v"]);
    let exchange = bench.replicated();
    bench.send(&["SET", "l", "w"]);
    assert_eq!(bench.sketcher.take_output(), None);
    bench.sketcher.on_replicated_failure(0, exchange, CallFailure::NoAgreement);
    let reason = Refusal::Unanswered(CallFailure::NoAgreement);
    assert_eq!(bench.sketcher.take_output(), Some(Output::Refuse { id, reason }));
    bench.replicated();
    bench.sketcher.on_replicated_failure(0, exchange, CallFailure::NoAgreement);
    assert_eq!(bench.sketcher.take_output(), None, "late");
}

/// The table of a sketcher that owns some regions only has room for as many requests as one that owns all.
#[test]
fn the_requests_of_one_region_fill_a_table() {
    let mut bench = Bench::with(|config| config.table_entries = 256);
    let sketching = Sketching::<16>::keyed(&[9; 32]);
    let mut entered = 0;
    for number in 0_u64.. {
        let request = sketching.request(&number.to_le_bytes());
        if Region::of(&request) == Region(3) {
            entered += 1;
            bench.sketcher.table.update(&request, request, Sequence(entered));
            if entered == 1024 {
                break;
            }
        }
    }
    assert!(bench.sketcher.table.len() > 200, "{:?}", bench.sketcher.table);
}

#[test]
fn bad_requests_are_refused() {
    let mut bench = Bench::new(1);
    let id = bench.send(&["MULTI"]);
    let reason = Refusal::Request(RequestError::ConnectionState("MULTI".into()));
    assert_eq!(bench.output(), Output::Refuse { id, reason });
    bench.sketcher.on_request(0, RequestId(77), vec![b'*'; REQUEST_BYTES_MAX + 1]);
    let reason = Refusal::Request(RequestError::TooLong(REQUEST_BYTES_MAX + 1));
    assert_eq!(bench.output(), Output::Refuse { id: RequestId(77), reason });
}

#[test]
fn a_request_that_keeps_changing_gets_no_fast_reads_until_it_comes_to_rest() {
    let mut bench = Bench::new(1);
    let mut fast_reads = Vec::new();
    for turn in 1..100u64 {
        let response = if turn < 50 { turn } else { 50 };
        bench.send(&["GET", "k"]);
        let output = bench.output();
        let exchange = match output {
            Output::Fast { exchange, .. } => {
                fast_reads.push(turn);
                bench.reply_fast(exchange, &response.to_string());
                match bench.output() {
                    Output::Replicated { exchange, .. } => exchange,
                    Output::Answer { .. } => continue,
                    other => panic!("{other:?}"),
                }
            }
            Output::Replicated { exchange, .. } => exchange,
            other => panic!("{other:?}"),
        };
        bench.reply(exchange, &response.to_string(), turn);
        bench.answer();
    }
    let window = u64::from(OUTCOMES_WINDOW);
    let expected: Vec<u64> = (2..=window + 1).chain(50 + 9..100).collect();
    assert_eq!(fast_reads, expected);
    let statistics = bench.sketcher.statistics();
    assert_eq!((statistics.blacklisted, statistics.unlisted), (1, 1));
}

#[test]
fn lying_replicas_do_not_blacklist_a_request() {
    let mut bench = Bench::new(1);
    bench.learn("k", "v", 1);
    for turn in 2..100 {
        bench.send(&["GET", "k"]);
        let (exchange, _) = bench.fast();
        bench.reply_fast(exchange, &format!("lie {turn}"));
        let exchange = bench.replicated();
        bench.reply(exchange, "v", turn);
        bench.answer();
    }
    assert_eq!(bench.sketcher.statistics().blacklisted, 0);
}

#[test]
fn lists_of_the_operator_are_kept() {
    let mut bench = Bench::new(1);
    let mut request = Vec::new();
    ensue_resp::encode::encode_command(&["GET", "k"], &mut request);
    bench.sketcher.enlist(&request, List::White).unwrap();
    bench.send(&["GET", "k"]);
    let (exchange, _) = bench.fast();
    bench.reply_fast(exchange, "anything");
    assert_eq!(bench.answer(), ("anything".into(), Path::Fast));
    bench.sketcher.enlist(&request, List::Black).unwrap();
    bench.learn("k", "v", 1);
    bench.send(&["GET", "k"]);
    bench.replicated();
}

/// Commands, and the lists of an operator.
struct Listed(Lists);

impl Handler for Listed {
    fn inspect(&self, request: &[u8]) -> Result<Inspected, RequestError> {
        RedisHandler.inspect(request)
    }

    fn listed(&self, canonical: &[u8]) -> List {
        self.0.of(&handler::words(canonical, usize::MAX))
    }

    fn canonical_response(&self, response: Vec<u8>) -> Vec<u8> {
        response
    }
}

#[test]
fn patterns_of_the_operator_hold_for_every_read_that_they_name() {
    let lists = Lists::new(&["GET white:*".into()], &["* black".into()]);
    let config = Config { table_entries: 1, ..Config::of(&["a", "b", "c", "d"], [9; 32], 5) };
    let mut sketcher = Sketcher::new(&config, Listed(lists)).unwrap();
    let mut ask = |now: u64, words: &[&str]| {
        let mut request = Vec::new();
        ensue_resp::encode::encode_command(words, &mut request);
        sketcher.on_request(0, RequestId(now), request);
        match sketcher.take_output() {
            Some(Output::Fast { exchange, replica, .. }) => {
                sketcher.on_fast_answer(0, exchange, replica, b"anything".to_vec());
            }
            Some(Output::Replicated { exchange, .. }) => {
                sketcher.on_replicated_answer(0, exchange, b"agreed".to_vec(), Sequence(now));
            }
            other => panic!("{other:?}"),
        }
        match sketcher.take_output() {
            Some(Output::Answer { path, .. }) => path,
            // The fast answer did not agree.
            _ => Path::FailedFast,
        }
    };
    // Of one entry each read evicts that of the one before it.
    assert_eq!(ask(1, &["GET", "white:1"]), Path::Fast);
    assert_eq!(ask(2, &["GET", "white:2"]), Path::Fast);
    assert_eq!(ask(3, &["GET", "black"]), Path::Replicated);
    assert_eq!(ask(4, &["GET", "black"]), Path::Replicated);
    assert_eq!(ask(5, &["GET", "neither"]), Path::Replicated);
    assert_eq!(ask(6, &["GET", "neither"]), Path::FailedFast, "what is on no list is compared");
    assert_eq!(ask(7, &["SET", "white:1", "x"]), Path::Replicated, "a write is none of the reads");
}

#[test]
fn replicas_are_drawn_uniformly() {
    let mut bench = Bench::new(1);
    bench.learn("k", "v", 1);
    let mut counts = [0u32; 4];
    for _ in 0..4_000 {
        bench.send(&["GET", "k"]);
        let (exchange, replica) = bench.fast();
        counts[replica.0 as usize] += 1;
        bench.reply_fast(exchange, "v");
        bench.answer();
    }
    assert!(counts.iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
}

/// Reads of two requests may show states in the other order than they came to be: the table has each request's own
/// latest response, and no order across requests. Section 2.3 needs one request that reflects both.
#[test]
fn nothing_is_promised_across_two_requests() {
    let mut bench = Bench::new(1);
    bench.learn("access", "everybody", 1);
    bench.learn("photos", "of spring break, after access was restricted", 4);
    bench.send(&["GET", "access"]);
    let (exchange, _) = bench.fast();
    bench.reply_fast(exchange, "everybody");
    assert_eq!(
        bench.answer(),
        ("everybody".into(), Path::Fast),
        "a replica that has not seen the restriction"
    );
}

#[test]
fn a_moving_region_is_replicated_and_remembers_nothing() {
    let mut bench = Bench::new(2);
    bench.learn("k", "v", 1);
    bench.send(&["GET", "k"]);
    let (in_flight, _) = bench.fast();
    let all = || (0..=255).map(Region);
    all().for_each(|region| bench.sketcher.on_region(region, Ownership::Moving));
    bench.reply_fast(in_flight, "v");
    let in_flight = bench.replicated();
    assert_eq!(all().map(|region| bench.sketcher.requests_of_region(region)).sum::<usize>(), 1);
    all().for_each(|region| bench.sketcher.on_region(region, Ownership::Owned));
    bench.reply(in_flight, "v", 2);
    bench.answer();
    bench.learn("k", "v", 3);
    bench.send(&["GET", "k"]);
    bench.fast();
    all().for_each(|region| bench.sketcher.on_region(region, Ownership::Foreign));
    let id = bench.send(&["GET", "k"]);
    assert_eq!(bench.output(), Output::Refuse { id, reason: Refusal::ForeignRegion });
}

/// While the region moved, the former owner returned something newer than what this sketcher had asked for before.
#[test]
fn a_read_of_a_moving_region_enters_no_table() {
    let is_old_answer_returned = |broken: Broken| {
        let mut bench = Bench::with(|config| {
            config.broken = broken;
            config.regions = Ownership::Moving;
        });
        bench.send(&["GET", "k"]);
        let exchange = bench.replicated();
        (0..=255).for_each(|region| bench.sketcher.on_region(Region(region), Ownership::Owned));
        bench.reply(exchange, "old", 3);
        bench.answer();
        bench.send(&["GET", "k"]);
        match bench.output() {
            Output::Fast { exchange, .. } => {
                bench.reply_fast(exchange, "old");
                bench.answer() == ("old".into(), Path::Fast)
            }
            Output::Replicated { .. } => false,
            other => panic!("{other:?}"),
        }
    };
    assert!(!is_old_answer_returned(Broken::none()));
    assert!(is_old_answer_returned(Broken::rule(Rule::DistrustReadsOfMovingRegions)));
}

#[test]
fn a_config_out_of_bounds_is_refused() {
    let refuse = |change: fn(&mut Config)| {
        let mut config = Config::of(&["a"], [0; 32], 1);
        change(&mut config);
        Sketcher::new(&config, RedisHandler).unwrap_err()
    };
    assert_eq!(refuse(|config| config.replicas.clear()), ConfigError::Replicas(0));
    assert_eq!(refuse(|config| config.sessions = 0), ConfigError::Sessions(SessionsError(0)));
    assert_eq!(refuse(|config| config.table_entries = 0), ConfigError::Table(TableError::Entries(0)));
}
