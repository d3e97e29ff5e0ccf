//! `ensue dev`: datacenters on this machine, in one process or in one process a datacenter.

mod child;
mod family;
mod greeting;
mod plan;

pub(crate) use child::{ChildArgs, run_child};

use crate::memory;
use crate::paint::Paint;
use anyhow::Context;
use ensue_server::admin::{self, LinkChange};
use ensue_server::shutdown::{Stop, stop};
use ensue_server::{Machine, Shape, Shaper, log, secret};
use family::Family;
use plan::Plan;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Run a cluster of several datacenters on this machine
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DevArgs {
    /// Datacenters
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=16))]
    datacenters: u8,
    /// Partitions of the keyspace
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1024))]
    partitions: u16,
    /// Nodes of each datacenter
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=9))]
    nodes: u16,
    /// Nodes on which each partition is: 1, 3 or 5, and no more than nodes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=5))]
    replicas: u16,
    /// Cores of each node
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=6))]
    cores: u16,
    /// Client port of dc1; dc2 has the next one
    #[arg(long, value_name = "PORT", default_value_t = 7001, value_parser = clap::value_parser!(u16).range(1..=54_000))]
    port: u16,
    /// Where the data lives
    #[arg(long, value_name = "PATH", default_value = "./ensue-data")]
    dir: PathBuf,
    /// Delay of each link between datacenters, each way
    #[arg(long, value_name = "TIME", default_value = "40ms", value_parser = admin::delay_ms)]
    delay: u32,
    /// Protocol of all keyspaces
    #[arg(long, value_name = "NAME", default_value = ensue_protocol::NAMES[0], value_parser = ensue_protocol::ALL_NAMES)]
    protocol: String,
    /// Protocol of one keyspace, as `1=pocc`; may be given once a keyspace
    #[arg(long = "keyspace", value_name = "N=NAME")]
    keyspaces: Vec<String>,
    /// Who folds conflicting values of which keys, as `1:cart:*=union` or `1:cart:*=lua FILE`; the first pattern that
    /// matches
    #[arg(long = "conflicts", value_name = "N:PATTERN=HANDLER")]
    conflicts: Vec<String>,
    /// Any other directive of the nodes, as `branch-leaves-max=128`; may be repeated
    #[arg(long = "set", value_name = "DIRECTIVE=VALUE")]
    directives: Vec<String>,
    /// When the log is synced to the disk
    #[arg(long, value_name = "WHEN", default_value = "everysec", value_parser = ["always", "everysec", "no"])]
    appendfsync: String,
    /// Lowest level of the lines on standard error
    #[arg(long, value_name = "LEVEL", default_value = "warning", value_parser = ["debug", "verbose", "notice", "warning"])]
    loglevel: String,
    /// Encrypt everything: links between datacenters, and ports for clients beside the plain ones
    #[arg(long)]
    tls: bool,
    /// One operating-system process a datacenter, started again when it dies
    #[arg(long)]
    processes: bool,
}

pub(crate) fn run(args: &DevArgs) -> anyhow::Result<ExitCode> {
    let plan = Plan::new(args)?;
    log::set_level(plan.loglevel());
    let stopping = Stop::on_signals().context("cannot watch for signals")?;
    let admin_port = admin::address(args.port).context("the port is too high")?;
    let listener = TcpListener::bind(admin_port)
        .with_context(|| format!("the admin port {admin_port} is taken; choose another --port"))?;
    // The datacenters prove to each other who they are, as those of a real cluster do.
    secret::make(&plan.secrets(), &plan.names())?;
    plan.make_certificates()?;
    let clean = if args.processes {
        let family = Family::start(args, &plan)?;
        let answering = Arc::clone(&family);
        let names = plan.names();
        serve(listener, &plan, Arc::clone(family.shaper()), move |change| {
            answering.tell(change.line(&names))
        })?;
        greeting::print(args, &plan, &family.pids(), Paint::for_stdout());
        stopping.wait();
        println!("\nstopping");
        family.stop()
    } else {
        let machine = Machine::of_this_process(plan.addresses().len())
            .with_memory(memory::report)
            .with_purge(memory::purge);
        plan.shape(&machine.shaper);
        let mut nodes = Vec::new();
        for datacenter in 0..plan.names().len() {
            nodes.extend(start_datacenter(&plan, datacenter, &machine)?);
        }
        serve(listener, &plan, machine.shaper, |_| {})?;
        greeting::print(args, &plan, &[], Paint::for_stdout());
        stopping.wait();
        println!("\nstopping");
        stop(nodes)
    };
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Starts all nodes of one datacenter in this process.
fn start_datacenter(
    plan: &Plan,
    datacenter: usize,
    machine: &Machine,
) -> anyhow::Result<Vec<ensue_server::Running>> {
    let mut nodes = Vec::new();
    for config in plan.configs(datacenter) {
        let node = ensue_server::start(&config, machine).with_context(|| {
            format!(
                "{} node {} does not start (another cluster? try another --port or --dir)",
                config.datacenter, config.node
            )
        })?;
        nodes.push(node);
    }
    Ok(nodes)
}

/// Answers on the admin port; `tell` passes on what was changed in the shaper.
fn serve(
    listener: TcpListener,
    plan: &Plan,
    shaper: Arc<Shaper>,
    tell: impl Fn(LinkChange) + Send + 'static,
) -> anyhow::Result<()> {
    let (names, nodes) = (plan.names(), plan.addresses());
    let answer = move |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.split_first() {
            Some((&"nodes", [])) => {
                let nodes = nodes.iter().map(|(name, port)| format!("{name}=127.0.0.1:{port}"));
                Ok(nodes.collect::<Vec<_>>().join(" "))
            }
            Some((&"links", [])) => Ok(admin::describe_all(&shaper, &names)),
            Some((&"link", rest)) => {
                let change = LinkChange::parse(rest, &names)?;
                change.apply(&shaper);
                tell(change);
                Ok(admin::describe(change, &names))
            }
            _ => Err("the commands are: nodes, links, link".into()),
        }
    };
    admin::serve(listener, answer).context("cannot serve the admin port")
}

/// The lines that bring another process's shaper to this state.
fn shape_lines(shaper: &Shaper, names: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    let id = |index: usize| ensue_server::DatacenterId(index as u8);
    for one in 0..names.len() {
        for other in one + 1..names.len() {
            let (one, other) = (id(one), id(other));
            let cut = if shaper.is_cut(one, other) { Shape::Cut } else { Shape::Heal };
            for shape in [Shape::DelayMs(shaper.delay_ms(one, other)), cut] {
                lines.push(LinkChange { one, other, shape }.line(names));
            }
        }
    }
    lines
}
