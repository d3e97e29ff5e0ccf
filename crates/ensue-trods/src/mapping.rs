//! Where the bytes of a server's stream stand in the stream that the client sees, and back.
//!
//! Offsets count from the first byte after SYN. Before a splice, both streams run beside each other from a common
//! point. A splice names the byte `at` of the server's stream that is the byte `view_at` of the client's, and what the
//! client is to see before it in place of the server's head.

/// A splice in the server's stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    /// Offset in the server's stream of the first byte that is passed on.
    pub at: u64,
    /// Its offset in the client's stream.
    pub view_at: u64,
    /// Bytes that the client sees before it; sent with the segment that holds the byte before `at`.
    pub prefix: Vec<u8>,
}

/// The relation of the two streams of one connection.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Mapping {
    base: u64,
    view_base: u64,
    splice: Option<Splice>,
}

/// What becomes of a segment of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mapped {
    /// The bytes stand at this offset of the client's stream.
    At(u64),
    /// Nothing of it is for the client; acknowledge the server's stream to this offset.
    Discarded(u64),
    /// These bytes stand at this offset, with the first `skip` bytes of the segment left out.
    Joined {
        /// Offset in the client's stream.
        view: u64,
        /// Bytes before the segment's own.
        prefix: Vec<u8>,
        /// Bytes of the segment that are left out.
        skip: usize,
    },
}

impl Mapping {
    /// A new exchange begins where the old one ended; what was spliced is only a shift from now on.
    pub fn begin(&mut self, base: u64) {
        self.view_base = self.view(base);
        self.base = base;
        self.splice = None;
    }

    /// Offset of the exchange's first byte in the server's stream.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Offset of the exchange's first byte in the client's stream.
    #[must_use]
    pub fn view_base(&self) -> u64 {
        self.view_base
    }

    /// Splices this exchange.
    pub fn splice(&mut self, splice: Splice) {
        self.splice = Some(splice);
    }

    /// The offset in the client's stream of an offset of the server's, at or after the splice.
    #[must_use]
    pub fn view(&self, offset: u64) -> u64 {
        match &self.splice {
            Some(splice) if offset >= splice.at => offset - splice.at + splice.view_at,
            Some(splice) => splice.view_at - splice.prefix.len() as u64,
            None => (offset + self.view_base).saturating_sub(self.base),
        }
    }

    /// Whether an offset of the server's stream lies before what is passed on.
    #[must_use]
    pub fn is_discarded(&self, offset: u64) -> bool {
        self.splice.as_ref().is_some_and(|splice| offset < splice.at)
    }

    /// How far the server's stream is acknowledged when the client acknowledged this offset of its own.
    #[must_use]
    pub fn acknowledged(&self, view: u64) -> u64 {
        match &self.splice {
            Some(splice) if view >= splice.view_at => view - splice.view_at + splice.at,
            Some(splice) if view >= self.view_base => splice.discardable(),
            _ => (view + self.base).saturating_sub(self.view_base),
        }
    }

    /// Whether the server is told of more than the client has when the client acknowledged this offset of its own.
    #[must_use]
    pub fn is_ahead(&self, view: u64) -> bool {
        self.splice.as_ref().is_some_and(|splice| (self.view_base..splice.view_at).contains(&view))
    }

    /// What becomes of the `length` bytes of the server at `offset`.
    #[must_use]
    pub fn segment(&self, offset: u64, length: u64) -> Mapped {
        let Some(splice) = &self.splice else { return Mapped::At(self.view(offset)) };
        let end = offset + length;
        if offset >= splice.at {
            return Mapped::At(self.view(offset));
        }
        if end < splice.at || (end == splice.at && splice.prefix.is_empty()) {
            return Mapped::Discarded(end);
        }
        Mapped::Joined {
            view: splice.view_at - splice.prefix.len() as u64,
            prefix: splice.prefix.clone(),
            skip: usize::try_from(splice.at - offset).expect("at most a segment"),
        }
    }
}

impl Splice {
    /// How far the server's stream may be acknowledged without the client: its byte before `at` brings the prefix, so
    /// it is sent again until the client has it.
    fn discardable(&self) -> u64 {
        if self.prefix.is_empty() { self.at } else { self.at.saturating_sub(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spliced(prefix: &[u8]) -> Mapping {
        let mut mapping = Mapping::default();
        mapping.splice(Splice { at: 10, view_at: 100, prefix: prefix.to_vec() });
        mapping
    }

    #[test]
    fn without_a_splice_the_streams_are_one() {
        let mapping = Mapping::default();
        assert_eq!(mapping.segment(7, 5), Mapped::At(7));
        assert_eq!(mapping.acknowledged(12), 12);
    }

    #[test]
    fn what_is_before_the_splice_is_replaced() {
        let mapping = spliced(b"head");
        assert_eq!(mapping.segment(0, 9), Mapped::Discarded(9));
        let joined = |skip| Mapped::Joined { view: 96, prefix: b"head".to_vec(), skip };
        assert_eq!(mapping.segment(0, 10), joined(10));
        assert_eq!(mapping.segment(4, 20), joined(6));
        assert_eq!(mapping.segment(10, 3), Mapped::At(100));
        assert_eq!(mapping.acknowledged(98), 9);
        assert_eq!(mapping.acknowledged(103), 13);
    }

    #[test]
    fn what_is_only_discarded_is_acknowledged_to_its_end() {
        let mapping = spliced(b"");
        assert_eq!(mapping.segment(0, 10), Mapped::Discarded(10));
        assert_eq!(mapping.acknowledged(99), 10);
        assert_eq!(mapping.segment(8, 4), Mapped::Joined { view: 100, prefix: Vec::new(), skip: 2 });
    }

    #[test]
    fn the_next_exchange_keeps_the_shift() {
        let mut mapping = spliced(b"head");
        mapping.begin(30);
        assert_eq!((mapping.base(), mapping.view_base()), (30, 120));
        assert_eq!(mapping.segment(31, 1), Mapped::At(121));
        assert_eq!(mapping.acknowledged(121), 31);
        assert_eq!(mapping.acknowledged(115), 25);
    }
}
