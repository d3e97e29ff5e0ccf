//! Eiger (NSDI 2013), section 6: Tables 2 and 4, Figures 7 and 8.
//!
//! Cassandra with eventual consistency is `eventual`, Eiger is `eiger`. A column is a field of a hash, a transaction a
//! MULTI or an MSET.

use super::{Paper, at, case, first, last};
use crate::claim::{Claim, Expected, Ours};
use crate::figure::{Case, Experiment, Figure, Metric, Sweep};
use crate::instrument::processes::{
    KEYS_PER_PROCESSOR, P50, P90, P95, P99, PER_PROCESSOR, ProcessSetup, RATE, Sample,
};

pub const PAPER: Paper = Paper {
    name: "eiger",
    title: "Stronger Semantics for Low-Latency Geo-Replicated Storage",
    figures: &[T2, T4, F7, F8A, F8B, F8C, F8D, F8E, F8F],
};

const PER: &str = PER_PROCESSOR.name;
const LINES: &[Case<ProcessSetup>] =
    &[case("Cassandra-Eventual", |s| s), case("Eiger", |s| ProcessSetup { protocol: "eiger", ..s })];

const T2: Figure = Figure {
    name: "T2",
    section: "6.4",
    title: "latency micro-benchmarks",
    here: "one client; two datacenters 10 ms apart, each way; rounds of reads cannot be told apart by a client; Cassandra's \
           strongly consistent configurations have no counterpart",
    experiment: Experiment::Processes(
        Sweep {
            axis: "operation",
            base: ProcessSetup { clients: 1, delay_ms: 10, value: Some("1"), ..ProcessSetup::BASE },
            lines: LINES,
            points: &[
                case("read", |s| ProcessSetup { load: "get", ..s }),
                case("write", |s| ProcessSetup { load: "set", ..s }),
                case("write of 2", |s| ProcessSetup {
                    load: "columns-write",
                    columns: Some(["1", "2", "1"]),
                    ..s
                }),
                case("transaction of 2", |s| ProcessSetup { load: "mset:2", ..s }),
            ],
        },
        &[P50, P90, P95, P99],
    ),
    claims: &[
        Claim {
            words: "median of a read in one round, to Cassandra-Eventual (0.47 to 0.38 ms)",
            metric: P50.name,
            ours: Ours::Ratio(at("Eiger", "read"), at("Cassandra-Eventual", "read")),
            expected: Expected::Ratio(0.47 / 0.38),
        },
        Claim {
            words: "median of a normal write, to Cassandra-Eventual (0.45 to 0.42 ms)",
            metric: P50.name,
            ours: Ours::Ratio(at("Eiger", "write"), at("Cassandra-Eventual", "write")),
            expected: Expected::Ratio(0.45 / 0.42),
        },
        Claim {
            words: "median of a transaction of two, to a normal write of two (0.73 to 0.51 ms)",
            metric: P50.name,
            ours: Ours::Ratio(at("Eiger", "transaction of 2"), at("Eiger", "write of 2")),
            expected: Expected::Ratio(0.73 / 0.51),
        },
        Claim {
            words: "no operation waits for another datacenter: p99 of a read, of 10 ms one way (paper: below 2.5 ms)",
            metric: P99.name,
            ours: Ours::Value(at("Eiger", "read")),
            expected: Expected::AtMost(10.0),
        },
    ],
};

const T4: Figure = Figure {
    name: "T4",
    section: "6.7",
    title: "throughput under the Facebook workload",
    here: "distributions of three values with the paper's percentiles and means; 32 clients",
    experiment: Experiment::Processes(
        Sweep {
            axis: "workload",
            base: ProcessSetup { load: "facebook", keys: 4_096, ..ProcessSetup::BASE },
            lines: &[
                case("Cassandra", |s| s),
                case("Eiger", |s| ProcessSetup { protocol: "eiger", ..s }),
                case("Eiger All Txns", |s| ProcessSetup {
                    protocol: "eiger",
                    load: "facebook-transactions",
                    ..s
                }),
            ],
            points: &[case("Facebook", |s| s)],
        },
        &[PER_PROCESSOR, RATE],
    ),
    claims: &[
        Claim {
            words: "Eiger to Cassandra (22,088 to 23,657 operations/s)",
            metric: PER,
            ours: Ours::Ratio(first("Eiger"), first("Cassandra")),
            expected: Expected::Ratio(22_088.0 / 23_657.0),
        },
        Claim {
            words: "with all writes as transactions (22,891 to 23,657)",
            metric: PER,
            ours: Ours::Ratio(first("Eiger All Txns"), first("Cassandra")),
            expected: Expected::Ratio(22_891.0 / 23_657.0),
        },
    ],
};

const F7: Figure = Figure {
    name: "F7",
    section: "6.5",
    title: "write transactions spread over servers",
    here: "8 partitions of one core in place of 8 servers; keys are drawn at random, so that n drawn servers are n(1 - \
           (7/8)^n) different ones; values of 128 bytes as strings; Cassandra's dots are MSETs of `eventual`",
    experiment: Experiment::Processes(
        Sweep {
            axis: "keys of a transaction",
            base: ProcessSetup { partitions: 8, value: Some("128"), ..ProcessSetup::BASE },
            lines: LINES,
            points: &[
                case("1", |s| ProcessSetup { load: "mset:1", keys_of_one: 1, ..s }),
                case("4", |s| ProcessSetup { load: "mset:4", keys_of_one: 4, ..s }),
                case("8", |s| ProcessSetup { load: "mset:8", keys_of_one: 8, ..s }),
                case("40", |s| ProcessSetup { load: "mset:40", keys_of_one: 40, ..s }),
                case("80", |s| ProcessSetup { load: "mset:80", keys_of_one: 80, ..s }),
            ],
        },
        &[KEYS_PER_PROCESSOR, RATE],
    ),
    claims: &[
        Claim {
            words: "relative to Cassandra throughput increases with the keys written a server: 80 keys to 8",
            metric: KEYS_PER_PROCESSOR.name,
            ours: Ours::Ratio(last("Eiger"), at("Eiger", "8")),
            expected: Expected::AtLeast(1.0),
        },
        Claim {
            words: "it remains competitive with batch mutates as transactions spread (8 keys): more than half",
            metric: KEYS_PER_PROCESSOR.name,
            ours: Ours::Ratio(at("Eiger", "8"), at("Cassandra-Eventual", "8")),
            expected: Expected::AtLeast(0.5),
        },
    ],
};

/// Table 3's defaults.
const DEFAULT: ProcessSetup = ProcessSetup { load: "eiger", keys: 2_048, ..ProcessSetup::BASE };

const fn varied(
    name: &'static str,
    title: &'static str,
    axis: &'static str,
    points: &'static [Case<ProcessSetup>],
    claims: &'static [Claim],
) -> Figure {
    Figure {
        name,
        section: "6.6",
        title,
        here: "2,048 keys; 32 clients; a key has the same number of columns for reads and for writes",
        experiment: Experiment::Processes(Sweep { axis, base: DEFAULT, lines: LINES, points }, METRICS),
        claims,
    }
}

const METRICS: &[Metric<Sample>] = &[PER_PROCESSOR];

/// Over all that is varied, overhead is from 0.5 to 25 %.
const IN_RANGE: Claim = Claim {
    words: "Eiger to Cassandra, the least: over all that is varied, overhead is at most 25 %",
    metric: PER,
    ours: Ours::LeastRatio("Eiger", "Cassandra-Eventual"),
    expected: Expected::AtLeast(0.75),
};

const F8A: Figure = varied(
    "F8a",
    "dynamic workload: size of values",
    "bytes",
    &[
        case("1", |s| ProcessSetup { value: Some("1"), ..s }),
        case("128", |s| s),
        case("4096", |s| ProcessSetup { value: Some("4096"), ..s }),
    ],
    &[
        Claim {
            words: "with the default parameters overhead is 15 %",
            metric: PER,
            ours: Ours::Ratio(at("Eiger", "128"), at("Cassandra-Eventual", "128")),
            expected: Expected::Ratio(0.85),
        },
        IN_RANGE,
    ],
);
const F8B: Figure = varied(
    "F8b",
    "dynamic workload: columns a key",
    "columns",
    &[
        case("1", |s| ProcessSetup { columns: Some(["5", "5", "1"]), ..s }),
        case("5", |s| s),
        case("32", |s| ProcessSetup { columns: Some(["5", "5", "32"]), ..s }),
    ],
    &[IN_RANGE],
);
const F8C: Figure = varied(
    "F8c",
    "dynamic workload: keys a read",
    "keys",
    &[
        case("1", |s| ProcessSetup { columns: Some(["1", "5", "5"]), ..s }),
        case("5", |s| s),
        case("32", |s| ProcessSetup { columns: Some(["32", "5", "5"]), ..s }),
    ],
    &[IN_RANGE],
);
const F8D: Figure = varied(
    "F8d",
    "dynamic workload: keys a write",
    "keys",
    &[
        case("1", |s| ProcessSetup { columns: Some(["5", "1", "5"]), ..s }),
        case("5", |s| s),
        case("32", |s| ProcessSetup { columns: Some(["5", "32", "5"]), ..s }),
    ],
    &[IN_RANGE],
);
const F8E: Figure = varied(
    "F8e",
    "dynamic workload: fraction of writes",
    "writes",
    &[
        case("0", |s| ProcessSetup { load: "columns-read", ..s }.with_defaults()),
        case("0.1", |s| s),
        case("0.5", |s| {
            ProcessSetup { load: "columns-read=50,columns-write=25,columns-write-atomic=25", ..s }
                .with_defaults()
        }),
        case("1", |s| ProcessSetup { load: "columns-write=50,columns-write-atomic=50", ..s }.with_defaults()),
    ],
    &[IN_RANGE],
);
const F8F: Figure = varied(
    "F8f",
    "dynamic workload: fraction of write transactions",
    "transactions",
    &[
        case("0", |s| ProcessSetup { load: "columns-read=90,columns-write=10", ..s }.with_defaults()),
        case("0.5", |s| s),
        case("1", |s| ProcessSetup { load: "columns-read=90,columns-write-atomic=10", ..s }.with_defaults()),
    ],
    &[
        IN_RANGE,
        Claim {
            words: "higher fractions of write transactions do not increase overhead (all to none)",
            metric: PER,
            ours: Ours::Ratio(last("Eiger"), first("Eiger")),
            expected: Expected::Ratio(1.0),
        },
    ],
);

impl ProcessSetup {
    /// What the named workload has, for a mix that has no name.
    const fn with_defaults(self) -> ProcessSetup {
        ProcessSetup { columns: Some(["5", "5", "5"]), value: Some("128"), ..self }
    }
}
