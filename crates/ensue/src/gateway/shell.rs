//! `ensue gateway trods` and `ensue gateway balance`: TRODS between a network and a kernel.

use super::trods::ModeName;
use anyhow::{Context, bail, ensure};
use ensue_gateway::balance::{self, Balance, Server};
use ensue_gateway::gateway::{self, Gateway, Passed};
use ensue_gateway::store::Place;
use ensue_server::shutdown::Stop;
use ensue_trods::{Config, Objects, Rules};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How long initial sequence numbers of two ends are the same, in seconds.
///
/// Two neighbouring epochs can be told apart, so a connection whose SYN is older than that is not recovered rightly:
/// they are longer than downloads.
const EPOCH_SECONDS: u64 = 1_800;

/// Keep downloads alive when this server dies: stand below its TCP stack, on Linux, with the rights of root
///
/// Packets of the service come from the kernel through two queues, which rules of `iptables` fill until this ends.
#[derive(Debug, clap::Args)]
pub(crate) struct TrodsArgs {
    /// Address and port of the service, which every server has
    #[arg(long, value_name = "ADDRESS:PORT")]
    service: SocketAddrV4,
    /// Further ports of the service
    #[arg(long, value_name = "PORT")]
    also: Vec<u16>,
    /// An address that nothing else uses and that packets leave this machine for: recovered connections have it here
    #[arg(long, value_name = "ADDRESS", default_value = "198.18.0.1")]
    local: Ipv4Addr,
    /// Where state is kept
    #[arg(long, value_name = "MODE", default_value = "kv")]
    mode: ModeName,
    /// The store: `HOST:PORT` of a server that speaks the Redis protocol, or `memory`, which no other gateway sees
    #[arg(long, value_name = "STORE", default_value = "127.0.0.1:6379")]
    store: String,
    /// The first line of this file is the store's password
    #[arg(long, value_name = "FILE")]
    store_password_file: Option<PathBuf>,
    /// A file with the cluster's key, 64 hexadecimal digits, the same on all servers
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// A file with the objects that timestamps can name, `/target host` a line, the same on all servers
    #[arg(long, value_name = "FILE")]
    objects: Option<PathBuf>,
    /// Protect bodies without a length, too: every server sends the same chunks, and ends none early
    #[arg(long)]
    streams: bool,
    /// Answer the liveness monitor here
    #[arg(long, value_name = "ADDRESS:PORT")]
    heartbeat: Option<SocketAddr>,
    /// The first of two queue numbers
    #[arg(long, value_name = "N", default_value_t = 70)]
    queue: u16,
    /// Decide nothing and let every packet pass, to see what the way through this process costs
    #[arg(long)]
    pass: bool,
}

/// Send packets of clients to a server that lives: stand before the servers, on Linux, with the rights of root
#[derive(Debug, clap::Args)]
pub(crate) struct BalanceArgs {
    /// Address and port of the service, which every server has
    #[arg(long, value_name = "ADDRESS:PORT")]
    service: SocketAddrV4,
    /// Further ports of the service
    #[arg(long, value_name = "PORT")]
    also: Vec<u16>,
    /// A server: its address on the network behind the balancer, and the port where its gateway answers the monitor
    #[arg(long = "server", value_name = "ADDRESS:PORT", required = true)]
    servers: Vec<SocketAddrV4>,
    /// The queue number
    #[arg(long, value_name = "N", default_value_t = 72)]
    queue: u16,
    /// A server that is silent for so many milliseconds is suspected; it is asked every 25
    #[arg(long, value_name = "MS", default_value_t = 100)]
    suspect_after_ms: u64,
    /// Remember no packet: a new server hears of a connection when the client repeats its request, as in the paper
    #[arg(long)]
    no_reminders: bool,
}

pub(super) fn run_trods(args: &TrodsArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let settings = gateway::Settings {
        trods: if args.pass { None } else { Some(config(args)?) },
        address: *args.service.ip(),
        ports: ports(args.service, &args.also),
        queue: args.queue,
        store: place(args)?,
        heartbeat: args.heartbeat,
    };
    let gateway = Gateway::start(&settings).context("the gateway cannot start")?;
    println!("packets of {} pass this gateway", args.service);
    println!("stopping: {}", stop.wait());
    println!("{}", described(&gateway.passed()));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn run_balance(args: &BalanceArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals().context("cannot watch for signals")?;
    let server = |server: &SocketAddrV4| Server { address: *server.ip(), heartbeat: (*server).into() };
    let settings = balance::Settings {
        address: *args.service.ip(),
        ports: ports(args.service, &args.also),
        servers: args.servers.iter().map(server).collect(),
        queue: args.queue,
        suspect_after: Duration::from_millis(args.suspect_after_ms),
        remind: !args.no_reminders,
    };
    let _balance = Balance::start(&settings).context("the balancer cannot start")?;
    println!("packets for {} are sent to its servers", args.service);
    println!("stopping: {}", stop.wait());
    Ok(ExitCode::SUCCESS)
}

fn ports(service: SocketAddrV4, also: &[u16]) -> Vec<u16> {
    std::iter::once(service.port()).chain(also.iter().copied()).collect()
}

fn config(args: &TrodsArgs) -> anyhow::Result<Config> {
    let mode = args.mode.mode();
    let cluster_key = match &args.key_file {
        Some(file) => read_key(file)?,
        None => bail!("servers derive sequence numbers alike, with the key of the cluster: --key-file"),
    };
    let names = match &args.objects {
        Some(file) => std::fs::read_to_string(file).with_context(|| file.display().to_string())?,
        None => String::new(),
    };
    let names = names.lines().filter(|line| !line.is_empty()).map(|line| line.as_bytes().to_vec());
    Ok(Config {
        mode,
        ports: ports(args.service, &args.also),
        local_address: args.local,
        cluster_key,
        epoch_us: EPOCH_SECONDS * 1_000_000,
        objects: Objects::new(names.collect())?,
        streams: args.streams,
        rules: Rules::ALL,
    })
}

fn read_key(file: &Path) -> anyhow::Result<[u8; 32]> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let text = text.trim();
    let digits = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    ensure!(digits, "{}: a key is 64 hexadecimal digits", file.display());
    let mut key = [0; 32];
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).context("two hexadecimal digits")?;
    }
    Ok(key)
}

fn place(args: &TrodsArgs) -> anyhow::Result<Place> {
    if args.pass || !args.mode.mode().stores() {
        return Ok(Place::Nowhere);
    }
    if args.store == "memory" {
        return Ok(Place::Memory);
    }
    let (host, port) = args.store.rsplit_once(':').context("the store is HOST:PORT or memory")?;
    let port = port.parse().context("the port of the store")?;
    let password = match &args.store_password_file {
        Some(file) => {
            let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
            Some(text.lines().next().unwrap_or_default().to_string())
        }
        None => None,
    };
    Ok(Place::Server { host: host.to_string(), port, password })
}

fn described(passed: &Passed) -> String {
    let core = &passed.core;
    format!(
        "packets {}, injected {}, refused {}; exchanges saved {}, stamped {}, unprotected {}; recovered in setup {}, \
         in download {}, found complete {}, came back {}, adopted {}, lost {}; ignored {}, unparsed {}; connections {}",
        passed.packets,
        passed.injected,
        passed.refused,
        core.saved,
        core.stamped,
        core.unprotected,
        core.recovered_in_setup,
        core.recovered_in_download,
        core.found_complete,
        core.came_back,
        core.adopted,
        core.lost,
        core.ignored,
        core.unparsed,
        passed.connections
    )
}
