//! When nodes stood still together, and who owned what.

use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Asked at one time and answered at another, in milliseconds since the beginning, with the node's three steps.
fn stood(
    begin: Instant,
    asked: u64,
    answered: u64,
    [before, held, after]: [u64; 3],
) -> Result<Stood, String> {
    let (asked, answered) = (begin + ms(asked), begin + ms(answered));
    Ok(Stood { asked, answered, before: ms(before), held: ms(held), after: ms(after) })
}

#[test]
fn nodes_stood_still_together_if_their_times_certainly_overlap() {
    let begin = Instant::now();
    // Two milliseconds went by on the way: it stood still from 12 on at the latest, until 30 at least.
    let first = (0, stood(begin, 0, 42, [10, 20, 10]));
    let with = |other| stood_still_together(&[first.clone(), (1, other)]);
    assert!(with(stood(begin, 0, 42, [10, 20, 10])));
    assert!(with(stood(begin, 15, 57, [10, 20, 10])), "from 27 on");
    assert!(!with(stood(begin, 18, 60, [10, 20, 10])), "from 30 on, when the first one may have gone on");
    assert!(!with(stood(begin, 0, 80, [10, 20, 10])), "it may have been asked after 38 milliseconds");
    assert!(with(stood(begin, 0, 80, [10, 60, 8])), "and stood still for long enough");
    assert!(with(Err("there is no link".into())), "who does not answer is looked at apart");
    assert!(!stood_still_together(&[]));
}

fn standings(text: &str) -> Vec<Standing> {
    let lines = text.lines().map(|line| {
        let (node, rest) = line.trim().split_once(": ").expect("a node");
        read_standings(node.parse().expect("a number"), &Bytes::from(rest.to_owned())).expect("it is read")
    });
    lines.collect::<Vec<_>>().concat()
}

#[test]
fn the_owner_is_who_leads_in_the_latest_term_that_most_voters_are_in() {
    let owner = |text: &str| owners_of_groups(1, &standings(text)).map(|owners| owners[&0]);
    assert_eq!(owner("0: 0 5 leads 0,1,2\n1: 0 5 follows\n2: 0 5 follows"), Ok(0));
    assert_eq!(
        owner("0: 0 5 leads 0,1,2\n1: 0 6 leads 0,1,2\n2: 0 6 follows"),
        Ok(1),
        "the first one is replaced"
    );
    assert_eq!(owner("0: 0 5 leads 0,1,2\n2: 0 4 follows"), Ok(0), "a third one is not needed");
    let changes = "partition 0 was getting another owner, or too few of its nodes were reached";
    for unclear in [
        "0: 0 5 leads 0,1,2\n1: 0 6 follows\n2: 0 5 follows",
        "0: 0 5 leads 0,1,2",
        "0: 0 5 leads 0,1,2\n1: 0 - starts",
        "0: 0 5 leads 0,1,2\n3: 0 5 follows",
    ] {
        assert_eq!(owner(unclear), Err(changes.into()), "{unclear}");
    }
    assert_eq!(owner("0: 0 5 follows\n1: 0 5 follows"), Err("nobody owned partition 0".into()));
}

#[test]
fn without_replicas_every_partition_is_somewhere() {
    let file = |name: &str| Entry { name: name.into(), length: 1, checksum: 0 };
    let lists =
        |second: &str| vec![(0, vec![file("shape"), file("p0000/superblock")]), (1, vec![file(second)])];
    assert_eq!(owners_of_files(2, &lists("p0001/superblock")), Ok(BTreeMap::from([(0, 0), (1, 1)])));
    let missing = Err("no node that was reached has partition 1".into());
    assert_eq!(owners_of_files(2, &lists("shape")), missing);
    assert_eq!(
        owners_of_files(2, &lists("p0000/superblock")),
        Err("partition 0 is on more than one node".into())
    );
}
