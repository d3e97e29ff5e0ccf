//! COPS (SOSP 2011), section 6: Table 2 and Figures 9 to 12.
//!
//! Put and get are SET and GET. LOG is `log`, a store of one log, in which nothing is checked; COPS is `cops`, COPS-GT
//! is `cops-gt`. A logical client is a connection, so that more of them mean more time between the operations of each,
//! as in footnote 11.

use super::{Paper, at, case, first, last, least, most};
use crate::claim::{Claim, Expected, Ours};
use crate::figure::{Experiment, Figure, Sweep};
use crate::instrument::processes::{DELAY_MS, P50, P99, P999, PER_PROCESSOR, ProcessSetup, RATE};
use crate::instrument::simulated::{self, BUSY, DEPENDENCIES, PER_PARTITION, SimulatedSetup};
use ensue_compare::demand::Draw;

pub const PAPER: Paper = Paper {
    name: "cops",
    title: "Don't Settle for Eventual: Scalable Causal Consistency for Wide-Area Storage with COPS",
    figures: &[T2, F9A, F9B, F10A, F10B, F11A, F11B, F11C, F12A, F12B],
};

const BASE: ProcessSetup =
    ProcessSetup { access: Some("groups:512:1"), value: Some("1"), ..ProcessSetup::BASE };
const PER: &str = PER_PROCESSOR.name;
const GROUPS: Draw = Draw::Groups { keys: 512, variance_milli: 1_000 };

const T2: Figure = Figure {
    name: "T2",
    section: "6.2",
    title: "latency and throughput of operations",
    here: "65,536 keys in place of 2^18; every write of a client depends on the one before, so that puts are of one \
           dependency in COPS, and of all that is not yet globally stable in COPS-GT: the row of 130 dependencies \
           cannot be set apart; of many connections at once, so that servers have all that they can do",
    experiment: Experiment::Processes(
        Sweep {
            axis: "operation",
            base: ProcessSetup { access: Some("uniform"), partitions: 1, keys: 65_536, ..BASE },
            lines: &[
                case("COPS", |s| ProcessSetup { protocol: "cops", ..s }),
                case("COPS-GT", |s| ProcessSetup { protocol: "cops-gt", ..s }),
            ],
            points: &[
                case("get", |s| ProcessSetup { load: "get", ..s }),
                case("put", |s| ProcessSetup { load: "set", ..s }),
            ],
        },
        &[PER_PROCESSOR, P50, P99, P999],
    ),
    claims: &[
        Claim {
            words: "throughput of put_after to that of get_by_version in COPS (30 to 52 Kops/s)",
            metric: PER,
            ours: Ours::Ratio(at("COPS", "put"), at("COPS", "get")),
            expected: Expected::Ratio(30.0 / 52.0),
        },
        Claim {
            words: "throughput of get_by_version in COPS-GT to COPS (52 to 52 Kops/s)",
            metric: PER,
            ours: Ours::Ratio(at("COPS-GT", "get"), at("COPS", "get")),
            expected: Expected::Ratio(1.0),
        },
        Claim {
            words: "throughput of put_after(1) in COPS-GT to COPS (24 to 30 Kops/s)",
            metric: PER,
            ours: Ours::Ratio(at("COPS-GT", "put"), at("COPS", "put")),
            expected: Expected::Ratio(24.0 / 30.0),
        },
        Claim {
            words: "median latency of get_by_version in COPS",
            metric: P50.name,
            ours: Ours::Value(at("COPS", "get")),
            expected: Expected::OfTheirMachines(0.37, "ms"),
        },
        Claim {
            words: "median latency of put_after(1) in COPS",
            metric: P50.name,
            ours: Ours::Value(at("COPS", "put")),
            expected: Expected::OfTheirMachines(0.57, "ms"),
        },
    ],
};

const F9A: Figure = Figure {
    name: "F9a",
    section: "6.3",
    title: "throughput over the time between a client's operations",
    here: "clients from 8 to 512 in all, over 4 partitions; the paper has 1 to 2^18 a client machine",
    experiment: Experiment::Processes(
        Sweep {
            axis: "clients",
            base: BASE,
            lines: &[
                case("COPS 1:4", |s| ProcessSetup { protocol: "cops", load: "set=1,get=4", ..s }),
                case("COPS-GT 1:4", |s| ProcessSetup { protocol: "cops-gt", load: "set=1,get=4", ..s }),
                case("COPS 1:0", |s| ProcessSetup { protocol: "cops", load: "set", ..s }),
                case("COPS-GT 1:0", |s| ProcessSetup { protocol: "cops-gt", load: "set", ..s }),
            ],
            points: &[
                case("8", |s| ProcessSetup { clients: 8, ..s }),
                case("32", |s| ProcessSetup { clients: 32, ..s }),
                case("128", |s| ProcessSetup { clients: 128, ..s }),
                case("512", |s| ProcessSetup { clients: 512, ..s }),
            ],
        },
        &[PER_PROCESSOR, RATE, DELAY_MS],
    ),
    claims: &[
        Claim {
            words: "with little time between operations COPS significantly outperforms COPS-GT (1:0)",
            metric: PER,
            ours: Ours::Ratio(first("COPS-GT 1:0"), first("COPS 1:0")),
            expected: Expected::AtMost(0.9),
        },
        Claim {
            words: "with several hundred milliseconds between operations they converge: the ratio rises (1:4)",
            metric: PER,
            ours: Ours::Ratio(last("COPS-GT 1:4"), last("COPS 1:4")),
            expected: Expected::AtLeast(0.67),
        },
    ],
};

const F9B: Figure = Figure {
    name: "F9b",
    section: "6.3",
    title: "dependencies over the time between a client's operations",
    here: "pauses of 2 to 512 ms in the mean, 32 clients; partitions learn what is globally stable after four seconds, the \
           paper's after six",
    experiment: Experiment::Simulated(
        Sweep {
            axis: "mean pause",
            base: SimulatedSetup { draw: GROUPS, value_bytes: 1, asked: 1, ..SimulatedSetup::COUNTED },
            lines: &[
                case("COPS-GT 1:0", |s| SimulatedSetup { protocol: "cops-gt", gets: 0, ..s }),
                case("COPS-GT 1:4", |s| SimulatedSetup { protocol: "cops-gt", gets: 4, ..s }),
                case("COPS 1:0", |s| SimulatedSetup { protocol: "cops", gets: 0, ..s }),
                case("COPS 1:4", |s| SimulatedSetup { protocol: "cops", gets: 4, ..s }),
            ],
            points: &[
                case("8 ms", |s| SimulatedSetup { think_ms: 8, ..s }),
                case("64 ms", |s| SimulatedSetup { think_ms: 64, ..s }),
                case("512 ms", |s| SimulatedSetup { think_ms: 512, ..s }),
            ],
        },
        &[DEPENDENCIES],
    ),
    claims: &[
        Claim {
            words: "dependencies of COPS-GT decrease as the pauses grow (1:0)",
            metric: DEPENDENCIES.name,
            ours: Ours::Ratio(last("COPS-GT 1:0"), first("COPS-GT 1:0")),
            expected: Expected::AtMost(0.2),
        },
        Claim {
            words: "COPS tracks one nearest dependency (1:0)",
            metric: DEPENDENCIES.name,
            ours: Ours::Value(first("COPS 1:0")),
            expected: Expected::Count(1.0),
        },
    ],
};

const F10A: Figure = Figure {
    name: "F10a",
    section: "6.3",
    title: "throughput over the put:get ratio",
    here: "32 clients, so that a variance of 512 is uniform over all groups",
    experiment: Experiment::Processes(
        Sweep {
            axis: "put:get",
            base: BASE,
            lines: &[
                case("COPS 1", |s| ProcessSetup { protocol: "cops", ..s }),
                case("COPS 512", |s| ProcessSetup { protocol: "cops", access: Some("groups:512:512"), ..s }),
                case("COPS-GT 0", |s| ProcessSetup {
                    protocol: "cops-gt",
                    access: Some("groups:512:0"),
                    ..s
                }),
                case("COPS-GT 1", |s| ProcessSetup { protocol: "cops-gt", ..s }),
                case("COPS-GT 512", |s| ProcessSetup {
                    protocol: "cops-gt",
                    access: Some("groups:512:512"),
                    ..s
                }),
            ],
            points: &[
                case("64:1", |s| ProcessSetup { load: "set=64,get=1", ..s }),
                case("8:1", |s| ProcessSetup { load: "set=8,get=1", ..s }),
                case("1:1", |s| ProcessSetup { load: "set=1,get=1", ..s }),
                case("1:8", |s| ProcessSetup { load: "set=1,get=8", ..s }),
                case("1:64", |s| ProcessSetup { load: "set=1,get=64", ..s }),
            ],
        },
        &[PER_PROCESSOR],
    ),
    claims: &[
        Claim {
            words: "throughput of COPS increases for read-heavier workloads",
            metric: PER,
            ours: Ours::Ratio(last("COPS 1"), first("COPS 1")),
            expected: Expected::AtLeast(1.1),
        },
        Claim {
            words: "COPS-GT becomes competitive with COPS for read-mostly workloads (1:64)",
            metric: PER,
            ours: Ours::Ratio(last("COPS-GT 1"), last("COPS 1")),
            expected: Expected::Ratio(1.0),
        },
        Claim {
            words: "COPS is identical under different variances (1:1)",
            metric: PER,
            ours: Ours::Ratio(at("COPS 512", "1:1"), at("COPS 1", "1:1")),
            expected: Expected::Ratio(1.0),
        },
        Claim {
            words: "COPS-GT is affected by variance: less with 512 than with 0 (1:1)",
            metric: PER,
            ours: Ours::Ratio(at("COPS-GT 512", "1:1"), at("COPS-GT 0", "1:1")),
            expected: Expected::AtMost(0.95),
        },
    ],
};

const F10B: Figure = Figure {
    name: "F10b",
    section: "6.3",
    title: "dependencies over the put:get ratio",
    here: "32 clients that pause 10 ms in the mean",
    experiment: Experiment::Simulated(
        Sweep {
            axis: "put:get",
            base: SimulatedSetup {
                protocol: "cops-gt",
                draw: GROUPS,
                value_bytes: 1,
                asked: 1,
                ..SimulatedSetup::COUNTED
            },
            lines: &[
                case("COPS-GT 0", |s| SimulatedSetup { draw: groups(0), ..s }),
                case("COPS-GT 1", |s| s),
                case("COPS-GT 512", |s| SimulatedSetup { draw: groups(512_000), ..s }),
                case("COPS 1", |s| SimulatedSetup { protocol: "cops", ..s }),
            ],
            points: &[
                case("64:1", |s| SimulatedSetup { sets: 64, ..s }),
                case("8:1", |s| SimulatedSetup { sets: 8, ..s }),
                case("1:1", |s| s),
                case("1:8", |s| SimulatedSetup { gets: 8, ..s }),
                case("1:64", |s| SimulatedSetup { gets: 64, ..s }),
            ],
        },
        &[DEPENDENCIES],
    ),
    claims: &[
        Claim {
            words: "with variance, dependencies increase from 64:1 to 1:1 (512)",
            metric: DEPENDENCIES.name,
            ours: Ours::Ratio(at("COPS-GT 512", "1:1"), first("COPS-GT 512")),
            expected: Expected::AtLeast(1.0),
        },
        Claim {
            words: "then they decrease from 1:1 to 1:64 (512)",
            metric: DEPENDENCIES.name,
            ours: Ours::Ratio(last("COPS-GT 512"), at("COPS-GT 512", "1:1")),
            expected: Expected::AtMost(1.0),
        },
        Claim {
            words: "without variance they strictly decrease (1:64 to 64:1)",
            metric: DEPENDENCIES.name,
            ours: Ours::Ratio(last("COPS-GT 0"), first("COPS-GT 0")),
            expected: Expected::AtMost(1.0),
        },
        Claim {
            words: "dependencies of COPS are always few, from 1 to 4: the most",
            metric: DEPENDENCIES.name,
            ours: Ours::Value(most("COPS 1")),
            expected: Expected::AtMost(4.0),
        },
    ],
};

const fn groups(variance_milli: u64) -> Draw {
    Draw::Groups { keys: 512, variance_milli }
}

const F11A: Figure = Figure {
    name: "F11a",
    section: "6.3",
    title: "throughput over the keys of a group",
    here: "32 clients",
    experiment: Experiment::Processes(
        Sweep {
            axis: "keys a group",
            base: BASE,
            lines: LINES_OF_11,
            points: &[
                case("8", |s| ProcessSetup { access: Some("groups:8:1"), ..s }),
                case("128", |s| ProcessSetup { access: Some("groups:128:1"), ..s }),
                case("2048", |s| ProcessSetup { access: Some("groups:2048:1"), ..s }),
            ],
        },
        &[PER_PROCESSOR],
    ),
    claims: &[Claim {
        words: "the behavior of COPS-GT is nuanced, with a bowed shape; COPS does not depend on it (1:1, most to least)",
        metric: PER,
        ours: Ours::Ratio(most("COPS 1:1"), least("COPS 1:1")),
        expected: Expected::AtMost(1.25),
    }],
};

const LINES_OF_11: &[crate::figure::Case<ProcessSetup>] = &[
    case("COPS 1:4", |s| ProcessSetup { protocol: "cops", load: "set=1,get=4", ..s }),
    case("COPS-GT 1:4", |s| ProcessSetup { protocol: "cops-gt", load: "set=1,get=4", ..s }),
    case("COPS 1:1", |s| ProcessSetup { protocol: "cops", load: "set=1,get=1", ..s }),
    case("COPS-GT 1:1", |s| ProcessSetup { protocol: "cops-gt", load: "set=1,get=1", ..s }),
];

const F11B: Figure = Figure {
    name: "F11b",
    section: "6.3",
    title: "throughput over the variance",
    here: "32 clients",
    experiment: Experiment::Processes(
        Sweep {
            axis: "variance",
            base: BASE,
            lines: LINES_OF_11,
            points: &[
                case("1/128", |s| ProcessSetup { access: Some("groups:512:0.0078"), ..s }),
                case("1", |s| ProcessSetup { access: Some("groups:512:1"), ..s }),
                case("512", |s| ProcessSetup { access: Some("groups:512:512"), ..s }),
            ],
        },
        &[PER_PROCESSOR],
    ),
    claims: &[
        Claim {
            words: "the throughput of COPS is unaffected by variance (1:1, most to least)",
            metric: PER,
            ours: Ours::Ratio(most("COPS 1:1"), least("COPS 1:1")),
            expected: Expected::AtMost(1.15),
        },
        Claim {
            words: "that of COPS-GT decreases as variance increases (1:1)",
            metric: PER,
            ours: Ours::Ratio(last("COPS-GT 1:1"), first("COPS-GT 1:1")),
            expected: Expected::AtMost(1.0),
        },
    ],
};

const F11C: Figure = Figure {
    name: "F11c",
    section: "6.3",
    title: "throughput of COPS-GT over the size of values",
    here: "32 clients, 1:1",
    experiment: Experiment::Processes(
        Sweep {
            axis: "bytes",
            base: BASE,
            lines: &[
                case("COPS", |s| ProcessSetup { protocol: "cops", ..s }),
                case("COPS-GT", |s| ProcessSetup { protocol: "cops-gt", ..s }),
            ],
            points: &[
                case("1", |s| ProcessSetup { value: Some("1"), ..s }),
                case("1024", |s| ProcessSetup { value: Some("1024"), ..s }),
                case("16384", |s| ProcessSetup { value: Some("16384"), ..s }),
            ],
        },
        &[PER_PROCESSOR],
    ),
    claims: &[Claim {
        words: "as the size of values increases, COPS-GT approaches COPS: the ratio at 16 KB",
        metric: PER,
        ours: Ours::Ratio(last("COPS-GT"), last("COPS")),
        expected: Expected::Ratio(1.0),
    }],
};

const PRICED: SimulatedSetup = SimulatedSetup { value_bytes: 1, draw: GROUPS, ..SimulatedSetup::PRICED };

/// One server of LOG serves all keys, so it has one core.
const LINES_OF_12: &[crate::figure::Case<SimulatedSetup>] = &[
    case("LOG", |s| SimulatedSetup { protocol: "log", ..s }),
    case("COPS", |s| SimulatedSetup { protocol: "cops", ..s }),
    case("COPS-GT", |s| SimulatedSetup { protocol: "cops-gt", ..s }),
];

const SERVERS: &[crate::figure::Case<SimulatedSetup>] = &[
    case("1", |s| SimulatedSetup { partitions: 1, ..s }),
    case("2", |s| SimulatedSetup { partitions: 2, ..s }),
    case("4", |s| SimulatedSetup { partitions: 4, ..s }),
    case("8", |s| SimulatedSetup { partitions: 8, ..s }),
    case("16", |s| SimulatedSetup { partitions: 16, ..s }),
];

const SCALES: [Claim; 3] = [
    Claim {
        words: "COPS on one server is almost identical to LOG",
        metric: simulated::RATE.name,
        ours: Ours::Ratio(first("COPS"), first("LOG")),
        expected: Expected::Ratio(1.0),
    },
    Claim {
        words: "COPS scales well: twice the servers almost double it, 8 to 16",
        metric: simulated::RATE.name,
        ours: Ours::Ratio(at("COPS", "16"), at("COPS", "8")),
        expected: Expected::Ratio(2.0),
    },
    Claim {
        words: "COPS-GT scales well, 8 to 16",
        metric: simulated::RATE.name,
        ours: Ours::Ratio(at("COPS-GT", "16"), at("COPS-GT", "8")),
        expected: Expected::Ratio(2.0),
    },
];

const F12A: Figure = Figure {
    name: "F12a",
    section: "6.4",
    title: "scalability, all default settings",
    here: "24 clients a server in one datacenter; `log` keeps all keys in one partition, however many there are; an input of \
           `cops-gt` costs its mean, whatever it carries",
    experiment: Experiment::Simulated(
        Sweep { axis: "servers a datacenter", base: PRICED, lines: LINES_OF_12, points: SERVERS },
        &[simulated::RATE, PER_PARTITION, BUSY],
    ),
    claims: &[
        SCALES[0],
        SCALES[1],
        SCALES[2],
        Claim {
            words: "COPS-GT is about two-thirds of COPS",
            metric: simulated::RATE.name,
            ours: Ours::Ratio(last("COPS-GT"), last("COPS")),
            expected: Expected::Ratio(2.0 / 3.0),
        },
    ],
};

const F12B: Figure = Figure {
    name: "F12b",
    section: "6.4",
    title: "scalability, the expected workload",
    here: "1:16, values of 1 KB, 24 clients a server (the paper's 32K pause longer)",
    experiment: Experiment::Simulated(
        Sweep {
            axis: "servers a datacenter",
            base: SimulatedSetup { gets: 16, value_bytes: 1_024, ..PRICED },
            lines: LINES_OF_12,
            points: SERVERS,
        },
        &[simulated::RATE, PER_PARTITION, BUSY],
    ),
    claims: &[
        SCALES[0],
        SCALES[1],
        SCALES[2],
        Claim {
            words: "COPS and COPS-GT are very comparable",
            metric: simulated::RATE.name,
            ours: Ours::Ratio(last("COPS-GT"), last("COPS")),
            expected: Expected::Ratio(1.0),
        },
    ],
};
