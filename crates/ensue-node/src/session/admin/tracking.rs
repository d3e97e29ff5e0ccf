//! `CLIENT TRACKING`, `CACHING` and `TRACKINGINFO`: what they accept, and what they answer.

use crate::session::cx::Cx;
use crate::session::tracking::Options;
use bytes::Bytes;
use ensue_resp::{CommandError, ProtocolVersion, number};
use ensue_types::{Reply, SessionId};

/// `CLIENT TRACKING`.
pub(super) fn track(cx: &mut Cx<'_>, version: ProtocolVersion, words: &[Bytes]) -> Reply {
    let options = match options(cx, &words[1..]) {
        Ok(options) => options,
        Err(refusal) => return refusal,
    };
    let client = cx.requests.session();
    match words[0].to_ascii_lowercase().as_slice() {
        b"on" if cx.protocol().needs().branches => BRANCHES,
        b"on" => match refusal(cx.core.tracking.options(client), &options) {
            Some(words) => Reply::Error(format!("ERR {words}").into()),
            None => {
                cx.core.start_tracking(client, version, options);
                Reply::OK
            }
        },
        b"off" => {
            cx.core.stop_tracking(client);
            Reply::OK
        }
        _ => CommandError::Syntax.reply(),
    }
}

fn options(cx: &Cx<'_>, words: &[Bytes]) -> Result<Options, Reply> {
    let mut options = Options::default();
    let mut rest = words;
    while let [word, others @ ..] = rest {
        rest = others;
        match (word.to_ascii_lowercase().as_slice(), others) {
            (b"bcast", _) => options.broadcast = true,
            (b"optin", _) => options.opt_in = true,
            (b"optout", _) => options.opt_out = true,
            (b"noloop", _) => options.no_loop = true,
            (b"redirect", [id, others @ ..]) => {
                rest = others;
                if options.redirect != 0 {
                    return Err(Reply::error("ERR A client can only redirect to a single other client"));
                }
                let id = number::parse_i64(id).ok_or(CommandError::NotInteger.reply())?;
                options.redirect = u64::try_from(id).unwrap_or(0);
                if !cx.core.is_connected(SessionId(options.redirect)) {
                    return Err(NO_SUCH_CLIENT);
                }
            }
            (b"prefix", [prefix, others @ ..]) => {
                rest = others;
                options.prefixes.push(Bytes::copy_from_slice(prefix));
            }
            _ => return Err(CommandError::Syntax.reply()),
        }
    }
    Ok(options)
}

/// Each change of a key is compared with all prefixes of a client.
const PREFIXES_MAX: usize = 1_000;

/// Why options do not go together, or not with those that the client has.
fn refusal(before: Option<&Options>, options: &Options) -> Option<String> {
    let Options { broadcast, prefixes, opt_in, opt_out, .. } = options;
    let fixed = |words: &str| Some(words.to_owned());
    if !broadcast && !prefixes.is_empty() {
        return fixed("PREFIX option requires BCAST mode to be enabled");
    }
    if before.is_some_and(|before| before.broadcast != *broadcast) {
        return fixed(
            "You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with \
             a different mode.",
        );
    }
    if *broadcast && (*opt_in || *opt_out) {
        return fixed("OPTIN and OPTOUT are not compatible with BCAST");
    }
    if *opt_in && *opt_out {
        return fixed("You can't use both OPTIN mode and OPTOUT mode");
    }
    if before.is_some_and(|before| (*opt_in && before.opt_out) || (*opt_out && before.opt_in)) {
        return fixed(
            "You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with \
             a different mode.",
        );
    }
    let existing: &[Bytes] = before.map_or(&[], |before| &before.prefixes);
    if existing.len() + prefixes.len() > PREFIXES_MAX {
        return Some(format!("a client is told of at most {PREFIXES_MAX} prefixes"));
    }
    overlap(existing, prefixes)
}

/// Prefixes of which one begins with another.
fn overlap(before: &[Bytes], prefixes: &[Bytes]) -> Option<String> {
    let overlaps = |one: &Bytes, other: &Bytes| one.starts_with(other) || other.starts_with(one);
    let words = |one: &Bytes, other: &Bytes, which: &str| {
        let (one, other) = (String::from_utf8_lossy(one), String::from_utf8_lossy(other));
        format!(
            "Prefix '{one}' overlaps with {which} prefix '{other}'. Prefixes for a single client must not overlap."
        )
    };
    // Of those that begin with one another, two stand beside each other in their order.
    let mut sorted: Vec<(&Bytes, bool)> = prefixes.iter().map(|prefix| (prefix, true)).collect();
    sorted.extend(before.iter().map(|prefix| (prefix, false)));
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| overlaps(pair[0].0, pair[1].0)).map(|pair| match *pair {
        [(one, true), (other, true)] => words(one, other, "another provided"),
        [(one, true), (other, false)] | [(other, false), (one, _)] => words(one, other, "an existing"),
        _ => words(pair[0].0, pair[1].0, "another provided"),
    })
}

/// `CLIENT CACHING`.
pub(super) fn caching(cx: &mut Cx<'_>, word: &Bytes) -> Reply {
    let client = cx.requests.session();
    let Some(options) = cx.core.tracking.options(client) else {
        return Reply::error(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        );
    };
    let (yes, allowed, refusal) = match word.to_ascii_lowercase().as_slice() {
        b"yes" => (
            true,
            options.opt_in,
            "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
        ),
        b"no" => (
            false,
            options.opt_out,
            "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
        ),
        _ => return CommandError::Syntax.reply(),
    };
    if !allowed {
        return Reply::error(refusal);
    }
    cx.core.tracking.set_caching(client, yes);
    Reply::OK
}

/// `CLIENT GETREDIR`.
pub(super) fn redirect(cx: &Cx<'_>) -> Reply {
    let options = cx.core.tracking.options(cx.requests.session());
    Reply::Integer(options.map_or(-1, |options| options.redirect as i64))
}

/// `CLIENT TRACKINGINFO`.
pub(super) fn info(cx: &Cx<'_>) -> Reply {
    let client = cx.requests.session();
    let (caching, is_broken) = cx.core.tracking.state(client);
    let options = cx.core.tracking.options(client);
    let has = |has: fn(&Options) -> bool| options.is_some_and(has);
    let flags = [
        (options.is_none(), "off"),
        (options.is_some(), "on"),
        (has(|options| options.broadcast), "bcast"),
        (has(|options| options.opt_in), "optin"),
        (has(|options| options.opt_in) && caching == Some(true), "caching-yes"),
        (has(|options| options.opt_out), "optout"),
        (has(|options| options.opt_out) && caching == Some(false), "caching-no"),
        (has(|options| options.no_loop), "noloop"),
        (is_broken, "broken_redirect"),
    ];
    let flags = flags.iter().filter(|(is_so, _)| *is_so).map(|(_, word)| Reply::bulk(*word)).collect();
    let mut prefixes = options.map_or_else(Vec::new, |options| options.prefixes.clone());
    if prefixes.is_empty() && has(|options| options.broadcast) {
        // All keys begin with nothing.
        prefixes.push(Bytes::new());
    }
    Reply::Map(vec![
        (Reply::bulk("flags"), Reply::Set(flags)),
        (Reply::bulk("redirect"), redirect(cx)),
        (Reply::bulk("prefixes"), Reply::Array(prefixes.into_iter().map(Reply::Bulk).collect())),
    ])
}

const BRANCHES: Reply = Reply::error(
    "ERR CLIENT TRACKING is refused in a keyspace with branches: what changes there is seen by some sessions only",
);
const NO_SUCH_CLIENT: Reply = Reply::error("ERR The client ID you want redirect to does not exist");
