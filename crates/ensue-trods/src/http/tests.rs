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
    assert_eq!(part.range, Some((7, 100)));
    let past = complete(response(b"HTTP/1.1 416 R\r\nContent-Range: bytes */100\r\n\r\n", 4096));
    assert_eq!(past.range, Some((100, 100)));
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
