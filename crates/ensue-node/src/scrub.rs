//! What whoever reads the disk of a node in the background says of it. A node reads no files by itself.

/// What has been read since the start, and what of it is damaged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScrubReport {
    pub bytes: u64,
    /// How often everything was read.
    pub rounds: u64,
    /// Partitions with files that do not match their checksums, and how many.
    pub damaged: Vec<(u16, u64)>,
}

impl ScrubReport {
    /// The metrics, by name; none where nobody reads.
    pub(crate) fn metrics(&self) -> Vec<(String, i64)> {
        let mut metrics = vec![
            ("scrubbed_bytes".to_owned(), self.bytes as i64),
            ("scrub_rounds".to_owned(), self.rounds as i64),
            ("damaged_files".to_owned(), self.damaged.iter().map(|(_, files)| *files as i64).sum()),
        ];
        let of_partition =
            |(partition, files): &(u16, u64)| (format!("damaged_files_of_p{partition}"), *files as i64);
        metrics.extend(self.damaged.iter().map(of_partition));
        metrics
    }
}
