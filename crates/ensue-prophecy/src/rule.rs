//! The rules by name, so that the simulator can break one and show what follows.
//!
//! A core is made with [`Broken`]; without the feature `breakable` and outside tests it is empty, and every rule holds.

/// A rule of the cores. The doc says what the code does while the rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A fast answer is returned only if its sketch is that of the history table (Algorithm 1).
    CompareSketches,
    /// An entry changes only to a newer sequence number (Algorithm 1).
    KeepNewestSequence,
    /// A new entry is newer than every entry that was evicted.
    RememberEvictedSequences,
    /// The replica of a fast read is drawn uniformly (section 4.2).
    ChooseReplicaUniformly,
    /// A request whose responses keep changing gets no fast reads.
    BlacklistChangingRequests,
    /// A replicated answer needs so many equal ones that a correct replica is among them.
    WaitForEqualAnswers,
    /// A response sketch counts in D-Prophecy only with so many others that no newer read escapes them.
    WaitForSketchQuorum,
    /// The replica that executes a fast read in D-Prophecy counts among those that agree by its sketch, and not by its
    /// response.
    CountExecutorBySketch,
    /// A region of the history table with two owners is served by replicated reads only (section 5).
    BlacklistMovingRegions,
    /// A replicated read that was issued while its region moved enters no history table.
    DistrustReadsOfMovingRegions,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 10] = [
        Rule::CompareSketches,
        Rule::KeepNewestSequence,
        Rule::RememberEvictedSequences,
        Rule::ChooseReplicaUniformly,
        Rule::BlacklistChangingRequests,
        Rule::WaitForEqualAnswers,
        Rule::WaitForSketchQuorum,
        Rule::CountExecutorBySketch,
        Rule::BlacklistMovingRegions,
        Rule::DistrustReadsOfMovingRegions,
    ];

    /// The name as the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Rule::CompareSketches => "compare-sketches",
            Rule::KeepNewestSequence => "keep-newest-sequence",
            Rule::RememberEvictedSequences => "remember-evicted-sequences",
            Rule::ChooseReplicaUniformly => "choose-replica-uniformly",
            Rule::BlacklistChangingRequests => "blacklist-changing-requests",
            Rule::WaitForEqualAnswers => "wait-for-equal-answers",
            Rule::WaitForSketchQuorum => "wait-for-sketch-quorum",
            Rule::CountExecutorBySketch => "count-executor-by-sketch",
            Rule::BlacklistMovingRegions => "blacklist-moving-regions",
            Rule::DistrustReadsOfMovingRegions => "distrust-reads-of-moving-regions",
        }
    }

    /// The rule of a name.
    pub fn from_name(name: &str) -> Option<Rule> {
        Rule::ALL.into_iter().find(|rule| rule.name() == name)
    }
}

/// The rule that does not hold, if one is broken on purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Broken {
    #[cfg(any(test, feature = "breakable"))]
    rule: Option<Rule>,
}

impl Broken {
    /// Every rule holds.
    pub fn none() -> Broken {
        Broken::default()
    }

    /// This rule does not hold.
    #[cfg(any(test, feature = "breakable"))]
    pub fn rule(rule: Rule) -> Broken {
        Broken { rule: Some(rule) }
    }

    #[cfg(any(test, feature = "breakable"))]
    pub(crate) fn holds(self, rule: Rule) -> bool {
        self.rule != Some(rule)
    }

    #[cfg(not(any(test, feature = "breakable")))]
    pub(crate) fn holds(self, _rule: Rule) -> bool {
        true
    }
}
