//! Rules of users, as an operator's text brings them, and commands that are checked by them.
//!
//! Whatever the text is: it changes all that it says or nothing, a refusal is answered, and what is saved leads to the
//! same users, who may do the same.

use bytes::Bytes;
use ensue_acl::{Call, Hasher, RuleError, Unhashed, User, Users, Verifier};
use ensue_types::KeyspaceId;

/// Users that are saved and compared at most: a text may name thousands.
const USERS_COMPARED: usize = 16;

/// Up to the first byte 0 it is a file of users if it begins with `user`, or else the words of one `ACL SETUSER`;
/// behind it, each line is a command.
pub fn run(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (rules, commands) = (&data[..end], data.get(end + 1..).unwrap_or_default());
    let mut users = Users::new();
    let before = users.save();
    if rules.starts_with(b"user") {
        match users.load("file", rules, &mut Fast) {
            Ok(gone) => assert!(gone.is_empty(), "nobody was there but `default`"),
            Err(error) => {
                assert!(!error.to_string().is_empty() && users.save() == before, "{error}");
            }
        }
    } else {
        let words: Vec<&[u8]> = rules.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect();
        match users.set(b"app", &words, &mut Fast) {
            Ok(user) => assert!(users.is_current(&user)),
            Err(error) => {
                let _ = error.reply();
                assert!(users.save() == before, "a refused rule has changed users");
            }
        }
    }
    let read = read_again(&users);
    for command in commands.split(|byte| *byte == b'\n') {
        check_command(&users, &read, command);
    }
}

/// The users of the saved text, which are the same.
fn read_again(users: &Users) -> Users {
    let text = users.save();
    let mut read = Users::new();
    if let Err(error) = read.load("saved", &text, &mut Unhashed) {
        panic!("what was saved is refused: {error}");
    }
    assert_eq!(read.save(), text, "what was saved is read as something else");
    for user in users.iter().take(USERS_COMPARED) {
        let same = read.user(user.name()).is_some_and(|other| other.is_same(user));
        assert!(same, "{:?} is another user when it is read", user.name());
        let line = user.describe();
        assert!(User::parse(&line).is_some_and(|parsed| parsed.is_same(user)), "{:?}", user.name());
        let _ = (user.reply(), users.describe(user.name()));
    }
    read
}

/// Who may run a command may run it by what was saved, too; who may not is told something.
fn check_command(users: &Users, read: &Users, command: &[u8]) {
    let args: Vec<Bytes> = command.split(|byte| *byte == b' ').map(Bytes::copy_from_slice).collect();
    let Some(spec) = ensue_resp::lookup(&args[0]) else { return };
    if !ensue_resp::check_arity(spec, args.len()) {
        return;
    }
    let call = Call { spec, args: &args, database: KeyspaceId(3) };
    for user in users.iter().take(USERS_COMPARED) {
        let checked = user.check(&call);
        let other = read.user(user.name()).map(|other| other.check(&call));
        assert_eq!(Some(&checked), other.as_ref(), "{:?}", call.full_name());
        match checked {
            Ok(()) => {}
            Err(denied) => {
                assert!(!user.allows_all(), "who may do everything is refused {:?}", call.full_name());
                assert!(!denied.explain(user.name(), &call).is_empty());
                let _ = (denied.reply(user.name(), &call), denied.object(&call), denied.reason());
            }
        }
    }
}

/// Passwords as SHA-256, which takes no time.
struct Fast;

impl Hasher for Fast {
    fn verifier(&mut self, password: &[u8]) -> Result<Verifier, RuleError> {
        Ok(Verifier::sha256(password))
    }

    /// One of Argon2id asks for as much time as its text says.
    fn matches(&mut self, verifier: &Verifier, password: &[u8]) -> bool {
        !verifier.is_costly() && verifier.matches(password)
    }
}
