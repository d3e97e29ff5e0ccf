//! Maps of databases as they are typed.

use super::*;

#[test]
fn a_database_keeps_its_number_unless_it_is_named() {
    let databases: Databases = "3:0,4:-,200:7".parse().expect("it is a map");
    let keyspace = |database| databases.keyspace(database);
    assert_eq!(keyspace(0), Ok(0));
    assert_eq!(keyspace(3), Ok(0));
    assert_eq!(keyspace(4), Err(Unmapped::LeftOut));
    assert_eq!(keyspace(16), Err(Unmapped::TooHigh));
    assert_eq!(keyspace(200), Ok(7));
    let only = Databases::default().only(Some(2));
    assert_eq!((only.keyspace(2), only.keyspace(0)), (Ok(2), Err(Unmapped::LeftOut)));
    for wrong in ["", "3", "3:16", "x:1", "1:2,1:3"] {
        assert!(wrong.parse::<Databases>().is_err(), "{wrong}");
    }
}
