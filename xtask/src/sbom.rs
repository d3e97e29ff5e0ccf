//! `cargo xtask sbom`: what a release is made of, as CycloneDX 1.5, from what cargo knows of the lock file.
//!
//! It lists what is compiled into the binary `ensue`, or runs while it is built: the crates of this workspace and of
//! registries, each with its version, licence and package URL, and who depends on whom. What only tests
//! need is left out. The same lock file makes the same document: it holds no time and no random number.

use crate::steps::cargo;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The package whose release is described.
const RELEASED: &str = "ensue";
/// What is released is built for this; crates for other systems are no part of it.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Writes the document to a file (`--out FILE`), or to standard output.
pub fn run(root: &Path, arguments: &[String]) -> Result<bool> {
    let target = match arguments {
        [] => None,
        [flag, file] if flag == "--out" => Some(file),
        _ => bail!("`sbom` takes `--out FILE` and nothing else"),
    };
    let mut command = cargo(root);
    command.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", PLATFORM]);
    let output = command.output().context("starting cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata = serde_json::from_slice(&output.stdout).context("reading what cargo metadata tells")?;
    let text = serde_json::to_string_pretty(&bill(&metadata)?)? + "\n";
    match target {
        Some(file) => std::fs::write(file, text).with_context(|| format!("writing {file}"))?,
        None => print!("{text}"),
    }
    Ok(true)
}

/// The document, from the answer of `cargo metadata`.
fn bill(metadata: &Value) -> Result<Value> {
    let packages = list(metadata, "packages")?.iter().map(|package| (word(package, "id"), package));
    let packages: BTreeMap<&str, &Value> = packages.collect();
    let nodes = list(&metadata["resolve"], "nodes")?.iter().map(|node| (word(node, "id"), needed(node)));
    let nodes: BTreeMap<&str, BTreeSet<&str>> = nodes.collect();
    let is_released = |(_, package): &(&&str, &&Value)| word(package, "name") == RELEASED;
    let (released, package) = packages.iter().find(is_released).context("there is no package `ensue`")?;
    let mut reached = BTreeSet::from([*released]);
    let mut waiting = vec![*released];
    while let Some(next) = waiting.pop() {
        for &one in nodes.get(next).into_iter().flatten() {
            if reached.insert(one) {
                waiting.push(one);
            }
        }
    }
    let components = reached.iter().filter(|id| *id != released).map(|id| {
        let package = packages.get(id).with_context(|| format!("cargo does not describe {id}"))?;
        Ok(component(package, "library"))
    });
    let components: Vec<Value> = components.collect::<Result<_>>()?;
    let reference = |id: &&str| packages.get(id).map(|package| url(package));
    let dependencies = reached.iter().filter_map(|id| {
        let needed: Vec<String> = nodes.get(id).into_iter().flatten().filter_map(reference).collect();
        Some(json!({ "ref": reference(id)?, "dependsOn": needed }))
    });
    let dependencies: Vec<Value> = dependencies.collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": component(package, "application") },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn list<'v>(value: &'v Value, name: &str) -> Result<&'v Vec<Value>> {
    value[name].as_array().with_context(|| format!("cargo metadata tells no `{name}`"))
}

fn word<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// What a crate needs that is not only for its tests.
fn needed(node: &Value) -> BTreeSet<&str> {
    let is_for_tests = |kind: &Value| kind["kind"] == "dev";
    let is_needed = |dependency: &&Value| {
        dependency["dep_kinds"].as_array().is_some_and(|kinds| !kinds.iter().all(is_for_tests))
    };
    let dependencies = node["deps"].as_array().into_iter().flatten();
    dependencies.filter(is_needed).map(|dependency| word(dependency, "pkg")).collect()
}

fn component(package: &Value, kind: &str) -> Value {
    let url = url(package);
    let mut component = json!({
        "type": kind,
        "bom-ref": url,
        "name": package["name"],
        "version": package["version"],
        "purl": url,
    });
    // Older crates write `A/B` for `A OR B`.
    let licence = word(package, "license").replace('/', " OR ");
    if !licence.is_empty() {
        component["licenses"] = json!([{ "expression": licence }]);
    }
    component
}

fn url(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", word(package, "name"), word(package, "version"))
}

#[cfg(test)]
mod tests;
