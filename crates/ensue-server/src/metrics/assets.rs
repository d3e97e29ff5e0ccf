//! The page for people: files that are part of the binary, and draw what `/v1/state` says.
//!
//! The page asks its own node for everything and nobody else for anything, and whatever it is told it shows as text. It
//! changes nothing, because there is nothing on this port that does.

use super::http;

/// The file at a path, as an answer; nothing if there is none.
pub(super) fn answer(path: &str) -> Option<Vec<u8>> {
    let asset = ASSETS.iter().find(|asset| asset.path == path)?;
    Some(http::encode(http::OK, asset.content_type, asset.text))
}

struct Asset {
    path: &'static str,
    content_type: &'static str,
    text: &'static str,
}

const ASSETS: [Asset; 5] = [
    Asset { path: "/", content_type: "text/html; charset=utf-8", text: include_str!("assets/gauges.html") },
    Asset {
        path: "/gauges.css",
        content_type: "text/css; charset=utf-8",
        text: include_str!("assets/gauges.css"),
    },
    Asset {
        path: "/gauges.js",
        content_type: "text/javascript; charset=utf-8",
        text: include_str!("assets/gauges.js"),
    },
    Asset {
        path: "/keys.js",
        content_type: "text/javascript; charset=utf-8",
        text: include_str!("assets/keys.js"),
    },
    Asset { path: "/gauges.svg", content_type: "image/svg+xml", text: include_str!("assets/gauges.svg") },
];

#[cfg(test)]
mod tests;
