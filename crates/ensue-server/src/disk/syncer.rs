//! The helper thread of one core that waits for the disk, so that the core need not.
//!
//! Jobs go in by a channel and are done in order; each answer goes to the function given at the start. The thread ends
//! when the `Syncer` is dropped and its last job is done.

use ensue_store::disk::FileName;
use ensue_types::PartitionId;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// One sync.
#[derive(Debug)]
pub(crate) struct SyncJob {
    pub(crate) partition: PartitionId,
    pub(crate) name: FileName,
    pub(crate) file: Arc<File>,
    /// The folder that holds the file, if the file's name may not be durable yet.
    pub(crate) sync_folder: Option<PathBuf>,
}

/// How a sync ended.
#[derive(Debug)]
pub(crate) struct SyncDone {
    pub(crate) file: FileName,
    pub(crate) result: io::Result<()>,
}

/// The way to the helper thread.
#[derive(Debug)]
pub(crate) struct Syncer {
    jobs: Sender<SyncJob>,
}

impl Syncer {
    /// Starts the thread; `deliver` is called on it for every job that is done.
    pub(crate) fn start(
        name: String,
        deliver: impl Fn(PartitionId, SyncDone) + Send + 'static,
    ) -> io::Result<Syncer> {
        let (jobs, arriving) = channel();
        thread::Builder::new().name(name).spawn(move || run(&arriving, deliver))?;
        Ok(Syncer { jobs })
    }

    pub(crate) fn submit(&self, job: SyncJob) {
        self.jobs.send(job).expect("the thread runs as long as the syncer lives");
    }
}

fn run(jobs: &Receiver<SyncJob>, deliver: impl Fn(PartitionId, SyncDone)) {
    while let Ok(job) = jobs.recv() {
        let result = sync(&job);
        deliver(job.partition, SyncDone { file: job.name, result });
    }
}

fn sync(job: &SyncJob) -> io::Result<()> {
    job.file.sync_data()?;
    match &job.sync_folder {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
