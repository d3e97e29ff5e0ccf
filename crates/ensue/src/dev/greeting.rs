//! What `ensue dev` says when it is up: what runs, how to talk to it, and what to try next.

use super::DevArgs;
use super::plan::Plan;
use crate::paint::Paint;
use std::fmt::Write;
use std::io::Write as _;

/// Prints the greeting. `pids` has one process a datacenter, or is empty if this process serves them all.
pub(super) fn print(args: &DevArgs, plan: &Plan, pids: &[u32], paint: Paint) {
    let text = text(args, plan, pids, paint);
    // Whoever closed our standard output does not want to read it.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

fn text(args: &DevArgs, plan: &Plan, pids: &[u32], paint: Paint) -> String {
    let mut text = String::new();
    let mut line = |words: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{words}");
    };
    line(format!(
        "{} {} datacenters, {} partitions, protocol {}, appendfsync {}, data in {}",
        paint.good("ensue dev:"),
        args.datacenters,
        args.partitions,
        paint.bold(&args.protocol),
        args.appendfsync,
        args.dir.display()
    ));
    for (index, name) in plan.names().iter().enumerate() {
        let ports = (0..args.nodes).map(|node| format!("127.0.0.1:{}", plan.client_port(index as u16, node)));
        let ports = ports.collect::<Vec<_>>().join(" ");
        let process = pids.get(index).map(|pid| format!("process {pid}")).unwrap_or_default();
        let row = format!("  {}  {ports}  {}", paint.bold(name), paint.dim(&process));
        line(row.trim_end().into());
    }
    if args.datacenters > 1 {
        line(format!("  links delayed by {} ms each way", args.delay));
    }
    if args.tls {
        let ports: Vec<String> = (0..u16::from(args.datacenters))
            .map(|datacenter| plan.tls_port(datacenter, 0).to_string())
            .collect();
        line(format!("  links are encrypted; clients over TLS on port {}", ports.join(" ")));
    }
    let ports = (0..u16::from(args.datacenters)).flat_map(|datacenter| {
        (0..args.nodes).map(move |node| plan.metrics_port(datacenter, node)).filter(|port| *port != 0)
    });
    let pages: Vec<String> = ports.map(|port| format!("http://127.0.0.1:{port}/")).collect();
    if !pages.is_empty() {
        line(format!("  in a browser: {}", pages.join(" ")));
        let metrics: Vec<String> = pages.iter().map(|page| format!("{page}metrics")).collect();
        line(format!("  metrics on {}", metrics.join(" ")));
    }
    let first = args.port;
    let port = if first == 7001 { String::new() } else { format!(" --port {first}") };
    let mut section = |title: &str, commands: &[(String, &str)]| {
        line(String::new());
        line(paint.bold(title));
        for (command, what) in commands {
            line(format!("  {}  {}", paint.command(&format!("{command:<44}")), paint.dim(what)));
        }
    };
    let talk = ways_to_talk(args, plan);
    section("Talk to it", &talk);
    let mut next = Vec::new();
    if args.datacenters > 1 {
        next.push((format!("redis-cli -p {first} SET greeting hello"), "write in dc1"));
        next.push((format!("redis-cli -p {} GET greeting", first + 1), "read in dc2, one delay later"));
        next.push((format!("ensue link dc1 dc2 cut{port}"), "both sides keep serving"));
        next.push((format!("ensue link dc1 dc2 heal{port}"), "and agree again"));
    }
    if let Some(pid) = pids.first() {
        next.push((format!("kill -9 {pid}"), "dc1 dies, and is started again"));
    }
    next.push((format!("ensue status{port}"), "who lags, by how much"));
    next.push((format!("ensue top{port}"), "the same, moving"));
    next.push((format!("ensue demo{port}"), "a story told over three datacenters"));
    section("Try next", &next);
    line(format!("\n{}", paint.dim("Ctrl-C stops it; the data stays.")));
    text
}

/// Commands that speak to the first datacenter, and what is to say of them.
fn ways_to_talk(args: &DevArgs, plan: &Plan) -> Vec<(String, &'static str)> {
    let first = args.port;
    let mut ways = vec![
        (format!("redis-cli -p {first}"), "any Redis client, on any datacenter"),
        (format!("ensue cli -p {first} PING"), "without redis-cli"),
    ];
    if args.tls {
        let authority = plan.certificates().join("ca.pem");
        let port = plan.tls_port(0, 0);
        ways.push((format!("redis-cli -p {port} --tls --cacert {}", authority.display()), "over TLS"));
    }
    ways
}

#[cfg(test)]
mod tests;
