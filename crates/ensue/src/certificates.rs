//! `ensue certificates`: an authority of a cluster's own, and certificates of its nodes and clients.
//!
//! For clusters that have no authority yet, and for `ensue dev --tls`. What is written are plain PEM files, which any
//! other authority can take the place of; docs/security.md says which names they must hold.

mod authority;
mod revoked;

use anyhow::ensure;
pub(crate) use authority::Authority;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make an authority of the cluster's own, and certificates for its nodes and clients
///
/// Bring to each node its own certificate and key, and ca.pem; ca.key stays where the certificates are made. The
/// authority that is in the folder already is kept, so that certificates can be renewed and nodes added; then send each
/// node a SIGHUP. What was stolen is revoked before it is renewed: ca.crl is the list for `tls-crl-file` of each node.
#[derive(Debug, clap::Args)]
pub(crate) struct CertificatesArgs {
    /// `cluster-name` of the nodes
    #[arg(long, value_name = "NAME", default_value = "ensue")]
    cluster: String,
    /// Datacenters by the names of the `node` lines, with `:N` for N nodes
    #[arg(value_name = "DATACENTER[:NODES]", required_unless_present = "revoke")]
    datacenters: Vec<String>,
    /// Names and addresses by which clients reach the nodes; may be repeated
    #[arg(long = "host", value_name = "NAME", default_values = ["localhost", "127.0.0.1", "::1"])]
    hosts: Vec<String>,
    /// Clients that get a certificate, by any name; may be repeated
    #[arg(long = "client", value_name = "NAME")]
    clients: Vec<String>,
    /// Files with certificates of this authority that are believed no more; may be repeated
    #[arg(long = "revoke", value_name = "FILE")]
    revoke: Vec<PathBuf>,
    /// Days that the certificates are valid; the authority is for ten years
    #[arg(long, value_name = "N", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    /// The folder that the files are in
    #[arg(long, value_name = "DIR", default_value = "certificates")]
    out: PathBuf,
}

pub(crate) fn run(args: &CertificatesArgs) -> anyhow::Result<ExitCode> {
    let datacenters =
        args.datacenters.iter().map(|words| datacenter(words)).collect::<Result<Vec<_>, _>>()?;
    for client in &args.clients {
        ensure!(is_file_name(client), "--client {client}: letters, digits, '-', '_' and '.'");
    }
    for name in args.hosts.iter().chain(&args.clients) {
        ensure!(
            !is_of_a_peer(name, &args.cluster),
            "{name} would say that its owner may speak for a datacenter of the cluster {}: give it another name, or \
             the cluster one that no host ends with",
            args.cluster
        );
    }
    let authority = Authority::open(&args.out, &args.cluster)?;
    println!("{}  for `tls-ca-cert-file` of all nodes and clients", authority.certificate().display());
    println!("{}  for `tls-crl-file` of all nodes", authority.revoke(&args.revoke)?.display());
    for (name, nodes) in &datacenters {
        for node in 0..*nodes {
            let names = node_names(&args.cluster, name, node, *nodes, &args.hosts);
            let stem = node_stem(name, node);
            let (certificate, key) = authority.issue(&stem, names, args.days)?;
            println!(
                "{}  for `tls-cert-file` of node {node} of {name}; its `tls-key-file`: {}",
                certificate.display(),
                key.display()
            );
        }
    }
    for client in &args.clients {
        let (certificate, key) = authority.issue(client, vec![client.clone()], args.days)?;
        println!("{}  and {} for the client {client}", certificate.display(), key.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether peers take it for the name of a datacenter, or of a node of one: of any, as one may be added later.
fn is_of_a_peer(name: &str, cluster: &str) -> bool {
    let whole = name.strip_suffix(cluster).and_then(|rest| rest.strip_suffix('.'));
    whole.is_some_and(|datacenter| !datacenter.is_empty())
}

/// The name of a node's files.
pub(crate) fn node_stem(datacenter: &str, node: u16) -> String {
    format!("{datacenter}-node{node}")
}

/// Everything that a node is called: its datacenter for peers, itself where it has siblings, its hosts for clients.
pub(crate) fn node_names(
    cluster: &str,
    datacenter: &str,
    node: u16,
    nodes: u16,
    hosts: &[String],
) -> Vec<String> {
    let mut names = vec![format!("{datacenter}.{cluster}")];
    if nodes > 1 {
        names.push(format!("node{node}.{datacenter}.{cluster}"));
    }
    names.extend_from_slice(hosts);
    names
}

/// `dc1:3`, or `dc1` alone.
fn datacenter(words: &str) -> anyhow::Result<(String, u16)> {
    let (name, nodes) = words.split_once(':').unwrap_or((words, "1"));
    let nodes: u16 = nodes.parse().unwrap_or(0);
    ensure!(is_file_name(name) && nodes > 0, "'{words}': write DATACENTER or DATACENTER:NODES, as in dc1:3");
    Ok((name.into(), nodes))
}

fn is_file_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests;
