//! One server process, with or without `strace` around it, and the signals that harm it.

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Under `strace`, on a machine that has other things to do.
const START: Duration = Duration::from_secs(30);
const STOP: Duration = Duration::from_secs(25);

/// What `strace` does to the process: its `-e inject=` expression, such as `fsync,fdatasync:error=EIO:when=3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Injection(pub String);

/// How to start a server.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub binary: PathBuf,
    pub config: PathBuf,
    /// Standard output and standard error of all lives are appended here.
    pub log: PathBuf,
    /// Words before the command, such as `ip netns exec NAME`.
    pub prefix: Vec<String>,
}

/// A running server.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// The server itself: the child, or what the child runs.
    server: Pid,
    paused: bool,
}

impl Process {
    pub fn start(recipe: &Recipe, injection: Option<&Injection>) -> Result<Process> {
        let mut words = recipe.prefix.clone();
        if let Some(Injection(expression)) = injection {
            let calls = expression.split(':').next().unwrap_or_default();
            words.extend(["strace", "-f", "-qq", "-o", "/dev/null", "-e"].map(String::from));
            words.extend([format!("trace={calls}"), "-e".into(), format!("inject={expression}")]);
        }
        words.push(recipe.binary.display().to_string());
        let log = File::options().create(true).append(true).open(&recipe.log)?;
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .args(["server", "--config"])
            .arg(&recipe.config)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start `{}`", words.join(" ")))?;
        match find_server(&mut child, &recipe.binary) {
            Ok(server) => Ok(Process { child, server, paused: false }),
            Err(error) => {
                // It is not what was asked for: nothing of it may stay behind.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Ends it at once, as a power switch would.
    pub fn kill(&mut self) -> Result<()> {
        self.resume()?;
        if self.is_alive() {
            // It may end by itself in this very moment.
            let _ = kill_process(self.server, Signal::KILL);
        }
        self.child.wait().context("waiting for a killed server")?;
        Ok(())
    }

    /// Asks it to stop cleanly, and waits.
    pub fn stop(&mut self) -> Result<()> {
        self.resume()?;
        if self.is_alive() {
            let _ = kill_process(self.server, Signal::TERM);
        }
        let until = Instant::now() + STOP;
        while self.is_alive() {
            if Instant::now() > until {
                self.kill()?;
                bail!("a server did not stop within {} s", STOP.as_secs());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    pub fn pause(&mut self) -> Result<()> {
        self.paused = true;
        kill_process(self.server, Signal::STOP).context("pausing a server")
    }

    pub fn resume(&mut self) -> Result<()> {
        if std::mem::take(&mut self.paused) && self.is_alive() {
            kill_process(self.server, Signal::CONT).context("resuming a server")?;
        }
        Ok(())
    }

    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // No server outlives its torturer.
        let _ = self.kill();
    }
}

/// Waits until the child, or what it runs, is the server itself.
fn find_server(child: &mut Child, binary: &Path) -> Result<Pid> {
    let binary = fs::canonicalize(binary).with_context(|| format!("there is no {}", binary.display()))?;
    let until = Instant::now() + START;
    loop {
        if let Some(code) = child.try_wait()? {
            bail!("it ended at once, with {code}");
        }
        let found = descend(child.id()).into_iter().find(|&pid| is_binary(pid, &binary));
        if let Some(pid) = found.and_then(|pid| Pid::from_raw(pid as i32)) {
            return Ok(pid);
        }
        if Instant::now() > until {
            bail!("the server did not appear");
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn is_binary(pid: u32, binary: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == binary)
}

/// A process and all that came from it.
fn descend(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while next < found.len() {
        let pid = found[next];
        next += 1;
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
        }
    }
    found
}
