//! A folder for one test, removed when the test ends.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct Temporary {
    path: PathBuf,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Temporary {
    pub(crate) fn new() -> Temporary {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ensue-test-{}-{number}-{}", std::process::id(), crate::clock::wall_ms());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Temporary { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
