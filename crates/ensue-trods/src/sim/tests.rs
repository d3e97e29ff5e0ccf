//! Worlds are clean, repeatable, and notice each broken rule.

use super::{run, run_traced};
use crate::config::{Mode, Rules};

/// Seeds that are enough for every rule below to be missed.
const SEEDS: u64 = 3000;

fn clean(mode: Mode, seeds: std::ops::Range<u64>) {
    let mut recovered = 0;
    for seed in seeds {
        let report = run(seed, mode, Rules::ALL);
        assert_eq!(report.failure, None, "seed {seed}, {mode:?}");
        assert!(report.counters.unprotected == 0 || report.harmed, "seed {seed}, {mode:?}");
        recovered += report.counters.recovered_in_download + report.counters.recovered_in_setup;
    }
    assert!(recovered > 0, "no connection was recovered");
}

#[test]
fn downloads_survive_with_the_store() {
    clean(Mode::Kv, 1..400);
}

#[test]
fn downloads_survive_with_timestamps() {
    clean(Mode::Ts, 1..400);
}

#[test]
fn downloads_survive_with_both() {
    clean(Mode::Hybrid, 1..400);
}

#[test]
fn a_seed_is_always_the_same_world() {
    for mode in [Mode::Kv, Mode::Ts, Mode::Hybrid] {
        for seed in 1..20 {
            assert_eq!(run_traced(seed, mode, Rules::ALL, true), run_traced(seed, mode, Rules::ALL, true));
        }
    }
}

#[test]
fn seeds_that_once_failed_are_clean() {
    let seeds = [
        // A chunked body of which more packets were held than there is room for: its end was never found.
        (Mode::Kv, 10_577),
        // A request whose repetition was older than the packet that began the recovery.
        (Mode::Kv, 888),
        // A record deleted by a recovery that came to nothing.
        (Mode::Kv, 865),
        // An old copy of a SYN in an open connection.
        (Mode::Ts, 1370),
        // A server that could not save its record and answered a request that another one had answered with a record.
        (Mode::Kv, 10_090),
        // A client that repeats request and FIN, since the acknowledgments of both were lost, and got no answer.
        (Mode::Kv, 10_419),
        // A response that began long after SYN: the server's TCP was told with the echo of SYN that its head arrived.
        (Mode::Kv, 15_140),
        // A stranger who guessed the place of a connection that is passed through: it was recovered, and had no record.
        (Mode::Kv, 14_544),
        // A stranger's SYN after an application that failed: what its TCP still sent went to the new connection.
        (Mode::Kv, 23_999),
        // A stranger who guessed a place while the store forgot the record, and one whose packet came to a SYN that
        // nothing had followed for a second and whose client asks for what is passed through. Both may break it.
        (Mode::Kv, 26_496),
        (Mode::Kv, 36_195),
        // A client that died, of which one reset came too early and the other was lost: its server's TCP knows it.
        (Mode::Kv, 35_635),
        // One server's failure in the store and another one's response in timestamps, both to one request.
        (Mode::Hybrid, 28_354),
        // A stranger's SYN at the server that comes next, which showed the client a timestamp without its scale.
        (Mode::Hybrid, 14_261),
        // A server that was suspected wrongly answered that it cannot serve, and another one with the object. Without a
        // store nothing decides between them, and the client may read the one and then the rest of the other.
        (Mode::Ts, 88_645),
        // A stranger's SYN beside the FIN that a client repeats, in the last second before the world is judged.
        (Mode::Hybrid, 52_345),
        // A stranger's RST in the window of a connection that is passed through: the server's TCP asks about it.
        (Mode::Ts, 26_238),
    ];
    for (mode, seed) in seeds {
        assert_eq!(run(seed, mode, Rules::ALL).failure, None, "seed {seed}, {mode:?}");
    }
}

/// Every rule is needed: without it, some client notices, in a world that is clean with it.
#[test]
fn every_broken_rule_is_noticed() {
    for name in Rules::NAMES {
        let rules = Rules::without(name).expect("a name of the list");
        let noticed = (1..SEEDS).find(|seed| run(*seed, Mode::Kv, rules).failure.is_some());
        let seed = noticed.unwrap_or_else(|| panic!("nobody noticed that {name} is broken"));
        assert_eq!(run(seed, Mode::Kv, Rules::ALL).failure, None, "seed {seed}, without {name}");
    }
}
