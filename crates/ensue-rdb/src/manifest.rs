//! The manifest of an append-only file of several files, as Redis 7 keeps it in `appendonlydir`.
//!
//! A line a file: `file NAME seq NUMBER type b|i|h`, the name in quotes if it has unusual characters. `b` is the base,
//! a snapshot or commands; `i` is what was appended since, in the order of the lines; `h` is history, which is not
//! read.

use thiserror::Error;

/// The names of the files, in the order in which they are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    pub files: Vec<String>,
}

/// A line that is none of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line} is no line of a manifest")]
pub struct ManifestError {
    /// Counted from 1.
    pub line: usize,
}

impl Manifest {
    pub fn parse(text: &str) -> Result<Manifest, ManifestError> {
        let (mut base, mut increments) = (None, Vec::new());
        for (index, line) in text.lines().enumerate() {
            let line_error = ManifestError { line: index + 1 };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let words = words(line).ok_or(line_error.clone())?;
            let value = |name: &str| {
                let at = words.chunks_exact(2).find(|pair| pair[0] == name);
                at.map(|pair| pair[1].clone())
            };
            let (Some(name), Some(kind)) = (value("file"), value("type")) else { return Err(line_error) };
            // A name with a folder would lead out of the one that the manifest is in.
            if name.contains(['/', '\\']) || name == ".." {
                return Err(line_error);
            }
            match kind.as_str() {
                "b" if base.is_none() => base = Some(name),
                "i" => increments.push(name),
                "h" => {}
                _ => return Err(line_error),
            }
        }
        Ok(Manifest { files: base.into_iter().chain(increments).collect() })
    }
}

/// The words of a line, of which those in double quotes may have blanks.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (mut word, mut characters) = (String::new(), quoted.char_indices());
            loop {
                match characters.next()? {
                    (at, '"') => {
                        rest = quoted[at + 1..].trim_start();
                        break;
                    }
                    (_, '\\') => word.push(characters.next()?.1),
                    (_, other) => word.push(other),
                }
            }
            words.push(word);
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            words.push(rest[..end].into());
            rest = rest[end..].trim_start();
        }
    }
    Some(words)
}

#[cfg(test)]
mod tests;
