//! The files of the page ask nobody but this node, and nothing of what they show is taken for their own language.

use super::*;

fn text(path: &str) -> &'static str {
    ASSETS.iter().find(|asset| asset.path == path).expect("it is one of the files").text
}

#[test]
fn every_file_is_answered_with_its_type_and_the_guards() {
    for asset in &ASSETS {
        let answer = String::from_utf8(answer(asset.path).unwrap()).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nContent-Type: {}\r\n", asset.content_type)), "{head}");
        assert!(
            head.contains("\r\nContent-Security-Policy: default-src 'none'; script-src 'self';"),
            "{head}"
        );
        assert!(!head.contains("unsafe"), "{head}");
        assert!(head.contains("\r\nX-Content-Type-Options: nosniff\r\n"), "{head}");
        assert_eq!(body, asset.text);
    }
    assert!(answer("/gauges").is_none() && answer("//").is_none() && answer("").is_none());
}

#[test]
fn what_the_page_names_is_there_and_of_this_node() {
    let html = text("/");
    let named: Vec<&str> = html
        .split('"')
        .collect::<Vec<_>>()
        .windows(2)
        .filter(|pair| pair[0].ends_with("href=") || pair[0].ends_with("src="))
        .map(|pair| pair[1])
        .collect();
    assert!(named.len() >= 4, "{named:?}");
    for path in named {
        let is_known = ["/metrics", "/v1/state"].contains(&path) || answer(path).is_some();
        assert!(is_known, "{path} is nowhere");
    }
    for asset in &ASSETS {
        let elsewhere = asset.text.replace("http://www.w3.org/2000/svg", "");
        for mark in ["http:", "https:", "\"//", "'//", "@import", "url("] {
            assert!(!elsewhere.contains(mark), "{mark} in {}", asset.path);
        }
    }
}

/// The policy would stop them in a browser; without them the page does not depend on it.
#[test]
fn the_page_has_no_code_or_style_of_its_own_within_a_tag() {
    let html = text("/");
    assert_eq!(html.matches("<script").count(), 2);
    for script in ["gauges", "keys"] {
        assert!(html.contains(&format!("<script type=\"module\" src=\"/{script}.js\"></script>")));
    }
    for mark in ["<style", " style=", " onload", " onclick", " onerror", "javascript:"] {
        assert!(!html.contains(mark), "{mark}");
    }
}

/// Names of datacenters, words of errors, keys and values reach the page as text: nothing in the scripts reads text as
/// markup or code.
#[test]
fn the_scripts_never_make_markup_or_code_of_text() {
    let sinks = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "DOMParser",
        "createContextualFragment",
        "srcdoc",
        "setHTML",
        "eval(",
        "Function(",
        "import(",
        "setTimeout(\"",
        "location",
    ];
    for path in ["/gauges.js", "/keys.js"] {
        let script = text(path);
        for sink in sinks {
            assert!(!script.contains(sink), "{sink} in {path}");
        }
        assert!(script.contains("textContent"));
    }
}
