//! Tests of the syntax, of precedence, and of what is refused and where.

use super::*;
use crate::temporary::Temporary;
use ensue_types::{CoreId, DatacenterId, PartitionId};

struct Given {
    folder: Temporary,
    flags: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Given {
    fn file(text: &str) -> Given {
        let given = Given { folder: Temporary::new(), flags: Vec::new(), variables: Vec::new() };
        given.write("ensue.conf", text);
        given
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn flags(mut self, flags: &[&str]) -> Given {
        self.flags = flags.iter().map(ToString::to_string).collect();
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Given {
        self.variables.push((name.into(), value.into()));
        self
    }

    fn load(&self) -> Result<Config, ConfigError> {
        let path = self.folder.path().join("ensue.conf");
        Config::load(Some(&path), &self.flags, self.variables.clone().into_iter())
    }

    fn error(&self) -> String {
        let folder = format!("{}/", self.folder.path().display());
        self.load().unwrap_err().to_string().replace(&folder, "")
    }
}

#[test]
fn a_file_is_read_as_redis_reads_one() {
    let given = Given::file(
        "# a comment\n\n  PORT 7001\nbind 127.0.0.1 -::1\nrequirepass \"a b\\x21\"\nmaxmemory 100mb\n\
         replication-backlog-max 2g\ndir 'my data'\nappendfsync always\nsave \"\"\nkeyspace 1 protocol eventual\n",
    );
    let config = given.load().unwrap();
    assert_eq!(config.port, 7001);
    assert_eq!(config.requirepass.as_deref(), Some("a b!"));
    assert_eq!((config.maxmemory, config.replication_backlog_max), (100 << 20, 2_000_000_000));
    assert_eq!(config.dir, PathBuf::from("my data"));
    assert_eq!(config.appendfsync, AppendFsync::Always);
    assert_eq!((config.protocols[0].as_str(), config.protocols[1].as_str()), ("eiger", "eventual"));
}

#[test]
fn flags_win_over_variables_and_these_over_the_file() {
    let file = "port 1001\ntimeout 1\nmaxclients 1\nloglevel debug\n";
    let given = Given::file(file)
        .variable("ENSUE_PORT", "1002")
        .variable("ENSUE_TIMEOUT", "2")
        .variable("ENSUE_SERVICE_HOST", "not ours")
        .flags(&["--port", "1003", "--maxclients=3"]);
    let config = given.load().unwrap();
    assert_eq!((config.port, config.timeout_s, config.maxclients), (1003, 2, 3));
    assert_eq!(config.loglevel, Level::Debug);
}

#[test]
fn a_layer_replaces_all_lines_of_a_directive() {
    let given = Given::file("node dc1 10.0.0.1:7000\nnode dc2 10.0.0.2:7000\nself dc2\n")
        .variable("ENSUE_NODE", "dc2 h:1; dc3 [::1]:2 cores 4");
    let config = given.load().unwrap();
    let lines: Vec<String> = config.nodes.iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["dc2 h:1", "dc3 [::1]:2 cores 4"]);
}

#[test]
fn included_files_stand_where_they_are_included() {
    let given = Given::file("port 1\ninclude more.conf\ntimeout 3\n");
    given.write("more.conf", "port 2\ntimeout 2\n");
    let config = given.load().unwrap();
    assert_eq!((config.port, config.timeout_s), (2, 3));
    given.write("more.conf", "\nprot 2\n");
    assert_eq!(given.error(), "more.conf:2: unknown directive 'prot'");
    given.write("more.conf", "include more.conf");
    assert_eq!(given.error(), "more.conf:1: files include each other too deep");
}

#[test]
fn mistakes_are_named_with_their_place() {
    let cases = [
        ("prot 1", "ensue.conf:1: unknown directive 'prot'"),
        ("\nport 70000", "ensue.conf:2: 'port': '70000' is no number from 0 to 65535"),
        ("port", "ensue.conf:1: 'port': a value is missing"),
        ("port 1 2", "ensue.conf:1: 'port': one value, not 2"),
        ("dir \"open", "ensue.conf:1: a quote is not closed"),
        (
            "maxmemory 1x",
            "ensue.conf:1: 'maxmemory': '1x' is no size: the units are b, k, kb, m, mb, g and gb",
        ),
        ("appendonly no", "ensue.conf:1: 'appendonly': only 'yes' is possible here"),
        (
            "keyspace 0 protocol x",
            "ensue.conf:1: 'keyspace': 'x' is no protocol; there are eiger, eventual, log, cops, cops-gt, cops-cd, orbe-dm, orbe-clock, cure, pocc, ha-pocc, tardis",
        ),
        (
            "keyspace 0 conflicts k* x",
            "ensue.conf:1: 'keyspace': 'x' is no handler of conflicts; there are newest, union, max, min, concat-sorted, and lua FILE",
        ),
        (
            "keyspace 0 conflicts k*",
            "ensue.conf:1: 'keyspace': a number, then `protocol` and a name, `conflicts`, a pattern and a handler, or `lua` and a file, `home`, a pattern and a datacenter, or `home-reads` and yes or no",
        ),
        (
            "keyspace 0 conflicts k* union max",
            "ensue.conf:1: 'keyspace': 'union max' is no handler of conflicts; there are newest, union, max, min, concat-sorted, and lua FILE",
        ),
        (
            "keyspace 0 conflicts k* lua",
            "ensue.conf:1: 'keyspace': after `lua`, name the file of the handler",
        ),
        (
            "keyspace 0 conflicts k* lua missing.lua",
            "ensue.conf:1: 'keyspace': the handler missing.lua: No such file or directory (os error 2)",
        ),
        (
            "keyspace 0 house k* dc1",
            "ensue.conf:1: 'keyspace': 'house' is no property of a keyspace; `protocol`, `conflicts`, `home` and `home-reads` are",
        ),
        ("keyspace 0 home-reads maybe", "ensue.conf:1: 'keyspace': 'maybe' is neither yes nor no"),
        (
            "self dc1\nnode dc1 h:1\nkeyspace 0 home lock:* dc7",
            "'keyspace': keyspace 0 has keys at home in 'dc7', which is no datacenter",
        ),
        (
            "keyspace 0 protocol tardis\nkeyspace 0 home lock:* dc1",
            "'keyspace': keyspace 0 has keys with a home, which its protocol 'tardis' cannot have: its sessions do \
             not see all that happened at a key",
        ),
        (
            "keyspace 3 conflicts k* union",
            "'keyspace': keyspace 3 has a handler of conflicts, but its protocol 'eiger' asks none",
        ),
        ("heartbeat-interval 0", "ensue.conf:1: 'heartbeat-interval': '0' is no number from 1 to 1000"),
        (
            "stabilization-interval 5ms",
            "ensue.conf:1: 'stabilization-interval': '5ms' is no number from 1 to 1000",
        ),
        ("request-timeout 99", "ensue.conf:1: 'request-timeout': '99' is no number from 100 to 600000"),
        (
            "block-threshold 2001",
            "'block-threshold': a read of 2001 ms may wait twice, which does not fit into a 'request-timeout' of 5000 ms: \
             at most 2000",
        ),
        (
            "request-timeout 1000",
            "'block-threshold': a read of 500 ms may wait twice, which does not fit into a 'request-timeout' of 1000 ms: \
             at most 400",
        ),
        ("dependency-cleaning on", "ensue.conf:1: 'dependency-cleaning': 'on' is neither yes nor no"),
        ("node dc1 host", "ensue.conf:1: 'node': 'host' has no port"),
        (
            "self dc9\nnode dc1 h:1",
            "the cluster is not consistent: no `node` line is of our datacenter 'dc9'",
        ),
        ("self dc1 1\nnode dc1 h:1", "the cluster is not consistent: dc1 has no node 1"),
    ];
    for (text, expected) in cases {
        assert_eq!(Given::file(text).error(), expected, "{text}");
    }
    let given = Given::file("").flags(&["--port", "x"]);
    assert_eq!(given.error(), "flag --port: 'port': 'x' is no number from 0 to 65535");
    let given = Given::file("").variable("ENSUE_PORT", "tcp://10.0.0.1:6379");
    assert!(given.error().starts_with("variable ENSUE_PORT: 'port': "));
}

#[test]
fn intervals_are_told_as_they_were_set() {
    let told = |config: &Config, name: &str| {
        config.directives().into_iter().find(|(known, _)| known == name).map(|(_, value)| value).unwrap()
    };
    let names = [
        "heartbeat-interval",
        "stabilization-interval",
        "request-timeout",
        "block-threshold",
        "dependency-cleaning",
    ];
    let default = Given::file("").load().unwrap();
    assert_eq!(names.map(|name| told(&default, name)), ["10", "5", "5000", "500", "yes"]);
    let text = "heartbeat-interval 20\nstabilization-interval 7\nrequest-timeout 10000\nblock-threshold 4000\n\
                dependency-cleaning no\n";
    let config = Given::file(text).variable("ENSUE_HEARTBEAT_INTERVAL", "30").load().unwrap();
    assert_eq!(names.map(|name| told(&config, name)), ["30", "7", "10000", "4000", "no"]);
    let set = (config.heartbeat_interval_ms, config.stabilization_interval_ms, config.block_threshold_ms);
    assert_eq!((set, config.request_timeout_ms), ((30, 7, 4000), 10_000));
    assert!(!config.dependency_cleaning);
}

#[test]
fn how_branches_behave_is_told_as_it_was_set() {
    let text = "branch-collection optimistic\nbranch-ceiling-every 0\nbranch-states-max 50\nbranch-leaves-max 7\n\
                branch-merging-datacenter dc1\nbranch-transaction-timeout 200\n";
    let node = "node dc1 localhost:7000\nnode dc2 localhost:7001\nself dc1\n";
    let config = Given::file(&format!("{text}{node}")).load();
    let told = |config: &Config, name: &str| {
        config.directives().into_iter().find(|(known, _)| known == name).map(|(_, value)| value).unwrap()
    };
    let config = config.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(told(&config, "branch-collection"), "optimistic");
    assert_eq!((config.branching.states_max, config.branching.leaves_max), (50, 7));
    assert_eq!((config.branching.ceiling_every, config.branching.transaction_timeout_ms), (0, 200));
    let neither = Given::file("branch-collection none\n").load().unwrap_err().to_string();
    assert!(neither.ends_with("'branch-collection': 'none' is neither pessimistic nor optimistic"));
    let elsewhere = Given::file(&format!("{node}branch-merging-datacenter dc9\n")).load().unwrap_err();
    assert_eq!(elsewhere.to_string(), "'branch-merging-datacenter': there is no datacenter 'dc9'");
}

#[test]
fn secrets_are_not_shown() {
    let config = Given::file("requirepass hush\n").load().unwrap();
    assert!(!format!("{:?}{:?}", config.effective(), config.directives()).contains("hush"));
    let save = config.directives().into_iter().find(|(name, _)| name == "save").unwrap();
    assert_eq!(save.1, "");
}

#[test]
fn partitions_are_dealt_over_all_cores_of_a_datacenter() {
    let text = "partitions 5\ncores 2\nself dc2 1\nnode dc1 a:100\nnode dc2 b:200 cores 1\nnode dc2 c:300\n";
    let cluster = Given::file(text).load().unwrap().cluster().unwrap();
    assert_eq!((cluster.own, cluster.node), (DatacenterId(1), 1));
    assert_eq!(cluster.own_cores().collect::<Vec<_>>(), [CoreId(1), CoreId(2)]);
    let topology = cluster.topology();
    assert_eq!(topology.owner(DatacenterId(1), PartitionId(4)), CoreId(1));
    assert_eq!(topology.owner(DatacenterId(0), PartitionId(4)), CoreId(0));
    let peers = cluster.peers();
    assert_eq!(peers[1], (DatacenterId(0), CoreId(1), "a".into(), 101));
    assert_eq!(peers[2], (DatacenterId(1), CoreId(0), "b".into(), 200));
    assert_eq!(peers.len(), 3);
}

#[cfg(feature = "scripts")]
impl Given {
    /// With one Lua handler, in a folder and a file of these names.
    fn handler(folder: &str, file: &str, text: &str) -> Given {
        let given = Given::file("");
        std::fs::create_dir(given.folder.path().join(folder)).unwrap();
        given.write(&format!("{folder}/{file}"), text);
        let path = given.folder.path().join(folder).join(file);
        let lines = format!(
            "keyspace 1 protocol cops-cd\nkeyspace 1 conflicts doc:* lua {}\nkeyspace 1 conflicts * max\n",
            path.display()
        );
        given.write("ensue.conf", &lines);
        given
    }

    fn compared_handlers(&self) -> String {
        let config = self.load().unwrap();
        let settings = crate::settings::settings(&config, &config.cluster().unwrap());
        let text = settings.text();
        let line = text.lines().find(|line| line.contains("keyspace 1 conflicts")).unwrap();
        line.split_once("conflicts").unwrap().1.trim().to_owned()
    }
}

#[test]
#[cfg(feature = "scripts")]
fn a_lua_handler_is_told_by_its_file_and_compared_by_its_name_and_text() {
    let (text, other) = ("return siblings[1].value", "return siblings[2].value");
    let given = Given::handler("here", "first.lua", text);
    let path = given.folder.path().join("here/first.lua");
    let told = given.load().unwrap().effective();
    let line = format!("1 conflicts doc:* lua {}", path.display());
    assert!(told.contains(&("keyspace".into(), line)) && told.iter().any(|(_, v)| v == "1 conflicts * max"));
    let compared = given.compared_handlers();
    assert_eq!(compared, "\"doc:*\" lua first.lua e26acf807046593a7d2385f68882a205483f1975, \"*\" max");
    assert_eq!(Given::handler("there", "first.lua", text).compared_handlers(), compared);
    assert_ne!(Given::handler("here", "first.lua", other).compared_handlers(), compared);
    assert_ne!(Given::handler("here", "other.lua", text).compared_handlers(), compared);
}

#[test]
#[cfg(feature = "scripts")]
fn a_lua_handler_that_is_none_is_refused_with_its_place_and_what_refutes_it() {
    for (text, words) in [
        ("return (", "it does not compile: line 1: "),
        (
            "return siblings[1].value .. ''",
            "it makes nothing of {nil, \"\"}: line 1: attempt to concatenate nil",
        ),
        ("return 1", "it makes nothing of {\"\", \"\"}: it returned a number, and not a string or nil"),
        ("while true do end", "it makes nothing of {\"\", \"\"}: it took more steps than a handler may take"),
    ] {
        let error = Given::handler("here", "a.lua", text).error();
        let begin = "ensue.conf:2: 'keyspace': the handler here/a.lua: ";
        assert!(error.starts_with(&format!("{begin}{words}")), "{error}");
    }
    let long = Given::handler("here", "a.lua", &"-".repeat(70_000)).error();
    assert!(long.ends_with("it is longer than 65536 bytes"), "{long}");
}

#[test]
fn what_can_be_set_while_the_server_runs_may_stand_in_a_file() {
    let given = Given::file(
        "slowlog-log-slower-than 5\nnotify-keyspace-events KEA\nzset-max-ziplist-value 9\nhz 20\nhz 30\n\
         acl-pubsub-default allchannels\n",
    );
    let config = given.flags(&["--slowlog-log-slower-than", "7"]).variable("ENSUE_HZ", "40").load().unwrap();
    let directives = config.directives();
    let values = |name: &str| -> Vec<&str> {
        directives.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!(values("slowlog-log-slower-than"), ["7"]);
    assert_eq!(values("notify-keyspace-events"), ["AKE"]);
    assert_eq!(values("zset-max-listpack-value"), ["9"]);
    assert_eq!(values("hz"), ["40"]);
    assert!(config.opens_channels());
    let wrong = "ensue.conf:1: 'parameter': `hz`: argument couldn't be parsed into an integer";
    assert_eq!(Given::file("hz many\n").error(), wrong);
    assert_eq!(Given::file("hz\n").error(), "ensue.conf:1: 'parameter': a value of `hz` is missing");
    assert_eq!(Given::file("hzz 1\n").error(), "ensue.conf:1: unknown directive 'hzz'");
}

#[test]
fn where_what_operators_do_is_recorded() {
    let recorded = |text: &str| Given::file(text).load().unwrap().audit_log;
    assert_eq!(recorded(""), AuditTarget::No);
    assert_eq!(recorded("audit-log log\n"), AuditTarget::Log);
    assert_eq!(recorded("audit-log /var/log/a\n"), AuditTarget::File("/var/log/a".into()));
    assert_eq!(Given::file("log-format xml\n").error(), "ensue.conf:1: 'log-format': one of text, json");
}
