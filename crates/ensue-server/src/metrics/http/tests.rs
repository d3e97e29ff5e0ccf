//! What is a request, and what is refused with which status.

use super::*;

fn refused(bytes: &[u8]) -> &'static str {
    parse(bytes).expect_err("it is refused").words().0
}

fn taken(head: &str) -> Request {
    parse(head.as_bytes()).expect("it is a request").expect("it is whole")
}

#[test]
fn a_request_is_read_with_its_query_and_its_host() {
    let head = "GET /v1/x?a=1&b=%41+%2f&c HTTP/1.1\r\nHost: node-1:9100\r\nACCEPT: text/html\r\n\r\n";
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected = Request {
        path: "/v1/x".into(),
        query: vec![pair("a", "1"), pair("b", "A /"), pair("c", "")],
        host: "node-1".into(),
        takes_openmetrics: false,
        credentials: None,
    };
    assert_eq!(taken(head), expected);
}

#[test]
fn what_clients_send_is_taken() {
    assert_eq!(taken("GET / HTTP/1.0\r\n\r\n").path, "/");
    assert_eq!(taken("GET /a HTTP/1.1\r\nHost:[::1]:80\r\n\r\n").host, "::1");
    let prometheus = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:1\r\nUser-Agent: Prometheus/2.42.0\r\n\
        Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n\
        Accept-Encoding: gzip\r\nX-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n";
    assert!(taken(prometheus).takes_openmetrics);
    assert_eq!(taken("GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\nrest").path, "/a");
}

#[test]
fn what_is_not_whole_yet_is_waited_for() {
    let head = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
    for length in 0..head.len() {
        assert_eq!(parse(&head[..length]), Ok(None), "{length} bytes");
    }
    assert!(parse(head).is_ok_and(|request| request.is_some()));
}

#[test]
fn what_is_no_http_is_a_bad_request() {
    let heads: [&[u8]; 15] = [
        b"\r\n\r\n",
        b"PING\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
        b"G\xc3\x84T / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /?a=%4 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /?a=%zz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
    ];
    for head in heads {
        assert_eq!(refused(head), "400 Bad Request", "{}", head.escape_ascii());
    }
    assert_eq!(refused(b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n"), "400 Bad Request");
    assert_eq!(refused(b"GET / HTTP/1.1\r\nHost: a\0\r\n\r\n"), "400 Bad Request");
}

#[test]
fn what_this_port_does_not_do_has_a_status_of_its_own() {
    let refused = |head: &str| refused(head.as_bytes());
    assert_eq!(refused("POST / HTTP/1.1\r\nHost: a\r\n\r\n"), "405 Method Not Allowed");
    assert_eq!(refused("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"), "405 Method Not Allowed");
    assert_eq!(refused("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), "505 HTTP Version Not Supported");
    let body = "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(refused(body), "413 Content Too Large");
    let chunked = "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(refused(chunked), "413 Content Too Large");
}

#[test]
fn a_head_has_a_bound_whether_it_ends_or_not() {
    let long = "x".repeat(METRICS_HEAD_BYTES_MAX);
    assert_eq!(refused(long.as_bytes()), "431 Request Header Fields Too Large");
    let whole = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n");
    assert_eq!(refused(whole.as_bytes()), "431 Request Header Fields Too Large");
    let short = &whole[..METRICS_HEAD_BYTES_MAX - 1];
    assert_eq!(parse(short.as_bytes()), Ok(None));
}

#[test]
fn an_answer_says_how_long_it_is_and_that_it_is_the_last() {
    let expected = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n{GUARDS}\
        Cache-Control: no-store\r\nConnection: close\r\n\r\nok\n"
    );
    assert_eq!(String::from_utf8(encode(OK, TEXT, "ok\n")), Ok(expected));
    let refusal = String::from_utf8(Refusal::Method.answer()).expect("text");
    assert!(refusal.contains("\r\nAllow: GET\r\n"), "{refusal}");
}

#[test]
fn a_name_and_a_password_are_read_whatever_bytes_they_have() {
    let read = |value: &str| {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: {value}\r\n\r\n");
        parse(head.as_bytes()).map(|request| {
            let Credentials { user, password } = request.unwrap().credentials.unwrap();
            (user.to_vec(), password.to_vec())
        })
    };
    for (value, user, password) in [
        ("Basic YXBwOmE6Yg==", &b"app"[..], &b"a:b"[..]),
        ("bAsIc  YXBwOg==", b"app", b""),
        ("Basic Og", b"", b""),
        ("Basic //46/w==", b"\xff\xfe", b"\xff"),
    ] {
        assert_eq!(read(value), Ok((user.to_vec(), password.to_vec())), "{value}");
    }
    for value in
        ["Basic", "Bearer YTpi", "Basic YXBw", "Basic A", "Basic YTp*", "Basic Og===", "Basic YTpi YTpi"]
    {
        assert!(matches!(read(value), Err(Refusal::Malformed(_))), "{value}");
    }
    let shown = Credentials { user: Bytes::from("app"), password: Bytes::from("hunter2") };
    assert!(!format!("{shown:?}").contains("hunter2"));
}
