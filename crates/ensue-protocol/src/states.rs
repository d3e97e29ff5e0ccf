//! The family of the branching keyspaces: a past is states, and the session's own ways.
//!
//! Its default constraints, and that a transaction of it is open, stay with the session when it takes over the past of
//! another.

use crate::{Family, Malformed, Past, Visibility};
use ensue_types::{Causes, OperationId, Source};

/// The family: states know themselves what they come from, so little is asked here.
#[derive(Clone, Copy, Debug)]
pub struct States;

impl Family for States {
    fn record_reads(&self, _context: &mut Causes, _read: &[Source], _settled: &[Source]) {}

    fn record_write(&self, _context: &mut Causes, _write: &Source) {}

    fn dependencies(&self, _context: &Causes, _observed: &[Source]) -> Causes {
        Causes::default()
    }

    fn visibility(&self, _operation: OperationId, _dependencies: &Causes) -> Result<Visibility, Malformed> {
        Ok(Visibility::Now)
    }

    fn merge(&self, context: &mut Causes, other: &Causes) -> Result<(), Malformed> {
        let other = other.states()?;
        let mut own = context.states()?.clone();
        own.take_over(other);
        *context = own.into();
        Ok(())
    }

    fn past(&self, context: &Causes) -> Result<Past, Malformed> {
        Ok(Past::Operations(context.states()?.operations.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_types::Anchor;

    #[test]
    fn another_past_is_taken_over_but_not_its_ways() {
        let mut own: Causes = Anchor { begin: b"ANY".to_vec(), states: vec![3], ..Anchor::default() }.into();
        let other =
            Anchor { open: true, end: b"PARENT".to_vec(), states: vec![7, 3], ..Anchor::default() }.into();
        States.merge(&mut own, &other).unwrap();
        let joined = own.states().unwrap();
        assert_eq!((joined.open, &joined.begin[..], joined.end.len()), (false, &b"ANY"[..], 0));
        assert_eq!(joined.states, [7, 3]);
    }
}
