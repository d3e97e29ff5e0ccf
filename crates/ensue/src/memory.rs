//! The allocator of this program, and what it says of itself.

use ensue_server::MemoryReport;
use tikv_jemalloc_ctl::{Access, AsName, arenas, epoch, stats};

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

/// Gives back to the machine at once what is free. An arena gives back everything when it is told to keep nothing; what
/// it was told before holds again then.
pub(crate) fn purge() {
    for arena in 0..arenas::narenas::read().unwrap_or(0) {
        for kind in ["dirty", "muzzy"] {
            let name = format!("arena.{arena}.{kind}_decay_ms\0");
            let name = name.as_bytes().name();
            let before: tikv_jemalloc_ctl::Result<isize> = name.read();
            // One that was never used has nothing, and says so by an error.
            let Ok(before) = before else { continue };
            let _ = name.write(0_isize);
            let _ = name.write(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_given_back_at_once() {
        let blocks: Vec<Vec<u8>> = (0..512).map(|_| vec![1; 256 << 10]).collect();
        let bytes: u64 = blocks.iter().map(|block| block.len() as u64).sum();
        assert!(report().resident > bytes);
        drop(blocks);
        purge();
        let report = report();
        assert!(report.resident < report.allocated + bytes / 2, "{report:?}");
    }
}
