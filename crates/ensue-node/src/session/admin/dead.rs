//! `CAUSAL DEAD`: what is known of another datacenter, and, confirmed by a digest of that, that it is lost for good.
//!
//! - Asked without a confirmation: every partition says what it knows of it. The answer is the digest, and what it
//!   means.
//! - With one: they are asked the same first. If they know of something since, or a link to it is up, nothing is
//!   declared. Then every partition declares it, which nobody can take back.
//! - `FORCE`: though a link is up, and though it is heard while it is being declared. That it is the datacenter that
//!   was confirmed is looked at all the same.
//! - Where some partitions have declared it and others have not, since one did not answer: the others do so, whatever
//!   is confirmed.

use crate::partition::state_hash;
use crate::session::core_state::CoreState;
use crate::session::failure::UNANSWERED;
use crate::session::plan::Plan;
use crate::session::plan::combine::Combination;
use bytes::Bytes;
use ensue_types::{Args, Reply};

/// What is being asked about a datacenter.
#[derive(Clone, Debug)]
pub(crate) struct Declaring {
    name: Bytes,
    confirmation: Option<Confirmation>,
}

#[derive(Clone, Debug)]
struct Confirmation {
    digest: Bytes,
    force: bool,
}

/// What all partitions know together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    partitions: u16,
    /// The sum of what each knows.
    state: u64,
    linked: u16,
    declared: u16,
}

impl Declaring {
    /// `CAUSAL DEAD name`, and the plan that asks what every partition knows; none for every other command.
    pub(crate) fn begin(core: &CoreState, args: &Args) -> Option<Result<(Declaring, Plan), Reply>> {
        match &args[1..] {
            [subcommand, name, words @ ..] if subcommand.eq_ignore_ascii_case(b"dead") => {
                Some(Declaring::ask(core, name, words))
            }
            _ => None,
        }
    }

    fn ask(core: &CoreState, name: &Bytes, words: &[Bytes]) -> Result<(Declaring, Plan), Reply> {
        let confirmation = match words {
            [] => None,
            [confirm, digest, force @ ..]
                if confirm.eq_ignore_ascii_case(b"confirm")
                    && (force.is_empty() || force.len() == 1 && force[0].eq_ignore_ascii_case(b"force")) =>
            {
                Some(Confirmation { digest: digest.clone(), force: !force.is_empty() })
            }
            _ => return Err(USAGE),
        };
        let topology = &core.config.topology;
        let Some(datacenter) = topology.datacenter_named(name) else {
            return Err(Reply::error("ERR there is no datacenter of this name"));
        };
        if datacenter == topology.datacenter {
            return Err(Reply::error("ERR this is the datacenter itself; ask one that goes on without it"));
        }
        let plan = plan(core, Combination::Concatenate, false, name, &[]);
        Ok((Declaring { name: name.clone(), confirmation }, plan))
    }

    /// All partitions have answered what they know: the plan that declares it, or the answer if nothing is declared.
    pub(crate) fn into_declaration(self, core: &CoreState, reply: Reply) -> Result<Plan, Reply> {
        let Some(known) = Known::of(&reply) else {
            return Err(if reply.is_error() { reply } else { UNANSWERED });
        };
        let Some(confirmation) = &self.confirmation else { return Err(known.shown(&self.name)) };
        known.admits(confirmation, &self.name)?;
        Ok(plan(core, Combination::AllOk, true, &self.name, &[b"confirm"]))
    }
}

/// What every partition is asked or told of a datacenter.
fn plan(core: &CoreState, how: Combination, writes: bool, name: &Bytes, words: &[&'static [u8]]) -> Plan {
    let mut args: Args = [&b"causal"[..], b"dead"].map(Bytes::from_static).to_vec();
    args.push(name.clone());
    args.extend(words.iter().map(|word| Bytes::from_static(word)));
    Plan::fan_out(how, writes, core.partitions(), &args)
}

impl Known {
    /// What the partitions have answered, one after the other.
    fn of(reply: &Reply) -> Option<Known> {
        let Reply::Array(items) = reply else { return None };
        let mut known = Known::default();
        for said in items.chunks(3) {
            let [Reply::Bulk(state), Reply::Integer(linked), Reply::Integer(declared)] = said else {
                return None;
            };
            let state = u64::from_str_radix(std::str::from_utf8(state).ok()?, 16).ok()?;
            known.partitions += 1;
            known.state = known.state.wrapping_add(state);
            known.linked += u16::from(*linked > 0);
            known.declared += u16::from(*declared > 0);
        }
        Some(known)
    }

    /// Which datacenter it is, and what has been received of it, half and half.
    fn digest(self, name: &[u8]) -> String {
        let received = (self.state >> 32) as u32 ^ self.state as u32;
        format!("{}{received:08x}", Known::whose(name))
    }

    pub(super) fn whose(name: &[u8]) -> String {
        let hash = state_hash([name]);
        format!("{:08x}", (hash >> 32) as u32 ^ hash as u32)
    }

    /// Whether it may be declared now.
    fn admits(self, confirmation: &Confirmation, name: &[u8]) -> Result<(), Reply> {
        if self.declared > 0 {
            return Ok(());
        }
        let error = |words: String| Err(Reply::Error(words.into()));
        let (digest, shown) = (self.digest(name), String::from_utf8_lossy(name));
        let confirmed = confirmation.digest.to_ascii_lowercase();
        if confirmed.len() != digest.len() || !confirmed.starts_with(Known::whose(name).as_bytes()) {
            return error(format!(
                "CHANGED this is no digest of {shown}; CAUSAL DEAD {shown} shows what is known of it, and the digest"
            ));
        }
        if confirmation.force {
            return Ok(());
        }
        if self.linked > 0 {
            return error(format!(
                "LINKED {shown} is not dead: {} of {} partitions have a link to it. Stop its nodes \
                 first, or append FORCE",
                self.linked, self.partitions
            ));
        }
        if confirmed != digest.as_bytes() {
            return error(format!(
                "CHANGED something was heard of {shown} since this digest was shown; CAUSAL DEAD {shown} shows what \
                 is known now"
            ));
        }
        Ok(())
    }

    /// For an operator: the digest first.
    fn shown(self, name: &[u8]) -> Reply {
        let (digest, name) = (self.digest(name), String::from_utf8_lossy(name));
        let of = self.partitions;
        let link = match self.linked {
            0 => format!("no link to {name} is up"),
            linked => format!("{linked} of {of} partitions have a link to {name}: it is not dead"),
        };
        let next = match self.declared {
            0 => format!(
                "CAUSAL DEAD {name} CONFIRM {digest} declares it permanently failed: the others go on without it"
            ),
            declared if declared == of => format!("{name} was declared dead"),
            declared => format!(
                "{name} was declared dead in {declared} of {of} partitions; CAUSAL DEAD {name} CONFIRM \
                 {digest} declares it in all"
            ),
        };
        Reply::Array([digest, link, next].into_iter().map(Reply::bulk).collect())
    }
}

const USAGE: Reply = Reply::error("ERR syntax error: CAUSAL DEAD <datacenter> [CONFIRM <digest> [FORCE]]");

#[cfg(test)]
mod tests {
    use super::*;

    fn known(linked: u16, declared: u16) -> Known {
        Known { partitions: 2, state: 77, linked, declared }
    }

    fn code(known: Known, digest: &str, force: bool) -> String {
        let confirmation = Confirmation { digest: Bytes::from(digest.to_owned()), force };
        match known.admits(&confirmation, b"dc3") {
            Ok(()) => "OK".to_owned(),
            Err(Reply::Error(words)) => words.split(' ').next().unwrap_or_default().to_owned(),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_what_was_shown_confirms_and_a_link_must_be_forced() {
        let (now, other) = (known(0, 0), Known { state: 78, ..known(0, 0) });
        let digest = now.digest(b"dc3");
        assert_eq!(code(now, &digest, false), "OK");
        assert_eq!(code(now, &digest.to_ascii_uppercase(), false), "OK");
        assert_eq!(code(other, &digest, false), "CHANGED", "it was heard since");
        assert_eq!(code(other, &digest, true), "OK");
        assert_eq!(code(now, &now.digest(b"dc2"), true), "CHANGED", "another datacenter's");
        assert_eq!(code(now, "", true), "CHANGED");
        assert_eq!(code(known(1, 0), &digest, false), "LINKED");
        assert_eq!(code(known(1, 0), &digest, true), "OK");
        assert_eq!(code(known(2, 1), "whatever", false), "OK", "others have declared it");
    }
}
