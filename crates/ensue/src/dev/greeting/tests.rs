//! What is printed when a dev cluster is up.

use super::*;
use clap::Parser;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: DevArgs,
}

fn greeting(flags: &str) -> String {
    let args = Line::parse_from(format!("dev {flags}").split_whitespace()).args;
    text(&args, &Plan::new(&args).unwrap(), &[], Paint::off())
}

#[test]
fn every_datacenter_has_the_address_of_its_page_and_of_its_metrics() {
    let text = greeting("--datacenters 2 --port 7101");
    let pages = "\n  in a browser: http://127.0.0.1:7171/ http://127.0.0.1:7172/\n";
    let metrics = "\n  metrics on http://127.0.0.1:7171/metrics http://127.0.0.1:7172/metrics\n";
    assert!(text.contains(pages) && text.contains(metrics), "{text}");
    let without = greeting("--set metrics-port=0");
    assert!(!without.contains("browser") && !without.contains("metrics"), "{without}");
}
