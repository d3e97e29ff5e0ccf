//! What clients ask: keys, uniform or Zipfian, and transactions of six operations.

/// How keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Uniform,
    /// With the exponent 0.99, as YCSB has it.
    Zipfian,
}

/// Which share of the transactions only reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Three of four.
    ReadHeavy,
    /// None.
    WriteHeavy,
}

/// One operation of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Begin,
    Read(u32),
    Write(u32),
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

    /// A transaction: three reads and three writes of six keys, or six reads.
    pub fn transaction(&self, mix: Mix, random: &mut Random) -> Vec<Operation> {
        let only_reads = mix == Mix::ReadHeavy && random.below(4) < 3;
        let mut keys: Vec<u32> = Vec::new();
        while keys.len() < 6 {
            let key = self.draw(random);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let mut operations = vec![Operation::Begin];
        for (place, key) in keys.into_iter().enumerate() {
            operations.push(if only_reads || place < 3 {
                Operation::Read(key)
            } else {
                Operation::Write(key)
            });
        }
        operations.push(Operation::Commit);
        operations
    }
}
