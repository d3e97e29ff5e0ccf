//! What commands that look at a cluster ask first: which nodes a dev cluster has, and the lines of `INFO`.

use ensue_server::admin;
use std::collections::BTreeMap;

/// Nodes by name, as `dc1/0`, with their client ports.
pub(crate) type Nodes = Vec<(String, u16)>;

/// The nodes and links of the dev cluster; without an admin port the one server at this port, without a name.
pub(crate) fn of_cluster(port: u16) -> (Nodes, Vec<String>) {
    let answer = |line| admin::ask(port, line).ok().and_then(Result::ok).unwrap_or_default();
    let mut nodes = Vec::new();
    for node in answer("nodes").split_whitespace() {
        let parts =
            node.split_once('=').and_then(|(name, address)| Some((name, address.rsplit_once(':')?.1)));
        if let Some((name, Ok(port))) = parts.map(|(name, port)| (name, port.parse())) {
            nodes.push((name.to_string(), port));
        }
    }
    if nodes.is_empty() {
        nodes.push((String::new(), port));
    }
    (nodes, answer("links").split_whitespace().map(String::from).collect())
}

/// The lines of `INFO`, by name.
pub(crate) fn fields(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.trim_end().split_once(':'));
    pairs.map(|(name, value)| (name.into(), value.into())).collect()
}
