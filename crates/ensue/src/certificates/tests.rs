//! Tests of the command line; the certificates themselves are tried by servers in the end-to-end tests.

use super::*;

#[test]
fn datacenters_have_a_name_and_a_number_of_nodes() {
    assert_eq!(datacenter("dc1").unwrap(), ("dc1".into(), 1));
    assert_eq!(datacenter("eu-west_1:3").unwrap(), ("eu-west_1".into(), 3));
    for wrong in ["", ":1", "dc1:", "dc1:0", "dc1:x", "../dc1", ".dc1"] {
        assert!(datacenter(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_node_with_siblings_is_named_too() {
    let hosts = ["db.example.org".to_string()];
    assert_eq!(node_names("shop", "dc1", 0, 1, &hosts), ["dc1.shop", "db.example.org"]);
    assert_eq!(node_names("shop", "dc1", 2, 3, &[]), ["dc1.shop", "node2.dc1.shop"]);
}

#[test]
fn nobody_gets_the_name_of_a_peer_beside_its_own() {
    for (name, is_of_a_peer_of_shop) in [
        ("oslo.shop", true),
        ("node1.oslo.shop", true),
        ("shop", false),
        (".shop", false),
        ("oslo.workshop", false),
        ("oslo.shop.example.org", false),
    ] {
        assert_eq!(is_of_a_peer(name, "shop"), is_of_a_peer_of_shop, "{name}");
    }
    let args = |flag: &str| {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: CertificatesArgs,
        }
        let words = ["certificates", "--cluster", "shop", "lisbon", "--out", "/nowhere", flag, "oslo.shop"];
        <Line as clap::Parser>::parse_from(words).args
    };
    for flag in ["--host", "--client"] {
        let refused = run(&args(flag)).unwrap_err().to_string();
        assert!(
            refused.starts_with("oslo.shop would say that its owner may speak for a datacenter"),
            "{refused}"
        );
    }
}
