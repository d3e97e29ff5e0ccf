//! Who somebody says to be, and whether that is so.
//!
//! A password is compared at once where that is cheap: the user takes any, or it was proven before, or only its
//! SHA-256 is known. Otherwise it is an errand; a name that nobody has takes as long, so that the time does not tell.

use super::errand::{Then, Waiting};
use crate::errand::Errand;
use crate::session::cx::Cx;
use bytes::Bytes;
use ensue_acl::{Context, Reason, Refusal, User, UserVersion, Verifier};
use ensue_resp::ProtocolVersion;
use ensue_types::Reply;
use std::sync::Arc;

/// A user and a password that were given.
#[derive(Clone)]
pub(crate) struct Login {
    pub(super) user: Bytes,
    pub(super) password: Bytes,
    pub(super) after: After,
    /// The version of the user with whose passwords it is compared; nothing where there is no such user.
    pub(super) compared: Option<UserVersion>,
}

/// What the session becomes besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing: `AUTH`.
    Auth,
    /// It speaks this version, and may have a name: `HELLO`.
    Hello { version: ProtocolVersion, name: Option<Bytes> },
}

impl After {
    /// What the log names.
    fn object(&self) -> &'static str {
        if *self == After::Auth { "AUTH" } else { "HELLO" }
    }
}

/// What is known of a login.
pub(crate) enum Verdict {
    Right(Arc<User>),
    Wrong,
    /// It takes an errand to know.
    Waits(Waiting),
}

impl Login {
    /// What the session becomes when it is right.
    pub(crate) fn into_after(self) -> After {
        self.after
    }

    pub(crate) fn begin(mut self, cx: &mut Cx<'_>) -> Verdict {
        let access = &cx.core.access;
        let user = access.users().user(&self.user).filter(|user| user.is_on());
        let verifiers = match user {
            Some(user) if user.is_nopass() || access.is_proven(user, &self.password) => {
                return Verdict::Right(Arc::clone(user));
            }
            Some(user) if !user.is_costly() => {
                return if user.accepts(&self.password) {
                    Verdict::Right(Arc::clone(user))
                } else {
                    Verdict::Wrong
                };
            }
            Some(user) => user.verifiers().to_vec(),
            None if access.users().iter().any(|user| user.is_costly()) => vec![Verifier::decoy()],
            None => return Verdict::Wrong,
        };
        self.compared = user.map(|user| user.version());
        let errand = Errand::Compare { verifiers, password: self.password.clone() };
        Verdict::Waits(Waiting::begin(cx, errand, Then::Login(Box::new(self))))
    }

    /// Its password was compared with those that its user had then. If the user has changed since, that says nothing,
    /// and it is compared again.
    pub(crate) fn end(self, cx: &mut Cx<'_>, is_right: bool) -> Verdict {
        let access = &mut cx.core.access;
        let present = access.users().user(&self.user).filter(|user| user.is_on());
        if present.map(|user| user.version()) != self.compared {
            return self.begin(cx);
        }
        let proven = if is_right { access.on_proven(&self.user, &self.password) } else { None };
        proven.map_or(Verdict::Wrong, Verdict::Right)
    }

    /// Notes that it was wrong; `line` is that of `CLIENT LIST`.
    pub(crate) fn refuse(&self, cx: &mut Cx<'_>, line: String) {
        let refusal = Refusal {
            reason: Reason::Auth,
            context: Context::Toplevel,
            object: Bytes::from_static(self.after.object().as_bytes()),
            username: self.user.clone(),
            client_info: line.into(),
        };
        cx.core.note_refusal(cx.now, refusal);
    }
}

pub(crate) const WRONG_PASSWORD: Reply =
    Reply::error("WRONGPASS invalid username-password pair or user is disabled.");
