//! The parent of a dev cluster of several processes: starts one child a datacenter, and starts it again when it dies.
//!
//! Children run in process groups of their own, so that Ctrl-C reaches only the parent, which then ends their standard
//! input; that is their signal to stop. A child that dies again and again is started with growing pauses.

use super::child::{READY, START};
use super::plan::Plan;
use super::{DevArgs, shape_lines};
use anyhow::{Context, bail};
use ensue_server::Shaper;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// All children.
pub(super) struct Family {
    args: DevArgs,
    names: Vec<String>,
    /// Shapes nothing here; it remembers what children are told when they start.
    shaper: Arc<Shaper>,
    members: Mutex<Members>,
}

struct Members {
    stopping: bool,
    children: Vec<Member>,
}

/// One child. Nothing while it is dead.
#[derive(Default)]
struct Member {
    pid: u32,
    input: Option<ChildStdin>,
    ended: bool,
}

const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// A child that lived this long did not die of its start.
const HEALTHY: Duration = Duration::from_secs(5);
const STOP: Duration = Duration::from_secs(25);

impl Family {
    /// Starts every child, and returns when all of them serve.
    pub(super) fn start(args: &DevArgs, plan: &Plan) -> anyhow::Result<Arc<Family>> {
        let shaper = Arc::<Shaper>::default();
        plan.shape(&shaper);
        let names = plan.names();
        let children = names.iter().map(|_| Member::default()).collect();
        let members = Mutex::new(Members { stopping: false, children });
        let family = Arc::new(Family { args: args.clone(), names, shaper, members });
        for index in 0..family.names.len() {
            match family.spawn(index) {
                Ok(child) => {
                    let family = Arc::clone(&family);
                    thread::Builder::new()
                        .name("ensue-parent".into())
                        .spawn(move || family.watch(index, child))?;
                }
                Err(error) => {
                    family.members().children[index].ended = true;
                    family.stop_first(index);
                    return Err(error);
                }
            }
        }
        Ok(family)
    }

    pub(super) fn shaper(&self) -> &Arc<Shaper> {
        &self.shaper
    }

    pub(super) fn pids(&self) -> Vec<u32> {
        self.members().children.iter().map(|member| member.pid).collect()
    }

    /// Sends a line to every child. A dead one is told when it starts again.
    pub(super) fn tell(&self, line: String) {
        for member in &mut self.members().children {
            if let Some(input) = &mut member.input {
                // A child that cannot be told is dying, and its watcher knows soon.
                let _ = writeln!(input, "{line}");
            }
        }
    }

    /// Stops all children. False if one had to be left behind.
    pub(super) fn stop(&self) -> bool {
        self.stop_first(self.names.len())
    }

    fn stop_first(&self, count: usize) -> bool {
        {
            let mut members = self.members();
            members.stopping = true;
            members.children.iter_mut().for_each(|member| member.input = None);
        }
        let until = Instant::now() + STOP;
        while self.members().children[..count].iter().any(|member| !member.ended) {
            if Instant::now() > until {
                return false;
            }
            thread::sleep(Duration::from_millis(10));
        }
        true
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self, index: usize) -> anyhow::Result<Child> {
        let mut child = self.command(index)?.spawn().context("cannot start a process")?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("a child without pipes");
        };
        // What was written is read by a live child; a dead one shows in the answer below.
        for line in shape_lines(&self.shaper, &self.names).iter().map(String::as_str).chain([START]) {
            let _ = writeln!(input, "{line}");
        }
        let mut answer = String::new();
        let _ = BufReader::new(output).read_line(&mut answer);
        if answer.trim() != READY {
            drop(input);
            let status = child.wait()?;
            bail!("{} does not start ({status}); its reason stands above", self.names[index]);
        }
        let mut members = self.members();
        // The shape may have changed since it was told.
        for line in shape_lines(&self.shaper, &self.names) {
            let _ = writeln!(input, "{line}");
        }
        let stopping = members.stopping;
        let member = &mut members.children[index];
        member.pid = child.id();
        member.input = (!stopping).then_some(input);
        Ok(child)
    }

    fn command(&self, index: usize) -> anyhow::Result<Command> {
        let args = &self.args;
        let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
        command.args(["dev-child", "--index", &index.to_string()]);
        let flags = [
            ("--datacenters", args.datacenters.to_string()),
            ("--partitions", args.partitions.to_string()),
            ("--nodes", args.nodes.to_string()),
            ("--replicas", args.replicas.to_string()),
            ("--cores", args.cores.to_string()),
            ("--port", args.port.to_string()),
            ("--delay", args.delay.to_string()),
            ("--protocol", args.protocol.clone()),
            ("--appendfsync", args.appendfsync.clone()),
            ("--loglevel", args.loglevel.clone()),
        ];
        for (flag, value) in flags {
            command.args([flag, &value]);
        }
        for keyspace in &args.keyspaces {
            command.args(["--keyspace", keyspace]);
        }
        for handler in &args.conflicts {
            command.args(["--conflicts", handler]);
        }
        for directive in &args.directives {
            command.args(["--set", directive]);
        }
        if args.tls {
            command.arg("--tls");
        }
        command.arg("--dir").arg(&args.dir);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        Ok(command)
    }

    /// Waits for a child's end and starts it again, until the family stops.
    fn watch(&self, index: usize, mut child: Child) {
        let name = &self.names[index];
        let mut pause = PAUSE_MIN;
        loop {
            let begin = Instant::now();
            let status = child.wait();
            self.members().children[index].input = None;
            if self.rests(Duration::ZERO) {
                break;
            }
            let words = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            println!("{name} (process {}) ended: {words}; starting it again", child.id());
            pause = if begin.elapsed() > HEALTHY { PAUSE_MIN } else { (2 * pause).min(PAUSE_MAX) };
            child = loop {
                if self.rests(pause) {
                    self.members().children[index].ended = true;
                    return;
                }
                match self.spawn(index) {
                    Ok(child) => break child,
                    Err(error) => println!("{name}: {error:#}"),
                }
                pause = (2 * pause).min(PAUSE_MAX);
            };
            println!("{name} is back as process {}", child.id());
        }
        self.members().children[index].ended = true;
    }

    /// Waits this long, or until the family stops; true if it does.
    fn rests(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        while Instant::now() < until && !self.members().stopping {
            thread::sleep(Duration::from_millis(10));
        }
        self.members().stopping
    }
}
