//! The rules that a gateway installs.

use super::*;

#[test]
fn rules_leave_alone_what_stays_on_the_machine_and_what_passed() {
    let settings = Settings {
        trods: None,
        address: Ipv4Addr::new(192, 0, 2, 1),
        ports: vec![80],
        queue: 4,
        store: Place::Nowhere,
        heartbeat: None,
    };
    let text: Vec<String> = rules(&settings, [4, 5]).iter().map(|rule| rule.0.join(" ")).collect();
    assert_eq!(
        text,
        [
            "INPUT ! -i lo -d 192.0.2.1 -p tcp --dport 80 -j NFQUEUE --queue-num 4",
            "OUTPUT ! -o lo -s 192.0.2.1 -p tcp --sport 80 -m mark ! --mark 0x7d000001 -j NFQUEUE --queue-num 5",
        ]
    );
}
