//! A command that waits at the home of its keys, as its session elsewhere sees it (decision 51).
//!
//! - It is asked in rounds: a home that does not notice that it is not heard pops for nobody no longer than that.
//! - On nothing at the end of a round, or when the home has withdrawn it: it is asked again, until the client's time is
//!   over.
//! - What reads behind the last entry of a stream is asked in one round: the last entry of the next one is another.

use ensue_resp::request::{Blocking, WaitingPop};
use ensue_types::{Args, Now, Reply};

/// A command that waits.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    args: Args,
    /// When the client's time is over.
    deadline_us: Option<u64>,
    /// When the present round began.
    asked_us: u64,
    /// How long a round lasts.
    most_ms: u64,
    may_write: bool,
    in_one_round: bool,
}

impl Wait {
    /// Of a command that may wait.
    pub(super) fn begin(now: Now, args: &Args, most_ms: u64) -> Option<Wait> {
        let Blocking { pop, timeout_ms } = Blocking::parse(args)?;
        let end_us = |ms: u64| now.monotonic_us.saturating_add(ms.saturating_mul(1_000));
        Some(Wait {
            args: args.clone(),
            deadline_us: timeout_ms.map(end_us),
            asked_us: now.monotonic_us,
            most_ms,
            may_write: pop.is_write(),
            in_one_round: reads_behind_the_last(&pop),
        })
    }

    pub(super) fn args(&self) -> &Args {
        &self.args
    }

    pub(super) fn may_write(&self) -> bool {
        self.may_write
    }

    /// Whether another round does not change what is waited for.
    pub(super) fn may_begin_anew(&self) -> bool {
        !self.in_one_round
    }

    /// How long the client waits from now on; nothing is for ever.
    pub(super) fn remaining_ms(&self, now: Now) -> Option<u64> {
        self.deadline_us.map(|deadline_us| deadline_us.saturating_sub(now.monotonic_us).div_ceil(1_000))
    }

    /// How long a round may last that begins now, as a request says it. A round of no time would be a command that may
    /// not wait.
    pub(super) fn round_ms(&self, now: Now) -> u64 {
        let remaining_ms = self.remaining_ms(now).unwrap_or(u64::MAX).max(1);
        if self.in_one_round { remaining_ms } else { remaining_ms.min(self.most_ms) }
    }

    /// Whether it waits on after this answer. Nothing long before the end of the round is an answer for the client: the
    /// command does not wait there.
    pub(super) fn goes_on_after(&self, now: Now, reply: &Reply) -> bool {
        let elapsed_ms = now.monotonic_us.saturating_sub(self.asked_us) / 1_000;
        matches!(reply, Reply::Nil | Reply::NilArray)
            && !self.in_one_round
            && self.remaining_ms(now) != Some(0)
            && elapsed_ms >= self.most_ms / 2
    }

    /// Begins the next round.
    pub(super) fn request_again<T>(
        mut self: Box<Self>,
        now: Now,
        ask: impl FnOnce(Args, Box<Wait>) -> T,
    ) -> T {
        self.asked_us = now.monotonic_us;
        ask(self.args.clone(), self)
    }
}

fn reads_behind_the_last(pop: &WaitingPop) -> bool {
    matches!(pop, WaitingPop::Entries(read) if read.streams.iter().any(|(_, behind)| behind.is_none()))
}
