//! Keys, and addresses as people write them.

use super::*;

fn key(code: KeyCode, modifiers: KeyModifiers) -> Option<Wish> {
    wish(KeyEvent::new(code, modifiers))
}

#[test]
fn q_ends_and_so_does_what_sends_no_signal_in_raw_mode() {
    for (code, modifiers) in [
        (KeyCode::Char('q'), KeyModifiers::NONE),
        (KeyCode::Esc, KeyModifiers::NONE),
        (KeyCode::Char('c'), KeyModifiers::CONTROL),
        (KeyCode::Char('d'), KeyModifiers::CONTROL),
    ] {
        assert_eq!(key(code, modifiers), Some(Wish::End), "{code:?}");
    }
    assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), None);
    assert_eq!(key(KeyCode::Up, KeyModifiers::NONE), Some(Wish::Choose(-1)));
    assert_eq!(key(KeyCode::Down, KeyModifiers::NONE), Some(Wish::Choose(1)));
    let released = KeyEvent::new_with_kind(KeyCode::Char('q'), KeyModifiers::NONE, KeyEventKind::Release);
    assert_eq!(wish(released), None);
}

#[test]
fn an_address_is_a_host_and_a_port() {
    let host_port = |words: &str| target(words).ok().map(|target| (target.host, target.port));
    assert_eq!(host_port("db.example.org:6379"), Some(("db.example.org".into(), 6379)));
    assert_eq!(host_port("[::1]:6379"), Some(("::1".into(), 6379)));
    for words in ["db.example.org", ":6379", "db:", "db:http", "db:70000"] {
        assert_eq!(host_port(words), None, "{words}");
    }
}

/// Tests have no terminal, and raw mode of what is none would be of the machine's own.
#[test]
fn what_is_no_terminal_is_said_plainly() {
    if std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        return;
    }
    let args = TopArgs { port: 1, login: LoginArgs::none(), addresses: vec![] };
    let error = run(&args).unwrap_err().to_string();
    assert!(error.contains("this is none") && error.contains("ensue status"), "{error}");
}
