//! What a command is about, before its answer is known.
//!
//! The words of a command arrive; a [`Plan`] leaves that holds names and values as text, so that a pending command
//! costs little. Commands that only read something else than values are passed over; a write that cannot be described
//! by reads and writes of single places leaves its keys out of the check.

use super::name;
use super::queue::QueuePlan;
use bytes::Bytes;
use ensue_resp::request::{GetExpiry, SetCondition, SetExpiry};
use ensue_resp::{Request, Route, command};

/// The commands of data, by what their answers say of single places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Its answer says nothing of values, and it changes none.
    Nothing,
    /// Answers with the value of each place.
    Read {
        places: Vec<String>,
        expires: bool,
    },
    /// Answers with names and values of what is there.
    ReadAll {
        row: String,
    },
    /// Answers with the members that are there.
    Members {
        row: String,
    },
    /// Answers 1 or 0 for each place; what is there is a member.
    Contains {
        places: Vec<String>,
    },
    /// Answers 0 if the place is empty; otherwise it says not what is there.
    IsThere {
        place: String,
    },
    Set {
        place: String,
        value: String,
        condition: SetCondition,
        expires: bool,
        gets: bool,
    },
    /// Answers 1 if it was empty and is now set, 0 if it was not.
    SetIfEmpty {
        place: String,
        value: String,
    },
    /// Sets all; a number answered is how many were empty.
    SetMany {
        pairs: Vec<(String, String)>,
    },
    /// Answers the value and removes it.
    Take {
        place: String,
    },
    /// Answers how many were there.
    Remove {
        places: Vec<String>,
    },
    /// Answers how many were not there.
    Insert {
        places: Vec<String>,
    },
    /// Answers the sum.
    Add {
        place: String,
        amount: i64,
    },
    /// Answers 1 if the place will, or did, become empty.
    Expire {
        place: String,
    },
    /// Gives what stands at a place another name, or answers 0 where it must not replace what stands there.
    Rename {
        from: String,
        to: String,
        if_absent: bool,
    },
    /// Removes all of a keyspace, or of all.
    Flush {
        keyspace: Option<u8>,
    },
    /// Puts something into queues, takes it out, or looks.
    Queue(QueuePlan),
    /// Changes these rows in a way that cannot be said here; all rows if there are none.
    Opaque {
        rows: Vec<String>,
        command: String,
    },
}

/// What members of a set are written as.
pub(super) const MEMBER: &str = "in";
/// A command with more words than these leaves everything out, if any of them may be a key.
const WORDS_MAX: usize = 256;

impl Plan {
    /// Reads a command of data in a keyspace.
    pub(super) fn of(args: &[Bytes], keyspace: u8) -> Plan {
        let Some(spec) = args.first().and_then(|word| command::lookup(word)) else {
            return Plan::unknown(args, keyspace);
        };
        if spec.route == Route::Session {
            return Plan::Nothing;
        }
        match Request::parse_as(spec, args) {
            Ok(request) => Plan::of_request(request, spec, args, keyspace),
            // The server will refuse it too; one that does not has a command of its own under this name.
            Err(_) => Plan::unknown(args, keyspace),
        }
    }

    /// Any word of a command that is not known may be a key.
    fn unknown(args: &[Bytes], keyspace: u8) -> Plan {
        let words = args.get(1..).unwrap_or_default();
        let command = args.first().map(|word| name::value(word)).unwrap_or_default();
        if words.is_empty() {
            return Plan::Nothing;
        }
        let rows = if words.len() > WORDS_MAX { &[] } else { words };
        Plan::Opaque { rows: rows.iter().map(|word| name::key(keyspace, word)).collect(), command }
    }

    fn of_request(request: Request, spec: &command::CommandSpec, args: &[Bytes], keyspace: u8) -> Plan {
        let key = |bytes: &Bytes| name::key(keyspace, bytes);
        let all = |keys: &[Bytes]| keys.iter().map(key).collect::<Vec<String>>();
        match request {
            Request::Get { key: name } => Plan::Read { places: vec![key(&name)], expires: false },
            Request::GetMany { keys } => Plan::Read { places: all(&keys), expires: false },
            Request::GetExpire { key: name, expiry } => Plan::Read {
                places: vec![key(&name)],
                expires: matches!(expiry, GetExpiry::InMs(_) | GetExpiry::AtMs(_)),
            },
            Request::Set { key: name, value, condition, expiry, get }
                if !(get && matches!(condition, SetCondition::If(_))) =>
            {
                Plan::Set {
                    place: key(&name),
                    value: name::value(&value),
                    condition,
                    expires: matches!(expiry, SetExpiry::InMs(_) | SetExpiry::AtMs(_)),
                    gets: get,
                }
            }
            Request::SetIfAbsent { key: name, value } => {
                Plan::SetIfEmpty { place: key(&name), value: name::value(&value) }
            }
            Request::SetMany { pairs } => Plan::SetMany {
                pairs: pairs.iter().map(|(name, value)| (key(name), name::value(value))).collect(),
            },
            Request::GetDelete { key: name } => Plan::Take { place: key(&name) },
            Request::Delete { keys } => Plan::Remove { places: all(&keys) },
            Request::IncrementBy { key: name, amount } => Plan::Add { place: key(&name), amount },
            Request::Persist { .. } => Plan::Nothing,
            // Nothing is moved.
            Request::Rename { key: name, target } if name == target => Plan::Nothing,
            Request::Rename { key: name, target } => {
                Plan::Rename { from: key(&name), to: key(&target), if_absent: spec.name == "renamenx" }
            }
            Request::Flush { every_keyspace } => {
                Plan::Flush { keyspace: (!every_keyspace).then_some(keyspace) }
            }
            Request::Expire { key: name, .. } => Plan::Expire { place: key(&name) },
            request => {
                let queue = || QueuePlan::of(&request, keyspace).map(Plan::Queue);
                let plan = Plan::of_elements(&request, keyspace).or_else(queue);
                plan.unwrap_or_else(|| match spec.is_write() {
                    false => Plan::Nothing,
                    true => {
                        let rows = command::keys(spec, args).map(|name| name::key(keyspace, name)).collect();
                        Plan::Opaque { rows, command: spec.name.to_uppercase() }
                    }
                })
            }
        }
    }

    /// Hashes and sets.
    fn of_elements(request: &Request, keyspace: u8) -> Option<Plan> {
        let row = name::key(keyspace, request.key()?);
        let place = |element: &Bytes| name::element(&row, element);
        let all = |elements: &[Bytes]| elements.iter().map(place).collect::<Vec<String>>();
        Some(match request {
            Request::HashGet { field, .. } => Plan::Read { places: vec![place(field)], expires: false },
            Request::HashGetMany { fields, .. } => Plan::Read { places: all(fields), expires: false },
            Request::HashGetAll { part: ensue_resp::request::HashPart::FieldsAndValues, .. } => {
                Plan::ReadAll { row }
            }
            Request::HashExists { field, .. } => Plan::IsThere { place: place(field) },
            Request::HashSet { pairs, .. } => Plan::SetMany {
                pairs: pairs.iter().map(|(field, value)| (place(field), name::value(value))).collect(),
            },
            Request::HashSetIfAbsent { field, value, .. } => {
                Plan::SetIfEmpty { place: place(field), value: name::value(value) }
            }
            Request::HashDelete { fields, .. } => Plan::Remove { places: all(fields) },
            Request::HashIncrementBy { field, amount, .. } => {
                Plan::Add { place: place(field), amount: *amount }
            }
            Request::SetAdd { members, .. } => Plan::Insert { places: all(members) },
            Request::SetRemove { members, .. } => Plan::Remove { places: all(members) },
            Request::SetContains { member, .. } => Plan::Contains { places: vec![place(member)] },
            Request::SetContainsMany { members, .. } => Plan::Contains { places: all(members) },
            Request::SetMembers { .. } => Plan::Members { row },
            _ => return None,
        })
    }

    /// Roughly what it costs to remember.
    pub(super) fn bytes(&self) -> usize {
        let texts = |texts: &[String]| texts.iter().map(|text| text.len() + 24).sum::<usize>();
        64 + match self {
            Plan::Nothing | Plan::Flush { .. } => 0,
            Plan::Rename { from, to, .. } => from.len() + to.len(),
            Plan::Read { places, .. } | Plan::Contains { places } => texts(places),
            Plan::Remove { places } | Plan::Insert { places } => texts(places),
            Plan::Opaque { rows, .. } => texts(rows),
            Plan::Queue(queue) => queue.bytes(),
            Plan::SetMany { pairs } => {
                pairs.iter().map(|(place, value)| place.len() + value.len() + 48).sum()
            }
            Plan::Set { place, value, .. } | Plan::SetIfEmpty { place, value } => place.len() + value.len(),
            Plan::ReadAll { row: place } | Plan::Members { row: place } => place.len(),
            Plan::IsThere { place } | Plan::Take { place } | Plan::Expire { place } => place.len(),
            Plan::Add { place, .. } => place.len(),
        }
    }
}
