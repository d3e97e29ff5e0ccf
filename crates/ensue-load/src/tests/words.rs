//! What is read from the command line: addresses, sizes, mixes, presets; and the ratios of turns.

use crate::error::{SpecError, TargetError};
use crate::random::Random;
use crate::report::{Comparison, Slice, Spread};
use crate::sizes::Sizes;
use crate::target::Target;
use crate::weighted::Weighted;
use crate::workload::{Operation, PRESETS, Workload};

#[test]
fn addresses() {
    let target: Target = "redis://ann:p%40ss:word@example.org:6380/3".parse().expect("it is one");
    assert_eq!((target.host.as_str(), target.port, target.database), ("example.org", 6380, 3));
    assert_eq!((target.user.as_deref(), target.password.as_deref()), (Some("ann"), Some("p@ss:word")));
    assert_eq!(target.to_string(), "redis://example.org:6380/3");
    let only: Target = "redis://secret@[::1]".parse().expect("it is one");
    assert_eq!((only.host.as_str(), only.port), ("::1", 6379));
    assert_eq!((only.user, only.password.as_deref()), (None, Some("secret")));
    assert!("redis://127.0.0.1".parse::<Target>().expect("it is one").is_loopback());
}

#[test]
fn wrong_addresses_say_what_is_wrong_and_hide_the_password() {
    let wrong = |text: &str| text.parse::<Target>().expect_err("it is none");
    assert_eq!(wrong("localhost:6379"), TargetError::Scheme("localhost:6379".into()));
    assert_eq!(wrong("rediss://a"), TargetError::Tls("rediss://a".into()));
    assert_eq!(wrong("redis://:7"), TargetError::Host("redis://:7".into()));
    for port in ["0", "x", "65536"] {
        let text = format!("redis://a:{port}");
        assert_eq!(wrong(&text), TargetError::Port(text.clone()));
    }
    assert_eq!(wrong("redis://a/x"), TargetError::Database("redis://a/x".into()));
    assert_eq!(wrong("redis://u:sec%zz@a"), TargetError::Percent("redis://...@a".into()));
}

#[test]
fn sizes() {
    let mut random = Random::new(3);
    let mut share = |text: &str, wanted: std::ops::RangeInclusive<usize>| {
        let sizes: Sizes = text.parse().expect("they are sizes");
        (0..10_000).filter(|_| wanted.contains(&sizes.draw(&mut random))).count()
    };
    assert_eq!(share("64", 64..=64), 10_000);
    assert_eq!(share("16-32", 16..=32), 10_000);
    assert!((2_800..3_200).contains(&share("1:3,5-9:7", 1..=1)));
    for wrong in ["", "x", "9-5", "5:0", "5:x", "67108865", "1,,2"] {
        assert_eq!(wrong.parse::<Sizes>(), Err(SpecError::Sizes(wrong.into())), "{wrong}");
    }
}

#[test]
fn mixes() {
    let mix = "get=3,mset:4=1,incr=0".parse::<Workload>().expect("it is one");
    assert_eq!(mix.operations(), [Operation::Get, Operation::MSet(4)]);
    let mut random = Random::new(3);
    let writes = (0..10_000).filter(|_| *mix.mix.draw(&mut random) == Operation::MSet(4)).count();
    assert!((2_350..2_650).contains(&writes), "{writes}");
    let wrong = |text: &str| text.parse::<Workload>().expect_err("it is none");
    assert!(matches!(wrong("ycsb-z"), SpecError::Workload(name, _) if name == "ycsb-z"));
    assert!(matches!(wrong("get=1,lpushx=1"), SpecError::Operation(name, _) if name == "lpushx"));
    assert!(matches!(wrong("get=1,mget:0=1"), SpecError::Operation(name, _) if name == "mget:0"));
    assert_eq!(wrong("get=many"), SpecError::Weight("many".into()));
    assert_eq!(wrong("get=0"), SpecError::Weight("get=0".into()));
    assert_eq!(Weighted::<u8>::new([]), None);
}

#[test]
fn every_preset_can_be_read() {
    for preset in &PRESETS {
        let workload: Workload = preset.name.parse().expect("the table is right");
        assert!(!workload.source.is_empty() && !workload.operations().is_empty());
    }
}

/// Eiger's Table 3 has the percentiles, Table 4 the means: 3.99 keys an operation and 5.27 columns a key.
#[test]
fn the_facebook_mix_has_the_percentiles_and_means_of_the_paper() {
    let workload: Workload = "facebook".parse().expect("it is one");
    let percentiles = |sizes: &Sizes| {
        let mut random = Random::new(3);
        let mut drawn: Vec<usize> = (0..200_000).map(|_| sizes.draw(&mut random)).collect();
        drawn.sort_unstable();
        let mean = drawn.iter().sum::<usize>() as f64 / drawn.len() as f64;
        ([0.5, 0.9, 0.99].map(|share| drawn[(share * drawn.len() as f64) as usize]), mean)
    };
    let (keys, keys_mean) = percentiles(&workload.columns.keys_read);
    let (columns, columns_mean) = percentiles(&workload.columns.per_key);
    assert_eq!((keys, columns), ([1, 16, 128], [1, 2, 128]));
    assert_eq!(percentiles(&workload.sizes).0, [16, 32, 4096]);
    assert!((keys_mean - 3.99).abs() < 0.15, "{keys_mean}");
    assert!((columns_mean - 5.27).abs() < 0.2, "{columns_mean}");
}

#[test]
fn ratios_are_of_pairs() {
    let slice = |rate: f64, p99_us| Slice { rate, p50_us: Some(100.0), p99_us, processor_us: None };
    let pairs = [(10.0, 10.0), (30.0, 10.0), (20.0, 40.0)];
    let slices = pairs.map(|(ours, theirs)| (slice(ours, Some(50.0)), slice(theirs, Some(200.0))));
    let comparison = Comparison::new(slices.to_vec());
    assert_eq!(
        comparison.ratios,
        [
            ("throughput", Spread { median: 1.0, min: 0.5, max: 3.0 }),
            ("p50", Spread { median: 1.0, min: 1.0, max: 1.0 }),
            ("p99", Spread { median: 0.25, min: 0.25, max: 0.25 }),
        ]
    );
    // A turn in which nothing ended gives no ratio, rather than an infinite one.
    assert_eq!(Spread::of([1.0 / 0.0, f64::NAN]), None);
    assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
}
