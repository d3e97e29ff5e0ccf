//! Addresses as they are typed.

use super::*;

#[test]
fn addresses_are_read() {
    let plain: Source = "redis://cache:6380/3".parse().expect("it is one");
    let expected = Source { host: "cache".into(), port: 6380, user: None, password: None, database: Some(3) };
    assert_eq!(plain, expected);
    let secret: Source = "redis://:p%40ss:word@[::1]:7".parse().expect("it is one");
    assert_eq!((secret.host.as_str(), secret.port, secret.user), ("::1", 7, None));
    assert_eq!(secret.password.as_deref(), Some("p@ss:word"));
    let named: Source = "redis://ann:x@h".parse().expect("it is one");
    assert_eq!((named.user.as_deref(), named.port), (Some("ann"), 6379));
    for wrong in ["cache:6379", "redis://", "redis://h:x", "redis://h:1/x", "redis://%4:x@h:1"] {
        assert!(wrong.parse::<Source>().is_err(), "{wrong}");
    }
}
