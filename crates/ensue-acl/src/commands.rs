//! Which commands one set of permissions allows.
//!
//! Rules such as `+get`, `-@dangerous` and `+config|get` arrive; the answer is whether a command may be executed, and
//! the rules again, as Redis 7.2 writes them: `+@all` or `-@all`, then what was added and removed since, in that order,
//! without what a later rule has made void. Writing the rules and applying them again leads to an equal value.

use crate::limits::FIRST_ARGS_MAX;
use crate::rule_error::RuleError;
use bytes::Bytes;
use ensue_resp::{CommandSpec, Flags, TABLE, category, lookup};
use std::collections::BTreeSet;

/// Words of the bitmap: a bit a command, then a bit a subcommand.
const WORDS: usize = 16;
const BITS: usize = FIRST_SUBCOMMANDS[TABLE.len()] as usize;
const _: () = assert!(BITS <= WORDS * 64);

/// The bit of the first subcommand of each command, in the order of the table; the last is the number of bits.
static FIRST_SUBCOMMANDS: [u16; TABLE.len() + 1] = {
    let mut bits = [TABLE.len() as u16; TABLE.len() + 1];
    let mut row = 0;
    while row < TABLE.len() {
        bits[row + 1] = bits[row] + TABLE[row].subcommands.len() as u16;
        row += 1;
    }
    bits
};

/// The commands of one set of permissions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    /// Whether each one is allowed, those that a later release adds among them.
    allows_all: bool,
    /// Whether it began with `+@all`.
    from_all: bool,
    allowed: [u64; WORDS],
    /// First arguments with which a command is allowed that otherwise is not: its row, and the word in lower case.
    first_args: BTreeSet<(u16, Vec<u8>)>,
    /// The rules since `+@all` or `-@all`, in lower case.
    rules: Vec<String>,
}

/// What a rule names.
#[derive(Clone, Copy)]
enum Named {
    Command(&'static CommandSpec),
    /// With the place of the subcommand among those of its command.
    Subcommand(&'static CommandSpec, usize),
}

impl Commands {
    /// Whether all commands are allowed.
    pub fn allows_all(&self) -> bool {
        self.allows_all
    }

    /// Whether a command may be executed. What comes before authentication always may, as in Redis.
    pub fn allows(&self, spec: &'static CommandSpec, args: &[Bytes]) -> bool {
        if self.allows_all || spec.flags.contains(Flags::NO_AUTH) {
            return true;
        }
        let row = spec.index();
        let is_allowed =
            if spec.subcommands.is_empty() { self.bit(row) } else { self.allows_part(spec, row, args) };
        is_allowed || (!self.first_args.is_empty() && self.allows_first_arg(row, args))
    }

    /// The same of a command with subcommands.
    fn allows_part(&self, spec: &CommandSpec, row: usize, args: &[Bytes]) -> bool {
        let first = usize::from(FIRST_SUBCOMMANDS[row]);
        let Some(word) = args.get(1) else { return self.bit(row) };
        let is_named = |known: &str| known.as_bytes().eq_ignore_ascii_case(word);
        match spec.subcommands.iter().position(|known| is_named(known)) {
            Some(place) => self.bit(first + place),
            // What the table does not list is for those who may execute all that it lists.
            None => self.bit(row) && (first..first + spec.subcommands.len()).all(|bit| self.bit(bit)),
        }
    }

    fn allows_first_arg(&self, row: usize, args: &[Bytes]) -> bool {
        let row = row as u16;
        let allowed = self.first_args.range((row, Vec::new())..(row + 1, Vec::new()));
        args.get(1).is_some_and(|word| allowed.into_iter().any(|(_, known)| known.eq_ignore_ascii_case(word)))
    }

    /// Applies `allcommands`, `nocommands` or a rule that begins with a sign.
    pub(crate) fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        if is("allcommands") || is("+@all") {
            self.begin(true);
        } else if is("nocommands") || is("-@all") {
            self.begin(false);
        } else {
            let text = std::str::from_utf8(rule).map_err(|_| RuleError::Unknown)?.to_ascii_lowercase();
            match text.split_at_checked(1) {
                Some(("+", name)) if name.starts_with('@') => self.apply_category(name, true)?,
                Some(("-", name)) if name.starts_with('@') => self.apply_category(name, false)?,
                Some(("+", name)) => self.add(name)?,
                Some(("-", name)) => self.set_named(name, find(name).ok_or(RuleError::Unknown)?, false),
                _ => return Err(RuleError::Syntax),
            }
        }
        self.allows_all = self.from_all && (0..BITS).all(|bit| self.bit(bit));
        Ok(())
    }

    fn begin(&mut self, from_all: bool) {
        let allowed = if from_all { [u64::MAX; WORDS] } else { [0; WORDS] };
        *self = Commands { from_all, allowed, ..Commands::default() };
    }

    fn apply_category(&mut self, name: &str, is_allowed: bool) -> Result<(), RuleError> {
        let category = category::named(name.as_bytes()).ok_or(RuleError::Unknown)?;
        for spec in &TABLE {
            let is_member = category::of_command(spec).contains(&category);
            if is_member && spec.subcommands.is_empty() {
                self.set(Named::Command(spec), is_allowed);
            } else if is_member {
                // Its subcommands are members or not by themselves.
                self.set_bit(spec.index(), is_allowed);
            }
            for (place, subcommand) in spec.subcommands.iter().enumerate() {
                if category::of_spec(spec, Some(subcommand)).contains(&category) {
                    self.set(Named::Subcommand(spec, place), is_allowed);
                }
            }
        }
        self.note(category, is_allowed);
        Ok(())
    }

    fn add(&mut self, name: &str) -> Result<(), RuleError> {
        let Some((command, word)) = name.rsplit_once('|') else {
            self.set_named(name, find(name).ok_or(RuleError::Unknown)?, true);
            return Ok(());
        };
        let spec = match find(command).ok_or(RuleError::Unknown)? {
            Named::Command(spec) => spec,
            Named::Subcommand(..) => return Err(RuleError::FirstArgOfSubcommand),
        };
        if word.is_empty() || has_spaces(word.as_bytes()) {
            return Err(RuleError::Syntax);
        }
        if !spec.subcommands.is_empty() {
            self.set_named(name, find(name).ok_or(RuleError::Unknown)?, true);
            return Ok(());
        }
        let first_arg = (spec.index() as u16, word.as_bytes().to_vec());
        if self.first_args.len() >= FIRST_ARGS_MAX && !self.first_args.contains(&first_arg) {
            return Err(RuleError::TooManyFirstArgs);
        }
        self.first_args.insert(first_arg);
        self.note(name, true);
        Ok(())
    }

    fn set_named(&mut self, name: &str, named: Named, is_allowed: bool) {
        self.set(named, is_allowed);
        self.note(name, is_allowed);
    }

    fn set(&mut self, named: Named, is_allowed: bool) {
        match named {
            Named::Command(spec) => {
                let row = spec.index();
                self.set_bit(row, is_allowed);
                self.first_args.retain(|(other, _)| usize::from(*other) != row);
                for place in 0..spec.subcommands.len() {
                    self.set_bit(usize::from(FIRST_SUBCOMMANDS[row]) + place, is_allowed);
                }
            }
            Named::Subcommand(spec, place) => {
                self.set_bit(usize::from(FIRST_SUBCOMMANDS[spec.index()]) + place, is_allowed);
            }
        }
    }

    /// Adds a rule behind the others, of which those about the same, or a part of it, are void.
    fn note(&mut self, name: &str, is_allowed: bool) {
        self.rules.retain(|rule| {
            let rest = rule[1..].strip_prefix(name);
            !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('|'))
        });
        self.rules.push(format!("{}{name}", if is_allowed { '+' } else { '-' }));
    }

    fn bit(&self, bit: usize) -> bool {
        self.allowed[bit / 64] >> (bit % 64) & 1 == 1
    }

    fn set_bit(&mut self, bit: usize, is_allowed: bool) {
        let mask = 1 << (bit % 64);
        if is_allowed {
            self.allowed[bit / 64] |= mask;
        } else {
            self.allowed[bit / 64] &= !mask;
        }
    }

    /// The rules that lead to this value, separated by blanks.
    pub fn describe(&self) -> String {
        let begin = if self.from_all { "+@all" } else { "-@all" };
        self.rules.iter().fold(begin.to_owned(), |text, rule| text + " " + rule)
    }
}

/// Finds `get` or `config|get`, in lower case.
fn find(name: &str) -> Option<Named> {
    let (command, subcommand) = name.split_once('|').map_or((name, None), |(name, sub)| (name, Some(sub)));
    let spec = lookup(command.as_bytes())?;
    let Some(subcommand) = subcommand else { return Some(Named::Command(spec)) };
    let place = spec.subcommands.iter().position(|known| *known == subcommand)?;
    Some(Named::Subcommand(spec, place))
}

/// Whether there is a blank or a zero byte, which would break the text that rules are written to.
pub(crate) fn has_spaces(text: &[u8]) -> bool {
    text.iter().any(|&byte| matches!(byte, b' ' | b'\t'..=b'\r' | 0))
}

#[cfg(test)]
mod tests;
