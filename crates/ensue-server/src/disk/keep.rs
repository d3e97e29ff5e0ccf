//! Second names for the files of a partition, so that they stay as they are now while it goes on.

use super::{Folder, folder_name};
use crate::backup::Kept;
use ensue_store::disk::{DiskOp, FileName};
use ensue_store::log::Lsn;
use ensue_store::superblock::Superblock;
use ensue_types::PartitionId;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

impl Folder {
    /// Keeps the files of this partition below a folder, as they stand after every operation up to now, as those of a
    /// partition that was stopped: nothing is missing at the end of its log.
    pub(super) fn keep(
        &self,
        partition: PartitionId,
        boot_id: [u8; 16],
        into: &Path,
    ) -> io::Result<Vec<Kept>> {
        let name = folder_name(partition);
        let mut superblock = self.superblock(&name, boot_id)?;
        let into = into.join(&name);
        fs::create_dir_all(&into)?;
        let mut kept = Vec::new();
        let mut keep = |file: FileName, length| kept.push(Kept { name: format!("{name}/{file}"), length });
        let mut end = superblock.synced;
        for (first, length) in self.keep_segments(&into)? {
            keep(FileName::Segment(first), length);
            end = end.max(Lsn(first + length));
        }
        if superblock.checkpoint > 0 {
            let file = FileName::Checkpoint(superblock.checkpoint);
            keep(file, self.link(file, &into)?);
        }
        keep(
            FileName::Witness,
            fs::copy(self.path_of(FileName::Witness), into.join(FileName::Witness.to_string()))?,
        );
        superblock.mark_clean(end);
        fs::write(into.join(FileName::Superblock.to_string()), superblock.encode())?;
        keep(FileName::Superblock, superblock.encode().len() as u64);
        Ok(kept)
    }

    /// The superblock of a partition that runs with its whole log.
    fn superblock(&self, name: &str, boot_id: [u8; 16]) -> io::Result<Superblock> {
        let bytes = fs::read(self.path_of(FileName::Superblock))?;
        let superblock = Superblock::decode(&bytes).map_err(io::Error::other)?;
        if superblock.boot_id != boot_id || superblock.filling || superblock.not_admitted {
            return Err(io::Error::other(format!("partition {name} does not serve yet")));
        }
        Ok(superblock)
    }

    /// Each segment by its first position, and how long it is.
    fn keep_segments(&self, into: &Path) -> io::Result<Vec<(u64, u64)>> {
        let mut segments = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            if let Some(file @ FileName::Segment(first)) = name.to_str().and_then(FileName::parse) {
                segments.push((first, self.link(file, into)?));
            }
        }
        // What waits for a sync is written later, into the same file if it is there already.
        for op in &self.waiting {
            let DiskOp::Append { file: file @ FileName::Segment(first), bytes } = op else { continue };
            match segments.iter_mut().find(|(known, _)| known == first) {
                Some((_, length)) => *length += bytes.len() as u64,
                None => segments.push((*first, bytes.len() as u64)),
            }
            if !self.path_of(*file).exists() {
                let mut options = OpenOptions::new();
                options.append(true).create(true).open(into.join(file.to_string()))?.write_all(bytes)?;
            }
        }
        Ok(segments)
    }

    /// Gives a file a second name, and says how long it is.
    fn link(&self, file: FileName, into: &Path) -> io::Result<u64> {
        let path = into.join(file.to_string());
        fs::hard_link(self.path_of(file), &path)?;
        Ok(fs::metadata(path)?.len())
    }
}
