//! Users, against what the test suite of Redis expects of them.

use super::*;
use crate::rules::join_selectors;
use ensue_types::KeyspaceId;

/// Hashes as Redis does, so that tests take no time.
pub(crate) struct Quick;

impl Hasher for Quick {
    fn verifier(&mut self, password: &[u8]) -> Result<Verifier, RuleError> {
        Ok(Verifier::sha256(password))
    }
}

/// The rules applied to a user, which a wrong one leaves as it was before it.
pub(crate) fn apply(user: &mut User, rules: &str) -> Result<(), RuleError> {
    let words: Vec<&str> = rules.split_whitespace().collect();
    for rule in join_selectors(&words).expect("selectors that close") {
        user.apply(&rule, &mut Quick)?;
    }
    Ok(())
}

/// A user with these rules.
#[track_caller]
pub(crate) fn user(rules: &str) -> User {
    let mut user = User::new(Bytes::from_static(b"alice"));
    apply(&mut user, rules).expect(rules);
    user
}

pub(crate) fn args(words: &str) -> Vec<Bytes> {
    words.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

/// What a user is answered: nothing if the command is allowed, else what `ACL DRYRUN` says.
pub(crate) fn answer(user: &User, words: &str, database: u8) -> String {
    let args = args(words);
    let spec = ensue_resp::lookup(&args[0]).expect("a known command");
    let call = Call { spec, args: &args, database: KeyspaceId(database) };
    let denied = user.check(&call).err();
    denied.map_or(String::new(), |denied| {
        String::from_utf8_lossy(&denied.explain(b"alice", &call)).into_owned()
    })
}

#[track_caller]
fn allows(user: &User, all: &[&str]) {
    for words in all {
        assert_eq!(answer(user, words, 0), "", "{words}");
    }
}

#[track_caller]
fn denies(user: &User, words: &str, what: &str) {
    let expected = match what.split_once(' ') {
        Some(("command", name)) => format!("User alice has no permissions to run the '{name}' command"),
        Some((kind, object)) => format!("User alice has no permissions to access the '{object}' {kind}"),
        None => panic!("a kind and a name"),
    };
    assert_eq!(answer(user, words, 0), expected, "{words}");
}

fn shown(user: &User) -> String {
    String::from_utf8_lossy(&user.describe()).into_owned()
}

#[test]
fn as_acl_list_shows_them() {
    for (rules, expected) in [
        ("", "user alice off sanitize-payload resetchannels -@all"),
        ("reset", "user alice off sanitize-payload resetchannels -@all"),
        ("on nopass ~* &* +@all", "user alice on nopass sanitize-payload ~* &* +@all"),
        (
            "on nopass resetchannels &foo +@all",
            "user alice on nopass sanitize-payload resetchannels &foo +@all",
        ),
        ("ON SKIP-SANITIZE-PAYLOAD AllKeys", "user alice on skip-sanitize-payload ~* resetchannels -@all"),
        (
            "%R~foo %W~foo %RW~bar %r~a %wR~b",
            "user alice off sanitize-payload ~foo ~bar %R~a ~b resetchannels -@all",
        ),
        (
            "+get ( +set ~a ) clearselectors (~b) (%R~c &d db=1)",
            "user alice off sanitize-payload resetchannels -@all +get (~b resetchannels -@all) \
             (%R~c resetchannels &d db=1 -@all)",
        ),
        ("db=3,1 DB=3", "user alice off sanitize-payload resetchannels db=1,3 -@all"),
        ("db=3 resetdbs", "user alice off sanitize-payload resetchannels resetdbs -@all"),
        ("db=3 alldbs", "user alice off sanitize-payload resetchannels -@all"),
        ("%R~* %W~*", "user alice off sanitize-payload ~* resetchannels -@all"),
        (
            ">passwd4 #34344e4d60c2b6d639b7bd22e18f2b0b91bc34bf0ac5f9952744435093cfb4e6 +get on ~* &*",
            "user alice on sanitize-payload #34344e4d60c2b6d639b7bd22e18f2b0b91bc34bf0ac5f9952744435093cfb4e6 ~* &* \
             -@all +get",
        ),
    ] {
        assert_eq!(shown(&user(rules)), expected, "{rules}");
    }
    assert_eq!(
        User::unrestricted().describe(),
        b"user default on nopass sanitize-payload ~* &* +@all".to_vec()
    );
}

#[test]
fn as_acl_getuser_shows_them() {
    let user = user("on >p -@all +get &channel1 %R~foo1 %W~bar1 ~baz1 (+set &channel2 ~baz2 db=4)");
    let text = |words: &str| Reply::bulk(words.to_owned());
    let Reply::Map(entries) = user.reply() else { panic!("a map") };
    let names: Vec<&Reply> = entries.iter().map(|(name, _)| name).collect();
    let expected = ["flags", "passwords", "commands", "keys", "channels", "selectors"].map(Reply::bulk);
    assert_eq!(names, expected.iter().collect::<Vec<_>>());
    let values: Vec<Reply> = entries.into_iter().map(|(_, value)| value).collect();
    assert_eq!(values[0], Reply::Set(vec![text("on"), text("sanitize-payload")]));
    assert_eq!(values[1], Reply::Array(vec![text(&Verifier::sha256(b"p").to_string())]));
    assert_eq!(values[2], text("-@all +get"));
    assert_eq!(values[3], text("%R~foo1 %W~bar1 ~baz1"));
    assert_eq!(values[4], text("&channel1"));
    let selector =
        [("commands", "-@all +set"), ("keys", "~baz2"), ("channels", "&channel2"), ("databases", "db=4")];
    let selector = selector.map(|(name, value)| (text(name), text(value)));
    assert_eq!(values[5], Reply::Array(vec![Reply::Map(selector.to_vec())]));
}

#[test]
fn passwords() {
    let mut user = user("on >passwd1 >passwd2");
    let accepted = |user: &User| ["passwd1", "passwd2", "passwd3"].map(|word| user.accepts(word.as_bytes()));
    assert_eq!(accepted(&user), [true, true, false]);
    let hash = format!("#{0} #{0}", Verifier::sha256(b"passwd3"));
    apply(&mut user, &hash).expect("hashes");
    assert_eq!(user.verifiers().len(), 3);
    apply(&mut user, "<passwd1").expect("held");
    assert_eq!(accepted(&user), [false, true, true]);
    apply(&mut user, &format!("!{}", Verifier::sha256(b"passwd3"))).expect("held");
    assert_eq!(accepted(&user), [false, true, false]);
    assert_eq!(apply(&mut user, "<passwd1"), Err(RuleError::NoSuchPassword));
    assert_eq!(apply(&mut user, "#34344e4d"), Err(RuleError::PasswordHash));
    assert_eq!(apply(&mut user, &format!("#{}", "F".repeat(64))), Err(RuleError::PasswordHash));
    assert_eq!(apply(&mut user, "!x"), Err(RuleError::PasswordHash));
    apply(&mut user, "nopass").expect("a word");
    assert_eq!(accepted(&user), [true, true, true]);
    assert!(user.verifiers().is_empty());
    apply(&mut user, ">passwd1").expect("a password");
    assert_eq!(accepted(&user), [true, false, false]);
    apply(&mut user, "nopass resetpass").expect("words");
    assert_eq!(accepted(&user), [false, false, false]);
    let many = (0..PASSWORDS_MAX).map(|nth| format!(">{nth} ")).collect::<String>();
    apply(&mut user, &many).expect("as many as there may be");
    assert_eq!(apply(&mut user, ">one-more"), Err(RuleError::TooManyPasswords));
    assert_eq!(apply(&mut user, ">0"), Ok(()));
}

#[test]
fn wrong_rules() {
    for (rules, error) in [
        ("%Y~foo", RuleError::Syntax),
        ("%RR~foo", RuleError::Syntax),
        ("%~foo", RuleError::Syntax),
        ("%R", RuleError::Syntax),
        ("foo", RuleError::Syntax),
        (")", RuleError::Syntax),
        ("(this-is-invalid)", RuleError::Syntax),
        ("(&* &fail)", RuleError::ChannelAfterAll),
        ("(on)", RuleError::Syntax),
        ("(+get ~a) )", RuleError::Syntax),
        ("(+PING (+SELECT (+DEL ) ) )", RuleError::Syntax),
        ("~* ~foo", RuleError::KeyAfterAll),
        ("allchannels &foo", RuleError::ChannelAfterAll),
        ("+nope", RuleError::Unknown),
        ("-nope", RuleError::Unknown),
        ("+@nope", RuleError::Unknown),
        ("-@nope", RuleError::Unknown),
        ("+", RuleError::Unknown),
        ("+@", RuleError::Unknown),
        ("+config|asdf", RuleError::Unknown),
        ("-config|asdf", RuleError::Unknown),
        ("+config|get|appendonly", RuleError::FirstArgOfSubcommand),
        ("+get|key1|key2", RuleError::Unknown),
        ("-get|key1|key2", RuleError::Unknown),
        ("-select|0", RuleError::Unknown),
        ("+debug|", RuleError::Syntax),
        ("db=", RuleError::Syntax),
        ("db=1,", RuleError::Syntax),
        ("db=+1", RuleError::Syntax),
        ("db=256", RuleError::Syntax),
        ("#$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$MTIzNDU2Nzg5MDEyMzQ1Ng", RuleError::Argon2),
    ] {
        let mut user = User::new(Bytes::from_static(b"alice"));
        assert_eq!(apply(&mut user, rules), Err(error), "{rules}");
    }
    let mut user = user("");
    for rule in [&b""[..], b"~a b", b"&a\0", b"+select|a b", b" () ", b"~a\n", b"(~a) )"] {
        assert_eq!(user.apply(rule, &mut Quick), Err(RuleError::Syntax), "{rule:?}");
    }
    assert_eq!(user.apply(b"+\xff", &mut Quick), Err(RuleError::Unknown));
}

#[test]
fn commands_and_subcommands() {
    allows(&user("+@all ~* &* -client|kill"), &["client id", "get a", "publish a b"]);
    denies(&user("+@all -client|kill"), "client kill x", "command client|kill");
    denies(&user("+@all -client +client|id +client|setname"), "client kill x", "command client|kill");
    allows(&user("+@all -client +client|id +client|setname"), &["client id", "CLIENT SetName x"]);
    denies(&user("+@all -debug +debug|object"), "debug segfault", "command debug");
    allows(&user("-@all +debug|object"), &["debug OBJECT x"]);
    denies(&user("-@all +select|0"), "select 1", "command select");
    allows(&user("-@all +select|0"), &["select 0", "auth x", "hello", "reset", "quit"]);
    denies(&user("+@all -@dangerous"), "client list", "command client|list");
    denies(&user("+@all -@admin"), "acl setuser x", "command acl|setuser");
    allows(&user("+@all -@admin"), &["acl whoami", "client id"]);
    denies(&user("+@read ~*"), "eval_ro x 0", "command eval_ro");
    // What the table does not list is for those who may do all that it lists.
    allows(&user("+config"), &["config nope"]);
    denies(&user("+config -config|set"), "config nope", "command config");
    denies(&user("+client|id"), "client", "command client");
}

#[test]
fn keys() {
    let user = user("+@all %R~read* %W~write* %RW~rw*");
    allows(
        &user,
        &[
            "get read1",
            "lpush write1 10",
            "copy read write",
            "set write1 bar",
            "set write1 get",
            "set rw 1 get",
            "sort read store write",
            "eval x 1 rw1",
            "eval_ro x 1 read",
            "eval x 0 read",
            "eval x -1 read",
            "eval x 3 rw read",
            "hexists read foo",
            "hexists write foo",
            "touch write",
            "exists rw",
            "memory usage write",
            "strlen read",
            "sintercard 2 read read",
            "pfcount read",
            "georadius read 1 2 3 m storedist write",
            "ping",
            "bitfield read get u4 0",
            "xreadgroup group g c streams read read > >",
            "getdel rw",
            "bitop and write read read",
            "sinterstore write read",
            "lmove rw write left right",
        ],
    );
    for (words, key) in [
        ("set read1 bar", "read1"),
        ("get write1", "write1"),
        ("copy write read", "write"),
        ("copy read read2", "read2"),
        ("set write1 bar GET", "write1"),
        ("set write1 bar ex get", "write1"),
        ("sort read store read", "read"),
        ("sort write store write", "write"),
        ("eval x 1 read", "read"),
        ("hexists nothing foo", "nothing"),
        ("touch nothing", "nothing"),
        ("memory usage nothing", "nothing"),
        ("sintercard 2 write read", "write"),
        ("pfcount write read", "write"),
        ("georadius read1 1 2 3 m storedist read2", "read2"),
        ("bitfield read get u4 0 set u4 0 1", "read"),
        ("bitfield write get u4 0", "write"),
        ("getdel write", "write"),
        ("lmove read write left right", "read"),
        ("mget rw1 rw2 no rw3", "no"),
    ] {
        denies(&user, words, &format!("key {key}"));
    }
}

#[test]
fn keys_that_the_table_does_not_list() {
    let user = user("+@all ~a* %W~b");
    allows(&user, &["branch get a1", "causal conflicts a", "branch list", "causal token"]);
    denies(&user, "branch get b", "key b");
    denies(&user, "causal conflicts b", "key b");
    denies(&user, "causal conflicts", "key conflicts");
    denies(&user, "causal discarded", "key discarded");
    denies(&user, "branch diff x y", "key diff");
    let reader = self::user("+@all %R~* db=0");
    allows(&reader, &["branch diff x y", "causal conflicts b"]);
    assert_eq!(
        answer(&reader, "branch diff x y", 1),
        "User alice has no permissions to access the '1' database"
    );
    denies(&reader, "causal conflicts", "database 1");
}

#[test]
fn selectors() {
    let user = user("-@all resetkeys (+@write ~write::*) (+@read ~read::*)");
    allows(&user, &["set write::foo bar", "get read::foo"]);
    denies(&user, "ping", "command ping");
    denies(&user, "get write::foo", "key write::foo");
    // The one that comes farthest tells what is denied.
    let user = self::user("+mget ~key (+mget ~key ~otherkey)");
    denies(&user, "get key", "command get");
    denies(&user, "mget otherkey someotherkey", "key someotherkey");
    denies(&user, "mget key otherkey someotherkey", "key someotherkey");
    // Permissions of several do not add up.
    let user = self::user("(%R~read* +@all) (%W~write* +@all)");
    denies(&user, "copy read write", "key write");
    assert!(!user.allows_all());
    assert!(self::user("(+@all ~* &*)").allows_all());
    assert!(!self::user("+@all ~* &* db=0").allows_all());
    assert!(!self::user("+@all -get ~* &*").allows_all());
    assert!(self::user("+@all -get +get ~* &*").allows_all());
}

#[test]
fn channels() {
    let user = user("+@pubsub &foo:1 &bar:*");
    allows(
        &user,
        &[
            "publish foo:1 x",
            "spublish bar:2 x",
            "subscribe foo:1 bar:2",
            "psubscribe foo:1 bar:*",
            "unsubscribe x",
        ],
    );
    denies(&user, "publish zap:3 x", "channel zap:3");
    denies(&user, "ssubscribe foo:1 zap:3", "channel zap:3");
    denies(&user, "psubscribe bar:baz", "channel bar:baz");
    assert!(user.allows_channel(Channel::Literal(b"bar:x")));
    assert!(!user.allows_channel(Channel::Pattern(b"bar:x")));
}

#[test]
fn databases() {
    let user = user("+@all ~* &* db=1,200");
    for words in ["get a", "watch a", "keys *", "eval x 0", "flushdb"] {
        assert_eq!(answer(&user, words, 1), "", "{words}");
        assert_eq!(answer(&user, words, 200), "", "{words}");
        denies(&user, words, "database 0");
    }
    allows(&user, &["ping", "select 1", "select 200", "select x", "select 4096", "publish a b", "multi"]);
    denies(&user, "select 2", "database 2");
    assert_eq!(answer(&user, "flushall", 1), "User alice has no permissions to access the '0' database");
}

#[test]
fn patterns_of_sort() {
    let text = |option: &str| format!("{option} option of SORT denied due to insufficient ACL permissions.");
    for rules in ["(+sort ~mylist)", "(+sort ~mylist) (+sort ~mylist ~v*)", "(+sort ~mylist %W~*)"] {
        let user = user(rules);
        assert_eq!(answer(&user, "sort mylist by v*", 0), text("BY"), "{rules}");
        assert_eq!(answer(&user, "sort mylist get v*", 0), text("GET"), "{rules}");
        assert_eq!(answer(&user, "sort mylist by nosort get #", 0), "", "{rules}");
    }
    assert_eq!(answer(&user("+sort ~mylist %R~*"), "sort mylist by v*", 0), "");
}
