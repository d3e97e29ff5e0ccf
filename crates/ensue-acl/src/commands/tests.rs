//! Rules of commands, against what the test suite of Redis expects of their description.

use super::*;

fn described(rules: &str) -> String {
    let mut commands = Commands::default();
    for rule in rules.split_whitespace() {
        commands.apply(rule.as_bytes()).expect(rule);
    }
    commands.describe()
}

#[test]
fn what_a_later_rule_makes_void_is_left_out() {
    for (rules, expected) in [
        ("", "-@all"),
        ("+@all -@hash -@slow +hget", "+@all -@hash -@slow +hget"),
        ("+@all -@hash -@slow +hget -@hash", "+@all -@slow +hget -@hash"),
        ("+@all -@hash -@slow +hget +@hash", "+@all -@slow +hget +@hash"),
        ("+@all -@hash -@all", "-@all"),
        ("-@string -@slow +@all", "+@all"),
        ("-@all +@HASH +@hash +@HaSh", "-@all +@hash"),
        ("-@all +HGET +hget +hGeT", "-@all +hget"),
        ("-@all +@hash +@slow +@set +@set +@slow +@hash", "-@all +@set +@slow +@hash"),
        ("-@all +hget -hset +hset -hget", "-@all +hset -hget"),
        ("+client|list +client|list +config|get +config +acl|list -acl", "-@all +client|list +config -acl"),
        ("+select|0 +select|0 +debug|segfault +debug", "-@all +select|0 +debug"),
        ("-@all -@dangerous", "-@all -@dangerous"),
        ("+config +config|get -config|set +config", "-@all +config"),
        ("+@all -client +client|id +client|setname", "+@all -client +client|id +client|setname"),
        ("+@all -@string +incr -debug +debug|digest", "+@all -@string +incr -debug +debug|digest"),
        ("allcommands -get", "+@all -get"),
        ("allcommands nocommands", "-@all"),
    ] {
        assert_eq!(described(rules), expected, "{rules}");
    }
}

#[test]
fn each_category_describes_itself() {
    for category in category::CATEGORIES {
        assert_eq!(described(&format!("+@all -{category}")), format!("+@all -{category}"));
        assert_eq!(described(&format!("-@all +{category}")), format!("-@all +{category}"));
    }
}

#[test]
fn bits_are_told_apart() {
    let mut commands = Commands::default();
    commands.apply(b"+config|get").expect("a subcommand");
    let allowed: Vec<usize> = (0..BITS).filter(|&bit| commands.bit(bit)).collect();
    assert_eq!(allowed.len(), 1);
    assert!(allowed[0] >= TABLE.len());
    commands.apply(b"+@all").expect("all");
    assert!(commands.allows_all());
}

#[test]
fn first_arguments_are_bounded() {
    let mut commands = Commands::default();
    for nth in 0..FIRST_ARGS_MAX {
        commands.apply(format!("+select|{nth}").as_bytes()).expect("fewer than there may be");
    }
    assert_eq!(commands.apply(b"+select|one-more"), Err(RuleError::TooManyFirstArgs));
    assert_eq!(commands.apply(b"+select|0"), Ok(()));
}
