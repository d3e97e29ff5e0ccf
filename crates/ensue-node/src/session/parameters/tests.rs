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
    check("notify-keyspace-events KEQ", &failed("notify-keyspace-events", events));
}
