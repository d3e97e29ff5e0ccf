//! POCC (IEEE TPDS), section 8: Figures 3 to 7.
//!
//! POCC is `pocc`; Cure*, which differs from it in its stabilization and in what a GET may show, is `cure`. GET, PUT
//! and RO-TX are GET, SET and MGET.

use super::{Paper, case, first, last, least, most};
use crate::claim::{Claim, Expected, Ours};
use crate::figure::{Case, Experiment, Figure, Sweep};
use crate::instrument::simulated::{
    BUSY, EXCHANGED, FRESHER, PER_PARTITION, RATE, RESPONSE_MS, SEVERAL_MS, STALE, STALE_SEVERAL,
    SimulatedSetup, WAIT_MS, WAITS,
};
use ensue_compare::demand::Draw;

pub const PAPER: Paper = Paper {
    name: "pocc",
    title: "Optimistic Causal Consistency for Geo-Replicated Key-Value Stores",
    figures: &[F3A, F3C, F3D, F4, F5A, F5B, F6, F7],
};

/// Three datacenters; heartbeats after 1 ms, stabilization every 5 ms.
const COUNTED: SimulatedSetup = SimulatedSetup {
    datacenters: 3,
    partitions: 4,
    delay_ms: 40,
    draw: Draw::Zipfian,
    keys: 2_000,
    value_bytes: 8,
    gets: 32,
    think_ms: 25,
    heartbeat_ms: 1,
    stabilization_ms: 5,
    warmup_ms: 2_000,
    counted_ms: 2_000,
    ..SimulatedSetup::COUNTED
};
const PRICED: SimulatedSetup = SimulatedSetup {
    priced: true,
    watches: false,
    clients: 24,
    think_ms: 0,
    warmup_ms: 250,
    counted_ms: 150,
    ..COUNTED
};
const LINES: &[Case<SimulatedSetup>] = &[
    case("Cure*", |s| SimulatedSetup { protocol: "cure", ..s }),
    case("POCC", |s| SimulatedSetup { protocol: "pocc", ..s }),
];
const CLIENTS: &[Case<SimulatedSetup>] = &[
    case("8", |s| SimulatedSetup { clients: 8, ..s }),
    case("32", |s| SimulatedSetup { clients: 32, ..s }),
    case("128", |s| SimulatedSetup { clients: 128, ..s }),
];

const F3A: Figure = Figure {
    name: "F3a",
    section: "8.2",
    title: "stale values, fresher versions and blocking, single keys (also Figures 3b, 3e, 3f)",
    here: "4 partitions in place of 32, 40 ms between datacenters, clients that pause 25 ms in the mean; cores are never busy, \
           so that the growth near saturation is not there",
    experiment: Experiment::Simulated(
        Sweep { axis: "clients a partition", base: COUNTED, lines: LINES, points: CLIENTS },
        &[STALE, FRESHER, WAITS, WAIT_MS],
    ),
    claims: &[
        Claim {
            words: "stale values of POCC are 0 %",
            metric: STALE.name,
            ours: Ours::Value(most("POCC")),
            expected: Expected::Count(0.0),
        },
        Claim {
            words: "stale values of Cure* increase with the load (paper: up to 15 % below saturation)",
            metric: STALE.name,
            ours: Ours::Ratio(last("Cure*"), first("Cure*")),
            expected: Expected::AtLeast(1.0),
        },
        Claim {
            words: "up to high load fewer than 0.1 % of operations block in POCC (in %, the least here)",
            metric: WAITS.name,
            ours: Ours::Value(least("POCC")),
            expected: Expected::AtMost(0.1),
        },
    ],
};

const F3C: Figure = Figure {
    name: "F3c",
    section: "8.2",
    title: "throughput over partitions",
    here: "24 clients a core without pauses, in all datacenters; N GETs to a SET with N partitions",
    experiment: Experiment::Simulated(
        Sweep {
            axis: "partitions",
            base: PRICED,
            lines: LINES,
            points: &[
                case("2", |s| SimulatedSetup { partitions: 2, gets: 2, ..s }),
                case("8", |s| SimulatedSetup { partitions: 8, gets: 8, ..s }),
                case("32", |s| SimulatedSetup { partitions: 32, gets: 32, ..s }),
            ],
        },
        &[RATE, PER_PARTITION, BUSY],
    ),
    claims: &[Claim {
        words: "the two achieve basically the same throughput (32 partitions)",
        metric: RATE.name,
        ours: Ours::Ratio(last("POCC"), last("Cure*")),
        expected: Expected::Ratio(1.0),
    }],
};

const F3D: Figure = Figure {
    name: "F3d",
    section: "8.2",
    title: "response time over the load",
    here: "8 partitions in place of 32; clients without pauses",
    experiment: Experiment::Simulated(
        Sweep {
            axis: "clients a partition",
            base: SimulatedSetup { partitions: 8, ..PRICED },
            lines: LINES,
            points: &[
                case("2", |s| SimulatedSetup { clients: 2, ..s }),
                case("8", |s| SimulatedSetup { clients: 8, ..s }),
                case("32", |s| SimulatedSetup { clients: 32, ..s }),
            ],
        },
        &[RESPONSE_MS, RATE, BUSY],
    ),
    claims: &[Claim {
        words: "POCC has a slightly lower response time before saturation (2 clients)",
        metric: RESPONSE_MS.name,
        ours: Ours::Ratio(first("POCC"), first("Cure*")),
        expected: Expected::AtMost(1.0),
    }],
};

const F4: Figure = Figure {
    name: "F4",
    section: "8.2",
    title: "bytes of replication and of stabilization",
    here: "4 partitions in place of 32: stabilization within a datacenter grows with them",
    experiment: Experiment::Simulated(
        Sweep {
            axis: "GET:PUT",
            base: SimulatedSetup { clients: 32, ..COUNTED },
            lines: LINES,
            points: &[
                case("32:1", |s| s),
                case("8:1", |s| SimulatedSetup { gets: 8, ..s }),
                case("1:1", |s| SimulatedSetup { gets: 1, ..s }),
            ],
        },
        &[EXCHANGED],
    ),
    claims: &[Claim {
        words: "POCC exchanges up to 37 % less than Cure*: the least ratio",
        metric: EXCHANGED.name,
        ours: Ours::LeastRatio("POCC", "Cure*"),
        expected: Expected::Ratio(0.63),
    }],
};

/// A RO-TX of half of the partitions, then a PUT.
const TRANSACTIONS: SimulatedSetup = SimulatedSetup { gets: 0, mgets: 1, mget_keys: 4, ..COUNTED };

const F5A: Figure = Figure {
    name: "F5a",
    section: "8.3",
    title: "stale values of transactional reads",
    here: "4 partitions in place of 32, transactions of four keys, clients that pause 25 ms in the mean",
    experiment: Experiment::Simulated(
        Sweep { axis: "clients a partition", base: TRANSACTIONS, lines: LINES, points: CLIENTS },
        &[STALE_SEVERAL],
    ),
    claims: &[Claim {
        words: "POCC is two orders of magnitude below Cure*: the most ratio",
        metric: STALE_SEVERAL.name,
        ours: Ours::MostRatio("POCC", "Cure*"),
        expected: Expected::Ratio(0.01),
    }],
};

const F5B: Figure = Figure {
    name: "F5b",
    section: "8.3",
    title: "throughput and response time of transactional reads (also Figure 5c)",
    here: "8 partitions in place of 32, transactions of four keys, clients without pauses",
    experiment: Experiment::Simulated(
        Sweep {
            axis: "clients a partition",
            base: SimulatedSetup { partitions: 8, gets: 0, mgets: 1, mget_keys: 4, ..PRICED },
            lines: LINES,
            points: &[
                case("2", |s| SimulatedSetup { clients: 2, ..s }),
                case("8", |s| SimulatedSetup { clients: 8, ..s }),
                case("32", |s| SimulatedSetup { clients: 32, ..s }),
            ],
        },
        &[RATE, SEVERAL_MS, BUSY],
    ),
    claims: &[
        Claim {
            words: "slightly higher throughput of POCC (32 clients)",
            metric: RATE.name,
            ours: Ours::Ratio(last("POCC"), last("Cure*")),
            expected: Expected::Ratio(1.05),
        },
        Claim {
            words: "up to 12 % lower response time of transactions: the least ratio",
            metric: SEVERAL_MS.name,
            ours: Ours::LeastRatio("POCC", "Cure*"),
            expected: Expected::Ratio(0.88),
        },
    ],
};

const F6: Figure = Figure {
    name: "F6",
    section: "8.3",
    title: "throughput over the partitions that a transaction reads",
    here: "16 partitions in place of 32; keys are random, so that n keys are of fewer partitions",
    experiment: Experiment::Simulated(
        Sweep {
            axis: "keys of a transaction",
            base: SimulatedSetup { partitions: 16, gets: 0, mgets: 1, clients: 16, ..PRICED },
            lines: LINES,
            points: &[
                case("1", |s| SimulatedSetup { mget_keys: 1, ..s }),
                case("4", |s| SimulatedSetup { mget_keys: 4, ..s }),
                case("16", |s| SimulatedSetup { mget_keys: 16, ..s }),
            ],
        },
        &[RATE, BUSY],
    ),
    claims: &[Claim {
        words: "the gain of POCC is up to 15 % when transactions involve most partitions",
        metric: RATE.name,
        ours: Ours::MostRatio("POCC", "Cure*"),
        expected: Expected::Ratio(1.15),
    }],
};

const F7: Figure = Figure {
    name: "F7",
    section: "8.3",
    title: "blocking in POCC with transactional reads",
    here: "as Figure 5a; the growth near saturation is not there",
    experiment: Experiment::Simulated(
        Sweep {
            axis: "clients a partition",
            base: TRANSACTIONS,
            lines: &[case("POCC", |s| SimulatedSetup { protocol: "pocc", ..s })],
            points: CLIENTS,
        },
        &[WAITS, WAIT_MS],
    ),
    claims: &[Claim {
        words: "blocking time decreases as updates come more often, before contention (32 to 8 clients)",
        metric: WAIT_MS.name,
        ours: Ours::Ratio(super::at("POCC", "32"), first("POCC")),
        expected: Expected::AtMost(1.0),
    }],
};
