//! A message ends at one place only, whatever arrives in how many pieces.

use super::*;

fn lines(text: &str) -> Vec<u8> {
    text.replace('\n', "\r\n").into_bytes()
}

#[test]
fn a_redis_reply_ends_where_its_last_value_does() {
    let replies = [
        "+OK\n",
        "-ERR no\n",
        ":7\n",
        "$3\nabc\n",
        "$-1\n",
        "*-1\n",
        "*0\n",
        "*2\n$1\na\n*1\n:1\n",
        "%1\n+a\n:1\n",
        "|1\n+a\n:1\n+OK\n",
        "_\n",
        "#t\n",
        ",1.5\n",
        "=5\ntxt:a\n",
    ];
    for reply in replies {
        let bytes = lines(reply);
        assert_eq!(redis_reply_end(&[&bytes[..], b"+more"].concat()), Ok(Some(bytes.len())), "{reply:?}");
        for end in 0..bytes.len() {
            assert_eq!(redis_reply_end(&bytes[..end]), Ok(None), "{end} bytes of {reply:?}");
        }
    }
    for wrong in ["?\n", "\n", "$x\n", "$-2\n", "*99999999999\n"] {
        assert!(redis_reply_end(&lines(wrong)).is_err(), "{wrong:?}");
    }
}

#[test]
fn an_http_request_ends_by_its_length_or_its_chunks() {
    let requests = [
        ("GET / HTTP/1.1\nHost: a\n\n", true, false),
        ("HEAD / HTTP/1.1\nConnection: close\n\n", false, true),
        ("GET / HTTP/1.0\n\n", false, false),
        ("GET / HTTP/1.0\nConnection: Keep-Alive\n\n", true, false),
        ("POST / HTTP/1.1\nContent-Length: 3\n\nabc", true, false),
        ("POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n3\nabc\n0\n\n", true, false),
        ("POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n3;x=y\nabc\n0\nTrailer: a\n\n", true, false),
    ];
    for (request, keeps, is_head) in requests {
        let bytes = lines(request);
        let whole = HttpRequest::Whole { end: bytes.len(), keeps, is_head };
        assert_eq!(http_request(&[&bytes[..], b"GET"].concat()), Ok(whole), "{request:?}");
        for end in 0..bytes.len() {
            let found = http_request(&bytes[..end]).unwrap();
            assert!(!matches!(found, HttpRequest::Whole { .. }), "{end} bytes of {request:?}");
        }
    }
    let expects = lines("PUT / HTTP/1.1\nContent-Length: 3\nExpect: 100-continue\n\n");
    assert_eq!(http_request(&expects), Ok(HttpRequest::Headed { expects_continue: true }));
}

#[test]
fn a_request_with_two_ends_is_refused() {
    let wrong = [
        "POST / HTTP/1.1\nContent-Length: 3\nTransfer-Encoding: chunked\n\n",
        "POST / HTTP/1.1\nContent-Length: 3\nContent-Length: 4\n\n",
        "POST / HTTP/1.1\nContent-Length: +3\n\n",
        "POST / HTTP/1.1\nTransfer-Encoding: gzip, chunked\n\n",
        "POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n3\nabcd\n0\n\n",
        "hello\n\n",
    ];
    for request in wrong {
        assert!(http_request(&lines(request)).is_err(), "{request:?}");
    }
    let long = format!("GET / HTTP/1.1\nA: {}", "a".repeat(HTTP_HEAD_MAX));
    assert_eq!(http_request(&lines(&long)), Err(Unreadable("the header is too long")));
}

#[test]
fn an_http_response_ends_as_its_status_and_its_request_say() {
    let whole = |text: &str, to_head: bool| http_response(&lines(text), to_head).unwrap();
    let length = "HTTP/1.1 200 OK\nContent-Length: 3\n\n";
    assert_eq!(whole(length, false), HttpResponse::Begun);
    assert_eq!(whole(length, true), HttpResponse::Whole { end: lines(length).len(), keeps: true });
    assert_eq!(whole(&format!("{length}abc"), false), HttpResponse::Whole { end: 41, keeps: true });
    let unchanged = "HTTP/1.1 304 Not Modified\nContent-Length: 3\n\n";
    assert_eq!(whole(unchanged, false), HttpResponse::Whole { end: lines(unchanged).len(), keeps: true });
    assert_eq!(whole("HTTP/1.1 100 Continue\n\n", false), HttpResponse::Interim { end: 25 });
    assert_eq!(whole("HTTP/1.0 200 OK\n\nabc", false), HttpResponse::UntilClose);
    assert_eq!(
        whole("HTTP/1.0 200 OK\nContent-Length: 0\n\n", false),
        HttpResponse::Whole { end: 38, keeps: false }
    );
}

/// Whatever arrives, an end is within what arrived.
#[test]
fn bytes_of_strangers_end_within_themselves() {
    let messages = [
        "POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n3;x=y\nabc\n0\nTrailer: a\n\n",
        "POST / HTTP/1.1\nContent-Length: 3\nConnection: close\n\nabc",
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nA\n0123456789\n0\n\n",
        "HTTP/1.1 204 No Content\nContent-Length: 0\n\n",
        "*2\n$1\na\n%1\n+a\n|1\n+a\n:1\n$2\nbc\n",
    ];
    let mut chance = 1_u64;
    let mut draw = |bound: usize| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((chance >> 33) % bound as u64) as usize
    };
    let mut ends = 0;
    for _ in 0..5_000 {
        let mut bytes = lines(messages[draw(messages.len())]);
        for _ in 0..=draw(3) {
            let place = draw(bytes.len());
            bytes[place] = [b'0', b'9', b'f', b'\r', b'\n', 255, draw(256) as u8][draw(7)];
        }
        let found = [
            redis_reply_end(&bytes).ok().flatten(),
            match http_request(&bytes) {
                Ok(HttpRequest::Whole { end, .. }) => Some(end),
                _ => None,
            },
            match http_response(&bytes, draw(2) == 0) {
                Ok(HttpResponse::Whole { end, .. } | HttpResponse::Interim { end }) => Some(end),
                _ => None,
            },
        ];
        for end in found.into_iter().flatten() {
            assert!(end <= bytes.len() && end > 0, "{end} of {bytes:?}");
            ends += 1;
        }
    }
    assert!(ends > 500, "{ends} messages ended");
}

#[test]
fn an_empty_line_before_a_request_and_another_protocol_after_one_are_refused() {
    for text in ["\nGET / HTTP/1.1\n\n", "\n", "\n\nHEAD / HTTP/1.1\n\n"] {
        assert_eq!(http_request(&lines(text)), Err(Unreadable("an empty line before a request")), "{text:?}");
    }
    assert!(http_response(&lines("HTTP/1.1 101 Switching Protocols\n\n"), false).is_err());
}
