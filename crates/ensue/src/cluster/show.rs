//! The partitions of a datacenter and their replicas, as a table.

use super::group::{Datacenter, Group, Member};
use crate::paint::Paint;
use std::fmt::Write as _;

/// Entries that a replica may be behind without a word about it: what is under way at any time.
const UNDER_WAY: u64 = 100;

pub(super) fn text(datacenter: &Datacenter, paint: Paint) -> String {
    let mut text = String::new();
    let Datacenter { name, nodes, groups } = datacenter;
    let _ =
        writeln!(text, "{}", paint.bold(&format!("{name}: {} partitions on {nodes} nodes", groups.len())));
    for node in 0..*nodes {
        let (owned, replicas) = (datacenter.owned_by(node), datacenter.replicas_on(node));
        let away = if datacenter.reaches(node) { String::new() } else { paint.bad("  (cannot be reached)") };
        let _ = writeln!(text, "  node {node:<3} {replicas:>5} replicas, owns {owned} of them{away}");
    }
    let _ = writeln!(text, "{}", paint.dim("partition  owner  replicas on nodes"));
    for group in groups {
        let members: Vec<String> = group.members.iter().map(|member| said(group, member, paint)).collect();
        let changes = if group.changes { paint.notable("  (its members change)") } else { String::new() };
        let _ = writeln!(text, "{:>9}  {:>5}  {}{changes}", group.partition, group.owner, members.join(", "));
    }
    text
}

fn said(group: &Group, member: &Member, paint: Paint) -> String {
    let behind = group.committed.saturating_sub(member.has);
    match member {
        Member { node, is_heard: false, .. } => paint.bad(&format!("{node} (silent)")),
        Member { node, votes: false, .. } => paint.notable(&format!("{node} (learns)")),
        Member { node, .. } if behind > UNDER_WAY => {
            paint.notable(&format!("{node} ({behind} entries behind)"))
        }
        Member { node, .. } => node.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_who_is_silent_who_learns_and_who_is_behind() {
        let member = |node, votes, is_heard, has| Member { node, votes, is_heard, has };
        let members = vec![
            member(0, true, true, 1_000),
            member(1, true, false, 990),
            member(2, true, true, 10),
            member(3, false, true, 5),
        ];
        let reached = vec![0, 2, 3];
        let group =
            Group { partition: 0, owner: 0, term: 2, committed: 1_000, changes: true, reached, members };
        let datacenter = Datacenter { name: "dc1".into(), nodes: 4, groups: vec![group] };
        let expected = "dc1: 1 partitions on 4 nodes\n  node 0       1 replicas, owns 1 of them\n  \
             node 1       1 replicas, owns 0 of them  (cannot be reached)\n  \
             node 2       1 replicas, owns 0 of them\n  \
             node 3       0 replicas, owns 0 of them\npartition  owner  replicas on nodes\n        \
             0      0  0, 1 (silent), 2 (990 entries behind), 3 (learns)  (its members change)\n";
        assert_eq!(text(&datacenter, Paint::off()), expected);
    }
}
