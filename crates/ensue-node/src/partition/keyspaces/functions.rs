//! `FUNCTION`: libraries of functions, of which every partition of the datacenter is told, as of scripts.
//!
//! A dump of libraries is that of Redis: the texts, each behind a byte that says so, the version and the checksum.

use super::Keyspaces;
use super::paused::NOT_BUSY;
use crate::command::dump;
use bytes::Bytes;
use ensue_resp::{CommandError, glob};
use ensue_script::{Function, Library};
use ensue_types::{Args, Now, Reply, limits};

impl Keyspaces {
    /// `FUNCTION` of one partition.
    pub(in crate::partition) fn execute_function(&mut self, now: Now, args: &Args) -> Reply {
        let word = args.get(1).map(|word| word.to_ascii_lowercase()).unwrap_or_default();
        let rest = args.get(2..).unwrap_or_default();
        let answer = match (word.as_slice(), rest) {
            (b"load" | b"restore", _) if self.memory_refusal().is_some() => {
                self.memory_refusal().map_or(Ok(Reply::OK), Err)
            }
            (b"load", [text]) => self.load_library(text, false),
            (b"load", [_, text]) => self.load_library(text, true),
            (b"delete", [name]) => match self.scripts.remove_library(&String::from_utf8_lossy(name)) {
                true => Ok(Reply::OK),
                false => Err(Reply::error("ERR Library not found")),
            },
            (b"flush", _) => {
                self.scripts.flush_libraries();
                Ok(Reply::OK)
            }
            (b"list", options) => self.list_libraries(options),
            (b"dump", []) => {
                let texts = self.scripts.libraries().iter().map(|library| &library.script.text);
                Ok(Reply::Bulk(dump::write_libraries(texts)))
            }
            (b"restore", [payload, policy @ ..]) => self.restore_libraries(payload, policy),
            // A session asks, while writes are paused.
            (b"reads", [name]) => {
                let found = self.scripts.libraries().find(name);
                Ok(Reply::Integer(found.is_some_and(|(_, function)| function.is_read_only()).into()))
            }
            (b"stats", []) => Ok(self.function_statistics(now)),
            // One that has paused is killed where inputs are held.
            (b"kill", []) => Err(NOT_BUSY),
            _ => Err(CommandError::wrong_arity("function").reply()),
        };
        answer.unwrap_or_else(|refusal| refusal)
    }

    fn load_library(&mut self, text: &Bytes, replace: bool) -> Result<Reply, Reply> {
        if text.len() > limits::SCRIPT_BYTES_MAX {
            return Err(Reply::error("ERR the library is too long: its text takes more than 1 MiB"));
        }
        self.scripts.load_library(text, replace).map(Reply::bulk)
    }

    fn list_libraries(&self, options: &[Bytes]) -> Result<Reply, Reply> {
        let (mut with_code, mut pattern) = (false, None);
        let mut rest = options;
        while let [word, others @ ..] = rest {
            rest = match others {
                others if !with_code && word.eq_ignore_ascii_case(b"withcode") => {
                    with_code = true;
                    others
                }
                [wanted, others @ ..] if pattern.is_none() && word.eq_ignore_ascii_case(b"libraryname") => {
                    pattern = Some(wanted.to_ascii_lowercase());
                    others
                }
                _ if pattern.is_none() && word.eq_ignore_ascii_case(b"libraryname") => {
                    return Err(Reply::error("ERR library name argument was not given"));
                }
                _ => {
                    let words = format!("ERR Unknown argument {}", String::from_utf8_lossy(word));
                    return Err(Reply::Error(words.into()));
                }
            };
        }
        let is_wanted = |library: &&Library| {
            let name = library.name.to_ascii_lowercase();
            pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, name.as_bytes()))
        };
        let listed = self.scripts.libraries().iter().filter(is_wanted);
        Ok(Reply::Array(listed.map(|library| described(library, with_code)).collect()))
    }

    /// Without a policy a library that is there already is refused; nothing is restored then.
    fn restore_libraries(&mut self, payload: &Bytes, policy: &[Bytes]) -> Result<Reply, Reply> {
        let policy = policy.first().map_or_else(|| b"append".to_vec(), |word| word.to_ascii_lowercase());
        let (flushes, replaces) = match policy.as_slice() {
            b"append" => (false, false),
            b"replace" => (false, true),
            b"flush" => (true, false),
            _ => {
                return Err(Reply::error(
                    "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
                ));
            }
        };
        let texts = dump::read_libraries(payload)?;
        let mut scripts = self.scripts.clone();
        if flushes {
            scripts.flush_libraries();
        }
        for text in &texts {
            scripts.load_library(text, replaces).map_err(without_quotes)?;
        }
        self.scripts = scripts;
        Ok(Reply::OK)
    }

    /// `FUNCTION STATS`, also while a function, or a script, has paused.
    pub(crate) fn function_statistics(&self, now: Now) -> Reply {
        let running = match self.running_function(now) {
            Ok(running) => running,
            Err(refusal) => return refusal,
        };
        let libraries = self.scripts.libraries();
        let functions: usize = libraries.iter().map(|library| library.functions.len()).sum();
        let counts = vec![
            (Reply::bulk("libraries_count"), Reply::Integer(libraries.iter().count() as i64)),
            (Reply::bulk("functions_count"), Reply::Integer(functions as i64)),
        ];
        Reply::Map(vec![
            (Reply::bulk("running_script"), running),
            (Reply::bulk("engines"), Reply::Map(vec![(Reply::bulk("LUA"), Reply::Map(counts))])),
        ])
    }
}

/// That a library is there already is said without quotes where it comes from a dump.
fn without_quotes(refusal: Reply) -> Reply {
    match refusal {
        Reply::Error(words) => Reply::Error(words.replace('\'', "").into()),
        other => other,
    }
}

fn described(library: &Library, with_code: bool) -> Reply {
    let mut parts = vec![
        (Reply::bulk("library_name"), Reply::bulk(library.name.clone())),
        (Reply::bulk("engine"), Reply::bulk("LUA")),
        (Reply::bulk("functions"), Reply::Array(library.functions.iter().map(function).collect())),
    ];
    if with_code {
        parts.push((Reply::bulk("library_code"), Reply::Bulk(library.script.text.clone())));
    }
    Reply::Map(parts)
}

fn function(function: &Function) -> Reply {
    let description = function.description.clone().map_or(Reply::Nil, Reply::bulk);
    let flags = function.flags.iter().map(|flag| Reply::Status(flag.clone().into()));
    Reply::Map(vec![
        (Reply::bulk("name"), Reply::bulk(function.name.clone())),
        (Reply::bulk("description"), description),
        (Reply::bulk("flags"), Reply::Set(flags.collect())),
    ])
}
