//! Whether this replica still leads, as it asks the others: a question comes back when a majority has heard from the
//! leader after it was asked.

use crate::codec::Fields;
use bytes::Bytes;

/// What a leader asks the others to find out whether it still leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Partition {
        number: u64,
        asked_us: u64,
    },
    /// For another node: everything up to this entry makes it whole.
    Resume {
        node: u16,
        life: u32,
        index: u64,
    },
}

impl Question {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        match self {
            Question::Partition { number, asked_us } => {
                out.push(0);
                out.extend(number.to_le_bytes());
                out.extend(asked_us.to_le_bytes());
            }
            Question::Resume { node, life, index } => {
                out.push(1);
                out.extend(node.to_le_bytes());
                out.extend(life.to_le_bytes());
                out.extend(index.to_le_bytes());
            }
        }
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Question> {
        let mut fields = Fields(Bytes::copy_from_slice(bytes));
        match fields.u8().ok()? {
            0 => Some(Question::Partition { number: fields.u64().ok()?, asked_us: fields.u64().ok()? }),
            1 => Some(Question::Resume {
                node: fields.u16().ok()?,
                life: fields.u32().ok()?,
                index: fields.u64().ok()?,
            }),
            _ => None,
        }
    }
}
