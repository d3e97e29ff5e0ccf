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

#[test]
fn two_databases_do_not_share_a_keyspace() {
    let check = |text: &str| text.parse::<Databases>().expect("it is a map").check();
    for mixed in ["1:0", "3:0,4:-", "0:5,7:5,5:-", "200:7"] {
        assert!(check(mixed).is_err(), "{mixed}");
    }
    let told = check("1:0").expect_err("both go to 0");
    assert!(told.starts_with("databases 0 and 1 would both go to keyspace 0: leave one out"), "{told}");
    for apart in ["1:0,0:1", "3:0,0:-", "200:7,7:-", "0:-,1:-"] {
        assert_eq!(check(apart), Ok(()), "{apart}");
    }
    let only = "1:0".parse::<Databases>().expect("it is a map").only(Some(1));
    assert_eq!(only.check(), Ok(()));
    assert_eq!(Databases::default().check(), Ok(()));
}

#[test]
fn a_map_is_shown_as_it_is_typed() {
    for typed in ["3:0,4:-,200:7", "1:2"] {
        assert_eq!(typed.parse::<Databases>().expect("it is a map").to_string(), typed);
    }
    assert_eq!(Databases::default().to_string(), "");
}
