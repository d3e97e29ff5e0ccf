//! The dependencies that a `Cargo.toml` declares, read line by line: the tables we write, not all of TOML.

/// A dependency of any kind: normal, for tests, or for the build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    pub name: String,
    /// Counted from 1.
    pub line: usize,
}

pub fn dependencies(text: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut inside = false;
    let mut open = 0_isize;
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let header = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).filter(|_| open == 0);
        if let Some(header) = header {
            let mut parts = header.rsplit('.');
            let last = parts.next().unwrap_or_default();
            inside = is_table(last) && !header.starts_with("workspace.");
            if parts.next().is_some_and(is_table) && !header.starts_with("workspace.") {
                found.push(Dependency { name: unquoted(last), line: index + 1 });
            }
            continue;
        }
        if inside && open == 0 {
            if let Some((key, value)) = line.split_once('=') {
                let name = renamed(value).unwrap_or_else(|| unquoted(key.split('.').next().unwrap_or(key)));
                found.push(Dependency { name, line: index + 1 });
            }
        }
        open += line.chars().map(depth).sum::<isize>();
    }
    found
}

fn is_table(name: &str) -> bool {
    matches!(name, "dependencies" | "dev-dependencies" | "build-dependencies")
}

/// The name behind `{ package = "name" }`.
fn renamed(value: &str) -> Option<String> {
    let (_, rest) = value.split_once("package")?;
    rest.split('"').nth(1).map(String::from)
}

fn unquoted(name: &str) -> String {
    name.trim().trim_matches('"').into()
}

fn depth(c: char) -> isize {
    match c {
        '[' | '{' => 1,
        ']' | '}' => -1,
        _ => 0,
    }
}
