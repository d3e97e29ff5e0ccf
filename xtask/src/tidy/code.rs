//! A Rust file, line by line, with comments and strings taken apart: enough of the language to look for words in code.
//!
//! It does not parse. It knows comments, strings, characters, braces, and which lines only tests compile.

use super::tree::Tree;
use std::collections::BTreeSet;

/// A line, three times: as written, without comments, and without comments and the inside of strings.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    pub raw: &'a str,
    pub text: String,
    pub code: String,
    /// Only tests compile it.
    pub in_test: bool,
}

/// A Rust file.
#[derive(Debug)]
pub struct Source<'a> {
    pub path: &'a str,
    pub lines: Vec<Line<'a>>,
    /// The whole file is test code.
    pub is_test: bool,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// Counted from 1.
    pub line: usize,
    pub lines: usize,
}

impl<'a> Source<'a> {
    /// Every Rust file of the tree.
    pub fn all(tree: &'a Tree) -> Vec<Source<'a>> {
        let mut sources: Vec<Source<'a>> =
            tree.files_ending(".rs").map(|(path, text)| Source::new(path, text)).collect();
        let modules: BTreeSet<String> = sources.iter().flat_map(Source::test_modules).collect();
        for source in &mut sources {
            let stem = source.path.trim_end_matches(".rs");
            let of_module = |module: &String| {
                stem == module || stem.strip_prefix(module).is_some_and(|rest| rest.starts_with('/'))
            };
            if modules.iter().any(of_module) {
                source.mark_as_test();
            }
        }
        sources
    }

    pub fn new(path: &'a str, text: &'a str) -> Source<'a> {
        let (code, texts) = Mask::new(text).run();
        let parts = text.split('\n').zip(texts.split('\n')).zip(code.split('\n'));
        let line = |((raw, text), code): ((&'a str, &str), &str)| Line {
            raw,
            text: text.into(),
            code: code.into(),
            in_test: false,
        };
        let mut source = Source { path, lines: parts.map(line).collect(), is_test: false };
        if text.ends_with('\n') {
            source.lines.pop();
        }
        source.mark_test_items();
        let folders = path.split('/').rev().skip(1);
        if path.ends_with("/tests.rs")
            || folders.clone().any(|folder| folder == "tests" || folder == "benches")
        {
            source.mark_as_test();
        }
        source
    }

    /// The crate's folder name, for a file below `crates/`.
    pub fn package(&self) -> &'a str {
        let below = self.path.strip_prefix("crates/").unwrap_or(self.path);
        below.split('/').next().unwrap_or_default()
    }

    /// The functions that have a body, from the line with `fn` to the line with the closing brace.
    pub fn functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            let Some(name) = function_name(&line.code) else { continue };
            if let Some(last) = self.last_line_of_item(index) {
                functions.push(Function { name: name.into(), line: index + 1, lines: last + 1 - index });
            }
        }
        functions
    }

    /// `use` statements, flattened to one path each, with the index of the line where the statement begins.
    pub fn imports(&self) -> Vec<(usize, String)> {
        let mut imports = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            let start = line.code.trim_start();
            let start = start.strip_prefix("pub ").or(start.strip_prefix("pub(crate) ")).unwrap_or(start);
            let Some(start) = start.strip_prefix("use ") else { continue };
            let mut statement = start.to_string();
            for next in &self.lines[index + 1..] {
                if statement.contains(';') {
                    break;
                }
                statement.push_str(next.code.trim());
            }
            let statement = statement.split(';').next().unwrap_or_default();
            flatten("", statement, &mut |path| imports.push((index, path)));
        }
        imports
    }

    /// The index of the line that closes the item that begins here; none for a declaration without a body.
    pub(super) fn last_line_of_item(&self, first: usize) -> Option<usize> {
        let (mut braces, mut brackets) = (0_usize, 0_usize);
        for (index, line) in self.lines.iter().enumerate().skip(first) {
            for byte in line.code.bytes() {
                match byte {
                    b'{' => braces += 1,
                    b'}' => {
                        braces = braces.saturating_sub(1);
                        if braces == 0 {
                            return Some(index);
                        }
                    }
                    b'(' | b'[' => brackets += 1,
                    b')' | b']' => brackets = brackets.saturating_sub(1),
                    b';' if braces == 0 && brackets == 0 => return None,
                    _ => {}
                }
            }
        }
        None
    }

    fn mark_as_test(&mut self) {
        self.is_test = true;
        for line in &mut self.lines {
            line.in_test = true;
        }
    }

    fn mark_test_items(&mut self) {
        for index in 0..self.lines.len() {
            if !is_test_attribute(&self.lines[index].code) {
                continue;
            }
            let last = self.last_line_of_item(index).unwrap_or(index);
            for line in &mut self.lines[index..=last] {
                line.in_test = true;
            }
        }
    }

    /// Modules in files of their own that only tests compile, as paths without `.rs`.
    fn test_modules(&self) -> Vec<String> {
        let mut modules = Vec::new();
        for pair in self.lines.windows(2) {
            let module = pair[1].code.trim().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
            let module = module.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'));
            if let (true, Some(module)) = (is_test_attribute(&pair[0].code), module) {
                let stem = self.path.trim_end_matches(".rs");
                let folder = match stem.rsplit_once('/') {
                    Some((folder, "lib" | "main")) => folder,
                    _ => stem,
                };
                modules.push(format!("{folder}/{module}"));
            }
        }
        modules
    }
}

/// Whether a word stands in a line of code: what is beside it does not continue it.
pub fn has_word(line: &str, word: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(continues) && word.starts_with(continues);
        let after =
            line[at + word.len()..].chars().next().is_some_and(continues) && word.ends_with(continues);
        !before && !after
    })
}

fn is_test_attribute(code: &str) -> bool {
    code.trim_start().starts_with("#[cfg(") && has_word(code, "test") && !has_word(code, "not")
}

fn function_name(code: &str) -> Option<&str> {
    let at = if code.starts_with("fn ") { 0 } else { code.find(" fn ")? + 1 };
    let name = code[at + 3..].split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (!name.is_empty()).then_some(name)
}

/// `a::{b, c::{d, e}}` becomes `a::b`, `a::c::d` and `a::c::e`; names given with `as` are left out.
fn flatten(prefix: &str, tree: &str, found: &mut impl FnMut(String)) {
    let tree = tree.trim();
    if let Some((head, rest)) = tree.split_once('{') {
        let prefix = format!("{prefix}{}", head.trim());
        let inside = rest.rsplit_once('}').map_or(rest, |(inside, _)| inside);
        let mut depth = 0_usize;
        let parts = inside.split(|c: char| {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ',' && depth == 0
        });
        for part in parts {
            flatten(&prefix, part, found);
        }
    } else if !tree.is_empty() {
        let name = tree.split(" as ").next().unwrap_or(tree).trim();
        let path = format!("{prefix}{name}");
        found(path.trim_end_matches("::self").into());
    }
}

/// Blanks out comments, and the inside of strings, character for character, so that columns and lines stay.
struct Mask {
    characters: Vec<char>,
    at: usize,
    code: String,
    text: String,
}

/// What the mask does with a character.
#[derive(Clone, Copy)]
enum Keep {
    Both,
    TextOnly,
    Neither,
}

impl Mask {
    fn new(text: &str) -> Mask {
        Mask { characters: text.chars().collect(), at: 0, code: String::new(), text: String::new() }
    }

    fn run(mut self) -> (String, String) {
        while self.at < self.characters.len() {
            match (self.ahead(0), self.ahead(1)) {
                ('/', '/') => self.line_comment(),
                ('/', '*') => self.block_comment(),
                ('"', _) => self.string(),
                ('r', '"' | '#') if !self.after_word() => self.raw_string(),
                ('b' | 'c', 'r') if !self.after_word() && matches!(self.ahead(2), '"' | '#') => {
                    self.take(Keep::Both);
                    self.raw_string();
                }
                ('\'', _) => self.character(),
                _ => self.take(Keep::Both),
            }
        }
        (self.code, self.text)
    }

    fn ahead(&self, distance: usize) -> char {
        self.characters.get(self.at + distance).copied().unwrap_or('\0')
    }

    fn after_word(&self) -> bool {
        let before = self.at.checked_sub(1).map(|at| self.characters[at]);
        before.is_some_and(|c| (c.is_alphanumeric() || c == '_') && c != 'b' && c != 'c')
    }

    fn take(&mut self, keep: Keep) {
        let Some(&character) = self.characters.get(self.at) else { return };
        self.at += 1;
        let blank = if character == '\n' { '\n' } else { ' ' };
        self.code.push(if matches!(keep, Keep::Both) { character } else { blank });
        self.text.push(if matches!(keep, Keep::Neither) { blank } else { character });
    }

    fn line_comment(&mut self) {
        while self.at < self.characters.len() && self.ahead(0) != '\n' {
            self.take(Keep::Neither);
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.characters.len() {
            match (self.ahead(0), self.ahead(1)) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ => {
                    self.take(Keep::Neither);
                    continue;
                }
            }
            self.take(Keep::Neither);
            self.take(Keep::Neither);
            if depth == 0 {
                break;
            }
        }
    }

    fn string(&mut self) {
        self.take(Keep::Both);
        while self.at < self.characters.len() && self.ahead(0) != '"' {
            if self.ahead(0) == '\\' {
                self.take(Keep::TextOnly);
            }
            self.take(Keep::TextOnly);
        }
        self.take(Keep::Both);
    }

    /// `r"…"` and `r#"…"#`; a raw identifier such as `r#type` passes as it is.
    fn raw_string(&mut self) {
        self.take(Keep::Both);
        let mut hashes = 0;
        while self.ahead(0) == '#' {
            hashes += 1;
            self.take(Keep::Both);
        }
        if self.ahead(0) != '"' {
            return;
        }
        self.take(Keep::Both);
        while self.at < self.characters.len() {
            let closes = self.ahead(0) == '"' && (1..=hashes).all(|distance| self.ahead(distance) == '#');
            if closes {
                (0..=hashes).for_each(|_| self.take(Keep::Both));
                return;
            }
            self.take(Keep::TextOnly);
        }
    }

    /// A character literal, or the quote that begins a lifetime.
    fn character(&mut self) {
        let escaped = self.ahead(1) == '\\';
        if !escaped && self.ahead(2) != '\'' {
            return self.take(Keep::Both);
        }
        self.take(Keep::Both);
        if escaped {
            self.take(Keep::TextOnly);
        }
        self.take(Keep::TextOnly);
        while self.at < self.characters.len() && !matches!(self.ahead(0), '\'' | '\n') {
            self.take(Keep::TextOnly);
        }
        self.take(Keep::Both);
    }
}
