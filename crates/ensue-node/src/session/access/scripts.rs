//! What a script may do for a user that may not do everything, which its partition has to know.
//!
//! Raw commands travel. The one of such a user is marked: its name has a byte before it that no client can send, and
//! its last argument is the user's line of an ACL file. Everything that looks for keys finds them where they were.

use bytes::Bytes;
use ensue_acl::User;
use ensue_resp::AS_USER;
use ensue_types::Args;

/// The command of a script, marked.
pub(in crate::session) fn mark(mut args: Args, user: &User) -> Args {
    args[0] = [&[AS_USER], &args[0][..]].concat().into();
    args.push(user.describe().into());
    args
}

/// The same command for a user as it is now, or for one that may do everything.
pub(in crate::session) fn mark_anew(args: &mut Args, user: Option<&User>) {
    if args[0].first() == Some(&AS_USER) {
        args[0] = args[0].slice(1..);
        args.pop();
    }
    if let Some(user) = user {
        *args = mark(std::mem::take(args), user);
    }
}

/// A client cannot send a marked command: whatever looks like one is the name of no command.
pub(in crate::session) fn defuse(commands: &mut [Args]) {
    for args in commands {
        if let Some(name) = args.first_mut().filter(|name| name.first() == Some(&AS_USER)) {
            *name = Bytes::from([&[AS_USER], &name[..]].concat());
        }
    }
}

/// The command as its client sent it.
pub(in crate::session) fn shown(args: &Args) -> &[Bytes] {
    let is_marked = args.first().is_some_and(|name| name.first() == Some(&AS_USER));
    if is_marked { &args[..args.len() - 1] } else { args }
}
