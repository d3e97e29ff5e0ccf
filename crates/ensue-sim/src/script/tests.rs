//! Words of the language, and what is refused.

use super::parse::Step;
use super::{Break, Script, steps};
use crate::rules::Rules;
use ensue_types::{DatacenterId, PartitionId, Rule, partition_of};

#[test]
fn a_script_is_read() {
    let text = "
        # a comment
        cluster datacenters=3 partitions=2 cores=2 fsync=always delay=5ms
        break second-round
        name x partition 1
        dc1 alice: SET x 1 -> OK      # and another comment
        send dc2.1 bob: GET x
        await bob -> 1 | nil
        eventually 500ms dc3 carol: GET x -> \"1\"
        hold p1 dc1->dc2
        slow dc1.0 dc1.1 3ms
        crash voted elsewhere power skip 2
        clock dc1 -40ms
        figure ensue_tombstones 0 within 2s
        converge within 1s
    ";
    let script = Script::parse(text).unwrap();
    assert_eq!(script.breaks, [Break { rule: Rule::SecondRound, protocols: Vec::new() }]);
    assert_eq!(script.protocols, ["eiger"]);
    assert_eq!(script.lines.len(), 10);
    let steps: Vec<&Step> = steps(&script).collect();
    let Step::Say(say) = steps[0] else { panic!("{:?}", steps[0]) };
    assert_eq!(say.words[0], "SET");
    assert_eq!(partition_of(say.words[1].as_bytes(), 2), PartitionId(1));
    assert!(matches!(steps[3], Step::Eventually { within_us: 500_000, .. }));
    assert!(matches!(steps[4], Step::Hold(hold) if hold.to == DatacenterId(1)));
    assert!(matches!(steps[6], Step::Aim(aim) if aim.remote && aim.power && aim.skip == 2));
}

#[test]
fn a_script_runs_under_each_of_its_protocols() {
    // `eventual` shows an effect without its cause, so the line holds under `eiger` only.
    let text = "
        cluster datacenters=2 partitions=2 delay=5ms
        protocols eiger eventual
        break wait-for-dependencies eiger
        name x partition 0
        name y partition 1
        hold p0 dc1->dc2
        dc1 alice: SET x 1 -> OK
        dc1 alice: SET y 1 -> OK
        run 200ms
        dc2 bob: GET y -> ANSWER
    ";
    let script = |answer: &str| Script::parse(&text.replace("ANSWER", answer)).unwrap();
    assert_eq!(script("nil | 1").play(Rules::default(), false), Ok(()));
    let why = script("nil").check(false).unwrap_err();
    assert!(why.starts_with("under eventual: line 11"), "{why}");
    assert_eq!(script("nil").only_under("eiger").unwrap().check(false), Ok(()));
    let why = script("nil | 1").only_under("eiger").unwrap().check(false).unwrap_err();
    assert_eq!(why, "still holds under eiger when the rule wait-for-dependencies is broken");
    assert!(script("nil").only_under("pocc").is_none());
}

#[test]
fn nonsense_is_refused_with_its_line() {
    for (text, why) in [
        ("\ndc9 alice: GET x", "line 2: no such place"),
        ("break the-law", "line 1: no such rule"),
        ("run fast", "line 1: no time"),
        ("cluster colour=red", "line 1: unknown setting"),
        ("world seed=1\nrun 2ms", "line 2: the world of a seed has no steps"),
        ("world seed=1\nat 2ms melt dc1.0", "line 2: there is no fault melt"),
        ("world seed=1\nat 2ms client 0 step 0", "line 2: no number of a step"),
        ("protocols", "line 1: the protocols are named once"),
        ("protocols eiger paxos", "line 1: there is no protocol paxos"),
        ("break second-round eventual", "a rule is to be broken under eventual"),
        ("world seed=1\nprotocols eiger", "the world of a seed has one protocol"),
        ("sing", "line 1: neither"),
    ] {
        let error = Script::parse(text).unwrap_err();
        assert!(error.starts_with(why), "{error}");
    }
}
