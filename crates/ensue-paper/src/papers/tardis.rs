//! TARDiS (SIGMOD 2016), section 7: Table 3 and Figures 9 to 14.
//!
//! BerkeleyDB is two-phase locking, OCC is Kung and Robinson's validation, both on the storage code of branches. Figure
//! 14(a) counts lines of code: docs/branches.md has ours.

use super::{Paper, at, case, first, last, most};
use crate::claim::{Claim, Expected, Ours};
use crate::figure::{Case, Experiment, Figure, Sweep};
use crate::instrument::branches::{
    ABORTS, BEGIN_US, BranchSetup, COMMIT_US, COMMITTED, GET_US, LATENCY_MS, PUT_US, RECORDS, STATES, USEFUL,
};
use crate::instrument::sites::{self, SitesSetup};
use ensue_bench::{Access, Control, Mix, Terms};

pub const PAPER: Paper = Paper {
    name: "tardis",
    title: "TARDiS: A Branch-and-Merge Approach To Weak Consistency",
    figures: &[T3, F9A, F9B, F10A, F10B, F10C, F10D, F11, F12, F13, F14B, F14C],
};

const BASE: BranchSetup = BranchSetup::BASE;
const WRITES: BranchSetup = BranchSetup { mix: Mix::WriteHeavy, ..BASE };
const RATE: &str = COMMITTED.name;

const SEQUENTIAL: Case<BranchSetup> =
    case("TARDiS, no branching", |s| BranchSetup { control: Control::Sequential, ..s });
const BRANCHING: Case<BranchSetup> = case("TARDiS", |s| s);
const LOCKING: Case<BranchSetup> = case("BDB", |s| BranchSetup { control: Control::Locking, ..s });
const OPTIMISTIC: Case<BranchSetup> = case("OCC", |s| BranchSetup { control: Control::Optimistic, ..s });

const CLIENTS: &[Case<BranchSetup>] = &[
    case("16", |s| BranchSetup { clients: 16, ..s }),
    case("64", |s| BranchSetup { clients: 64, ..s }),
    case("256", |s| BranchSetup { clients: 256, ..s }),
    case("1024", |s| BranchSetup { clients: 1_024, ..s }),
];

const T3: Figure = Figure {
    name: "T3",
    section: "7.1.3",
    title: "time of operations",
    here: "in memory and without a network; reading the clock twice an operation is in it",
    experiment: Experiment::Branches(
        Sweep {
            axis: "workload",
            base: BranchSetup { clients: 64, times_steps: true, ..BASE },
            lines: &[BRANCHING, LOCKING, OPTIMISTIC],
            points: &[
                case("RH-Uniform", |s| s),
                case("WH-Uniform", |s| BranchSetup { mix: Mix::WriteHeavy, ..s }),
                case("WH-Zipfian", |s| BranchSetup { mix: Mix::WriteHeavy, access: Access::Zipfian, ..s }),
            ],
        },
        &[BEGIN_US, GET_US, PUT_US, COMMIT_US],
    ),
    claims: &[
        Claim {
            words: "a get of TARDiS, WH-Zipfian to RH-Uniform (1.4 to 0.6)",
            metric: GET_US.name,
            ours: Ours::Ratio(last("TARDiS"), first("TARDiS")),
            expected: Expected::Ratio(1.4 / 0.6),
        },
        Claim {
            words: "a commit of TARDiS, WH-Uniform to RH-Uniform (1.8 to 0.2)",
            metric: COMMIT_US.name,
            ours: Ours::Ratio(at("TARDiS", "WH-Uniform"), first("TARDiS")),
            expected: Expected::Ratio(1.8 / 0.2),
        },
        Claim {
            words: "a commit of TARDiS to one of OCC, WH-Uniform (1.8 to 6.7)",
            metric: COMMIT_US.name,
            ours: Ours::Ratio(at("TARDiS", "WH-Uniform"), at("OCC", "WH-Uniform")),
            expected: Expected::Ratio(1.8 / 6.7),
        },
        Claim {
            words: "a begin of TARDiS to one of BDB, RH-Uniform (0.6 to 0.3)",
            metric: BEGIN_US.name,
            ours: Ours::Ratio(first("TARDiS"), first("BDB")),
            expected: Expected::Ratio(0.6 / 0.3),
        },
    ],
};

const WITHOUT_BRANCHING: [Claim; 2] = [
    Claim {
        words: "TARDiS without branching incurs a 10 % slowdown to BDB, each at its best",
        metric: RATE,
        ours: Ours::Ratio(most("TARDiS, no branching"), most("BDB")),
        expected: Expected::Ratio(0.9),
    },
    Claim {
        words: "OCC lags behind TARDiS",
        metric: RATE,
        ours: Ours::Ratio(most("OCC"), most("TARDiS, no branching")),
        expected: Expected::AtMost(1.0),
    },
];

const F9A: Figure = Figure {
    name: "F9a",
    section: "7.1.2",
    title: "without branching, read-heavy, uniform",
    here: "",
    experiment: Experiment::Branches(
        Sweep { axis: "clients", base: BASE, lines: &[SEQUENTIAL, LOCKING, OPTIMISTIC], points: CLIENTS },
        &[COMMITTED, LATENCY_MS],
    ),
    claims: &WITHOUT_BRANCHING,
};

const F9B: Figure = Figure {
    name: "F9b",
    section: "7.1.2",
    title: "without branching, write-heavy, uniform",
    here: "",
    experiment: Experiment::Branches(
        Sweep { axis: "clients", base: WRITES, lines: &[SEQUENTIAL, LOCKING, OPTIMISTIC], points: CLIENTS },
        &[COMMITTED, LATENCY_MS],
    ),
    claims: &WITHOUT_BRANCHING,
};

const F10A: Figure = Figure {
    name: "F10a",
    section: "7.1.3",
    title: "with branching, read-heavy, uniform",
    here: "a merger joins all leaves again and again; at most 128 leaves",
    experiment: Experiment::Branches(
        Sweep { axis: "clients", base: BASE, lines: &[BRANCHING, LOCKING, OPTIMISTIC], points: CLIENTS },
        &[COMMITTED, LATENCY_MS],
    ),
    claims: &[Claim {
        words: "branching does not help when contention is low: slightly below BDB, each at its best",
        metric: RATE,
        ours: Ours::Ratio(most("TARDiS"), most("BDB")),
        expected: Expected::Ratio(0.95),
    }],
};

const F10B: Figure = Figure {
    name: "F10b",
    section: "7.1.3",
    title: "with branching, write-heavy, uniform",
    here: "as Figure 10a",
    experiment: Experiment::Branches(
        Sweep { axis: "clients", base: WRITES, lines: &[BRANCHING, LOCKING, OPTIMISTIC], points: CLIENTS },
        &[COMMITTED, LATENCY_MS],
    ),
    claims: &[Claim {
        words: "TARDiS outperforms BDB by 35 %, each at its best",
        metric: RATE,
        ours: Ours::Ratio(most("TARDiS"), most("BDB")),
        expected: Expected::Ratio(1.35),
    }],
};

const F10C: Figure = Figure {
    name: "F10c",
    section: "7.1.3",
    title: "with branching, write-heavy, Zipfian",
    here: "as Figure 10a",
    experiment: Experiment::Branches(
        Sweep {
            axis: "clients",
            base: BranchSetup { access: Access::Zipfian, ..WRITES },
            lines: &[BRANCHING, LOCKING, OPTIMISTIC],
            points: CLIENTS,
        },
        &[COMMITTED, LATENCY_MS, ABORTS],
    ),
    claims: &[
        Claim {
            words: "TARDiS outperforms BDB by a factor of eight, each at its best",
            metric: RATE,
            ours: Ours::Ratio(most("TARDiS"), most("BDB")),
            expected: Expected::Ratio(8.0),
        },
        Claim {
            words: "OCC has a fifth of TARDiS' throughput",
            metric: RATE,
            ours: Ours::Ratio(most("OCC"), most("TARDiS")),
            expected: Expected::Ratio(0.2),
        },
    ],
};

const F10D: Figure = Figure {
    name: "F10d",
    section: "7.1.3",
    title: "transactions of a single uniform write",
    here: "",
    experiment: Experiment::Branches(
        Sweep {
            axis: "clients",
            base: BranchSetup { mix: Mix::SingleWrite, ..BASE },
            lines: &[BRANCHING, LOCKING, OPTIMISTIC],
            points: CLIENTS,
        },
        &[COMMITTED, LATENCY_MS],
    ),
    claims: &[Claim {
        words: "TARDiS performs 10 % worse than BDB, each at its best",
        metric: RATE,
        ours: Ours::Ratio(most("TARDiS"), most("BDB")),
        expected: Expected::Ratio(0.9),
    }],
};

const F11: Figure = Figure {
    name: "F11",
    section: "7.1.4",
    title: "choice of constraints",
    here: "write-heavy, Zipfian, 105 clients as in the paper; clients of Parent are never merged, as nobody would see it",
    experiment: Experiment::Branches(
        Sweep {
            axis: "end",
            base: BranchSetup { access: Access::Zipfian, clients: 105, ..WRITES },
            lines: &[
                case("Ancestor", |s| s),
                case("Parent", |s| BranchSetup { terms: Terms { parent: true, ..s.terms }, ..s }),
                SEQUENTIAL,
            ],
            points: &[
                case("Serializability", |s| s),
                case("Snapshot Isolation", |s| BranchSetup {
                    terms: Terms { snapshot: true, ..s.terms },
                    ..s
                }),
            ],
        },
        &[COMMITTED, ABORTS],
    ),
    claims: &[
        Claim {
            words: "Ancestor outperforms Parent by 21 %",
            metric: RATE,
            ours: Ours::Ratio(first("Ancestor"), first("Parent")),
            expected: Expected::Ratio(1.21),
        },
        Claim {
            words: "Serializability and Snapshot Isolation are within 5 % of each other",
            metric: RATE,
            ours: Ours::Ratio(first("Ancestor"), last("Ancestor")),
            expected: Expected::Ratio(1.0),
        },
        Claim {
            words: "without branching both perform poorly in comparison (Serializability)",
            metric: RATE,
            ours: Ours::Ratio(first("TARDiS, no branching"), first("Ancestor")),
            expected: Expected::AtMost(0.8),
        },
    ],
};

const F12: Figure = Figure {
    name: "F12",
    section: "7.1.6",
    title: "throughput over sites",
    here: "clients of all sites pause; capacity is what the processor time allows",
    experiment: Experiment::Sites(
        Sweep {
            axis: "sites",
            base: SitesSetup { sites: 1 },
            lines: &[case("TARDiS", |s| s)],
            points: &[
                case("1", |s| s),
                case("2", |_| SitesSetup { sites: 2 }),
                case("3", |_| SitesSetup { sites: 3 }),
            ],
        },
        &[sites::RATE, sites::LATENCY_MS, sites::CAPACITY],
    ),
    claims: &[
        Claim {
            words: "it scales linearly with the number of sites (3 to 1)",
            metric: sites::RATE.name,
            ours: Ours::Ratio(last("TARDiS"), first("TARDiS")),
            expected: Expected::Ratio(3.0),
        },
        Claim {
            words: "latency is unchanged from a single site (3 to 1)",
            metric: sites::LATENCY_MS.name,
            ours: Ours::Ratio(last("TARDiS"), first("TARDiS")),
            expected: Expected::Ratio(1.0),
        },
    ],
};

const F13: Figure = Figure {
    name: "F13",
    section: "7.1.5",
    title: "garbage collection",
    here: "runs of a few seconds in place of ten minutes (`ensue bench branches --soak` runs longer); 30 clients, ceilings \
           every 1,000 transactions of each, as in the paper; write-heavy, uniform",
    experiment: Experiment::Branches(
        Sweep {
            axis: "length of the run",
            base: BranchSetup { clients: 30, keys: 10_000, round_trip_us: 100, ..WRITES },
            lines: &[
                case("with ceilings", |s| s),
                case("without", |s| BranchSetup { ceiling_every: 0, ..s }),
            ],
            points: &[
                case("short", |s| s),
                case("2 times longer", |s| BranchSetup { times_longer: 2, ..s }),
                case("4 times longer", |s| BranchSetup { times_longer: 4, ..s }),
            ],
        },
        &[COMMITTED, STATES, RECORDS],
    ),
    claims: &[
        Claim {
            words: "collection leaves 98 % fewer states (longest run; grows with its length)",
            metric: STATES.name,
            ours: Ours::Ratio(last("with ceilings"), last("without")),
            expected: Expected::AtMost(0.5),
        },
        Claim {
            words: "states are bounded: 55,000, about twice clients times interval",
            metric: STATES.name,
            ours: Ours::Value(last("with ceilings")),
            expected: Expected::AtMost(60_000.0),
        },
        Claim {
            words: "with collection throughput remains constant (longest to shortest)",
            metric: RATE,
            ours: Ours::Ratio(last("with ceilings"), first("with ceilings")),
            expected: Expected::Ratio(1.0),
        },
    ],
};

const F14B: Figure = Figure {
    name: "F14b",
    section: "7.2.1",
    title: "counters as CRDTs, and the useful share of time (also Figure 14d)",
    here: "100 counters, Zipfian; nine of ten read. On flat storage a counter has a value a replica, three of them, of which \
           a read takes the sum; on branches it is one value",
    experiment: Experiment::Branches(
        Sweep {
            axis: "clients",
            base: BranchSetup { mix: Mix::Counter, access: Access::Zipfian, ..BASE },
            lines: &[
                BRANCHING,
                case("BDB", |s| BranchSetup { control: Control::Locking, mix: Mix::FlatCounter, ..s }),
                case("OCC", |s| BranchSetup { control: Control::Optimistic, mix: Mix::FlatCounter, ..s }),
            ],
            points: CLIENTS,
        },
        &[COMMITTED, USEFUL, ABORTS],
    ),
    claims: &[
        Claim {
            words: "a four to eight times speedup over the sequential counterparts (six in the mean), each at its best",
            metric: RATE,
            ours: Ours::Ratio(most("TARDiS"), most("BDB")),
            expected: Expected::Ratio(6.0),
        },
        Claim {
            words: "useful work of TARDiS is 0.96 (64 clients)",
            metric: USEFUL.name,
            ours: Ours::Value(at("TARDiS", "64")),
            expected: Expected::Count(0.96),
        },
        Claim {
            words: "almost half the time of BDB is wasted (64 clients)",
            metric: USEFUL.name,
            ours: Ours::Value(at("BDB", "64")),
            expected: Expected::Count(0.5),
        },
    ],
};

const F14C: Figure = Figure {
    name: "F14c",
    section: "7.2.2",
    title: "Retwis (also Figure 14d)",
    here: "10,000 timelines, Zipfian; a timeline is one value, which a post is added to for each of ten followers; 256 \
           clients",
    experiment: Experiment::Branches(
        Sweep {
            axis: "workload",
            base: BranchSetup { access: Access::Zipfian, ..BASE },
            lines: &[BRANCHING, LOCKING, OPTIMISTIC],
            points: &[
                case("read-only", |s| BranchSetup { mix: Mix::Retwis { follow: 0, post: 0 }, ..s }),
                case("read-heavy", |s| BranchSetup { mix: Mix::Retwis { follow: 5, post: 10 }, ..s }),
                case("post-heavy", |s| BranchSetup { mix: Mix::Retwis { follow: 5, post: 30 }, ..s }),
            ],
        },
        &[COMMITTED, USEFUL, ABORTS],
    ),
    claims: &[
        Claim {
            words: "branching does not benefit the read-only workload (to BDB)",
            metric: RATE,
            ours: Ours::Ratio(first("TARDiS"), first("BDB")),
            expected: Expected::AtMost(1.1),
        },
        Claim {
            words: "it softens the blow of contention: read-heavy, to BDB (two to eight times, section 7)",
            metric: RATE,
            ours: Ours::Ratio(at("TARDiS", "read-heavy"), at("BDB", "read-heavy")),
            expected: Expected::AtLeast(2.0),
        },
        Claim {
            words: "post-heavy, to BDB",
            metric: RATE,
            ours: Ours::Ratio(last("TARDiS"), last("BDB")),
            expected: Expected::AtLeast(2.0),
        },
        Claim {
            words: "post-heavy, to OCC",
            metric: RATE,
            ours: Ours::Ratio(last("TARDiS"), last("OCC")),
            expected: Expected::AtLeast(1.0),
        },
    ],
};
