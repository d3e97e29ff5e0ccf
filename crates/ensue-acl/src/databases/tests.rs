//! Numbers of databases.

use super::*;

#[test]
fn the_first_number_takes_the_place_of_all() {
    let mut databases = Databases::ALL;
    assert_eq!(databases.first_denied(), None);
    databases.add(b"0,255").expect("numbers");
    databases.add(b"64").expect("a number");
    assert_eq!(databases.describe().as_deref(), Some("db=0,64,255"));
    assert_eq!(databases.first_denied(), Some(KeyspaceId(1)));
    assert!(databases.allows(KeyspaceId(255)) && !databases.allows(KeyspaceId(254)));
    let before = databases;
    assert_eq!(databases.add(b"1,x"), Err(RuleError::Syntax));
    assert_eq!(databases, before);
    assert_eq!(Databases::NONE.describe().as_deref(), Some("resetdbs"));
    let every = (0..=255).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    databases.add(every.as_bytes()).expect("numbers");
    assert_eq!(databases.describe(), None);
}
