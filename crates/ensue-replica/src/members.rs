//! What a leader does about who is a member: an empty replica becomes one by a new name, and when it has everything
//! takes the vote of what was on its node before, or of the one that is to move there.

use crate::config::{Config, id_of, node_of};
use crate::engine::change;
use crate::held::Held;
use crate::leading::Leading;
use crate::message::ReplicaMessage;
use crate::moving::votes_on;
use crate::replica::Outputs;
use crate::trust::Trust;
use raft::eraftpb::{ConfChangeSingle, ConfChangeType, ConfChangeV2};
use raft::{ProgressState, RawNode};

/// Whether a change of members is half done.
pub(crate) fn is_joint(raw: &RawNode<Held>) -> bool {
    !raw.raft.prs().conf().to_conf_state().voters_outgoing.is_empty()
}

/// A replica has an empty directory: its new name has promised nothing.
pub(crate) fn admit(
    raw: &mut RawNode<Held>,
    leading: &mut Leading,
    out: &mut Outputs,
    node: u16,
    nonce: u64,
) {
    let learners: Vec<u64> = raw.raft.prs().conf().learners().iter().copied().collect();
    if let Some(id) = leading.admitted(node, nonce).filter(|id| learners.contains(id)) {
        out.send(node, &ReplicaMessage::Admit { id, nonce });
        return;
    }
    if raw.raft.has_pending_conf() || is_joint(raw) || !leading.is_current() {
        return;
    }
    if !votes_on(raw, node) && !leading.moving.wants(node) {
        return out.send(node, &ReplicaMessage::Dismiss { nonce });
    }
    let id = id_of(node, raw.store().last() + 1);
    let gone = learners.into_iter().filter(|learner| node_of(*learner) == node);
    let mut changes: Vec<ConfChangeSingle> =
        gone.map(|gone| change(ConfChangeType::RemoveNode, gone)).collect();
    changes.push(change(ConfChangeType::AddLearnerNode, id));
    leading.note_admitted(node, id, nonce);
    propose(raw, changes);
}

/// Learners that have everything become voters in place of others, and the lead goes to the node that is meant to have
/// it, when that is due.
pub(crate) fn look(
    config: &Config,
    raw: &mut RawNode<Held>,
    leading: &mut Leading,
    out: &mut Outputs,
    trust: &Trust,
    due: bool,
) {
    if !leading.is_current() || raw.raft.has_pending_conf() {
        return;
    }
    if is_joint(raw) {
        // The leader before may have gone between the two halves of a change.
        return propose(raw, Vec::new());
    }
    invite(raw, leading, out);
    let learners: Vec<u64> = raw.raft.prs().conf().learners().iter().copied().collect();
    for learner in learners.iter().copied().filter(|id| is_complete(raw, *id, SLACK)) {
        let node = node_of(learner);
        let wish = leading.moving.wish().filter(|wish| wish.to == node && votes_on(raw, wish.from));
        let left = if votes_on(raw, node) { Some(node) } else { wish.map(|wish| wish.from) };
        let Some(left) = left else { continue };
        if left == config.node {
            // Who leads does not leave.
            return hand_over(raw, leading, trust);
        }
        let voters = raw.raft.prs().conf().voters().ids();
        let before = voters.iter().filter(|voter| node_of(*voter) == left);
        let mut changes: Vec<ConfChangeSingle> =
            before.map(|voter| change(ConfChangeType::RemoveNode, voter)).collect();
        changes.push(change(ConfChangeType::AddNode, learner));
        return propose(raw, changes);
    }
    let is_stray = |id: &u64| !votes_on(raw, node_of(*id)) && leading.moving.is_stray(node_of(*id));
    if let Some(stray) = learners.into_iter().find(is_stray) {
        return propose(raw, vec![change(ConfChangeType::RemoveNode, stray)]);
    }
    if !due || !leading.has_partition() {
        return;
    }
    let leaves = leading.moving.wish().map(|wish| wish.from);
    let stays = |node: &u16| votes_on(raw, *node) && Some(*node) != leaves;
    let meant = config.nodes.iter().copied().find(stays);
    let preferred = raw.raft.prs().conf().voters().ids().iter().find(|id| Some(node_of(*id)) == meant);
    // It would hand the lead back if it knew of another order.
    let agrees = |id: &u64| may_lead(raw, trust, *id) && trust.is_of_one_mind(node_of(*id), config.plan());
    if let Some(preferred) = preferred.filter(agrees) {
        leading.transfer(raw, preferred);
    }
}

/// Nodes that are to have a replica and may not know it: one that a replica moves to, and those of silent members,
/// which may have lost their directories and with them all that says so.
fn invite(raw: &RawNode<Held>, leading: &Leading, out: &mut Outputs) {
    let raft = &raw.raft;
    let members = raft.prs().iter().map(|(id, _)| *id);
    let mut silent: Vec<u16> = members.filter(|id| !leading.is_heard(raw, *id)).map(node_of).collect();
    let is_member = |node: u16| raft.prs().iter().any(|(id, _)| node_of(*id) == node);
    silent.extend(leading.moving.wish().map(|wish| wish.to).filter(|to| !is_member(*to)));
    silent.sort_unstable();
    silent.dedup();
    silent.into_iter().for_each(|node| out.send(node, &ReplicaMessage::Invite));
}

/// Entries that a learner may lack when it becomes a voter: while others write, there is always something under way.
const SLACK: u64 = 64;

fn is_complete(raw: &RawNode<Held>, id: u64, slack: u64) -> bool {
    raw.raft.prs().get(id).is_some_and(|progress| {
        progress.state == ProgressState::Replicate && progress.matched + slack >= raw.raft.raft_log.committed
    })
}

/// Whether another member can take the lead at once.
fn may_lead(raw: &RawNode<Held>, trust: &Trust, id: u64) -> bool {
    id != raw.raft.id && is_complete(raw, id, 1) && trust.is_known_whole(node_of(id))
}

/// Whether another member with a vote can take the lead at once.
pub(crate) fn another_may_lead(raw: &RawNode<Held>, trust: &Trust) -> bool {
    let voters = raw.raft.prs().conf().voters().ids();
    voters
        .iter()
        .any(|id| may_lead(raw, trust, id) && raw.raft.prs().get(id).is_some_and(|one| one.recent_active))
}

/// The member that has most takes the lead; of those that are whole, if one of them can at once.
pub(crate) fn hand_over(raw: &mut RawNode<Held>, leading: &mut Leading, trust: &Trust) {
    let prs = raw.raft.prs();
    let others = prs.conf().voters().ids();
    let others = others.iter().filter(|id| *id != raw.raft.id);
    let best =
        others.filter_map(|id| prs.get(id).map(|progress| (may_lead(raw, trust, id), progress.matched, id)));
    if let Some((.., id)) = best.max() {
        leading.transfer(raw, id);
    }
}

fn propose(raw: &mut RawNode<Held>, changes: Vec<ConfChangeSingle>) {
    let mut change = ConfChangeV2::new();
    change.set_changes(changes.into());
    // One that is refused is proposed again when the members are looked at again.
    let _ = raw.propose_conf_change(Vec::new(), change);
}
