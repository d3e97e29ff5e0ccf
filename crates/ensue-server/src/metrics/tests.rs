//! The metrics port over real sockets, before a core that the test plays.

use super::*;
use crate::inbox::Mail;
use crate::visitors::Visit;
use ensue_node::Observation;
use mio::{Poll, Token, Waker};
use std::sync::Mutex;

/// A core that answers with this, if it answers, and counts how often it was asked. Its users are `default`, and `spy`
/// without a right, both with the password, if there is one.
pub(super) struct Core {
    inbox: Arc<Inbox>,
    asked: Arc<AtomicUsize>,
    shown: Arc<Mutex<Option<Observation>>>,
    ended: Arc<AtomicBool>,
}

impl Core {
    pub(super) fn start(shown: Option<Observation>) -> Core {
        Core::with_password(shown, None)
    }

    pub(super) fn with_password(shown: Option<Observation>, password: Option<&'static str>) -> Core {
        let poll = Poll::new().unwrap();
        let inbox = Arc::new(Inbox::new(Arc::new(Waker::new(poll.registry(), Token(0)).unwrap())));
        let core = Core {
            inbox: Arc::clone(&inbox),
            asked: Arc::default(),
            shown: Arc::new(Mutex::new(shown)),
            ended: Arc::default(),
        };
        let (asked, shown, ended) = (core.asked.clone(), core.shown.clone(), core.ended.clone());
        thread::spawn(move || {
            let _poll = poll;
            let mut mail = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                inbox.take(&mut mail);
                for item in mail.drain(..) {
                    match item {
                        Mail::Observe(question) => {
                            asked.fetch_add(1, Ordering::Relaxed);
                            if let Some(shown) = shown.lock().unwrap().clone() {
                                question.answer(shown);
                            }
                        }
                        Mail::Visit(visit) => play(password, visit),
                        _ => {}
                    }
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        core
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// What sessions would answer.
fn play(password: Option<&str>, visit: Visit) {
    let mut user = password.is_none().then_some("default");
    let mut answers = Vec::new();
    for words in &visit.commands {
        let words: Vec<&str> = words.iter().map(|word| std::str::from_utf8(word).unwrap()).collect();
        let answer = match (words[0], user) {
            ("AUTH", _) if words[2] == password.unwrap_or(words[2]) => {
                user = Some(if words[1] == "spy" { "spy" } else { "default" });
                "+OK"
            }
            ("AUTH", _) => "-WRONGPASS invalid username-password pair or user is disabled.",
            (_, None) => "-NOAUTH Authentication required.",
            (_, Some("spy")) => "-NOPERM User spy has no permissions to run the 'info' command",
            _ => "+OK",
        };
        answers.extend_from_slice(answer.as_bytes());
        answers.extend_from_slice(b"\r\n");
    }
    let _ = visit.answers.send(answers);
}

pub(super) fn serve_on(core: &Core, config: &Config) -> MetricsPort {
    let socket = TcpListener::bind((config.metrics_bind, 0)).unwrap();
    let cluster = config.cluster().unwrap();
    MetricsPort::start(socket, config, &cluster, Clock::starting_now(), (Arc::clone(&core.inbox), None))
        .unwrap()
}

/// All that comes back for these bytes, until the other side closes.
fn exchange(port: &MetricsPort, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(port.address).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = String::new();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(port: &MetricsPort, path: &str) -> String {
    exchange(port, format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
}

pub(super) fn ready() -> Option<Observation> {
    Some(Observation { metrics: [("cells".to_owned(), 5)].into(), ..Observation::default() })
}

#[test]
fn what_the_core_shows_is_served() {
    let core = Core::start(ready());
    let port = serve_on(&core, &Config::default());
    let page = get(&port, "/metrics");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4;"), "{page}");
    assert!(page.contains("\nensue_cells 5\n"), "{page}");
    assert!(get(&port, "/healthz").ends_with("\r\n\r\nalive\n"));
    assert!(get(&port, "/readyz").ends_with("\r\n\r\nready\n"));
    assert!(get(&port, "/nowhere").starts_with("HTTP/1.1 404 Not Found\r\n"));
    let accept = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text\r\n\r\n";
    assert!(exchange(&port, accept).ends_with("# EOF\n"));
}

#[test]
fn the_page_for_people_asks_no_core_and_its_figures_are_of_this_node() {
    let core = Core::start(ready());
    let port = serve_on(&core, &Config::default());
    let page = get(&port, "/");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"), "{page}");
    assert!(get(&port, "/gauges.js").starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/javascript;"));
    assert_eq!(core.asked.load(Ordering::Relaxed), 0);
    let answer = get(&port, "/v1/state");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"), "{head}");
    let state: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!((&state["ready"], &state["figures"]["cells"]), (&true.into(), &5.into()));
    assert_eq!(core.asked.load(Ordering::Relaxed), 1);
    port.drain();
    assert!(get(&port, "/v1/state").contains("\"ready\":false"));
}

/// However the port answers, a browser that shows it may run nothing of it.
#[test]
fn every_answer_has_the_guards_for_browsers() {
    let core = Core::start(ready());
    let port = serve_on(&core, &Config::default());
    let paths = ["/", "/gauges.js", "/v1/state", "/v1/bdbs", "/metrics", "/healthz", "/readyz", "/<script>"];
    for path in paths {
        let answer = get(&port, path);
        let head = answer.split("\r\n\r\n").next().unwrap();
        let guards = ["Content-Security-Policy: default-src 'none';", "X-Content-Type-Options: nosniff"];
        for guard in guards {
            assert!(head.contains(&format!("\r\n{guard}")), "{path}: {head}");
        }
        assert!(!head.contains("Access-Control-Allow-Origin"), "{path}: {head}");
    }
}

#[test]
fn who_is_not_ready_says_why_and_so_does_who_drains() {
    let not_ready = vec!["2 partitions do not serve".into(), "the link to dc2 is down".into()];
    let core = Core::start(Some(Observation { not_ready, ..Observation::default() }));
    let port = serve_on(&core, &Config::default());
    let answer = get(&port, "/readyz");
    assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
    let words = "\r\n\r\nnot ready: 2 partitions do not serve; the link to dc2 is down\n";
    assert!(answer.ends_with(words), "{answer}");
    *core.shown.lock().unwrap() = ready();
    port.drain();
    assert!(get(&port, "/readyz").ends_with("not ready: this node is shutting down\n"));
    assert!(get(&port, "/healthz").starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn a_core_that_is_silent_makes_nobody_wait_for_ever() {
    let core = Core::start(None);
    let config = Config { request_timeout_ms: 100, ..Config::default() };
    let port = serve_on(&core, &config);
    let began = Instant::now();
    assert!(get(&port, "/metrics").starts_with("HTTP/1.1 503 "));
    assert!(get(&port, "/v1/state").starts_with("HTTP/1.1 503 "));
    assert!(get(&port, "/readyz").ends_with("not ready: the first core of this node does not answer\n"));
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(get(&port, "/healthz").starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn many_who_ask_at_once_cost_the_core_one_question() {
    let core = Core::start(ready());
    let port = serve_on(&core, &Config::default());
    let began = Instant::now();
    thread::scope(|scope| {
        for number in 0..METRICS_CONNECTIONS_MAX {
            let path = ["/metrics", "/v1/state"][number % 2];
            let port = &port;
            scope.spawn(move || get(port, path));
        }
    });
    let rounds = 1 + began.elapsed().as_millis() as usize / crate::bounds::OBSERVATION_FRESH_MS as usize;
    let asked = core.asked.load(Ordering::Relaxed);
    assert!((1..=rounds).contains(&asked), "{asked} questions");
}

#[test]
fn nonsense_gets_its_status_and_the_connection_ends() {
    let core = Core::start(ready());
    let port = serve_on(&core, &Config::default());
    let long = [b'x'; 3 * METRICS_HEAD_BYTES_MAX];
    for (bytes, status) in [
        (&b"*1\r\n$4\r\nPING\r\n\r\n"[..], "400 Bad Request"),
        (b"DELETE /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "405 Method Not Allowed"),
        (b"GET /metrics HTTP/3.0\r\nHost: a\r\n\r\n", "505 HTTP Version Not Supported"),
        (&long, "431 Request Header Fields Too Large"),
    ] {
        let answer = exchange(&port, bytes);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{answer}");
    }
    let stream = TcpStream::connect(port.address).unwrap();
    (&stream).write_all(b"GET /metr").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    (&stream).read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    assert_eq!(core.asked.load(Ordering::Relaxed), 0);
}

#[test]
fn who_is_slow_hurts_nobody_and_is_told_that_it_is() {
    let core = Core::start(ready());
    let port = serve_on(&core, &Config::default());
    let slow: Vec<TcpStream> =
        (0..METRICS_CONNECTIONS_MAX).map(|_| TcpStream::connect(port.address).unwrap()).collect();
    for stream in &slow {
        { stream }.write_all(b"GET /metrics HT").unwrap();
    }
    let until = Instant::now() + Duration::from_secs(5);
    while port.site.connections.load(Ordering::Relaxed) < METRICS_CONNECTIONS_MAX {
        assert!(Instant::now() < until, "they are accepted");
        thread::sleep(Duration::from_millis(1));
    }
    // No place is left, and nobody waits for one.
    assert!(get(&port, "/healthz").starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
    for mut stream in slow {
        stream.set_read_timeout(Some(Duration::from_millis(2 * METRICS_TRANSFER_MS))).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
    }
    assert!(get(&port, "/healthz").starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn the_port_is_free_again_when_the_node_has_ended() {
    let core = Core::start(ready());
    let port = serve_on(&core, &Config::default());
    let address = port.address;
    drop(port);
    let until = Instant::now() + Duration::from_secs(5);
    while let Err(error) = TcpListener::bind(address) {
        assert!(Instant::now() < until, "{error}");
        thread::sleep(Duration::from_millis(5));
    }
}
