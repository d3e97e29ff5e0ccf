//! Tests of what a bill of materials lists.

use super::*;

fn package(name: &str, licence: &str) -> Value {
    json!({ "id": format!("id {name}"), "name": name, "version": "1.0.0", "license": licence })
}

fn node(name: &str, needs: &[(&str, Value)]) -> Value {
    let dependency = |(name, kind): &(&str, Value)| json!({ "pkg": format!("id {name}"), "dep_kinds": [{ "kind": kind }] });
    json!({ "id": format!("id {name}"), "deps": needs.iter().map(dependency).collect::<Vec<_>>() })
}

#[test]
fn what_the_binary_is_made_of_is_listed_and_what_tests_need_is_not() {
    let metadata = json!({
        "packages": [
            package("ensue", "Apache-2.0"),
            package("bytes", "MIT"),
            package("cc", "MIT/Apache-2.0"),
            package("proptest", "MIT"),
            package("elsewhere", "MIT"),
        ],
        "resolve": { "nodes": [
            node("ensue", &[("bytes", Value::Null), ("proptest", json!("dev"))]),
            node("bytes", &[("cc", json!("build")), ("proptest", json!("dev"))]),
            node("cc", &[]),
            node("proptest", &[]),
            node("elsewhere", &[("cc", Value::Null)]),
        ] },
    });
    let bill = bill(&metadata).expect("it is complete");
    let names = |list: &Value, name: &str| -> Vec<String> {
        list.as_array().into_iter().flatten().map(|one| word(one, name).to_owned()).collect()
    };
    assert_eq!(names(&bill["components"], "name"), ["bytes", "cc"]);
    assert_eq!(bill["components"][1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
    assert_eq!(bill["metadata"]["component"]["purl"], "pkg:cargo/ensue@1.0.0");
    let references = ["pkg:cargo/bytes@1.0.0", "pkg:cargo/cc@1.0.0", "pkg:cargo/ensue@1.0.0"];
    assert_eq!(names(&bill["dependencies"], "ref"), references);
    assert_eq!(bill["dependencies"][2]["dependsOn"], json!(["pkg:cargo/bytes@1.0.0"]));
}

#[test]
fn a_tree_without_what_is_released_is_an_error() {
    let metadata = json!({ "packages": [package("other", "MIT")], "resolve": { "nodes": [] } });
    assert!(bill(&metadata).is_err());
    assert!(bill(&json!({})).is_err());
}
