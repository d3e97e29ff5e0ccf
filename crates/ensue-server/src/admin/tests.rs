//! Tests of the lines, and of the port from one end to the other.

use super::*;

fn datacenters() -> Vec<String> {
    ["dc1", "dc2", "dc3"].map(String::from).to_vec()
}

fn parse(line: &str) -> Result<LinkChange, String> {
    LinkChange::parse(&line.split(' ').collect::<Vec<_>>(), &datacenters())
}

#[test]
fn lines_are_read_as_they_are_written() {
    for line in ["dc1 dc2 cut", "dc3 dc1 heal", "dc2 dc3 delay 40"] {
        let change = parse(line).unwrap();
        assert_eq!(change.line(&datacenters()), format!("link {line}"));
    }
}

#[test]
fn bad_lines_are_refused_with_a_reason() {
    for line in
        ["dc1 dc9 cut", "dc1 dc1 cut", "dc1 dc2", "dc1 dc2 delay", "dc1 dc2 delay x", "dc1 dc2 melt", ""]
    {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn delays_have_units() {
    assert_eq!(delay_ms("40"), Ok(40));
    assert_eq!(delay_ms("40ms"), Ok(40));
    assert_eq!(delay_ms("2s"), Ok(2_000));
    assert!(delay_ms("61s").is_err() && delay_ms("-1").is_err() && delay_ms("ms").is_err());
}

#[test]
fn every_link_is_shown_with_its_shape() {
    let shaper = Shaper::default();
    parse("dc1 dc2 cut").unwrap().apply(&shaper);
    parse("dc2 dc3 delay 40").unwrap().apply(&shaper);
    assert_eq!(describe_all(&shaper, &datacenters()), "dc1-dc2=cut,0ms dc1-dc3=whole,0ms dc2-dc3=whole,40ms");
}

#[test]
fn the_port_answers_and_refuses() {
    // Some base port whose admin port is free.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let base = listener.local_addr().unwrap().port() - ADMIN_PORT_OFFSET;
    serve(listener, |line| match line {
        "nodes" => Ok("dc1/0=127.0.0.1:7001".into()),
        other => Err(format!("what is '{other}'?")),
    })
    .unwrap();
    assert_eq!(ask(base, "nodes").unwrap(), Ok("dc1/0=127.0.0.1:7001".into()));
    assert_eq!(ask(base, "nothing").unwrap(), Err("what is 'nothing'?".into()));
}
