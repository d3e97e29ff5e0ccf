//! Ids and names of streams.

use super::*;
use proptest::prelude::*;

fn id() -> impl Strategy<Value = StreamId> {
    let number = prop_oneof![0_u64..4, Just(u64::MAX), Just(u64::MAX - 1), any::<u64>()];
    (number.clone(), number).prop_map(|(ms, sequence)| StreamId { ms, sequence })
}

fn part() -> impl Strategy<Value = StreamPart> {
    let word = prop::collection::vec(prop_oneof![Just(0_u8), Just(3), Just(0xff), any::<u8>()], 0..4);
    let word = word.prop_map(Bytes::from);
    let datacenter = (0_u8..16).prop_map(DatacenterId);
    prop_oneof![
        datacenter.clone().prop_map(StreamPart::Head),
        datacenter.clone().prop_map(StreamPart::Removals),
        (word.clone(), datacenter.clone()).prop_map(|(group, by)| StreamPart::Cursor(group, by)),
        (word.clone(), word.clone()).prop_map(|(group, consumer)| StreamPart::Consumer(group, consumer)),
        (word, id()).prop_map(|(group, id)| StreamPart::Pending(group, id)),
        (datacenter, id()).prop_map(|(source, id)| StreamPart::Entry(source, id)),
    ]
}

proptest! {
    #[test]
    fn a_name_says_its_part(part in part()) {
        prop_assert_eq!(StreamPart::of(&part.name()), Some(part));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = StreamPart::of(&Bytes::from(bytes));
    }

    #[test]
    fn a_section_holds_its_parts_and_no_others(part in part(), other in part(), from in id(), to in id()) {
        let holds = |section: Section<'_>| {
            let names = section.names();
            names.contains(&part.name().to_vec())
        };
        let group = match &other {
            StreamPart::Cursor(group, _) | StreamPart::Consumer(group, _) | StreamPart::Pending(group, _) => &group[..],
            _ => b"",
        };
        let of_group = matches!(&part, StreamPart::Cursor(g, _) | StreamPart::Consumer(g, _) | StreamPart::Pending(g, _) if g == group);
        prop_assert_eq!(holds(Section::Heads), matches!(part, StreamPart::Head(_) | StreamPart::Removals(_)));
        prop_assert_eq!(holds(Section::Makers), matches!(part, StreamPart::Head(_)));
        let makes = matches!(part, StreamPart::Head(_) | StreamPart::Entry(..));
        prop_assert_eq!(StreamPart::is_beneath(&part.name()), !makes);
        prop_assert_eq!(holds(Section::Entries), matches!(part, StreamPart::Entry(..)));
        prop_assert_eq!(holds(Section::Group(group)), of_group);
        prop_assert_eq!(holds(Section::Cursors(group)), of_group && matches!(part, StreamPart::Cursor(..)));
        prop_assert_eq!(holds(Section::Consumers(group)), of_group && matches!(part, StreamPart::Consumer(..)));
        prop_assert_eq!(holds(Section::Pending(group)), of_group && matches!(part, StreamPart::Pending(..)));
        if let StreamPart::Entry(source, id) = part {
            let names = Section::EntriesOf(source).names_between(from, to);
            prop_assert_eq!(names.contains(&part.name().to_vec()), from <= id && id <= to);
        }
    }

    #[test]
    fn ids_follow_each_other(id in id()) {
        if let Some(next) = id.next() {
            prop_assert!(next > id);
            prop_assert_eq!(next.previous(), Some(id));
        }
        prop_assert_eq!(id.next().is_none(), id == StreamId::MAX);
        prop_assert_eq!(id.previous().is_none(), id == StreamId::MIN);
    }
}
