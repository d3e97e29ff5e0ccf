//! Dumps, as `DUMP`, `RESTORE` and `FUNCTION RESTORE` have them, with the answers of Redis to what is none.

use bytes::Bytes;
use ensue_rdb::dump::{self, DumpError};
use ensue_types::Reply;

pub(super) use ensue_rdb::Value;
pub(crate) use ensue_rdb::dump::has_field_deadlines;
pub(crate) use ensue_rdb::dump::write_libraries;
pub(super) use ensue_rdb::dump::{Dumped, write, write_stream};

/// The value of a dump, or Redis' error.
pub(super) fn read(dump: &[u8]) -> Result<Dumped, Reply> {
    dump::read(dump).map_err(refusal)
}

/// The texts of the libraries in a dump, or Redis' error.
pub(crate) fn read_libraries(dump: &[u8]) -> Result<Vec<Bytes>, Reply> {
    dump::read_libraries(dump).map_err(refusal)
}

fn refusal(error: DumpError) -> Reply {
    Reply::error(match error {
        DumpError::Footer => "ERR DUMP payload version or checksum are wrong",
        DumpError::Value | DumpError::TooNew => "ERR Bad data format",
        DumpError::NotLibrary => "ERR given type is not a function",
    })
}
