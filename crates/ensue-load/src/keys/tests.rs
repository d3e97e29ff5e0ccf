//! Each distribution against its law, with fixed seeds: a sum of squared differences that is bounded as chi-square is.

use super::*;

const DRAWS: u64 = 200_000;

/// How often each key is drawn.
fn counts(access: Access, keys: u64, client: u64, clients: u64) -> Vec<u64> {
    let mut chooser = KeyChooser::new(access, client, clients);
    let mut random = Random::new(7);
    let mut counts = vec![0; keys as usize];
    for _ in 0..DRAWS {
        counts[chooser.draw(keys, &mut random) as usize] += 1;
    }
    counts
}

/// Chi-square has the mean k - 1 and the variance 2 (k - 1); six deviations above the mean are one in a billion.
fn check_fits(counts: &[u64], law: impl Fn(usize) -> f64) {
    let total: f64 = (0..counts.len()).map(&law).sum();
    let mut sum = 0.0;
    for (place, count) in counts.iter().enumerate() {
        let expected = law(place) / total * DRAWS as f64;
        assert!(expected >= 5.0, "too few draws for the approximation at {place}");
        sum += (*count as f64 - expected).powi(2) / expected;
    }
    let free = counts.len() as f64 - 1.0;
    let bound = free + 6.0 * (2.0 * free).sqrt();
    assert!(sum < bound, "{sum:.0} of at most {bound:.0}");
}

#[test]
fn uniform_is_uniform() {
    check_fits(&counts(Access::Uniform, 1_000, 0, 1), |_| 1.0);
}

#[test]
fn zipf_follows_its_law_for_every_exponent() {
    for theta in [0.0, 0.5, 0.99, 1.0, 1.5] {
        let law = |place: usize| 1.0 / (place as f64 + 1.0).powf(theta);
        check_fits(&counts(Access::Zipf { theta }, 100, 0, 1), law);
    }
}

#[test]
fn zipf_of_another_exponent_does_not_fit() {
    let counts = counts(Access::Zipf { theta: 0.9 }, 100, 0, 1);
    let fits =
        std::panic::catch_unwind(|| check_fits(&counts, |place| 1.0 / (place as f64 + 1.0).powf(0.99)));
    assert!(fits.is_err());
}

#[test]
fn zipf_of_one_key_and_of_billions() {
    let mut random = Random::new(1);
    let mut chooser = KeyChooser::new(Access::Zipf { theta: 0.99 }, 0, 1);
    assert_eq!(chooser.draw(1, &mut random), 0);
    for keys in [2, 3, 1 << 33] {
        for _ in 0..1_000 {
            assert!(chooser.draw(keys, &mut random) < keys);
        }
    }
}

#[test]
fn latest_is_zipf_over_the_age() {
    let mut counts = counts(Access::Latest { theta: 0.99 }, 100, 0, 1);
    counts.reverse();
    check_fits(&counts, |place| 1.0 / (place as f64 + 1.0).powf(0.99));
}

#[test]
fn latest_follows_new_keys() {
    let mut chooser = KeyChooser::new(Access::Latest { theta: 0.99 }, 0, 1);
    let mut random = Random::new(7);
    let newest = (0..10_000).filter(|turn| chooser.draw(100 + turn, &mut random) == 99 + turn).count();
    // The first of n ranks has the share 1 / H(n), which goes from 0.19 at a hundred to 0.10 at ten thousand.
    assert!((950..1_200).contains(&newest), "{newest}");
}

#[test]
fn scrambled_has_hot_keys_anywhere() {
    let counts = counts(Access::Scrambled { theta: 0.99 }, 1_000, 0, 1);
    let hottest = (0..1_000).max_by_key(|place| counts[*place]).unwrap();
    // The share of the first of ten billion ranks is 1 / 26.47, as YCSB's own constant says; others add a little.
    let share = counts[hottest] as f64 / DRAWS as f64;
    assert!((0.037..0.042).contains(&share), "{share}");
    assert!(hottest > 9, "the hottest key is not among the first");
}

#[test]
fn hot_is_one_key() {
    assert_eq!(counts(Access::Hot, 10, 0, 1)[0], DRAWS);
}

#[test]
fn groups_of_variance_zero_are_the_clients_own() {
    let counts = counts(Access::Groups { keys_per_group: 10, variance: 0.0 }, 50, 2, 5);
    assert_eq!(counts[20..30].iter().sum::<u64>(), DRAWS);
}

#[test]
fn groups_of_variance_one_follow_the_normal_distribution() {
    // What rounds to 0, to 1 and to 2 away, of a standard normal distribution.
    let law = |away: u64| [0.382_925, 0.241_730, 0.060_598, 0.005_977][away as usize];
    let counts = counts(Access::Groups { keys_per_group: 4, variance: 1.0 }, 28, 3, 7);
    check_fits(&counts, |place| law((place as u64 / 4).abs_diff(3)));
}

#[test]
fn groups_stand_in_a_circle() {
    let counts = counts(Access::Groups { keys_per_group: 1, variance: 1.0 }, 7, 0, 7);
    let (left, right) = (counts[6] as f64, counts[1] as f64);
    assert!((left / right - 1.0).abs() < 0.05, "{left} {right}");
}

#[test]
fn words_are_read() {
    assert_eq!("zipf".parse(), Ok(Access::Zipf { theta: 0.99 }));
    assert_eq!("zipf:1.2".parse(), Ok(Access::Zipf { theta: 1.2 }));
    assert_eq!("groups:512:0.5".parse(), Ok(Access::Groups { keys_per_group: 512, variance: 0.5 }));
    for wrong in [
        "",
        "zipf:",
        "zipf:-1",
        "zipf:nan",
        "uniform:1",
        "groups",
        "groups:0",
        "groups:1.5",
        "hot:1",
        "pareto",
    ] {
        assert_eq!(wrong.parse::<Access>(), Err(SpecError::Access(wrong.into())), "{wrong}");
    }
}
