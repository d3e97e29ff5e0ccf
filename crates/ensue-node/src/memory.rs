//! What the allocator of a process says, as whoever owns the process reports it. A node reads no such thing itself.

/// The memory of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemoryReport {
    /// Bytes that are in use.
    pub allocated: u64,
    /// Bytes that the process holds in memory for these.
    pub resident: u64,
}

/// The latest report, and the most that was ever in use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    latest: MemoryReport,
    peak: u64,
}

impl Memory {
    pub(crate) fn on_report(&mut self, report: MemoryReport) {
        self.latest = report;
        self.peak = self.peak.max(report.allocated);
    }

    /// The metrics, by name; none where nobody reports.
    pub(crate) fn metrics(&self) -> Vec<(String, i64)> {
        if self.latest == MemoryReport::default() {
            return Vec::new();
        }
        let MemoryReport { allocated, resident } = self.latest;
        let metrics = [(ALLOCATED, allocated), (RESIDENT, resident), (PEAK, self.peak)];
        metrics.map(|(name, bytes)| (name.to_owned(), bytes as i64)).into()
    }
}

pub(crate) const ALLOCATED: &str = "allocated_bytes";
pub(crate) const RESIDENT: &str = "resident_bytes";
pub(crate) const PEAK: &str = "allocated_bytes_peak";
