//! `cops`: causal+ between single keys, by nearest dependencies; a write waits where it arrives, and there are no transactions.
//!
//! Lloyd, Freedman, Kaminsky, Andersen, "Don't Settle for Eventual: Scalable Causal Consistency for Wide-Area Storage with
//! COPS", SOSP 2011, sections 4 and 5. The rules:
//!
//! - On a get: add what was read to the context (4.3).
//! - On a put: the context is the put's nearest dependencies, since whatever they depend on was here before them; then the
//!   context is that put alone (4.3).
//! - On a put from elsewhere (`put_after`): commit it after a `dep_check` of each nearest dependency (4.4). Nobody polls: a check is
//!   answered when it is met.
//! - A get returns the newest committed version, and never waits. Gets of several keys are parallel gets (4.1).
//! - Never depend: a version that is committed in every datacenter is not added to the context (5.1).
//! - The global checkpoint time: whoever takes a put leaves out of its dependencies what is committed in every datacenter by
//!   now, though it was not yet when it was read (5.1).
//!
//! Where we differ from the paper:
//! - A dependency names the operation that wrote a version, not key and version: a check asks whether that very write was
//!   applied here. "The current version is at least that one" is not enough: a concurrent higher version may stand there while
//!   what the write itself depends on is missing (trap 1).
//! - The global checkpoint time is one time for all, exchanged pair by pair and spread within each datacenter ten times a second.
//!   Here the acknowledgements of the streams already say what each datacenter has durably applied of each origin, a partition at a
//!   time, so it costs no message. Each partition knows it exactly of its own range and nothing of the others: a dependency on
//!   another partition is left out only if that one knew when it was read, or when the session next writes there.
//! - What is left out is applied everywhere durably: a datacenter that loses its power does not lose what nobody waits for (trap 29).
//! - Without transactions nothing needs the `trans_time` of outstanding reads.
//! - A context above its bound folds into one watermark a stream: stronger than nearest, and bounded. COPS bounds it by what clients read.
//! - A write that reads to write (`INCR`, `APPEND`) depends on what it read; the paper has only blind puts.
//! - The paper's client library holds the context; here the server's session does, for stock Redis clients.

use crate::eiger::{add, carried, exactly, join, verdict};
use crate::{Capabilities, Malformed, Needs, Options, Past, Protocol, SnapshotReads, Verdict, facts};
use ensue_types::{Opaque, OperationId, Rule, Rules, Source};

/// The protocol, with its bound on contexts; or one that does with conflicts something else.
#[derive(Debug)]
pub struct Cops {
    name: &'static str,
    needs: Needs,
    options: Options,
    rules: Rules,
}

impl Cops {
    pub fn new(options: Options, rules: Rules) -> Cops {
        Cops::called("cops", Needs::default(), options, rules)
    }

    pub(crate) fn called(name: &'static str, needs: Needs, options: Options, rules: Rules) -> Cops {
        Cops { name, needs, options, rules }
    }
}

impl Protocol for Cops {
    fn name(&self) -> &'static str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            snapshot_reads: SnapshotReads::None,
            write_transactions: false,
            causality: true,
            available: true,
        }
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn observe(&self, context: &mut Opaque, sources: &[Source]) {
        if !sources.is_empty() {
            add(context, sources.iter().map(exactly), self.options.context_operations_max, self.rules);
        }
    }

    fn remembers_settled(&self) -> bool {
        false
    }

    fn wrote(&self, context: &mut Opaque, write: &Source) {
        *context = match self.rules.hold(Rule::ResetKeepsTheWrite) {
            true => facts::encode(&[exactly(write)]),
            false => Opaque::default(),
        };
    }

    fn join(&self, context: &mut Opaque, other: &Opaque) -> Result<(), Malformed> {
        join(context, other, self.options.context_operations_max, self.rules)
    }

    fn past(&self, context: &Opaque) -> Result<Past, Malformed> {
        facts::decode(context).map(Past::Operations)
    }

    fn dependencies(&self, context: &Opaque, observed: &[Source]) -> Opaque {
        if self.rules.hold(Rule::NearestHoldsTheReads) {
            return carried(context, observed, self.rules);
        }
        // Broken on purpose: one of them is taken for all that is near.
        let mut nearest = facts::decode(context).unwrap_or_default();
        nearest.truncate(1);
        carried(&facts::encode(&nearest), observed, self.rules)
    }

    fn verdict(&self, _operation: OperationId, dependencies: &Opaque) -> Result<Verdict, Malformed> {
        verdict(dependencies)
    }

    fn keeps_old_versions(&self) -> bool {
        false
    }

    fn forget(&self, context: &mut Opaque, is_everywhere: &dyn Fn(&OperationId) -> bool) {
        let mut nearest = facts::decode(context).unwrap_or_default();
        let before = nearest.len();
        nearest.retain(|dependency| !is_everywhere(&dependency.operation));
        if nearest.len() < before {
            *context = facts::encode(&nearest);
        }
    }
}
