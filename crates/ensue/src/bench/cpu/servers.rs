//! A server of Ensue and a `redis-server` on free ports of this machine, configured alike, which end with the value
//! that stands for them.

use anyhow::{Context, bail};
use ensue_load::target::Target;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const START_TIMEOUT: Duration = Duration::from_secs(30);
const READY_PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Servers {
    running: Vec<Running>,
    /// What the programs say that they are.
    pub versions: [String; 2],
    directory: Directory,
}

struct Running {
    child: Child,
    port: u16,
}

impl Servers {
    pub fn start(program: Option<&Path>, redis: &Path, partitions: u16) -> anyhow::Result<Servers> {
        let program = match program {
            Some(program) => program.to_owned(),
            None => std::env::current_exe().context("cannot find this program")?,
        };
        let directory = Directory::new()?;
        let versions = [version(&program)?, version(redis)?];
        let mut servers = Servers { running: Vec::new(), versions, directory };
        let port = free_port()?;
        let config = servers.directory.0.join("ensue.conf");
        let text = configuration(&servers.directory.0.join("ensue"), port, free_port()?, partitions);
        fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
        servers.run(Command::new(&program).arg("server").arg("--config").arg(&config), port)?;
        let (port, dir) = (free_port()?, servers.directory.0.join("redis"));
        fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let mut command = Command::new(redis);
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--dir"]).arg(&dir);
        command.args(["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]);
        servers.run(&mut command, port)?;
        Ok(servers)
    }

    pub fn urls(&self) -> anyhow::Result<[Target; 2]> {
        let url = |place: usize| format!("redis://127.0.0.1:{}", self.running[place].port).parse::<Target>();
        Ok([url(0)?, url(1)?])
    }

    fn run(&mut self, command: &mut Command, port: u16) -> anyhow::Result<()> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        self.running.push(Running { child, port });
        let until = Instant::now() + START_TIMEOUT;
        while !serves(port) {
            let ended = self.running.last_mut().map(|running| running.child.try_wait());
            if let Some(Ok(Some(status))) = ended {
                bail!("{name} ended at its start: {status}");
            }
            if Instant::now() > until {
                bail!("{name} does not serve on port {port}");
            }
            thread::sleep(READY_PAUSE);
        }
        Ok(())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for Running { child, .. } in &mut self.running {
            // It may have ended by itself; its data is nobody's.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Where both keep what they write; removed with everything in it, after the servers have ended.
struct Directory(PathBuf);

impl Directory {
    fn new() -> anyhow::Result<Directory> {
        let path = std::env::temp_dir().join(format!("ensue-cpu-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Directory(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's cleaning.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One datacenter on one core: Redis has one thread that executes commands.
fn configuration(dir: &Path, port: u16, peer_port: u16, partitions: u16) -> String {
    let dir = dir.display();
    format!(
        "self dc1\nnode dc1 127.0.0.1:{peer_port} cores 1\npartitions {partitions}\nport {port}\nbind 127.0.0.1\n\
         dir \"{dir}\"\nappendfsync everysec\n"
    )
}

/// `ensue 0.1.0`, and `Redis server v=7.0.15 sha=...` as `redis-server 7.0.15`.
fn version(program: &Path) -> anyhow::Result<String> {
    let output = Command::new(program).arg("--version").output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let number = said.split(' ').find_map(|word| word.strip_prefix("v="));
    Ok(number.map_or(said.clone(), |number| format!("redis-server {number}")))
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Whether it writes: a server may listen before it has read its log.
fn serves(port: u16) -> bool {
    let asked = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(START_TIMEOUT))?;
        stream.write_all(b"SET bench:ready 1\r\n")?;
        let mut answer = vec![0; 5];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    };
    asked().is_ok_and(|answer| answer == b"+OK\r\n")
}
