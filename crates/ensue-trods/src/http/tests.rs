//! What is read of requests and responses, and what is written.

use super::*;
use proptest::prelude::*;

const GET: &[u8] = b"GET /film HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nConnection: close\r\n\r\n";

fn complete<T: std::fmt::Debug>(head: Head<T>) -> T {
    match head {
        Head::Complete(value) => value,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_names_its_object() {
    let found = complete(request(GET, 4096));
    assert_eq!(found.object, b"/film a");
    assert!(found.close && !found.selects);
    assert_eq!(request(&GET[..GET.len() - 1], 4096), Head::Partial);
    assert_eq!(request(&GET[..GET.len() - 1], 10), Head::Other);
    assert_eq!(request(b"POST /", 4096), Head::Other);
    assert_eq!(request(b"GET / HTTP/1.1\r\nRange: bytes=5-\r\n\r\n", 4096), Head::Other);
}

/// Servers answer such requests; a gateway that waited for another line end would never see the request.
#[test]
fn a_head_with_bare_line_ends_is_not_followed() {
    for head in [
        "GET / HTTP/1.0\n\n",
        "GET / HTTP/1.0\nHost: a\n\nmore",
        "GET / HTTP/1.0\n\r\n",
        "GET / HTTP/1.0\n\nx\r\n\r\n",
    ] {
        assert_eq!(request(head.as_bytes(), 4096), Head::Other, "{head:?}");
    }
    assert_eq!(request(b"GET / HTTP/1.0\r\n", 4096), Head::Partial);
    assert_eq!(complete(request(b"GET / HTTP/1.0\r\n\r\nGET /\n\n", 4096)).head.len(), 18);
}

#[test]
fn responses_agree_on_what_their_bodies_are() {
    let of =
        |fields: &str| complete(response(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n").as_bytes(), 4096));
    let one = of("Content-Length: 9\r\nLast-Modified: x\r\nDate: 1");
    assert!(agree(&one, &of("Content-Length: 9\r\nLast-Modified: x\r\nServer: other")));
    assert!(agree(&one, &of("Content-Length: 9")));
    assert!(!agree(&one, &of("Content-Length: 9\r\nLast-Modified: y")));
    assert!(!agree(&one, &of("Content-Length: 8\r\nLast-Modified: x")));
    assert!(!agree(&one, &of("Transfer-Encoding: chunked\r\nLast-Modified: x")));
    let failed = response(b"HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\n", 4096);
    assert!(!agree(&one, &complete(failed)));
}

#[test]
fn a_range_request_keeps_the_other_headers() {
    let made = range_request(GET, 17, false);
    let text = String::from_utf8(made).expect("text");
    let expected =
        "GET /film HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nRange: bytes=17-\r\nConnection: keep-alive\r\n\r\n";
    assert_eq!(text, expected);
    assert_eq!(request_of_object(b"/film a"), b"GET /film HTTP/1.1\r\nHost: a\r\n\r\n");
}

#[test]
fn a_response_says_how_its_body_ends() {
    let length = complete(response(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nbody", 4096));
    assert_eq!((length.status, length.body, length.close), (200, Body::Length(12), false));
    let until = complete(response(b"HTTP/1.1 200 OK\r\n\r\n", 4096));
    assert_eq!((until.body, until.close), (Body::UntilClose, true));
    let part = complete(response(b"HTTP/1.1 206 P\r\nContent-Range: bytes 7-99/100\r\n\r\n", 4096));
    assert_eq!(part.range, Some(Range { first: 7, end: 100, total: 100 }));
    let past = complete(response(b"HTTP/1.1 416 R\r\nContent-Range: bytes */100\r\n\r\n", 4096));
    assert_eq!(past.range, Some(Range { first: 100, end: 100, total: 100 }));
    let other = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n";
    assert_eq!(response(other, 4096), Head::Other);
    assert_eq!(response(b"HTTP/1.1 100 Continue\r\n\r\n", 4096), Head::Other);
}

#[test]
fn padding_leaves_the_last_field_and_the_end() {
    let head = b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n";
    let longer = padded(head, 64).expect("longer");
    assert_eq!(longer.len(), 64);
    assert_eq!(field(&longer, "server"), Some(&b"x"[..]));
    assert!(longer.ends_with(b"  \r\n\r\n"));
    assert_eq!(padded(head, 10), None);
}

proptest! {
    #[test]
    fn a_chunked_body_ends_where_it_ends(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..5),
        cuts in prop::collection::vec(1_usize..9, 1..60),
    ) {
        let mut body = Vec::new();
        for chunk in &chunks {
            body.extend_from_slice(format!("{:x};name\r\n", chunk.len()).as_bytes());
            body.extend_from_slice(chunk);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
        let length = body.len();
        body.extend_from_slice(b"HTTP/1.1");
        let mut scanner = ChunkScanner::default();
        let mut rest = &body[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            let end = scanner.read(now);
            let read = body.len() - later.len();
            prop_assert_eq!(end, (read >= length).then_some(length as u64));
            rest = later;
        }
    }
}
