//! Commands out of bytes: what Redis 7.0.15 answers to the same bytes, and that the cuts do not matter.

use super::*;
use proptest::prelude::*;

/// What becomes of a stream: its commands as text, then its error.
fn outcome(limits: ParseLimits, pieces: &[&[u8]]) -> (Vec<Vec<Bytes>>, Option<ParseError>) {
    let mut parser = Parser::new(limits);
    let mut buffer = BytesMut::new();
    let mut commands = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match parser.next(&mut buffer) {
                Ok(Some(args)) => commands.push(args),
                Ok(None) => break,
                Err(error) => return (commands, Some(error)),
            }
        }
    }
    (commands, None)
}

fn show(limits: ParseLimits, bytes: &[u8]) -> String {
    let whole = outcome(limits, &[bytes]);
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(whole, outcome(limits, &single), "the cut matters: {bytes:?}");
    let (commands, error) = whole;
    let mut lines: Vec<String> = commands
        .iter()
        .map(|args| {
            let words: Vec<String> = args.iter().map(|word| format!("[{}]", word.escape_ascii())).collect();
            words.join(" ")
        })
        .collect();
    lines.extend(error.map(|error| error.to_string()));
    lines.join("\n")
}

#[track_caller]
fn check(bytes: &[u8], expected: &str) {
    assert_eq!(show(ParseLimits::default(), bytes), expected, "for {}", bytes.escape_ascii());
}

#[test]
fn multibulk() {
    check(b"*1\r\n$4\r\nPING\r\n", "[PING]");
    check(b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n*1\r\n$4\r\nPING\r\n", "[GET] []\n[PING]");
    check(b"*3\r\n$3\r\nSET\r\n$12\r\nabcdefghijkl\r\n$2\r\n\r\n\r\n", "[SET] [abcdefghijkl] [\\r\\n]");
    check(b"*12\r\n", "");
    check(b"*0\r\n*-1\r\n*-5\r\n*1\r\n$4\r\nPING\r\n", "[PING]");
    check(b"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n", "[PING]\n[PING]");
    check(b"*1\rx$4\rxPING\r\n", "[PING]");
    check(b"*1\n$4\nPING\n", "");
}

#[test]
fn framing_errors() {
    let invalid_count = "ERR Protocol error: invalid multibulk length";
    for text in ["*abc", "*", "* 1", "*+1", "*01", "*-0", "*1048577", "*99999999999999999999"] {
        check(format!("{text}\r\n").as_bytes(), invalid_count);
    }
    let invalid_length = "ERR Protocol error: invalid bulk length";
    for text in ["$abc", "$", "$-1", "$04", "$536870913", "$9223372036854775807"] {
        check(format!("*1\r\n{text}\r\n").as_bytes(), invalid_length);
    }
    check(b"*1048576\r\n*", "ERR Protocol error: expected '$', got '*'");
    check(b"*1\r\n:1\r\n", "ERR Protocol error: expected '$', got ':'");
    check(b"*1\r\nPING\r\n", "ERR Protocol error: expected '$', got 'P'");
    check(b"*1\r\n$4\r\nPING\r\n*1\r\nX", "[PING]\nERR Protocol error: expected '$', got 'X'");
    check(b"*1\r\n\xff", "ERR Protocol error: expected '$', got '\u{fffd}'");
}

#[test]
fn endless_lines() {
    let digits = vec![b'1'; 70_000];
    check(&[b"*1", &digits[..]].concat(), "ERR Protocol error: too big mbulk count string");
    check(&[b"*1\r\n$1", &digits[..]].concat(), "ERR Protocol error: too big bulk count string");
    check(&digits, "ERR Protocol error: too big inline request");
    check(&[&digits[..], b"\r\n"].concat(), "ERR Protocol error: too big inline request");
    check(&[&digits[..65_000], b"\r\n"].concat(), &format!("[{}]", "1".repeat(65_000)));
}

#[test]
fn inline() {
    check(b"PING\r\n", "[PING]");
    check(b"\r\n\r\n   \r\nPING\n", "[PING]");
    check(b"  SET  a\tb \r\n", "[SET] [a] [b]");
    check(b"PING \"\"\r\n", "[PING] []");
    check(b"\"\"\r\n", "[]");
    check(b"PING \"\\x41\\n\\q\"\r\n", "[PING] [A\\nq]");
    check(b"PING \"\\xZZ\" \"\\x4\" \"a\\\"b\"\r\n", "[PING] [xZZ] [x4] [a\\\"b]");
    check(b"PING 'a\\'b\\n'\r\n", "[PING] [a\\'b\\\\n]");
    check(b"PING a\"b c\" a'b'\r\n", "[PING] [ab c] [ab]");
    check(b"PING a\x0bb a\x0cb\r\n", "[PING] [a\\x0bb] [a\\x0cb]");
    check(b"PING\ra\r\r\n", "[PING] [a]");
    check(b"$4\r\n", "[$4]");
    check(b"GET \x80\r\n", "[GET] [\\x80]");
    for text in ["PING \"a", "PING 'a", "PING \"a\"b", "\"PI\"NG", "PING 'a\\'", "PING \"a\\\""] {
        check(format!("{text}\r\n").as_bytes(), "ERR Protocol error: unbalanced quotes in request");
    }
}

#[test]
fn before_authentication_little_is_accepted() {
    let check = |bytes: &[u8], expected: &str| {
        assert_eq!(show(ParseLimits::before_auth(), bytes), expected);
    };
    check(b"*10\r\n$16384\r\n", "");
    check(b"*11\r\n", "ERR Protocol error: unauthenticated multibulk length");
    check(b"*1\r\n$16385\r\n", "ERR Protocol error: unauthenticated bulk length");
    check(b"*1\r\n$100000000\r\n", "ERR Protocol error: unauthenticated bulk length");
    check(b"*1\r\n$999999999999\r\n", "ERR Protocol error: invalid bulk length");
    check(b"1 2 3 4 5 6 7 8 9 10 11\r\n", "ERR Protocol error: unauthenticated multibulk length");
    check(b"AUTH a\r\n", "[AUTH] [a]");
}

#[test]
fn limits_widen_between_commands() {
    let mut parser = Parser::new(ParseLimits::before_auth());
    let mut buffer = BytesMut::from(&b"*1\r\n$4\r\nPING\r\n*11\r\n"[..]);
    assert!(matches!(parser.next(&mut buffer), Ok(Some(_))));
    parser.set_limits(ParseLimits::default());
    assert_eq!(parser.next(&mut buffer), Ok(None));
}

#[test]
fn what_is_too_long_is_read_past() {
    let limits = ParseLimits { bulk_bytes_max: 6, command_bytes_max: 10, ..ParseLimits::default() };
    assert_eq!(show(limits, b"*2\r\n$6\r\nabcdef\r\n$4\r\n1234\r\n"), "[abcdef] [1234]");
    // A command without a word, and the next one.
    let next = b"*1\r\n$4\r\nPING\r\n";
    let together = b"*3\r\n$6\r\nabcdef\r\n$5\r\n12345\r\n$1\r\nx\r\n";
    assert_eq!(show(limits, &[&together[..], next].concat()), "\n[PING]");
    let argument = b"*3\r\n$3\r\nSET\r\n$7\r\n$1\r\n*9\r\r\n$1\r\nx\r\n";
    assert_eq!(show(limits, &[&argument[..], next].concat()), "\n[PING]");
    let broken = b"*3\r\n$3\r\nSET\r\n$7\r\n1234567\r\n$x\r\n";
    assert_eq!(show(limits, broken), "ERR Protocol error: invalid bulk length");
    let stranger = ParseLimits { authenticated: false, ..limits };
    let bytes = b"*2\r\n$6\r\nabcdef\r\n$5\r\n";
    assert_eq!(show(stranger, bytes), "ERR Protocol error: too big request");
}

#[test]
fn what_is_read_past_takes_no_memory() {
    let mut parser = Parser::new(ParseLimits::default());
    let mut buffer = BytesMut::from(&b"*2\r\n$3\r\nGET\r\n$536870912\r\n"[..]);
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..512 {
        assert_eq!(parser.next(&mut buffer), Ok(None));
        assert!(buffer.is_empty() && parser.is_amid_command() && parser.wanted_bytes() == 1);
        buffer.extend_from_slice(&piece);
    }
    buffer.extend_from_slice(b"\r\n");
    assert_eq!(parser.next(&mut buffer), Ok(Some(Args::new())));
}

#[test]
fn an_announced_length_reserves_nothing() {
    let mut parser = Parser::new(ParseLimits::default());
    let mut buffer = BytesMut::from(&b"*1048576\r\n$67108864\r\nab"[..]);
    let capacity = buffer.capacity();
    assert_eq!(parser.next(&mut buffer), Ok(None));
    assert!(buffer.capacity() <= capacity);
    assert!(parser.args.capacity() <= ARGUMENTS_RESERVED_MAX);
    assert_eq!(parser.wanted_bytes(), (64 << 20) + 2);
}

#[test]
fn arguments_are_slices_of_the_buffer() {
    let mut parser = Parser::new(ParseLimits::default());
    let mut buffer = BytesMut::from(&b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"[..]);
    let start = buffer.as_ptr() as usize;
    let args = parser.next(&mut buffer).expect("well formed").expect("whole");
    assert_eq!(args[1].as_ptr() as usize - start, 17);
}

#[test]
fn an_error_stays() {
    let mut parser = Parser::new(ParseLimits::default());
    let mut buffer = BytesMut::from(&b"*x\r\n"[..]);
    assert_eq!(parser.next(&mut buffer), Err(ParseError::InvalidMultibulkLength));
    let mut good = BytesMut::from(&b"PING\r\n"[..]);
    assert_eq!(parser.next(&mut good), Err(ParseError::InvalidMultibulkLength));
}

/// Bytes that are likely to mean something to the parser.
fn protocol_soup() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        Just(b"*1\r\n$4\r\nPING\r\n".to_vec()),
        Just(b"*2\r\n$3\r\nGET\r\n$12\r\nabcdefghijkl\r\n".to_vec()),
        Just(b"*0\r\n".to_vec()),
        Just(b"*-1\r\n".to_vec()),
        Just(b"*3\r\n".to_vec()),
        Just(b"*12\r\n".to_vec()),
        Just(b"$0\r\n\r\n".to_vec()),
        Just(b"$3\r\nabc\r\n".to_vec()),
        Just(b"$11\r\nabcdefghijk\r\n".to_vec()),
        Just(b"PING 'a b' \"\\x41\"\r\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\"".to_vec()),
        Just(b"\r".to_vec()),
        prop::collection::vec(any::<u8>(), 0..5),
    ];
    prop::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn any_cut_gives_the_same(bytes in protocol_soup(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let limits = ParseLimits { inline_bytes_max: 40, ..ParseLimits::default() };
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let pieces: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let whole = outcome(limits, &[&bytes]);
        prop_assert_eq!(&whole, &outcome(limits, &pieces));
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&whole, &outcome(limits, &single));
    }

    #[test]
    fn garbage_is_refused_politely(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        outcome(ParseLimits::before_auth(), &[&bytes]);
    }

    #[test]
    fn what_is_encoded_is_parsed(args in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..20)) {
        let mut bytes = Vec::new();
        crate::encode::encode_command(&args, &mut bytes);
        let (commands, error) = outcome(ParseLimits::default(), &[&bytes]);
        prop_assert_eq!(error, None);
        prop_assert_eq!(commands, vec![args.into_iter().map(Bytes::from).collect::<Vec<_>>()]);
    }
}

/// Prints nanoseconds a command: `cargo test --release -p ensue-resp -- --ignored --nocapture speed`.
#[test]
#[ignore = "a measurement"]
#[allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]
fn speed() {
    let command =
        b"*3\r\n$3\r\nSET\r\n$16\r\nkey:000000001234\r\n$32\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n";
    let get = b"*2\r\n$3\r\nGET\r\n$16\r\nkey:000000001234\r\n";
    for (name, command) in [("GET", &get[..]), ("SET", &command[..])] {
        let batch = command.repeat(200);
        let mut parser = Parser::new(ParseLimits::default());
        let mut buffer = BytesMut::with_capacity(1 << 16);
        let mut commands = 0_u32;
        let start = std::time::Instant::now();
        for _ in 0..5_000 {
            buffer.extend_from_slice(&batch);
            while let Ok(Some(args)) = parser.next(&mut buffer) {
                commands += 1;
                std::hint::black_box(args);
            }
        }
        println!("{name}: {:?} a command", start.elapsed() / commands);
    }
}
