//! What an address says.

use super::*;

fn options(text: &str) -> anyhow::Result<Options> {
    text.parse::<Endpoint>().unwrap().options(&LoginArgs::none())
}

#[test]
fn a_url_says_who_logs_in_and_which_database() {
    let endpoint: Endpoint = "redis://ann:s%40crt@old:6380/7".parse().unwrap();
    assert_eq!((endpoint.to_string(), endpoint.database), ("old:6380".into(), Some(7)));
    let options = endpoint.options(&LoginArgs::none()).unwrap();
    assert_eq!((options.user.as_deref(), options.password.as_deref()), (Some("ann"), Some("s@crt")));
    let plain = "[::1]:7001".parse::<Endpoint>().unwrap();
    assert_eq!((plain.to_string(), plain.database, plain.login), ("[::1]:7001".into(), None, None));
    assert_eq!("redis://old".parse::<Endpoint>().unwrap().to_string(), "old:6379");
}

#[test]
fn tls_is_asked_for_by_the_url_and_set_up_by_the_flags() {
    let error = options("rediss://old:6380").unwrap_err().to_string();
    assert!(error.contains("--tls"), "{error}");
    assert!(options("redis://old:6380").unwrap().tls.is_none());
}

#[test]
fn what_is_no_address_is_refused() {
    for text in ["", "old", "http://old:1", "redis://", "redis://old:x", "redis://old:1/x", "old:70000"] {
        assert!(text.parse::<Endpoint>().unwrap_err().starts_with("expected redis://"), "{text}");
    }
}
