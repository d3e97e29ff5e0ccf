//! `CONFIG`: the directives that the server was started with, and the parameters that can be set while it runs.

use super::acl::send_for;
use super::cluster_query::{ClusterQuery, Purpose};
use super::errand::{Outcome, Then};
use super::order;
use crate::errand::{CertificateFiles, Errand, ErrandDone};
use crate::session::core_state::CoreState;
use crate::session::cx::Cx;
use crate::session::parameters::{self, CERTIFICATE_FILES, PASSWORD, Setting};
use crate::session::step::Step;
use bytes::Bytes;
use ensue_acl::{DEFAULT_USER, Unhashed, Verifier};
use ensue_resp::{CommandError, glob};
use ensue_types::{Args, Reply};

/// `CONFIG` and its subcommands.
pub(crate) fn on_command(cx: &mut Cx<'_>, args: &Args) -> Step<Outcome> {
    let subcommand = args[1].to_ascii_lowercase();
    Step::answer(match (subcommand.as_slice(), &args[2..]) {
        (b"get", patterns @ [_, ..]) => matching(cx.core, patterns),
        (b"set", pairs @ [_, _, ..]) => match parameters::check(pairs, &cx.core.config.directives) {
            Ok(settings) if settings.is_empty() => Reply::OK,
            Ok(settings) => return set(cx, settings),
            Err(refusal) => refusal,
        },
        (b"resetstat", []) => {
            return ClusterQuery::begin(cx, Purpose::ResetStatistics).map(Outcome::from);
        }
        (b"rewrite", []) => return rewrite(cx),
        (b"help", []) => Reply::Array(HELP.iter().map(|&line| Reply::Status(line.into())).collect()),
        (b"get", _) => CommandError::wrong_arity("config|get").reply(),
        (b"set", _) => CommandError::wrong_arity("config|set").reply(),
        (b"resetstat", _) => CommandError::wrong_arity("config|resetstat").reply(),
        (b"rewrite", _) => CommandError::wrong_arity("config|rewrite").reply(),
        (b"help", _) => CommandError::wrong_arity("config|help").reply(),
        _ => CommandError::unknown_subcommand("config", &args[1]).reply(),
    })
}

/// Sets checked values. Files of certificates are read before, and nothing is set if they cannot be used.
fn set(cx: &mut Cx<'_>, settings: Vec<Setting>) -> Step<Outcome> {
    let is_file = |(name, _): &&Setting| CERTIFICATE_FILES.contains(name);
    match settings.iter().filter(is_file).count() {
        0 => give(cx, settings),
        files if files < settings.len() => Step::answer(NOT_TOGETHER),
        _ => {
            let named = |wanted: &str| {
                settings.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone())
            };
            let [certificate, key, authorities, revocations] = CERTIFICATE_FILES.map(named);
            let files = CertificateFiles { certificate, key, authorities, revocations };
            let errand = Errand::Certificates(files);
            send_for(cx, errand, Then::Configure(settings))
        }
    }
}

/// Has all cores set the values, those of this node alone if they are files. A password is that of the user `default`.
fn give(cx: &mut Cx<'_>, mut settings: Vec<Setting>) -> Step<Outcome> {
    let Some((_, password)) = settings.iter_mut().find(|(name, _)| *name == PASSWORD) else {
        let is_of_node = settings.iter().any(|(name, _)| CERTIFICATE_FILES.contains(name));
        let order = if is_of_node { order::set_of_node(cx, settings) } else { order::set(cx, settings) };
        return order.map(Outcome::from);
    };
    let rules = match password.as_str() {
        "" => ["resetpass".to_owned(), "nopass".to_owned()],
        // As with the directive, whoever can read the configuration knows the password itself.
        given => ["resetpass".to_owned(), format!("#{}", Verifier::sha256(given.as_bytes()))],
    };
    if !password.is_empty() {
        *password = HIDDEN.to_owned();
    }
    let mut users = cx.core.access.users().clone();
    match users.set(DEFAULT_USER.as_bytes(), &rules, &mut Unhashed) {
        Ok(user) => {
            let stamp = cx.core.access.stamp(cx.now);
            order::set_with_user(cx, settings, stamp, user.describe().into()).map(Outcome::from)
        }
        Err(error) => Step::answer(error.reply()),
    }
}

/// Has the configuration file of this node say what was set. Users are written if they have no file of their own and
/// have changed.
fn rewrite(cx: &mut Cx<'_>) -> Step<Outcome> {
    let settings = cx.core.parameters.rewritten();
    let access = &cx.core.access;
    let writes_users = !cx.core.config.has_users_file && access.has_changed();
    let users = writes_users.then(|| access.users().iter().map(|user| user.describe().into()).collect());
    send_for(cx, Errand::Rewrite { settings, users }, Then::Rewrite)
}

/// Files were read, or written.
pub(super) fn on_done(cx: &mut Cx<'_>, then: Then, done: ErrandDone) -> Step<Outcome> {
    match (then, done) {
        (Then::Configure(settings), ErrandDone::Configured(Ok(()))) => give(cx, settings),
        (Then::Configure(settings), ErrandDone::Configured(Err(why))) => {
            let name = settings.first().map_or("", |(name, _)| name);
            let words = format!(
                "ERR CONFIG SET failed (possibly related to argument '{name}') - Unable to update TLS configuration: \
                 {why}"
            );
            Step::answer(Reply::Error(words.into()))
        }
        (Then::Rewrite, ErrandDone::Configured(Ok(()))) => Step::answer(Reply::OK),
        (Then::Rewrite, ErrandDone::Configured(Err(why))) => {
            Step::answer(Reply::Error(format!("ERR {why}").into()))
        }
        _ => Step::answer(UNEXPECTED),
    }
}

/// What is told in the place of a password.
const HIDDEN: &str = "(hidden)";
const UNEXPECTED: Reply = Reply::error("ERR what was sent for came back as something else");
const NOT_TOGETHER: Reply = Reply::error(
    "ERR CONFIG SET failed - files of certificates are of this node, and other parameters of all nodes: set them by \
     two commands; nothing was set",
);

fn matching(core: &CoreState, patterns: &[Bytes]) -> Reply {
    let patterns: Vec<Vec<u8>> = patterns.iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
    let is_wanted = |name: &str| patterns.iter().any(|pattern| glob::matches(pattern, name.as_bytes()));
    let fixed = core.config.directives.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let fixed = fixed.filter(|(name, _)| !parameters::is_known(name));
    // What only tests of Redis set is told to those who name it.
    let is_hidden =
        |name: &str| name.ends_with("-delay") && !patterns.iter().any(|one| one == name.as_bytes());
    let all = fixed.chain(core.parameters.all()).filter(|(name, _)| is_wanted(name) && !is_hidden(name));
    let pair = |(name, value): (&str, &str)| (Reply::bulk(name.to_owned()), Reply::bulk(value.to_owned()));
    Reply::Map(all.map(pair).collect())
}

const HELP: [&str; 11] = [
    "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GET <pattern> [<pattern> ...]",
    "    Return parameters matching the glob-like <pattern> and their values.",
    "SET <parameter> <value> [<parameter> <value> ...]",
    "    Set parameters in all cores of the datacenter, until they are started again.",
    "RESETSTAT",
    "    Reset statistics reported by the INFO command.",
    "REWRITE",
    "    Write what was set into the configuration file of this node.",
    "HELP",
    "    Print this help.",
];
