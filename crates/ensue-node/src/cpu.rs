//! What the kernel says of a process' time, as whoever owns the process reports it. A node reads no such thing itself.

/// The time that the threads of a process have run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuReport {
    pub user_us: u64,
    /// In the kernel.
    pub system_us: u64,
}

impl CpuReport {
    /// The metrics, by name; none where nobody reports.
    pub(crate) fn metrics(self) -> Vec<(String, i64)> {
        if self == CpuReport::default() {
            return Vec::new();
        }
        [(USER, self.user_us), (SYSTEM, self.system_us)].map(|(name, us)| (name.to_owned(), us as i64)).into()
    }
}

pub(crate) const USER: &str = "cpu_user_us";
pub(crate) const SYSTEM: &str = "cpu_system_us";
