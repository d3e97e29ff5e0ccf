//! Beyond one machine: what no paper measured, in simulated worlds whose cores take time.

use super::{Paper, case, first, last};
use crate::claim::{Claim, Expected, Ours};
use crate::figure::{Case, Experiment, Figure, Sweep};
use crate::instrument::simulated::{BUSY, PER_PARTITION, RATE, RESPONSE_MS, SimulatedSetup};

pub const PAPER: Paper = Paper {
    name: "beyond",
    title: "Beyond one machine: many partitions, many datacenters",
    figures: &[S1, S2, S3],
};

const LINES: &[Case<SimulatedSetup>] = &[
    case("eventual", |s| s),
    case("eiger", |s| SimulatedSetup { protocol: "eiger", ..s }),
    case("cops", |s| SimulatedSetup { protocol: "cops", ..s }),
    case("cure", |s| SimulatedSetup { protocol: "cure", ..s }),
];

const PARTITIONS: &[Case<SimulatedSetup>] = &[
    case("1", |s| SimulatedSetup { partitions: 1, ..s }),
    case("4", |s| SimulatedSetup { partitions: 4, ..s }),
    case("16", |s| SimulatedSetup { partitions: 16, ..s }),
    case("96", |s| SimulatedSetup { partitions: 96, counted_ms: 60, ..s }),
    case("128", |s| SimulatedSetup { partitions: 128, counted_ms: 60, ..s }),
];

const BASE: SimulatedSetup = SimulatedSetup { keys: 4_096, warmup_ms: 60, ..SimulatedSetup::PRICED };

const fn linear(words: &'static str, line: &'static str) -> Claim {
    Claim {
        words,
        metric: PER_PARTITION.name,
        ours: Ours::Ratio(last(line), first(line)),
        expected: Expected::AtLeast(0.9),
    }
}

const S1: Figure = Figure {
    name: "S1",
    section: "-",
    title: "one key an operation, each client at the owner of its keys",
    here: "one GET to a SET, two datacenters, clients in one; every key is on the client's own partition, as the client \
           libraries of COPS and Eiger have it, which send each operation to the owner of its key",
    experiment: Experiment::Simulated(
        Sweep {
            axis: "partitions",
            base: SimulatedSetup { local_percent: 100, ..BASE },
            lines: LINES,
            points: PARTITIONS,
        },
        &[RATE, PER_PARTITION, BUSY],
    ),
    claims: &[
        linear("128 partitions at least 0.9 of linear: eventual", "eventual"),
        linear("the same: eiger", "eiger"),
        linear("the same: cops", "cops"),
        linear("the same: cure", "cure"),
    ],
};

const S2: Figure = Figure {
    name: "S2",
    section: "-",
    title: "one key an operation, random keys through any core",
    here: "one GET to a SET, two datacenters, clients in one; with N partitions 1 - 1/N of all operations cross cores, of one \
           command each",
    experiment: Experiment::Simulated(
        Sweep { axis: "partitions", base: BASE, lines: LINES, points: PARTITIONS },
        &[RATE, PER_PARTITION, BUSY],
    ),
    claims: &[
        linear("128 partitions at least 0.9 of linear: eventual", "eventual"),
        linear("the same: eiger", "eiger"),
        Claim {
            words: "where operations cross cores already, 128 partitions to 16 of linear: eiger",
            metric: PER_PARTITION.name,
            ours: Ours::Ratio(last("eiger"), super::at("eiger", "16")),
            expected: Expected::AtLeast(0.9),
        },
    ],
};

const S3: Figure = Figure {
    name: "S3",
    section: "-",
    title: "more datacenters",
    here: "four partitions, eight GETs to a SET, clients in all datacenters, 40 ms apart",
    experiment: Experiment::Simulated(
        Sweep {
            axis: "datacenters",
            base: SimulatedSetup {
                gets: 8,
                asked: u8::MAX,
                delay_ms: 40,
                clients: 16,
                ..SimulatedSetup::PRICED
            },
            lines: LINES,
            points: &[
                case("2", |s| s),
                case("4", |s| SimulatedSetup { datacenters: 4, ..s }),
                case("10", |s| SimulatedSetup { datacenters: 10, ..s }),
            ],
        },
        &[RATE, RESPONSE_MS, BUSY],
    ),
    claims: &[Claim {
        words: "more datacenters serve more operations, though each applies the writes of all: 10 to 2, eiger",
        metric: RATE.name,
        ours: Ours::Ratio(last("eiger"), first("eiger")),
        expected: Expected::AtLeast(1.0),
    }],
};
