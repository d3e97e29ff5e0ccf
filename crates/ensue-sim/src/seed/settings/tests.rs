//! Settings change what they name, and nonsense is refused.

use crate::rules::Rules;
use crate::world::options::Options;

#[test]
fn settings_change_what_they_name() {
    let mut options = Options::draw(7, Rules::default());
    for setting in ["datacenters=5", "cores=1", "delay=7ms", "jitter=0us", "turn=3us", "protocol=eventual"] {
        options.set(setting).unwrap();
    }
    assert_eq!((options.shape.datacenters, options.shape.cores), (5, 1));
    assert_eq!(options.links.delay_us, vec![vec![7_000; 5]; 5]);
    assert_eq!((options.links.jitter_us, options.turn_us_max), (0, 3));
    assert_eq!(options.protocol.name, "eventual");
}

#[test]
fn nonsense_is_refused() {
    let mut options = Options::draw(7, Rules::default());
    for (setting, why) in [
        ("cores", "a setting needs"),
        ("cores=0", "not between"),
        ("cores=many", "no number"),
        ("delay=7", "no time"),
        ("fsync=sometimes", "not one of always, everysec, no"),
        ("colour=red", "unknown setting"),
    ] {
        let error = options.set(setting).unwrap_err();
        assert!(error.starts_with(why), "{error}");
    }
}
