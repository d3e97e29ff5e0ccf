//! Tests of the users that a configuration names.

use super::*;
use crate::temporary::Temporary;

fn config(lines: &[&str], password: Option<&str>) -> Config {
    let users = lines.iter().map(ToString::to_string).collect();
    Config { users, requirepass: password.map(Into::into), ..Config::default() }
}

#[test]
fn a_password_is_that_of_the_default_user_unless_a_line_says_more_of_it() {
    assert!(read(&config(&[], None)).unwrap().default_user().is_nopass());
    let users = read(&config(&[], Some("hush"))).unwrap();
    let default = users.default_user();
    assert!(
        !default.is_nopass() && default.accepts(b"hush") && !default.accepts(b"loud") && default.allows_all()
    );
    let users =
        read(&config(&["default on >other ~* &* +@all", "app on >pw ~app:* +@read"], Some("other"))).unwrap();
    assert!(users.default_user().accepts(b"other") && !users.default_user().accepts(b"hush"));
    assert!(users.user(b"app").unwrap().is_costly());
}

#[test]
fn a_password_that_would_have_no_effect_is_refused() {
    let refused = |config: &Config| match read(config).unwrap_err() {
        error @ UsersError::TwoPasswords { .. } => error.to_string(),
        other => panic!("{other}"),
    };
    for line in ["default on ~* +@all", "default on nopass ~* +@all", "default on >other ~* +@all"] {
        let said = refused(&config(&[line], Some("hush")));
        assert!(said.contains("is said in one place, in its `user` line or by `requirepass`"), "{said}");
    }
    let folder = Temporary::new();
    let path = folder.path().join("users.acl");
    let with_file = Config { aclfile: Some(path.clone()), ..config(&[], Some("hush")) };
    fs::write(&path, "user app on >pw ~app:* +@all\n").unwrap();
    let said = refused(&with_file);
    assert!(said.contains("users.acl or by `requirepass`"), "{said}");
    assert!(read(&Config { requirepass: None, ..with_file.clone() }).unwrap().default_user().is_nopass());
    fs::write(&path, "user default on >hush ~* +@all\nuser app on >pw ~app:* +@all\n").unwrap();
    assert!(read(&with_file).unwrap().default_user().accepts(b"hush"));
}

#[test]
fn a_file_beside_that_of_the_users_is_left_alone() {
    let folder = Temporary::new();
    let (path, other) = (folder.path().join("users.acl"), folder.path().join("users.new"));
    fs::write(&other, "an operator's").unwrap();
    let beside = folder.path().join("users.acl.ensue-new");
    fs::write(&beside, "of a crash").unwrap();
    fs::set_permissions(&beside, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    save(&path, b"user default off\n").unwrap();
    assert_eq!(fs::read_to_string(&other).unwrap(), "an operator's");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
    assert_eq!((mode & 0o777, beside.exists()), (0o600, false));
}

#[test]
fn a_file_of_users_is_replaced_whole_and_read_back_with_verifiers() {
    let folder = Temporary::new();
    let path = folder.path().join("users.acl");
    fs::write(&path, "user default off\nuser app on >pw ~app:* resetchannels +@all -@admin\n").unwrap();
    let with_file = Config { aclfile: Some(path.clone()), ..Config::default() };
    let users = read(&with_file).unwrap();
    save(&path, &users.save()).unwrap();
    assert!(!fs::read_to_string(&path).unwrap().contains(">pw"));
    let again = read(&with_file).unwrap();
    assert!(again.iter().zip(users.iter()).all(|(one, other)| one.is_same(other)));
    assert!(again.user(b"app").unwrap().accepts(b"pw"));
    let both = Config { users: vec!["app on".into()], ..with_file.clone() };
    assert!(matches!(read(&both), Err(UsersError::TwoPlaces)));
    fs::write(&path, "user app on +nonsense\n").unwrap();
    let wrong = read(&with_file).unwrap_err().to_string();
    assert!(wrong.contains("users.acl:1") && wrong.contains("nonsense"), "{wrong}");
    fs::remove_file(&path).unwrap();
    assert!(matches!(read(&with_file), Err(UsersError::File { .. })));
}
