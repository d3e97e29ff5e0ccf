//! Tests that an outage is seen: a protocol that must not wait, and one that must.

use super::{Course, Outage, QUESTIONS, Question, chart, run, table};
use crate::Contestant;

const OUTAGE: Outage = Outage { before: 2, cut: 3, after: 2 };

fn course(protocol: &'static str) -> Course {
    run(&Contestant { protocol, dependency_cleaning: true }, 1, OUTAGE).unwrap()
}

#[test]
fn whoever_waits_for_nobody_goes_on_and_whoever_must_wait_does_not() {
    let (eventual, pocc) = (course("eventual"), course("pocc"));
    for question in [Question::Get, Question::Set, Question::Mget, Question::Mset, Question::News] {
        let served = eventual.served(&[question], true);
        assert!(served.asked > 20, "{question:?} {served:?}");
        assert_eq!(served.percent(), Some(100.0), "{question:?}");
    }
    assert_eq!(eventual.served(&[Question::Move], true).asked, 0, "there is no past to move with");
    for question in [Question::Mget, Question::Move] {
        assert!(pocc.served(&[question], true).percent() < Some(75.0), "{question:?} {pocc:?}");
    }
    assert_eq!(pocc.served(&[Question::Mset], true).asked, 0, "it is refused by name");
}

#[test]
fn what_is_held_grows_while_the_links_are_cut_and_shrinks_again() {
    let versions: Vec<u64> = course("pocc").held.iter().map(|held| held.versions).collect();
    assert_eq!(versions.len(), OUTAGE.seconds() as usize);
    assert!(versions[4] > 2 * versions[1] && versions[6] < versions[4] / 2, "{versions:?}");
}

#[test]
fn table_and_picture_have_a_line_for_each_course() {
    let courses = [course("eventual")];
    let text = table::table(&courses);
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(courses[0].served(&QUESTIONS, false).percent() > Some(99.0), "{text}");
    let svg = chart::svg("a cut", &courses);
    assert_eq!(svg.matches("<polyline").count(), 5);
}
