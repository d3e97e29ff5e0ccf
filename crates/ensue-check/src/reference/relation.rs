//! A relation between transactions as a square table of yes and no, and the few operations that definitions are made
//! of.
//!
//! Every operation is the sentence that defines it, written as loops. Nothing here is fast, on purpose.

/// `a R b` for every pair of `count` things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    count: usize,
    holds: Vec<Vec<bool>>,
}

impl Relation {
    /// Nothing is related.
    pub(super) fn empty(count: usize) -> Relation {
        Relation { count, holds: vec![vec![false; count]; count] }
    }

    /// Everything is related to itself only.
    pub(super) fn identity(count: usize) -> Relation {
        Relation::from(count, |a, b| a == b)
    }

    /// `a` is related to `b` where the sentence says so.
    pub(super) fn from(count: usize, sentence: impl Fn(usize, usize) -> bool) -> Relation {
        let mut relation = Relation::empty(count);
        for a in 0..count {
            for b in 0..count {
                relation.holds[a][b] = sentence(a, b);
            }
        }
        relation
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn has(&self, a: usize, b: usize) -> bool {
        self.holds[a][b]
    }

    pub(super) fn add(&mut self, a: usize, b: usize) {
        self.holds[a][b] = true;
    }

    /// In this relation or in the other.
    pub(super) fn or(&self, other: &Relation) -> Relation {
        Relation::from(self.count, |a, b| self.has(a, b) || other.has(a, b))
    }

    /// One step of this relation, then one of the other.
    pub(super) fn then(&self, other: &Relation) -> Relation {
        Relation::from(self.count, |a, c| (0..self.count).any(|b| self.has(a, b) && other.has(b, c)))
    }

    /// One or more steps.
    pub(super) fn transitive(&self) -> Relation {
        let mut closure = self.clone();
        loop {
            let longer = closure.or(&closure.then(self));
            if longer == closure {
                return closure;
            }
            closure = longer;
        }
    }

    /// Nothing comes before itself.
    pub(super) fn is_acyclic(&self) -> bool {
        let closure = self.transitive();
        (0..self.count).all(|a| !closure.has(a, a))
    }

    /// There is a total order that contains this relation, found by trying all of them.
    pub(super) fn has_total_order(&self) -> bool {
        self.extends(&mut Vec::new())
    }

    /// Whether the things in line, followed by all others in some order, respect the relation.
    fn extends(&self, line: &mut Vec<usize>) -> bool {
        if line.len() == self.count {
            return (0..self.count).all(|late| {
                (0..late).all(|early| !self.has(line[late], line[early])) && !self.has(line[late], line[late])
            });
        }
        for next in 0..self.count {
            if line.contains(&next) {
                continue;
            }
            line.push(next);
            if self.extends(line) {
                return true;
            }
            line.pop();
        }
        false
    }
}
