//! Tests of what cores come to agree on about users.

use super::*;

const LINE: &[u8] = b"user app on nopass ~* &* +@all";
const OTHER: &[u8] = b"user app off resetchannels -@all";

fn access() -> Access {
    Access::new(Users::new(), 1, 0)
}

fn stamp(time: u64, core: u16) -> Stamp {
    Stamp { time, core }
}

fn described(access: &Access) -> Vec<Vec<u8>> {
    access.users().iter().map(|user| user.describe()).collect()
}

#[test]
fn in_whichever_order_changes_arrive_the_same_users_come_of_them() {
    type Change = fn(&mut Access);
    let changes: [Change; 5] = [
        |access| access.on_user(stamp(5, 0), LINE),
        |access| access.on_user(stamp(5, 1), OTHER),
        |access| access.on_deleted(stamp(4, 0), &[b"app", &b"gone"[..]]),
        |access| access.on_user(stamp(3, 0), b"user gone on nopass ~* &* +@all"),
        |access| access.on_loaded(stamp(2, 0), b"user early on nopass ~* &* +@all\nuser app on\n"),
    ];
    let in_order = |order: &[usize]| {
        let mut access = access();
        order.iter().for_each(|&change| changes[change](&mut access));
        described(&access)
    };
    let expected = in_order(&[4, 3, 2, 0, 1]);
    let names: Vec<_> = expected.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names.iter().any(|line| line.starts_with("user app off ")), "{names:?}");
    for first in 0..5 {
        for step in [1, 2, 3, 4] {
            let order: Vec<usize> = (0..5).map(|index| (first + index * step) % 5).collect();
            assert_eq!(in_order(&order), expected, "{order:?}");
        }
    }
}

#[test]
fn a_stamp_is_later_than_all_that_its_core_knows() {
    let mut access = access();
    let now = Now { wall_ms: 1_000, ..Now::default() };
    let first = access.stamp(now);
    let second = access.stamp(now);
    assert!(second > first);
    access.on_user(stamp(9_000, 3), LINE);
    let third = access.stamp(now);
    assert!(third > stamp(9_000, 3));
    assert_eq!(Stamp::parse(third.text().as_bytes()), Some(third));
    assert_eq!(Stamp::parse(b"x"), None);
}

#[test]
fn what_is_remembered_of_deleted_users_has_a_bound() {
    let mut access = access();
    let count = 3 * USERS_MAX as u64;
    for number in 1..=count {
        access.on_deleted(stamp(number, 0), &[format!("user{number}")]);
    }
    assert!(access.stamps.len() <= 2 * USERS_MAX);
    // The latest are known, and a change that was made before one does not bring the user back.
    access.on_user(stamp(1, 0), format!("user user{count} on nopass").as_bytes());
    assert_eq!(described(&access).len(), 1);
}
