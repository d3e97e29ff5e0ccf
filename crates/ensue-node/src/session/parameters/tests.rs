//! What `CONFIG SET` accepts, and the words of what it refuses.

use super::*;

fn words(text: &str) -> Vec<Bytes> {
    text.split(' ').map(|word| Bytes::from(word.replace('_', " ").trim().to_owned())).collect()
}

fn check(text: &str, expected: &str) {
    let directives = [("port".to_owned(), "6379".to_owned()), ("appendonly".to_owned(), "yes".to_owned())];
    let limits = ["normal 0 0 0", "pubsub 1 1 1"].map(|limit| ("limit".to_owned(), limit.to_owned()));
    let directives: Vec<_> = directives.into_iter().chain(limits).collect();
    let mut parameters = Parameters::default();
    let told = match super::check(&words(text), &directives) {
        Ok(settings) => {
            parameters.set(&settings);
            settings
                .iter()
                .map(|(name, _)| format!("{name} {}", parameters.value(name)))
                .collect::<Vec<_>>()
                .join(" ")
        }
        Err(Reply::Error(words)) => words.into_owned(),
        Err(reply) => format!("{reply:?}"),
    };
    assert_eq!(told, expected, "{text}");
}

#[test]
fn values() {
    check("slowlog-max-len 5", "slowlog-max-len 5");
    check("SLOWLOG-MAX-LEN 5 hz 20", "slowlog-max-len 5 hz 20");
    check("maxmemory 2mb", "maxmemory 2097152");
    check("maxmemory 2m", "maxmemory 2000000");
    check("hash-max-ziplist-entries 7", "hash-max-listpack-entries 7");
    check("list-max-listpack-size -6", "list-max-listpack-size -6");
    check("maxmemory-clients 5%", "maxmemory-clients 5%");
    check("maxmemory-clients 1kb", "maxmemory-clients 1024");
    check("latency-tracking YES", "latency-tracking yes");
    check("notify-keyspace-events KEA", "notify-keyspace-events AKE");
    check("notify-keyspace-events gK$lshzxetd", "notify-keyspace-events AK");
    check("notify-keyspace-events lKE", "notify-keyspace-events lKE");
    check("save 900_1_300_10", "save 900 1 300 10");
    check("latency-tracking-info-percentiles 50_99.9", "latency-tracking-info-percentiles 50 99.9");
    let slave = "slave 268435456 67108864 60";
    let told = |normal, pubsub| format!("client-output-buffer-limit normal {normal} {slave} pubsub {pubsub}");
    check("client-output-buffer-limit normal_1kb_0_0", &told("1024 0 0", "33554432 8388608 60"));
    let both = "client-output-buffer-limit pubsub_3_2_1_normal_0_0_0";
    check(both, &told("0 0 0", "3 2 1"));
}

/// What one class has is not taken back when another one is set.
#[test]
fn limits_of_output_are_set_class_by_class() {
    let mut parameters = Parameters::default();
    assert_eq!(parameters.value("client-output-buffer-limit"), OutputLimits::default().to_string());
    let set = |parameters: &mut Parameters, text: &str| {
        let settings = super::check(&words(text), &[]).expect("it is good");
        parameters.set(&settings);
        parameters.of_host(&settings)
    };
    set(&mut parameters, "client-output-buffer-limit normal_5_0_0");
    let of_host = set(&mut parameters, "client-output-buffer-limit pubsub_7_0_0 timeout 9").expect("it is");
    assert_eq!((of_host.output_limits.normal.hard, of_host.output_limits.pubsub.hard), (5, 7));
    assert_eq!((of_host.timeout_s, of_host.clients_max, of_host.is_protected), (9, 10_000, true));
    assert_eq!(set(&mut parameters, "hz 20"), None);
}

#[test]
fn a_directive_of_the_start_can_be_set_to_what_it_is() {
    check("appendonly yes", "");
    check("PORT 6379 hz 20", "hz 20");
    check("limit normal_0_0_0", "");
    check("limit pubsub_1_1_1", "");
    let failed = "ERR CONFIG SET failed (possibly related to argument 'port') - ";
    check("port 1", &format!("{failed}can't set immutable config"));
}

#[test]
fn refusals() {
    let failed = |name: &str, why: &str| {
        format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}")
    };
    check("nothing 1", "ERR Unknown option or number of arguments for CONFIG SET - 'nothing'");
    check("hz", "ERR wrong number of arguments for 'config|set' command");
    check("hz 1 hz 2", &failed("hz", "duplicate parameter"));
    check("hz x", &failed("hz", "argument couldn't be parsed into an integer"));
    check("hz 501", &failed("hz", "argument must be between 0 and 500 inclusive"));
    let share = "percentage argument must be less or equal to 100";
    check("maxmemory-clients 200%", &failed("maxmemory-clients", share));
    check("maxmemory 10foo", &failed("maxmemory", "argument must be a memory value"));
    check("latency-tracking maybe", &failed("latency-tracking", "argument must be 'yes' or 'no'"));
    check("activedefrag yes", &failed("activedefrag", "argument(s) must be one of the following: no"));
    check("save 1", &failed("save", "Invalid save parameters"));
    let events = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
    let limits = |text: &str, why: &str| {
        let why = format!("{why} buffer limit configuration.");
        check(&format!("client-output-buffer-limit {text}"), &failed("client-output-buffer-limit", &why));
    };
    limits("normal_1", "Wrong number of arguments in");
    limits("strange_1_1_1", "Invalid client class specified in");
    limits("normal_1_-1_1", "Error in hard, soft or soft_seconds setting in");
    check("maxclients 0", &failed("maxclients", "argument must be between 1 and 1000000 inclusive"));
    check("notify-keyspace-events KEQ", &failed("notify-keyspace-events", events));
}
