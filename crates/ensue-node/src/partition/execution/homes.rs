//! What operators ask every partition about homes: where they are, and that one moves (decision 56).

use super::Executor;
use bytes::Bytes;
use ensue_resp::number::parse_i64;
use ensue_types::{Args, DatacenterId, HomeMove, HomeStep, KeyspaceId, Reply};

impl Executor<'_> {
    /// `home`: where homes are. With a pattern and a datacenter: whether its home can move there. With a number, too,
    /// which only partition 0 is told, so that of two moves one is the first: it does, and the move has this number.
    pub(super) fn execute_home(&mut self, keyspace: KeyspaceId, args: &Args) -> Reply {
        let [pattern, name, rest @ ..] = &args[2..] else { return self.list_homes() };
        let line = self.cx.homes.line_named(keyspace, pattern);
        let to = self.cx.config.topology.datacenter_named(name);
        let (Some(line), Some(to)) = (line, to) else { return NO_SUCH_HOME };
        let known = self.cx.homes.known(line);
        let has_begun = known.version > 0 && known.home == to && known.step != HomeStep::Started;
        match rest.first().and_then(version) {
            None => {
                let reason = if has_begun { None } else { self.reason_to_stay_home(line, to) };
                Reply::Array(vec![
                    Reply::Integer(known.version as i64),
                    Reply::Integer(i64::from(has_begun)),
                    Reply::bulk(reason.unwrap_or_default()),
                ])
            }
            Some(version) if known.version >= version && known.home == to => Reply::OK,
            // Somebody else was faster, and it moves elsewhere.
            Some(version) if known.version >= version => {
                let home = self.cx.name_of(known.home);
                Reply::Error(format!("NOMOVE the home cannot move now: it moves to {home} already").into())
            }
            Some(version) => {
                if let Some(reason) = self.reason_to_stay_home(line, to) {
                    return Reply::Error(format!("NOMOVE the home cannot move now: {reason}").into());
                }
                self.begin_to_move(line, to, version);
                Reply::OK
            }
        }
    }

    fn list_homes(&self) -> Reply {
        let of = |line: usize| {
            let (known, home) = (self.cx.homes.known(line), self.cx.homes.datacenter(line));
            let step = if known.version == 0 { HomeStep::Started } else { known.step };
            [known.version as i64, i64::from(home.0), i64::from(step.number())].map(Reply::Integer)
        };
        Reply::Array((0..self.cx.homes.len()).flat_map(of).collect())
    }

    fn begin_to_move(&mut self, line: usize, to: DatacenterId, version: u64) {
        let (homes, own) = (&self.cx.homes, self.cx.datacenter);
        let (home, from) = (homes.home(line), homes.datacenter(line));
        let is_claimed = from != own;
        // Of what a dead one had applied nobody knows more than what it had to have when it started.
        let before = homes.moved(line).filter(|_| is_claimed);
        let before = before.map(|moved| (moved.applied.clone(), moved.times.clone()));
        let (applied, times) = before.unwrap_or_default();
        let moved = HomeMove {
            keyspace: home.keyspace,
            pattern: home.pattern.clone(),
            configured: home.datacenter,
            version,
            from,
            home: to,
            step: if is_claimed { HomeStep::Stopped } else { HomeStep::Closing },
            is_claimed,
            applied,
            times,
        };
        self.cx.note_moved(line, moved);
    }

    /// Why a home cannot move now.
    fn reason_to_stay_home(&self, line: usize, to: DatacenterId) -> Option<String> {
        let (id, own, home) = (self.cx.id, self.cx.datacenter, self.cx.homes.datacenter(line));
        let failed = &self.others.failover.failed;
        let name = |datacenter| self.cx.name_of(datacenter);
        if home == to {
            return Some(format!("partition {id} knows {} as the home already", name(to)));
        }
        if self.others.failover.retirement.is_begun() || self.others.is_catching_up() {
            return Some(format!("partition {id} takes no writes"));
        }
        if home == own && !self.cx.homes.is_open(line) {
            return Some(format!("partition {id} waits for what the former home has executed"));
        }
        if home != own && !(failed.contains(home) && to == own) {
            let home = name(home);
            return Some(format!(
                "partition {id} knows {home} as the home, which was not declared dead: say it at a node of {home}"
            ));
        }
        let leaves = self.others.failover.retirement.others().any(|other| other == to);
        if failed.contains(to) || leaves {
            return Some(format!("{} is dead, or being removed", name(to)));
        }
        let is_needed = |other: &DatacenterId| *other == to || home != own;
        let is_away = |other: &DatacenterId| !failed.is_linked(*other);
        if let Some(away) = self.others.living().filter(is_needed).find(is_away) {
            return Some(format!("partition {id} has no link to {}", name(away)));
        }
        let follows = || self.others.is_followed_by(self.cx, to, HOME_LAG_MS_MAX);
        (home == own && !follows()).then(|| {
            format!(
                "{} is starting, filling its directory, or far behind what partition {id} has written",
                name(to)
            )
        })
    }
}

fn version(word: &Bytes) -> Option<u64> {
    u64::try_from(parse_i64(word)?).ok()
}

/// A datacenter that lacks more than what was written in this time would keep the keys unwritten for as long.
const HOME_LAG_MS_MAX: u64 = 10_000;

const NO_SUCH_HOME: Reply =
    Reply::error("ERR there is no home of this pattern, or no datacenter of this name");
