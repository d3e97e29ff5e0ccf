//! The tiny worlds, as data: what clients do, what may break how often, and how the world is cut into processes.
//!
//! Commands name the keys `x`, on partition 0, and `y`, on partition 1; every write writes a value of its own. Core 0
//! of a datacenter owns partition 0, core 1 owns partition 1.

use ensue_types::{Args, PartitionId, partition_of};

/// One command of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub args: Args,
    pub writes: Vec<&'static str>,
    pub reads: Vec<&'static str>,
}

/// A client: which core of which datacenter it speaks to, and what it says.
#[derive(Clone, Copy, Debug)]
pub struct Speaker {
    pub datacenter: u8,
    pub core: u16,
    pub says: &'static [&'static str],
}

/// A tiny world.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    pub words: &'static str,
    /// How far each datacenter's clock is ahead of the true time, in milliseconds.
    pub clocks_ms: [u64; 2],
    /// Whether the cores of a datacenter are one process. Otherwise each is, and connections between them can break.
    pub one_process: bool,
    /// The cores, of a datacenter each, whose disks take their time: each operation is a choice. The others' answer at
    /// once.
    pub slow_disks: &'static [(u8, u16)],
    /// Said by a client of the first datacenter, and known everywhere, before the search begins.
    pub before: &'static [&'static str],
    pub clients: &'static [Speaker],
    /// So many connections break, so many processes are killed and start again, so often a clock moves on, at most.
    pub breaks: u8,
    pub crashes: u8,
    pub ticks: u8,
    /// The datacenters whose processes are killed.
    pub mortal: &'static [u8],
}

const CALM: Case = Case {
    name: "",
    words: "",
    clocks_ms: [0, 0],
    one_process: true,
    slow_disks: &[],
    before: &["MSET x y"],
    clients: &[],
    breaks: 0,
    crashes: 0,
    ticks: 0,
    mortal: &[0, 1],
};

/// All cases.
pub const CASES: &[Case] = &[
    Case {
        name: "album",
        words: "a photo, then the album that shows it; elsewhere the album is read, then the photo; a connection breaks",
        clients: &[
            Speaker { datacenter: 0, core: 0, says: &["SET x", "SET y"] },
            Speaker { datacenter: 1, core: 0, says: &["GET y", "GET x"] },
        ],
        breaks: 1,
        ..CALM
    },
    Case {
        name: "album-crash",
        words: "the same, and one datacenter is killed",
        clients: &[
            Speaker { datacenter: 0, core: 0, says: &["SET x", "SET y"] },
            Speaker { datacenter: 1, core: 0, says: &["GET y", "GET x"] },
        ],
        crashes: 1,
        ..CALM
    },
    Case {
        name: "chain",
        words: "a write, an answer to it from the other datacenter, and a reader of both",
        clients: &[
            Speaker { datacenter: 0, core: 0, says: &["SET x"] },
            Speaker { datacenter: 1, core: 0, says: &["GET x", "SET y"] },
            Speaker { datacenter: 0, core: 1, says: &["GET y", "GET x"] },
        ],
        ..CALM
    },
    Case {
        name: "snapshot",
        words: "two writes in order, and a read transaction over both in the same datacenter",
        clients: &[
            Speaker { datacenter: 0, core: 0, says: &["SET x", "SET y"] },
            Speaker { datacenter: 0, core: 1, says: &["MGET x y", "MGET x y"] },
        ],
        ticks: 1,
        ..CALM
    },
    Case {
        name: "transaction",
        words: "a write transaction, and a read transaction in the same datacenter",
        clients: &[
            Speaker { datacenter: 0, core: 0, says: &["MSET x y"] },
            Speaker { datacenter: 0, core: 1, says: &["MGET x y", "MGET x y"] },
        ],
        ticks: 1,
        ..CALM
    },
    Case {
        name: "transaction-elsewhere",
        words: "a write transaction, and a read transaction in the other datacenter; a connection breaks",
        clients: &[
            Speaker { datacenter: 0, core: 0, says: &["MSET x y"] },
            Speaker { datacenter: 1, core: 1, says: &["MGET x y", "MGET x y"] },
        ],
        breaks: 1,
        ..CALM
    },
    Case {
        name: "opposite",
        words: "two write transactions over the same keys in opposite order in two datacenters",
        clients: &[
            Speaker { datacenter: 0, core: 0, says: &["MSET x y"] },
            Speaker { datacenter: 1, core: 1, says: &["MSET y x", "MGET x y"] },
        ],
        ..CALM
    },
    Case {
        name: "opposite-at-home",
        words: "the same in one datacenter, with a reader",
        clients: &[
            Speaker { datacenter: 0, core: 0, says: &["MSET x y"] },
            Speaker { datacenter: 0, core: 1, says: &["MSET y x"] },
            Speaker { datacenter: 0, core: 0, says: &["MGET x y"] },
        ],
        ..CALM
    },
    Case {
        name: "coordinator-dies",
        words: "a write transaction whose datacenter is killed, and a reader elsewhere; the coordinator's disk takes its time",
        clients: &[
            Speaker { datacenter: 0, core: 0, says: &["MSET x y"] },
            Speaker { datacenter: 1, core: 0, says: &["MGET x y"] },
        ],
        crashes: 1,
        slow_disks: &[(0, 0)],
        mortal: &[0],
        ..CALM
    },
    Case {
        name: "participant-dies",
        words: "each core is a process, one of them is killed during a write transaction; a reader at home",
        clients: &[
            Speaker { datacenter: 0, core: 0, says: &["MSET x y"] },
            Speaker { datacenter: 0, core: 0, says: &["MGET x y"] },
        ],
        one_process: false,
        crashes: 1,
        ..CALM
    },
];

/// The cases of this name, or all of them.
pub fn named(name: Option<&str>) -> Vec<&'static Case> {
    CASES.iter().filter(|case| name.is_none_or(|name| case.name == name)).collect()
}

/// The key that stands for a name.
pub fn key(name: &str) -> String {
    let partition = PartitionId(u16::from(name == "y"));
    let mut keys = (0..).map(|n| if n == 0 { name.to_owned() } else { format!("{name}{n}") });
    keys.find(|key| partition_of(key.as_bytes(), 2) == partition).expect("keys never end")
}

/// The commands of a client, whose values begin with its name.
pub fn commands(client: &str, says: &[&'static str]) -> Vec<Command> {
    says.iter().enumerate().map(|(number, text)| command(text, &value(client, number))).collect()
}

/// The value that a command writes.
pub fn value(client: &str, number: usize) -> String {
    format!("{client}{number}")
}

fn command(text: &'static str, value: &str) -> Command {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let names: Vec<&'static str> = words.collect();
    let writes = name.ends_with("SET");
    let mut args: Args = vec![name.to_owned().into()];
    for name in &names {
        args.push(key(name).into());
        if writes {
            args.push(value.to_owned().into());
        }
    }
    let (reads, written) = if writes { (Vec::new(), names) } else { (names, Vec::new()) };
    Command { args, writes: written, reads }
}
