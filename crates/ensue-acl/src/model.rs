//! Properties over random rules: what is written is read as the same user, and the check agrees with a naive one.
//!
//! The naive one keeps the rules as text and looks for the last that decides; what commands do with keys it knows from
//! a list of its own.

use crate::user::User;
use crate::user::tests::{Quick, answer};
use crate::users::Users;
use bytes::Bytes;
use ensue_resp::TABLE;
use ensue_resp::category::of_category;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// What is done with a key or a channel of a command: `r`, `w`, both, or neither.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Key(&'static str),
    Channel,
    Pattern,
}

/// Commands with `K` for a key, `C` for a channel and `D` for a database.
const COMMANDS: [(&str, &[Use]); 30] = [
    ("get K", &[Use::Key("r")]),
    ("set K v", &[Use::Key("w")]),
    ("set K v get", &[Use::Key("rw")]),
    ("copy K K", &[Use::Key("r"), Use::Key("w")]),
    ("lmove K K left right", &[Use::Key("rw"), Use::Key("w")]),
    ("exists K K", &[Use::Key(""), Use::Key("")]),
    ("mset K v K v", &[Use::Key("w"), Use::Key("w")]),
    ("mget K K K", &[Use::Key("r"), Use::Key("r"), Use::Key("r")]),
    ("sinterstore K K K", &[Use::Key("w"), Use::Key("r"), Use::Key("r")]),
    ("zunionstore K 2 K K", &[Use::Key("w"), Use::Key("r"), Use::Key("r")]),
    ("xreadgroup group g c streams K K > >", &[Use::Key("r"), Use::Key("r")]),
    ("eval x 1 K", &[Use::Key("rw")]),
    ("sort K store K", &[Use::Key("r"), Use::Key("w")]),
    ("bitop and K K K", &[Use::Key("w"), Use::Key("r"), Use::Key("r")]),
    ("getdel K", &[Use::Key("rw")]),
    ("del K K", &[Use::Key("w"), Use::Key("w")]),
    ("memory usage K", &[Use::Key("")]),
    ("watch K", &[Use::Key("")]),
    ("config get x", &[]),
    ("config set x y", &[]),
    ("client id", &[]),
    ("client kill x", &[]),
    ("select D", &[]),
    ("publish C m", &[Use::Channel]),
    ("subscribe C C", &[Use::Channel, Use::Channel]),
    ("psubscribe C", &[Use::Pattern]),
    ("ping", &[]),
    ("auth x", &[]),
    ("flushall", &[]),
    ("keys x", &[]),
];

const RULES: [&str; 72] = [
    "+@all",
    "-@all",
    "allcommands",
    "nocommands",
    "+get",
    "-get",
    "+set",
    "-set",
    "+mget",
    "+copy",
    "-copy",
    "+select|0",
    "+select|1",
    "-select",
    "+select",
    "+config",
    "-config",
    "+config|get",
    "-config|get",
    "+config|set",
    "-config|set",
    "+client|id",
    "-client",
    "+@read",
    "-@read",
    "+@write",
    "-@write",
    "+@fast",
    "-@fast",
    "+@slow",
    "-@slow",
    "+@dangerous",
    "-@dangerous",
    "+@connection",
    "-@admin",
    "+@pubsub",
    "-@string",
    "+@keyspace",
    "+@scripting",
    "~*",
    "allkeys",
    "resetkeys",
    "~a*",
    "~b",
    "%R~a*",
    "%W~a*",
    "%R~c",
    "%W~c",
    "%RW~?",
    "%R~*",
    "%W~*",
    "&*",
    "allchannels",
    "resetchannels",
    "&a*",
    "&b",
    "db=0",
    "db=1,2",
    "alldbs",
    "resetdbs",
    "+geoadd",
    "-@geo",
    "+debug|object",
    "-debug",
    "+@transaction",
    "+@all",
    "~*",
    "&*",
    "+exists",
    "+@set",
    "+@stream",
    "+eval",
];

const WORDS: [&str; 16] = [
    "a",
    "b",
    "0",
    "1",
    "2",
    "-1",
    "99999999999",
    "store",
    "streams",
    "by",
    "get",
    "limit",
    "group",
    "count",
    "x*",
    "help",
];

const USER_RULES: [&str; 10] = [
    "on",
    "off",
    "nopass",
    "resetpass",
    ">a",
    "<a",
    ">b",
    "skip-sanitize-payload",
    "sanitize-payload",
    "clearselectors",
];

/// A set of permissions as it is told: only the rules that were accepted.
#[derive(Default)]
struct Naive {
    rules: Vec<String>,
}

impl Naive {
    fn allows(&self, command: &str, database: u8) -> bool {
        let words: Vec<&str> = command.split(' ').collect();
        let uses = uses(command);
        self.allows_command(&words)
            && self.allows_database(&words, &uses, database)
            && self.allows_uses(&uses)
    }

    fn allows_command(&self, words: &[&str]) -> bool {
        let is_container = matches!(words[0], "config" | "client" | "memory");
        let full = if is_container { format!("{}|{}", words[0], words[1]) } else { words[0].to_owned() };
        if full == "auth" {
            return true;
        }
        for rule in self.rules.iter().rev() {
            let (sign, name) = rule.split_at(1);
            let decides = match (rule.as_str(), name.strip_prefix('@')) {
                ("allcommands" | "+@all", _) => return true,
                ("nocommands" | "-@all", _) => return false,
                (_, Some(category)) => of_category(category.as_bytes()).expect("a category").contains(&full),
                _ if !["+", "-"].contains(&sign) => false,
                _ => {
                    let first_arg = words.get(1).map(|word| format!("{}|{word}", words[0]));
                    name == words[0] || name == full || first_arg.is_some_and(|text| name == text)
                }
            };
            if decides {
                return sign == "+";
            }
        }
        false
    }

    fn allows_database(&self, words: &[&str], uses: &[(Use, &str)], database: u8) -> bool {
        let mut allowed: BTreeSet<u8> = (0..=255).collect();
        for rule in &self.rules {
            match rule.as_str() {
                "alldbs" => allowed = (0..=255).collect(),
                "resetdbs" => allowed.clear(),
                rule => {
                    for number in rule.strip_prefix("db=").into_iter().flat_map(|numbers| numbers.split(','))
                    {
                        if allowed.len() == 256 {
                            allowed.clear();
                        }
                        allowed.insert(number.parse().expect("a number"));
                    }
                }
            }
        }
        match words[0] {
            "flushall" => allowed.len() == 256,
            "select" => allowed.contains(&words[1].parse().expect("a number")),
            "keys" | "eval" => allowed.contains(&database),
            _ => !uses.iter().any(|(used, _)| matches!(used, Use::Key(_))) || allowed.contains(&database),
        }
    }

    fn allows_uses(&self, uses: &[(Use, &str)]) -> bool {
        let (mut all_keys, mut all_channels) = (false, false);
        let mut keys: BTreeMap<&str, String> = BTreeMap::new();
        let mut channels: BTreeSet<&str> = BTreeSet::new();
        for rule in &self.rules {
            let pattern = rule.split_once('~').map(|(_, pattern)| pattern);
            match (rule.as_str(), pattern) {
                ("~*" | "allkeys", _) => (all_keys, keys) = (true, BTreeMap::new()),
                ("resetkeys", _) => (all_keys, keys) = (false, BTreeMap::new()),
                ("&*" | "allchannels", _) => (all_channels, channels) = (true, BTreeSet::new()),
                ("resetchannels", _) => (all_channels, channels) = (false, BTreeSet::new()),
                (_, Some(pattern)) => {
                    let held = keys.entry(pattern).or_default();
                    let sign = rule.trim_start_matches('%').split('~').next().expect("a part").to_lowercase();
                    held.push_str(if sign.is_empty() { "rw" } else { &sign });
                }
                _ => channels.extend(rule.strip_prefix('&')),
            }
        }
        uses.iter().all(|(used, name)| match used {
            Use::Key(needs) => {
                all_keys
                    || keys.iter().any(|(pattern, held)| {
                        needs.chars().all(|need| held.contains(need)) && is_like(pattern, name)
                    })
            }
            Use::Channel => all_channels || channels.iter().any(|pattern| is_like(pattern, name)),
            Use::Pattern => all_channels || channels.contains(name),
        })
    }
}

/// Whether a name matches one of the few patterns that are drawn.
fn is_like(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => pattern == name || (pattern == "?" && name.len() == 1),
    }
}

/// The keys and channels of a command that was drawn, from the list.
fn uses(command: &str) -> Vec<(Use, &str)> {
    let words: Vec<&str> = command.split(' ').collect();
    let fits = |template: &str| {
        let others: Vec<&str> = template.split(' ').collect();
        let is_same = |(word, other): (&&str, &&str)| ["K", "C", "D"].contains(other) || word == other;
        others.len() == words.len() && words.iter().zip(&others).all(is_same)
    };
    let (template, uses) =
        COMMANDS.iter().find(|(template, _)| fits(template)).expect("it was drawn from there");
    let names = template.split(' ').zip(&words).filter(|(part, _)| ["K", "C"].contains(part));
    uses.iter().copied().zip(names.map(|(_, word)| *word)).collect()
}

fn command() -> impl Strategy<Value = String> {
    let name = || prop::sample::select(vec!["a", "ab", "b", "c", "d", "a*"]);
    let numbers = prop::sample::select(vec!["0", "1", "2", "3"]);
    (0..COMMANDS.len(), prop::collection::vec(name(), 3), numbers).prop_map(|(nth, names, number)| {
        let mut names = names.into_iter();
        let words = COMMANDS[nth].0.split(' ').map(|word| match word {
            "K" | "C" => names.next().expect("at most three names"),
            "D" => number,
            word => word,
        });
        words.collect::<Vec<_>>().join(" ")
    })
}

fn rules(count: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::sample::select(RULES.to_vec()).prop_map(str::to_owned), 0..count)
}

/// A user with all rules that it accepts, and the same as sets of rules. One that is refused must change nothing.
fn build(root: &[String], selectors: &[Vec<String>], others: &[&str]) -> (User, Vec<Naive>) {
    let mut user = User::new(Bytes::from_static(b"alice"));
    let mut naive = vec![Naive::default()];
    for rule in root {
        let before = user.clone();
        match user.apply(rule.as_bytes(), &mut Quick) {
            Ok(()) => naive[0].rules.push(rule.clone()),
            Err(error) => assert!(user.is_same(&before), "{rule}: {error}"),
        }
    }
    for rule in others.iter().filter(|rule| **rule != "clearselectors") {
        let before = user.clone();
        if user.apply(rule.as_bytes(), &mut Quick).is_err() {
            assert!(user.is_same(&before), "{rule}");
        }
    }
    for rules in selectors {
        let mut accepted = Naive::default();
        for rule in rules {
            let tried = [&accepted.rules[..], std::slice::from_ref(rule)].concat();
            if user.clone().apply(format!("({})", tried.join(" ")).as_bytes(), &mut Quick).is_ok() {
                accepted.rules = tried;
            }
        }
        user.apply(format!("({})", accepted.rules.join(" ")).as_bytes(), &mut Quick).expect("tried before");
        naive.push(accepted);
    }
    (user, naive)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_written_is_read_as_the_same(
        root in rules(14),
        selectors in prop::collection::vec(rules(8), 0..3),
        others in prop::collection::vec(prop::sample::select(USER_RULES.to_vec()), 0..6),
    ) {
        let (user, _) = build(&root, &selectors, &others);
        let text = user.describe();
        let mut users = Users::new();
        users.load("users.acl", &text, &mut Quick).expect("what was written");
        let read = users.user(b"alice").expect("it was loaded");
        prop_assert!(read.is_same(&user), "{}", String::from_utf8_lossy(&text));
        prop_assert_eq!(read.describe(), text);
        prop_assert_eq!(read.allows_all(), user.allows_all());
    }

    #[test]
    fn no_arguments_make_a_check_panic(
        row in 0..TABLE.len(),
        words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..8),
    ) {
        let mut user = User::new(Bytes::from_static(b"alice"));
        for rule in ["+@all", "~a", "&a", "db=0"] {
            user.apply(rule.as_bytes(), &mut Quick).expect(rule);
        }
        let words = [&[TABLE[row].name][..], &words].concat().join(" ");
        answer(&user, &words, 0);
        answer(&user, &words, 1);
    }

    #[test]
    fn the_check_agrees_with_the_naive_one(
        root in rules(10),
        selectors in prop::collection::vec(rules(8), 0..3),
        commands in prop::collection::vec((command(), 0..3_u8), 1..20),
    ) {
        let (user, naive) = build(&root, &selectors, &[]);
        for (command, database) in commands {
            let expected = naive.iter().any(|set| set.allows(&command, database));
            let answer = answer(&user, &command, database);
            prop_assert_eq!(answer.is_empty(), expected, "{} in {}: {}", command, database, answer);
        }
    }
}
