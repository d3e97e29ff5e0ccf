//! What a leader does about who is a member: an empty replica becomes one by a new name, and takes the vote of what was
//! on its node before when it has everything.

use crate::config::{Config, id_of, node_of};
use crate::engine::change;
use crate::held::Held;
use crate::leading::Leading;
use crate::message::ReplicaMessage;
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
    let id = id_of(node, raw.store().last() + 1);
    let gone = learners.into_iter().filter(|learner| node_of(*learner) == node);
    let mut changes: Vec<ConfChangeSingle> =
        gone.map(|gone| change(ConfChangeType::RemoveNode, gone)).collect();
    changes.push(change(ConfChangeType::AddLearnerNode, id));
    leading.note_admitted(node, id, nonce);
    propose(raw, changes);
}

/// Learners that have everything become voters in place of what was on their node before, and the lead goes to the node
/// that is meant to have it, when that is due.
pub(crate) fn look(
    config: &Config,
    raw: &mut RawNode<Held>,
    leading: &mut Leading,
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
    let raft = &raw.raft;
    let (conf, committed) = (raft.prs().conf(), raft.raft_log.committed);
    let is_complete = |id: &u64| {
        raft.prs().get(*id).is_some_and(|progress| {
            progress.state == ProgressState::Replicate && progress.matched + 1 >= committed
        })
    };
    let voters = conf.voters().ids();
    if let Some(learner) = conf.learners().iter().copied().filter(is_complete).min() {
        let before = voters.iter().filter(|voter| node_of(*voter) == node_of(learner));
        let mut changes: Vec<ConfChangeSingle> =
            before.map(|voter| change(ConfChangeType::RemoveNode, voter)).collect();
        changes.push(change(ConfChangeType::AddNode, learner));
        return propose(raw, changes);
    }
    let preferred = voters.iter().find(|voter| node_of(*voter) == config.nodes[0]);
    let preferred =
        preferred.filter(|id| *id != raft.id && is_complete(id) && trust.is_known_whole(node_of(*id)));
    if let Some(preferred) = preferred.filter(|_| due && leading.has_partition()) {
        leading.transfer(raw, preferred);
    }
}

/// The member that has most takes the lead.
pub(crate) fn hand_over(raw: &mut RawNode<Held>, leading: &mut Leading) {
    let prs = raw.raft.prs();
    let others = prs.conf().voters().ids();
    let others = others.iter().filter(|id| *id != raw.raft.id);
    let best = others.filter_map(|id| prs.get(id).map(|progress| (progress.matched, id))).max();
    if let Some((_, id)) = best {
        leading.transfer(raw, id);
    }
}

fn propose(raw: &mut RawNode<Held>, changes: Vec<ConfChangeSingle>) {
    let mut change = ConfChangeV2::new();
    change.set_changes(changes.into());
    // One that is refused is proposed again when the members are looked at again.
    let _ = raw.propose_conf_change(Vec::new(), change);
}
