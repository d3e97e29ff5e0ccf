//! What clients ask: keys, uniform or Zipfian, and transactions: of six operations, of one write, of a counter, of
//! Retwis (TARDiS, sections 7.1.1, 7.1.3, 7.2.1 and 7.2.2).

/// How keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Uniform,
    /// With the exponent 0.99, as YCSB has it.
    Zipfian,
}

/// What transactions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Three of four only read six keys; the others read three and write three.
    ReadHeavy,
    /// All read three keys and write three.
    WriteHeavy,
    /// One blind write.
    SingleWrite,
    /// One counter, which nine of ten read and the others raise. As one value, where branches are merged; as a value a
    /// replica, of which the sum is what is read, where they are not.
    Counter,
    FlatCounter,
    /// Reading a timeline, following somebody, and posting to the timelines of [`FOLLOWERS`] others: so many of a
    /// hundred follow, and so many post.
    Retwis {
        follow: u64,
        post: u64,
    },
}

/// Replicas of a counter.
const REPLICAS: u32 = 3;
/// Counters, of all keys.
const COUNTERS: u32 = 100;
/// Timelines that a post is added to.
pub const FOLLOWERS: usize = 10;

/// One operation of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Begin,
    Read(u32),
    Write(u32),
    /// Reads a key, and writes it.
    Update(u32),
    Commit,
}

/// A sequence of numbers that looks like chance: splitmix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Draws keys.
#[derive(Clone, Debug)]
pub struct Keys {
    count: u32,
    /// For each rank how probable it and all before it are, scaled to all of a u64; empty if all keys are alike.
    sums: Vec<u64>,
}

impl Keys {
    pub fn new(count: u32, access: Access) -> Keys {
        let weight = |rank: u32| 1.0 / f64::from(rank + 1).powf(0.99);
        let sums = match access {
            Access::Uniform => Vec::new(),
            Access::Zipfian => {
                let total: f64 = (0..count).map(weight).sum();
                let mut sum = 0.0;
                let up_to = |rank| {
                    sum += weight(rank);
                    (sum / total * u64::MAX as f64) as u64
                };
                (0..count).map(up_to).collect()
            }
        };
        Keys { count, sums }
    }

    pub fn draw(&self, random: &mut Random) -> u32 {
        match self.sums.is_empty() {
            true => random.below(u64::from(self.count)) as u32,
            false => {
                let drawn = random.next();
                (self.sums.partition_point(|sum| *sum < drawn) as u32).min(self.count - 1)
            }
        }
    }

    /// A transaction, from its beginning to its commit.
    pub fn transaction(&self, mix: Mix, random: &mut Random) -> Vec<Operation> {
        let mut operations = vec![Operation::Begin];
        match mix {
            Mix::ReadHeavy => self.six(random.below(4) < 3, random, &mut operations),
            Mix::WriteHeavy => self.six(false, random, &mut operations),
            Mix::SingleWrite => operations.push(Operation::Write(self.draw(random))),
            Mix::Counter | Mix::FlatCounter => {
                let counter = self.draw(random) % COUNTERS.min(self.count);
                let replicas = if mix == Mix::FlatCounter { REPLICAS } else { 1 };
                let parts = (0..replicas).map(|replica| (counter * replicas + replica) % self.count);
                let is_read = random.below(10) < 9;
                // Whoever raises its own part reads none of the others.
                match is_read {
                    true => operations.extend(parts.map(Operation::Read)),
                    false => operations.extend(parts.take(1).map(Operation::Update)),
                }
            }
            Mix::Retwis { follow, post } => self.retwis(follow, post, random, &mut operations),
        }
        operations.push(Operation::Commit);
        operations
    }

    /// Six different keys: three are read and three are written, or all are read.
    fn six(&self, only_reads: bool, random: &mut Random, operations: &mut Vec<Operation>) {
        for (place, key) in self.different(6, random).into_iter().enumerate() {
            operations.push(if only_reads || place < 3 {
                Operation::Read(key)
            } else {
                Operation::Write(key)
            });
        }
    }

    /// A tenth of the keys are timelines, the others are posts and lists of who is followed.
    fn retwis(&self, follow: u64, post: u64, random: &mut Random, operations: &mut Vec<Operation>) {
        let timelines = (self.count / 10).max(1);
        let timeline = |key: u32| key % timelines;
        let other =
            |random: &mut Random| timelines + random.below(u64::from((self.count - timelines).max(1))) as u32;
        let drawn = random.below(100);
        if drawn < follow {
            let (list, whom) = (other(random) % self.count, timeline(self.draw(random)));
            operations.extend([Operation::Update(list), Operation::Read(whom)]);
        } else if drawn < follow + post {
            operations.push(Operation::Write(other(random) % self.count));
            let mut followers: Vec<u32> =
                self.different(FOLLOWERS, random).into_iter().map(timeline).collect();
            followers.sort_unstable();
            followers.dedup();
            operations.extend(followers.into_iter().map(Operation::Update));
        } else {
            operations.push(Operation::Read(timeline(self.draw(random))));
        }
    }

    fn different(&self, count: usize, random: &mut Random) -> Vec<u32> {
        let mut keys: Vec<u32> = Vec::new();
        while keys.len() < count.min(self.count as usize) {
            let key = self.draw(random);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }
}
