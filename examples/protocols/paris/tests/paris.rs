//! The protocol keeps the contract of all protocols, simulated worlds find nothing wrong with it, and they do find
//! what it does not promise.

use ensue_protocol::{Choice, Promises, Recency, Registration, StabilityState, contract};
use ensue_sim::oracle::property::HIDDEN;
use ensue_sim::rules::Rules;
use ensue_sim::{Options, run};
use ensue_types::{Causes, DatacenterId, LogicalTime, OperationId, Source, Stamp, TimeVector};

static PARIS: Registration = paris::REGISTRATION;

const SEEDS: u64 = 40;

#[test]
fn it_keeps_the_contract() {
    contract::check(&PARIS);
}

#[test]
fn worlds_find_nothing_wrong_with_it() {
    for seed in 0..SEEDS {
        let drawn = Options::draw_of(seed, Rules::default(), &PARIS);
        // In some of them a datacenter is lost for good.
        let options = if seed % 4 == 0 { drawn.losing() } else { drawn };
        let report = run(options.clone(), None);
        if let Some(violation) = report.violation {
            panic!("{options}\n{violation}");
        }
    }
}

/// The same protocol, registered as if a read showed everything that its datacenter has acknowledged.
static BOASTFUL: Registration = Registration {
    promises: Promises { recency: Recency::SingleReads, ..paris::REGISTRATION.promises },
    ..paris::REGISTRATION
};

#[test]
fn a_promise_that_it_does_not_keep_is_noticed() {
    let is_noticed = |seed| {
        let options = Options::draw_of(seed, Rules::default(), &BOASTFUL);
        run(options, None).violation.is_some_and(|violation| violation.property == HIDDEN)
    };
    assert!((0..SEEDS).any(is_noticed));
}

/// A write of a datacenter at a time, without dependencies.
fn write(datacenter: u8, ms: u64) -> Source {
    let datacenter = DatacenterId(datacenter);
    let operation = OperationId { datacenter, ..OperationId::default() };
    let stamp = Stamp { time: LogicalTime::from_ms(ms), datacenter, ..Stamp::ZERO };
    Source { operation, stamp, dependencies: None }
}

#[test]
fn a_session_sees_what_is_stable_and_what_it_wrote_itself() {
    let protocol = (PARIS.make)(Default::default());
    let times = |ms: [u64; 3]| TimeVector::from_iter(ms.map(LogicalTime::from_ms));
    let (received, stable) = (times([0, 30, 40]), times([0, 20, 10]));
    let now = LogicalTime::from_ms(50);
    let state = StabilityState {
        datacenter: DatacenterId(0),
        datacenters: 3,
        now,
        received: &received,
        applied: &received,
        stable: &stable,
    };
    let sees = |context: &Causes, source: &Source| match protocol.choose(&mut context.clone(), &state) {
        Choice::Shown(predicate) => protocol.is_visible(&predicate, source),
        choice => panic!("{choice:?}"),
    };
    let mut context = Causes::default();
    assert!(sees(&context, &write(1, 20)) && sees(&context, &write(2, 10)) && sees(&context, &write(0, 10)));
    assert!(!sees(&context, &write(1, 21)), "another partition may lack it");
    assert!(!sees(&context, &write(0, 11)), "not even what was written here");
    protocol.record_write(&mut context, &write(0, 45));
    assert!(sees(&context, &write(0, 45)), "its own");
    assert!(!sees(&context, &write(1, 21)));
}

/// The page quotes this package, and quotes all of its code.
#[test]
fn the_page_quotes_what_stands_here() {
    let page = include_str!("../../../../docs/a-protocol-in-an-afternoon.md");
    let source = include_str!("../src/lib.rs");
    let files = [source, include_str!("paris.rs"), include_str!("../Cargo.toml")];
    let blocks = page.split("\n```").skip(1).step_by(2);
    let quotes: Vec<&str> =
        blocks.filter_map(|block| block.split_once('\n')).map(|(_, quote)| quote).collect();
    for quote in &quotes {
        assert!(files.iter().any(|file| file.contains(quote)), "not in any file:\n{quote}");
    }
    let (_, code) = source.split_once("/// The protocol, as it is registered.").expect("it begins so");
    for line in code.lines().filter(|line| !line.is_empty() && *line != "impl Protocol for Paris {") {
        assert!(quotes.iter().any(|quote| quote.contains(line)), "not on the page: {line}");
    }
}
