//! Finds the end of a body in chunked encoding, from its bytes in order.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In the line with a chunk's length.
    Length {
        value: u64,
        digits: bool,
    },
    /// In a chunk's bytes and the line end after them.
    Data {
        left: u64,
    },
    /// In the trailer after the last chunk; so many bytes of the current line.
    Trailer {
        line: u64,
    },
    Done,
    Bad,
}

/// Reads a body in chunked encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkScanner {
    state: State,
    read: u64,
}

impl Default for ChunkScanner {
    fn default() -> Self {
        Self { state: State::Length { value: 0, digits: true }, read: 0 }
    }
}

impl ChunkScanner {
    /// Whether what was read is no chunked encoding.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        self.state == State::Bad
    }

    /// Reads on. Returns the length of the whole encoded body once its end was read.
    pub fn read(&mut self, bytes: &[u8]) -> Option<u64> {
        let mut at = 0;
        while at < bytes.len() && !matches!(self.state, State::Done | State::Bad) {
            if let State::Data { left } = self.state {
                let step = left.min((bytes.len() - at) as u64);
                self.read += step;
                at += usize::try_from(step).expect("at most the slice");
                let left = left - step;
                self.state =
                    if left == 0 { State::Length { value: 0, digits: true } } else { State::Data { left } };
            } else {
                self.state = next(self.state, bytes[at]);
                self.read += 1;
                at += 1;
            }
        }
        (self.state == State::Done).then_some(self.read)
    }
}

fn next(state: State, byte: u8) -> State {
    match state {
        State::Length { value: 0, digits: _ } if byte == b'\n' => State::Trailer { line: 0 },
        State::Length { value, .. } if byte == b'\n' => match value.checked_add(2) {
            Some(left) => State::Data { left },
            None => State::Bad,
        },
        State::Length { value, digits: true } => match char::from(byte).to_digit(16) {
            Some(digit) if value >> 58 == 0 => {
                State::Length { value: value << 4 | u64::from(digit), digits: true }
            }
            Some(_) => State::Bad,
            None => State::Length { value, digits: false },
        },
        State::Trailer { line: 0 } if byte == b'\n' => State::Done,
        State::Trailer { .. } if byte == b'\n' => State::Trailer { line: 0 },
        State::Trailer { line } if byte == b'\r' => State::Trailer { line },
        State::Trailer { line } => State::Trailer { line: line + 1 },
        other => other,
    }
}
