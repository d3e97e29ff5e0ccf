//! Which crate of the workspace may see which. Arrows point one way; an edge that is not in the table fails.

use super::Report;
use super::manifest;
use super::tree::Tree;

const BELOW_NODE: &[&str] = &[
    "ensue-types",
    "ensue-resp",
    "ensue-acl",
    "ensue-rdb",
    "ensue-wire",
    "ensue-protocol",
    "ensue-store",
    "ensue-branch",
    "ensue-script",
    "ensue-replica",
];
const NODE_AND_BELOW: &[&str] = &[
    "ensue-types",
    "ensue-resp",
    "ensue-wire",
    "ensue-protocol",
    "ensue-store",
    "ensue-branch",
    "ensue-node",
];

/// A crate, and what it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("ensue-types", &[]),
    ("ensue-resp", &["ensue-types"]),
    ("ensue-acl", &["ensue-types", "ensue-resp"]),
    ("ensue-rdb", &["ensue-types", "ensue-resp"]),
    ("ensue-wire", &["ensue-types"]),
    ("ensue-protocol", &["ensue-types"]),
    ("ensue-store", &["ensue-types"]),
    ("ensue-branch", &["ensue-types"]),
    ("ensue-script", &["ensue-types", "ensue-resp"]),
    ("ensue-check", &[]),
    ("ensue-replica", &["ensue-types", "ensue-store"]),
    ("ensue-node", BELOW_NODE),
    ("ensue-server", NODE_AND_BELOW),
    (
        "ensue-sim",
        &[
            "ensue-types",
            "ensue-resp",
            "ensue-wire",
            "ensue-protocol",
            "ensue-store",
            "ensue-branch",
            "ensue-node",
            "ensue-check",
        ],
    ),
    ("ensue-compare", &["ensue-types", "ensue-protocol", "ensue-node", "ensue-sim"]),
    ("ensue-exhaust", &["ensue-types", "ensue-wire", "ensue-store", "ensue-node", "ensue-sim"]),
    (
        "ensue-fuzz",
        &[
            "ensue-types",
            "ensue-resp",
            "ensue-acl",
            "ensue-wire",
            "ensue-protocol",
            "ensue-store",
            "ensue-branch",
            "ensue-node",
            "ensue-check",
        ],
    ),
    ("ensue-client", &["ensue-types", "ensue-resp"]),
    ("ensue-torture", &["ensue-types", "ensue-resp", "ensue-client", "ensue-check", "ensue-sim"]),
    (
        "ensue-instructions",
        &["ensue-types", "ensue-resp", "ensue-wire", "ensue-protocol", "ensue-store", "ensue-node"],
    ),
    ("ensue-plot", &[]),
    ("ensue-trods", &[]),
    ("ensue-gateway", &["ensue-client", "ensue-trods", "ensue-prophecy", "ensue-byzantine", "ensue-resp"]),
    ("ensue-load", &["ensue-types", "ensue-resp", "ensue-plot"]),
    ("ensue-bench", &["ensue-types", "ensue-branch", "ensue-plot"]),
    (
        "ensue-paper",
        &["ensue-protocol", "ensue-sim", "ensue-compare", "ensue-bench", "ensue-load", "ensue-plot"],
    ),
    ("ensue-byzantine", &[]),
    ("ensue-prophecy", &["ensue-resp", "ensue-check"]),
    ("xtask", &[]),
];

/// The binary that puts everything together.
const TOP: &str = "ensue";

pub fn check(tree: &Tree, report: &mut Report) {
    let packages = tree.packages();
    for package in packages.iter().filter(|package| *package != TOP) {
        let folder = if package == "xtask" { package.clone() } else { format!("crates/{package}") };
        let path = format!("{folder}/Cargo.toml");
        let text = tree.text(&path).unwrap_or_default();
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| name == package) else {
            let message =
                format!("`{package}` has no row in the table of arrows: add one in xtask/src/tidy/arrows.rs");
            report.find(&path, 1, message);
            continue;
        };
        for edge in manifest::dependencies(text) {
            let name = edge.name.as_str();
            if packages.iter().any(|package| package == name) && !allowed.contains(&name) {
                let message = format!(
                    "`{package}` may not depend on `{name}`: move the code down to what both see, or pass it as a value"
                );
                report.find(&path, edge.line, message);
            }
        }
    }
}
