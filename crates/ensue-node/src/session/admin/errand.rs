//! A session that waits for an errand: what it goes on with when that is done.

use super::cluster_query::ClusterQuery;
use super::login::Login;
use crate::errand::{Errand, ErrandDone};
use crate::session::cx::Cx;
use crate::session::output::SessionOutput;
use crate::session::parameters::Setting;
use crate::session::step::Step;
use ensue_types::{Args, Reply};

/// Waiting for `ErrandDone`.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    number: u64,
    then: Then,
}

/// What the errand is for.
#[derive(Clone)]
pub(super) enum Then {
    Login(Box<Login>),
    /// `ACL SETUSER` with these words.
    SetUser(Args),
    /// `ACL GENPASS` of so many bits.
    Generate(usize),
    Load,
    Save,
    /// `CAUSAL BACKUP`.
    Backup,
    /// `CONFIG SET` of these, some of which name files.
    Configure(Vec<Setting>),
    /// `CONFIG REWRITE`.
    Rewrite,
    /// `MEMORY PURGE`.
    Purge,
    /// `CAUSAL REPLICAS` and `CAUSAL MOVE`.
    Group,
}

/// Names it only: passwords do not belong into a log.
impl std::fmt::Debug for Then {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Then::Login(_) => "Login",
            Then::SetUser(_) => "SetUser",
            Then::Generate(_) => "Generate",
            Then::Load => "Load",
            Then::Save => "Save",
            Then::Backup => "Backup",
            Then::Configure(_) => "Configure",
            Then::Rewrite => "Rewrite",
            Then::Purge => "Purge",
            Then::Group => "Group",
        })
    }
}

/// What a step about users comes to.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Waits(Waiting),
    /// All cores are told.
    Orders(Box<ClusterQuery>),
}

impl From<Box<ClusterQuery>> for Outcome {
    fn from(query: Box<ClusterQuery>) -> Outcome {
        Outcome::Orders(query)
    }
}

impl Waiting {
    /// Sends for something.
    pub(super) fn begin(cx: &mut Cx<'_>, errand: Errand, then: Then) -> Waiting {
        cx.requests.ask(1);
        cx.begin_request(1);
        let (session, number) = (cx.requests.session(), cx.requests.sequence(0));
        cx.core.output(SessionOutput::Errand { session, number, errand });
        Waiting { number, then }
    }

    pub(crate) fn is_for(&self, number: u64) -> bool {
        self.number == number
    }

    /// Who logs in, if that is what it waits for: only its session can end it.
    pub(crate) fn into_login(self) -> Result<Login, Waiting> {
        match self.then {
            Then::Login(login) => Ok(*login),
            then => Err(Waiting { then, ..self }),
        }
    }

    pub(crate) fn on_done(self, cx: &mut Cx<'_>, done: ErrandDone) -> Step<Outcome> {
        match (self.then, done) {
            (Then::Backup, done) => super::backup::on_done(done),
            (Then::Group, done) => super::group::on_done(done),
            (_, ErrandDone::Busy) => Step::answer(BUSY),
            (Then::Purge, _) => Step::answer(Reply::OK),
            (then @ (Then::Configure(_) | Then::Rewrite), done) => super::config::on_done(cx, then, done),
            (then, done) => super::acl::on_done(cx, then, done),
        }
    }

    pub(crate) fn on_timeout<E>(self) -> Step<E> {
        Step::answer(match self.then {
            Then::Backup => super::backup::TIMEOUT,
            Then::Group => super::group::TIMEOUT,
            _ => TIMEOUT,
        })
    }
}

pub(crate) const BUSY: Reply =
    Reply::error("BUSY too many passwords wait to be compared; nothing was changed, try again later");
const TIMEOUT: Reply = Reply::error(
    "TIMEOUT what takes long, such as comparing a password, did not end in time; nothing was changed",
);
