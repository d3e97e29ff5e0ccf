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
