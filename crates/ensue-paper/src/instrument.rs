//! The three instruments. Each has a setup, which is data, and a sample, which metrics are read off.

pub mod branches;
mod cluster;
pub mod processes;
pub mod simulated;
pub mod sites;

use std::path::PathBuf;
use std::time::Duration;

/// What all instruments are told.
#[derive(Clone, Debug)]
pub struct Effort {
    /// The program that is measured, which also starts clusters, and where these keep what they write.
    pub program: PathBuf,
    pub directory: PathBuf,
    /// So often each point is measured, the lines taking turns.
    pub rounds: usize,
    /// How long a real run lasts.
    pub lasts: Duration,
    /// Virtual time and warm-ups are divided by this.
    pub hurry: u64,
    /// Only the first and the last point.
    pub ends_only: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum InstrumentError {
    #[error("{0}: {1}")]
    File(PathBuf, std::io::Error),
    #[error("a cluster of `{0}` does not start: {1}")]
    Start(String, String),
    #[error(transparent)]
    Load(#[from] ensue_load::error::LoadError),
    #[error("a workload makes no sense: {0}")]
    Spec(#[from] ensue_load::error::SpecError),
    #[error("of `{0}`, {1} operations failed: {2}")]
    Failed(&'static str, u64, String),
    #[error("in a simulated world: {0}")]
    World(String),
}
