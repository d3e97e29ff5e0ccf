//! How often the response of one request changed of late, and when that puts it on the blacklist.
//!
//! The paper leaves dynamic blacklisting out ("we do not currently implement this optimization", section 3.3.1). An
//! outcome is one read whose place in the order is known: either the response was that of the history table, or it had
//! changed. Only accepted answers make outcomes, so that lying replicas cannot blacklist a request.
//!
//! The thresholds follow from the costs of section 3.4: a fast read that fails costs C_r + N C_R, where a replicated
//! read alone costs N C_R. With the transition ratio t, trying the fast read pays while C_r + t N C_R < N C_R. For four
//! replicas, where each executes the same read (C_r about C_R), that is t < 3/4; for more replicas the bound is higher.
//! A request enters the blacklist at 12 of its last 16 outcomes and leaves it at 8: it takes at least four outcomes to
//! leave, so that a request at the bound does not flip with every read.

/// How many outcomes are remembered for each request.
pub const OUTCOMES_WINDOW: u32 = 16;
/// Changes in a full window from which on a request is blacklisted.
pub const BLACKLIST_CHANGES: u32 = 12;
/// Changes in a full window down to which a blacklisted request stays on the list.
pub const UNLIST_CHANGES: u32 = 8;

/// The last outcomes of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// One bit an outcome, the latest lowest; a 1 is a change.
    changes: u16,
    count: u8,
}

impl Outcomes {
    /// Adds the latest outcome.
    pub fn record(&mut self, changed: bool) {
        self.changes = (self.changes << 1) | u16::from(changed);
        self.count = (self.count + 1).min(OUTCOMES_WINDOW as u8);
    }

    /// Changes among the remembered outcomes.
    pub fn changes(self) -> u32 {
        self.changes.count_ones()
    }

    /// Whether the request belongs on the blacklist, given whether it is there.
    pub fn is_blacklisted(self, was: bool) -> bool {
        let is_full = u32::from(self.count) == OUTCOMES_WINDOW;
        if was {
            !is_full || self.changes() > UNLIST_CHANGES
        } else {
            is_full && self.changes() >= BLACKLIST_CHANGES
        }
    }

    pub(crate) fn to_bits(self) -> u32 {
        u32::from(self.changes) | (u32::from(self.count) << 16)
    }

    /// The inverse of [`Outcomes::to_bits`]; higher bits are ignored.
    pub(crate) fn from_bits(bits: u32) -> Outcomes {
        Outcomes { changes: bits as u16, count: ((bits >> 16) & 0x1f) as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(outcomes: &[(u32, bool)]) -> Outcomes {
        let mut all = Outcomes::default();
        for &(times, changed) in outcomes {
            (0..times).for_each(|_| all.record(changed));
        }
        all
    }

    #[test]
    fn a_request_enters_at_twelve_and_leaves_at_eight() {
        assert!(!after(&[(15, true)]).is_blacklisted(false), "the window is not full");
        assert!(after(&[(4, false), (12, true)]).is_blacklisted(false));
        assert!(!after(&[(5, false), (11, true)]).is_blacklisted(false));
        assert!(after(&[(16, true), (7, false)]).is_blacklisted(true), "nine changes are left");
        assert!(!after(&[(16, true), (8, false)]).is_blacklisted(true));
    }

    #[test]
    fn bits_keep_outcomes() {
        let outcomes = after(&[(3, true), (2, false), (20, true), (1, false)]);
        assert_eq!(Outcomes::from_bits(outcomes.to_bits()), outcomes);
        assert_eq!(outcomes.changes(), 15);
    }
}
