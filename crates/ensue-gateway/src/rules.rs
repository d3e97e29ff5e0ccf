//! Rules of the kernel's packet filter, made and removed by the command `iptables`.

use std::io;
use std::process::Command;

/// A rule of the table `mangle`, as the words of `iptables`, chain first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule(pub Vec<String>);

/// Rules that are in the kernel until this is dropped.
#[derive(Debug)]
pub struct Installed {
    rules: Vec<Rule>,
}

impl Rule {
    pub fn new(words: &str) -> Self {
        Self(words.split_whitespace().map(str::to_string).collect())
    }
}

impl Installed {
    /// Installs rules; one that a predecessor left behind is used as it is.
    pub fn install(rules: Vec<Rule>) -> io::Result<Self> {
        let mut installed = Self { rules: Vec::new() };
        for rule in rules {
            if iptables("-C", &rule).is_err() {
                iptables("-A", &rule)?;
            }
            installed.rules.push(rule);
        }
        Ok(installed)
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        for rule in &self.rules {
            if let Err(error) = iptables("-D", rule) {
                eprintln!("a rule of iptables is still there: {error}");
            }
        }
    }
}

fn iptables(action: &str, rule: &Rule) -> io::Result<()> {
    let words = ["-w", "-t", "mangle", action].into_iter().map(str::to_string).chain(rule.0.iter().cloned());
    run("iptables", &words.collect::<Vec<_>>())
}

/// Runs a command to its end.
pub fn run(program: &str, words: &[String]) -> io::Result<()> {
    let shown = format!("{program} {}", words.join(" "));
    let done = Command::new(program)
        .args(words)
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("{shown}: {error}")))?;
    if done.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{shown}: {}", String::from_utf8_lossy(&done.stderr).trim())))
}
