//! Libraries of functions: texts whose first line names them, and which register functions when they are run.
//!
//! A library is kept as its text and the names of its functions. To call one, the text is run anew and the function
//! that it registers is called: between two calls nothing is left, as between two scripts. How many there are is
//! bounded; nothing is forgotten by itself, because clients call functions by name and do not send them again.

use crate::scripts::{Growth, Script};
use bytes::Bytes;
use ensue_types::Reply;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A function as its library registers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub description: Option<String>,
    pub flags: Vec<String>,
}

impl Function {
    /// What becomes of it while memory is short.
    pub fn growth(&self) -> Growth {
        Growth::of(self.flags.iter().map(String::as_str))
    }

    /// Whether it promises to write nothing.
    pub fn is_read_only(&self) -> bool {
        self.flags.iter().any(|flag| flag == "no-writes")
    }
}

/// A library that was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    pub name: String,
    pub script: Arc<Script>,
    /// In the order of their names.
    pub functions: Vec<Function>,
}

/// The libraries that are known, by name.
#[derive(Clone, Debug, Default)]
pub struct Libraries {
    by_name: BTreeMap<String, Library>,
}

impl Libraries {
    /// The library and the function that a client names, in any case.
    pub fn find(&self, name: &[u8]) -> Option<(&Library, &Function)> {
        let all = self.by_name.values();
        all.flat_map(|library| library.functions.iter().map(move |function| (library, function)))
            .find(|(_, function)| function.name.as_bytes().eq_ignore_ascii_case(name))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Library> {
        self.by_name.values()
    }

    pub fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Bytes of all texts.
    pub fn text_bytes(&self) -> usize {
        self.iter().map(|library| library.script.text.len()).sum()
    }

    /// Adds a library, in the place of one of its name; refused if another one has a function of the same name.
    pub fn insert(&mut self, library: Library) -> Result<(), Reply> {
        for function in &library.functions {
            match self.find(function.name.as_bytes()) {
                Some((other, _)) if other.name != library.name => {
                    return Err(Reply::Error(
                        format!("ERR Function {} already exists", function.name).into(),
                    ));
                }
                _ => {}
            }
        }
        self.by_name.insert(library.name.clone(), library);
        Ok(())
    }

    /// Forgets a library, if there is one of this name.
    pub fn remove(&mut self, name: &str) -> Option<Library> {
        self.by_name.remove(name)
    }
}

/// The name that the first line of a library's text gives it.
pub fn name_in(text: &Bytes) -> Result<String, Reply> {
    let error = |words: String| Err(Reply::Error(format!("ERR {words}").into()));
    let Some(line) = text.strip_prefix(b"#!") else { return error("Missing library metadata".into()) };
    let Some(end) = line.iter().position(|&byte| byte == b'\n') else {
        return error("Invalid library metadata".into());
    };
    let line = String::from_utf8_lossy(&line[..end]);
    // What stands right behind `#!`, which may be nothing.
    let (engine, words) = line.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((&line, ""));
    let mut name = None;
    for word in words.split_ascii_whitespace() {
        let given = match word.get(..5) {
            Some(begin) if begin.eq_ignore_ascii_case("name=") => &word[5..],
            _ => return error(format!("Invalid metadata value given: {word}")),
        };
        if name.replace(given.trim_matches('"')).is_some() {
            return error("Invalid metadata value, name argument was given multiple times".into());
        }
    }
    let Some(name) = name else { return error("Library name was not given".into()) };
    if !is_name(name) {
        return error(format!("Library {NAMES}"));
    }
    if !engine.eq_ignore_ascii_case("lua") {
        return error(format!("Engine '{engine}' not found"));
    }
    Ok(name.to_owned())
}

/// Whether a library or a function may be called so.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

pub(crate) const NAMES: &str =
    "names can only contain letters, numbers, or underscores(_) and must be at least one character long";
