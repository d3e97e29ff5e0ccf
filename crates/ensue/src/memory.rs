//! The allocator of this program, and what it says of itself.

use ensue_server::MemoryReport;
use tikv_jemalloc_ctl::{epoch, stats};

/// A command allocates a few small blocks and frees others: with the C library's allocator a `SET` takes a fifth more
/// time. What was freed goes back to the machine after some seconds, by a thread of the allocator's own.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// What is in use now. The figures are those of the last `epoch`, which costs more than to read them.
pub(crate) fn report() -> MemoryReport {
    let read = || -> tikv_jemalloc_ctl::Result<MemoryReport> {
        epoch::advance()?;
        Ok(MemoryReport {
            allocated: stats::allocated::read()? as u64,
            resident: stats::resident::read()? as u64,
        })
    };
    read().unwrap_or_default()
}
