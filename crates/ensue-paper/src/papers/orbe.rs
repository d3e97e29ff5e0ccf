//! Orbe (SoCC 2013), section 7: Table 2 and Figures 3 to 13.
//!
//! Orbe runs the DM-Clock protocol in all experiments: `orbe-clock`, without dependency cleaning unless it is what is
//! measured. COPS with read transactions is `cops-gt`. PUT, GET and GET-TX are SET, GET and MGET.

use super::{Paper, at, case, first, last};
use crate::claim::{Claim, Expected, Ours};
use crate::figure::{Case, Experiment, Figure, Sweep};
use crate::instrument::processes::{DELAY_MS, P50, P99, PER_PROCESSOR, PROCESSOR_US, ProcessSetup, RATE};
use crate::instrument::simulated::{
    self, BUSY, CHECKS, DEPENDENCIES, METADATA, PER_PARTITION, SimulatedSetup, TRAFFIC, UPDATE_BYTES,
};

pub const PAPER: Paper = Paper {
    name: "orbe",
    title: "Orbe: Scalable Causal Consistency Using Dependency Matrices and Physical Clocks",
    figures: &[T2, F3, F4, F5, F6, F7, F8, F9, F10, F11, F12, F13],
};

const PER: &str = PER_PROCESSOR.name;
const BASE: ProcessSetup = ProcessSetup {
    protocol: "orbe-clock",
    cleaning: false,
    delay_ms: 60,
    partitions: 3,
    asked: 2,
    value: Some("10"),
    ..ProcessSetup::BASE
};
const COUNTED: SimulatedSetup = SimulatedSetup {
    protocol: "orbe-clock",
    cleaning: false,
    delay_ms: 60,
    partitions: 3,
    value_bytes: 10,
    ..SimulatedSetup::COUNTED
};

const T2: Figure = Figure {
    name: "T2",
    section: "7.2",
    title: "throughput of operations on one partition without replication",
    here: "65,536 keys in place of a million; no Echo",
    experiment: Experiment::Processes(
        Sweep {
            axis: "operation",
            base: ProcessSetup { datacenters: 1, partitions: 1, asked: 1, keys: 65_536, ..BASE },
            lines: &[case("Orbe", |s| s)],
            points: &[
                case("GET-10B", |s| ProcessSetup { load: "get", ..s }),
                case("PUT-1B", |s| ProcessSetup { load: "set", value: Some("1"), ..s }),
                case("PUT-16B", |s| ProcessSetup { load: "set", value: Some("16"), ..s }),
                case("PUT-128B", |s| ProcessSetup { load: "set", value: Some("128"), ..s }),
            ],
        },
        &[PER_PROCESSOR, RATE],
    ),
    claims: &[
        Claim {
            words: "PUT-1B to GET-10B (36.8 to 61.4 Kops/s)",
            metric: PER,
            ours: Ours::Ratio(at("Orbe", "PUT-1B"), at("Orbe", "GET-10B")),
            expected: Expected::Ratio(36.8 / 61.4),
        },
        Claim {
            words: "PUT-128B to PUT-1B (30.2 to 36.8)",
            metric: PER,
            ours: Ours::Ratio(at("Orbe", "PUT-128B"), at("Orbe", "PUT-1B")),
            expected: Expected::Ratio(30.2 / 36.8),
        },
    ],
};

const F3: Figure = Figure {
    name: "F3",
    section: "7.2",
    title: "latency of operations",
    here: "eight partitions of one core; a GET-TX reads six random keys; datacenters 60 ms apart, each way; 4 clients",
    experiment: Experiment::Processes(
        Sweep {
            axis: "operation",
            base: ProcessSetup { partitions: 8, clients: 4, ..BASE },
            lines: &[case("Orbe", |s| s)],
            points: &[
                case("GET", |s| ProcessSetup { load: "get", ..s }),
                case("PUT", |s| ProcessSetup { load: "set", ..s }),
                case("GET-TX beside PUT", |s| ProcessSetup { load: "mget:6=1,set=1", ..s }),
            ],
        },
        &[P50, P99],
    ),
    claims: &[
        Claim {
            words: "none of the operations depends on the latency between datacenters: p99 of GET, in ms",
            metric: P99.name,
            ours: Ours::Value(at("Orbe", "GET")),
            expected: Expected::AtMost(30.0),
        },
        Claim {
            words: "and of GET-TX beside PUT",
            metric: P99.name,
            ours: Ours::Value(at("Orbe", "GET-TX beside PUT")),
            expected: Expected::AtMost(30.0),
        },
    ],
};

const F4: Figure = Figure {
    name: "F4",
    section: "7.3",
    title: "throughput over partitions",
    here: "half of all operations on one key are on the client's own partition; clients in one datacenter; the ratios of the \
           figure's legend are not in the text: 1:0, 1:1, 0:1 here",
    experiment: Experiment::Simulated(
        Sweep {
            axis: "partitions",
            base: SimulatedSetup {
                protocol: "orbe-clock",
                cleaning: false,
                value_bytes: 10,
                local_percent: 50,
                ..SimulatedSetup::PRICED
            },
            lines: &[
                case("1:0", |s| SimulatedSetup { gets: 0, ..s }),
                case("1:1", |s| s),
                case("0:1", |s| SimulatedSetup { sets: 0, ..s }),
                case("GET-TX", |s| SimulatedSetup { gets: 0, sets: 0, mgets: 1, mget_keys: 6, ..s }),
            ],
            points: &[
                case("2", |s| SimulatedSetup { partitions: 2, ..s }),
                case("4", |s| SimulatedSetup { partitions: 4, ..s }),
                case("8", |s| SimulatedSetup { partitions: 8, ..s }),
            ],
        },
        &[simulated::RATE, PER_PARTITION, BUSY],
    ),
    claims: &[
        Claim {
            words: "regardless of the put:get ratio Orbe scales out: 2 to 8 partitions, 1:0",
            metric: simulated::RATE.name,
            ours: Ours::Ratio(last("1:0"), first("1:0")),
            expected: Expected::AtLeast(3.0),
        },
        Claim {
            words: "the same, 0:1",
            metric: simulated::RATE.name,
            ours: Ours::Ratio(last("0:1"), first("0:1")),
            expected: Expected::AtLeast(3.0),
        },
    ],
};

const F5: Figure = Figure {
    name: "F5",
    section: "7.4",
    title: "throughput beside eventual consistency",
    here: "values of 60 bytes, three partitions of one core",
    experiment: Experiment::Processes(
        Sweep {
            axis: "put:get",
            base: ProcessSetup { value: Some("60"), ..BASE },
            lines: &[
                case("Eventual", |s| ProcessSetup { protocol: "eventual", cleaning: true, ..s }),
                case("Orbe", |s| s),
            ],
            points: &[
                case("64:1", |s| ProcessSetup { load: "set=64,get=1", ..s }),
                case("4:1", |s| ProcessSetup { load: "set=4,get=1", ..s }),
                case("1:1", |s| ProcessSetup { load: "set=1,get=1", ..s }),
                case("1:4", |s| ProcessSetup { load: "set=1,get=4", ..s }),
                case("1:64", |s| ProcessSetup { load: "set=1,get=64", ..s }),
            ],
        },
        &[PER_PROCESSOR, RATE],
    ),
    claims: &[
        Claim {
            words: "similar for an almost read-only workload",
            metric: PER,
            ours: Ours::Ratio(last("Orbe"), last("Eventual")),
            expected: Expected::Ratio(1.0),
        },
        Claim {
            words: "about 24 % lower for an almost update-only workload",
            metric: PER,
            ours: Ours::Ratio(first("Orbe"), first("Eventual")),
            expected: Expected::Ratio(0.76),
        },
    ],
};

const F6: Figure = Figure {
    name: "F6",
    section: "7.4",
    title: "dependency checks and metadata of an update",
    here: "clients pause 10 ms in the mean; what is replaced counts as metadata, too",
    experiment: Experiment::Simulated(
        Sweep {
            axis: "put:get",
            base: SimulatedSetup { value_bytes: 60, ..COUNTED },
            lines: &[case("Orbe", |s| s)],
            points: &[
                case("16:1", |s| SimulatedSetup { sets: 16, ..s }),
                case("1:1", |s| s),
                case("1:8", |s| SimulatedSetup { gets: 8, ..s }),
                case("1:32", |s| SimulatedSetup { gets: 32, ..s }),
            ],
        },
        &[CHECKS, METADATA, DEPENDENCIES],
    ),
    claims: &[
        Claim {
            words: "dependency checks go up when the workload becomes read-heavy (1:8 to 16:1)",
            metric: CHECKS.name,
            ours: Ours::Ratio(at("Orbe", "1:8"), first("Orbe")),
            expected: Expected::AtLeast(1.1),
        },
        Claim {
            words: "but level off after GETs dominate (1:32 to 1:8)",
            metric: CHECKS.name,
            ours: Ours::Ratio(last("Orbe"), at("Orbe", "1:8")),
            expected: Expected::AtMost(1.5),
        },
        Claim {
            words: "the share of metadata goes up, too (1:8 to 16:1)",
            metric: METADATA.name,
            ours: Ours::Ratio(at("Orbe", "1:8"), first("Orbe")),
            expected: Expected::AtLeast(1.1),
        },
    ],
};

const AGAINST_COPS: &[Case<ProcessSetup>] = &[
    case("Orbe 1:1", |s| s),
    case("COPS 1:1", |s| ProcessSetup { protocol: "cops-gt", cleaning: true, ..s }),
    case("Orbe 1:4", |s| ProcessSetup { load: "set=1,get=4", ..s }),
    case("COPS 1:4", |s| ProcessSetup { protocol: "cops-gt", cleaning: true, load: "set=1,get=4", ..s }),
];

const CLIENTS: &[Case<ProcessSetup>] = &[
    case("8", |s| ProcessSetup { clients: 8, ..s }),
    case("64", |s| ProcessSetup { clients: 64, ..s }),
    case("512", |s| ProcessSetup { clients: 512, ..s }),
];

const F7: Figure = Figure {
    name: "F7",
    section: "7.5",
    title: "throughput beside COPS over the time between a client's operations",
    here: "more clients have more time between their operations; the ratios of the figure's legend are not in the text",
    experiment: Experiment::Processes(
        Sweep { axis: "clients", base: BASE, lines: AGAINST_COPS, points: CLIENTS },
        &[PER_PROCESSOR, RATE, DELAY_MS],
    ),
    claims: &[
        Claim {
            words: "Orbe provides consistently higher throughput than COPS: the least ratio, 1:1",
            metric: PER,
            ours: Ours::LeastRatio("Orbe 1:1", "COPS 1:1"),
            expected: Expected::AtLeast(1.0),
        },
        Claim {
            words: "the least ratio, 1:4",
            metric: PER,
            ours: Ours::LeastRatio("Orbe 1:4", "COPS 1:4"),
            expected: Expected::AtLeast(1.0),
        },
    ],
};

const SIMULATED_COPS: &[Case<SimulatedSetup>] = &[
    case("Orbe 1:1", |s| s),
    case("COPS 1:1", |s| SimulatedSetup { protocol: "cops-gt", cleaning: true, ..s }),
    case("Orbe 1:4", |s| SimulatedSetup { gets: 4, ..s }),
    case("COPS 1:4", |s| SimulatedSetup { protocol: "cops-gt", cleaning: true, gets: 4, ..s }),
];

const PAUSES: &[Case<SimulatedSetup>] = &[
    case("10 ms", |s| SimulatedSetup { think_ms: 10, ..s }),
    case("100 ms", |s| SimulatedSetup { think_ms: 100, ..s }),
    case("1 s", |s| SimulatedSetup { think_ms: 1_000, counted_ms: 16_000, ..s }),
];

const F8: Figure = Figure {
    name: "F8",
    section: "7.5",
    title: "dependencies of a PUT beside COPS",
    here: "48 clients; what is globally stable is known after four seconds here, after six in the paper",
    experiment: Experiment::Simulated(
        Sweep { axis: "mean pause", base: COUNTED, lines: SIMULATED_COPS, points: PAUSES },
        &[DEPENDENCIES],
    ),
    claims: &[
        Claim {
            words: "COPS tracks many more states when pauses are short (1:1)",
            metric: DEPENDENCIES.name,
            ours: Ours::Ratio(first("COPS 1:1"), first("Orbe 1:1")),
            expected: Expected::AtLeast(2.0),
        },
        Claim {
            words: "they are similar when pauses are longer than one second (1:1)",
            metric: DEPENDENCIES.name,
            ours: Ours::Ratio(last("COPS 1:1"), last("Orbe 1:1")),
            expected: Expected::AtMost(3.0),
        },
    ],
};

const F9: Figure = Figure {
    name: "F9",
    section: "7.5",
    title: "replication traffic beside COPS",
    here: "everything between datacenters, acknowledgements and heartbeats too, an update; 48 clients",
    experiment: Experiment::Simulated(
        Sweep { axis: "mean pause", base: COUNTED, lines: SIMULATED_COPS, points: PAUSES },
        &[UPDATE_BYTES, TRAFFIC],
    ),
    claims: &[Claim {
        words: "Orbe reduces the traffic between datacenters (bytes an update, 10 ms, 1:1)",
        metric: UPDATE_BYTES.name,
        ours: Ours::Ratio(first("Orbe 1:1"), first("COPS 1:1")),
        expected: Expected::AtMost(1.0),
    }],
};

const F10: Figure = Figure {
    name: "F10",
    section: "7.5",
    title: "processor time of what clients remember, beside COPS",
    here: "the past of a session is kept by the server that it is connected to, so that the client library's cost is within \
           the servers': all of it is shown",
    experiment: Experiment::Processes(
        Sweep { axis: "clients", base: BASE, lines: AGAINST_COPS, points: CLIENTS },
        &[PROCESSOR_US],
    ),
    claims: &[Claim {
        words: "Orbe uses fewer CPU cycles an operation: the most, 1:1",
        metric: PROCESSOR_US.name,
        ours: Ours::MostRatio("Orbe 1:1", "COPS 1:1"),
        expected: Expected::AtMost(1.0),
    }],
};

/// Section 7.6: reads of random items of all partitions, and updates of random items of the client's own.
const CLEANED: &[Case<SimulatedSetup>] =
    &[case("cleaning", |s| SimulatedSetup { cleaning: true, ..s }), case("no cleaning", |s| s)];
const READERS: SimulatedSetup = SimulatedSetup { writes_at_home: true, always_sync: true, ..COUNTED };
const PARTITIONS: &[Case<SimulatedSetup>] = &[
    case("1", |s| SimulatedSetup { partitions: 1, gets: 1, ..s }),
    case("2", |s| SimulatedSetup { partitions: 2, gets: 2, ..s }),
    case("4", |s| SimulatedSetup { partitions: 4, gets: 4, ..s }),
    case("8", |s| SimulatedSetup { partitions: 8, gets: 8, ..s }),
];

const F11: Figure = Figure {
    name: "F11",
    section: "7.6",
    title: "throughput with and without dependency cleaning",
    here: "as many GETs of random keys as there are partitions, for each SET at home; clients in one datacenter",
    experiment: Experiment::Simulated(
        Sweep {
            axis: "partitions",
            base: SimulatedSetup {
                protocol: "orbe-clock",
                cleaning: false,
                writes_at_home: true,
                value_bytes: 10,
                ..SimulatedSetup::PRICED
            },
            lines: CLEANED,
            points: PARTITIONS,
        },
        &[simulated::RATE, PER_PARTITION, BUSY],
    ),
    claims: &[
        Claim {
            words: "with one partition cleaning does not help: slightly lower",
            metric: simulated::RATE.name,
            ours: Ours::Ratio(first("cleaning"), first("no cleaning")),
            expected: Expected::Ratio(1.0),
        },
        Claim {
            words: "with more partitions throughput with cleaning is higher (8)",
            metric: simulated::RATE.name,
            ours: Ours::Ratio(last("cleaning"), last("no cleaning")),
            expected: Expected::AtLeast(1.0),
        },
    ],
};

const F12: Figure = Figure {
    name: "F12",
    section: "7.6",
    title: "replication traffic with and without dependency cleaning",
    here: "everything between datacenters; writes are synced before they are answered, so that acknowledgements come soon; \
           clients pause 10 ms in the mean",
    experiment: Experiment::Simulated(
        Sweep { axis: "partitions", base: READERS, lines: CLEANED, points: PARTITIONS },
        &[UPDATE_BYTES, TRAFFIC],
    ),
    claims: &[Claim {
        words: "cleaning reduces the metadata of an update (bytes an update, 8 partitions)",
        metric: UPDATE_BYTES.name,
        ours: Ours::Ratio(last("cleaning"), last("no cleaning")),
        expected: Expected::AtMost(1.0),
    }],
};

const F13: Figure = Figure {
    name: "F13",
    section: "7.6",
    title: "share of metadata with and without dependency cleaning",
    here: "as Figure 12",
    experiment: Experiment::Simulated(
        Sweep { axis: "partitions", base: READERS, lines: CLEANED, points: PARTITIONS },
        &[METADATA, DEPENDENCIES, CHECKS],
    ),
    claims: &[
        Claim {
            words: "cleaning reduces the share of metadata (8 partitions)",
            metric: METADATA.name,
            ours: Ours::Ratio(last("cleaning"), last("no cleaning")),
            expected: Expected::AtMost(0.95),
        },
        Claim {
            words: "checks do not incur network messages most of the time: messages an update (8 partitions)",
            metric: CHECKS.name,
            ours: Ours::Value(last("cleaning")),
            expected: Expected::AtMost(1.0),
        },
    ],
};
