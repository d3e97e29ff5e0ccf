//! The list is read as cargo-mutants means it, a seed always draws the same sample, and a file with switches is the
//! file itself with each change behind its number.

use super::journal::{Journal, Known, Measured};
use super::judge::{self, Verdict};
use super::list::{self, Mutant};
use super::unit::Unit;
use super::{shuffled, site, switch, unit};
use std::path::PathBuf;

/// A change of the first place where `old` stands in `text`.
fn mutant(text: &str, genre: &str, old: &str, replacement: &str) -> Mutant {
    let start = text.find(old).unwrap();
    let place = |offset: usize| {
        let before = &text[..offset];
        let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
        format!("{{\"line\": {}, \"column\": {column}}}", before.matches('\n').count() + 1)
    };
    let (start, end) = (place(start), place(start + old.len()));
    let replacement = replacement.replace('"', "\\\"");
    let listed = format!(
        "[{{\"name\": \"crates/ensue-store/src/a.rs:2:5: replace\", \"file\": \"crates/ensue-store/src/a.rs\",
          \"package\": \"ensue-store\", \"genre\": \"{genre}\", \"replacement\": \"{replacement}\",
          \"span\": {{\"start\": {start}, \"end\": {end}}}}}]"
    );
    list::parse(&listed).unwrap().remove(0)
}

/// The text with these changes as switches 1, 2 and so on; without the brackets and with `on` for the call.
fn written(text: &str, changes: &[(&str, &str, &str)]) -> String {
    let mutants: Vec<Mutant> =
        changes.iter().map(|(genre, old, replacement)| mutant(text, genre, old, replacement)).collect();
    let numbered: Vec<(u32, &Mutant)> = (1..).zip(&mutants).collect();
    let (sites, without) = site::find(text, &numbered).unwrap();
    assert!(without.is_empty(), "{without:?} have no place");
    let text = switch::write(text, &sites);
    syn::parse_file(&text).unwrap();
    let mut plain = text.replace("::ensue_types::mutant", "on");
    for number in 1..=changes.len() {
        plain = plain.replace(&format!("/*{{{number}*/"), "").replace(&format!("/*{number}}}*/"), "");
    }
    plain
}

#[test]
fn a_function_returns_something_else() {
    let text = "fn f(&self) -> u8 {\n    // Why.\n    self.x\n}\n";
    let changed = written(text, &[("FnValue", "self.x", "0"), ("FnValue", "self.x", "1")]);
    let expected =
        "fn f(&self) -> u8 {\n    // Why.\n    if on(1) { return 0; }if on(2) { return 1; }self.x\n}\n";
    assert_eq!(changed, expected);
}

#[test]
fn an_operator_is_another() {
    let changed =
        written("fn f() -> bool { ä < b }", &[("BinaryOperator", "<", "<="), ("BinaryOperator", "<", ">")]);
    assert_eq!(changed, "fn f() -> bool { (if on(1) { ä <= b } else if on(2) { ä > b } else { ä < b }) }");
    let changed = written("fn f() { a.b += c; }", &[("BinaryOperator", "+=", "-=")]);
    assert_eq!(changed, "fn f() { (if on(1) { a.b -= c } else { a.b += c }); }");
    let changed = written("fn f() -> bool { x(!y.z(1)) }", &[("UnaryOperator", "!", "")]);
    assert_eq!(changed, "fn f() -> bool { x((if on(1) { y.z(1) } else { !y.z(1) })) }");
}

#[test]
fn changes_inside_others_are_in_both_branches() {
    let changes = [
        ("FnValue", "a && !b == c", "true"),
        ("BinaryOperator", "&&", "||"),
        ("BinaryOperator", "==", "!="),
        ("UnaryOperator", "!", ""),
    ];
    let changed = written("fn f() -> bool { a && !b == c }", &changes);
    let not = "(if on(4) { b } else { !b })";
    let equal = format!("(if on(3) {{ {not} != c }} else {{ {not} == c }})");
    let and = format!("(if on(2) {{ a || {equal} }} else {{ a && {equal} }})");
    assert_eq!(changed, format!("fn f() -> bool {{ if on(1) {{ return true; }}{and} }}"));
}

#[test]
fn a_guard_is_true_or_false_and_an_arm_is_left_out() {
    let text = "fn f() { match x { Some(1) if a == b => c(), Some(_) => d(), _ => e() } }";
    let changes = [
        ("MatchArmGuard", "a == b", "true"),
        ("MatchArmGuard", "a == b", "false"),
        ("MatchArm", "Some(1) if a == b => c(),", ""),
        ("MatchArm", "Some(_) => d(),", ""),
        ("BinaryOperator", "==", "!="),
    ];
    let changed = written(text, &changes);
    assert_eq!(
        changed,
        "fn f() { match x { Some(1) if (on(1) || !on(2) && !on(3) && ((if on(5) { a != b } else { a == b }))) \
         => c(), Some(_) if !on(4) && true => d(), _ => e() } }"
    );
}

#[test]
fn a_field_is_left_out() {
    let changed = written("fn f() { g(S { a: 1, ..s }) }", &[("StructField", "a: 1,", "")]);
    assert_eq!(changed, "fn f() { g((if on(1) { S {  ..s } } else { S { a: 1, ..s } })) }");
}

#[test]
fn what_is_not_in_the_syntax_tree_has_no_place() {
    let text = "fn f() { debug!(a + b); }";
    let mutant = mutant(text, "BinaryOperator", "+", "-");
    let (sites, without) = site::find(text, &[(7, &mutant)]).unwrap();
    assert_eq!((sites.len(), without), (0, vec![7]));
}

#[test]
fn an_error_leads_to_the_closest_change() {
    let text = "fn f() -> u8 { a + b * c }\nfn g() {}\n";
    let changes = [mutant(text, "BinaryOperator", "+", "-"), mutant(text, "BinaryOperator", "*", "/")];
    let (sites, _) = site::find(text, &[(1, &changes[0]), (2, &changes[1])]).unwrap();
    let written = switch::write(text, &sites);
    let at = |part: &str| {
        let start = written.find(part).unwrap();
        start..start + part.len()
    };
    assert_eq!(switch::around(&written, &at("b / c")), Some(2));
    assert_eq!(switch::around(&written, &at("a - ")), Some(1));
    assert_eq!(switch::around(&written, &at("fn g")), None);
    assert!(switch::before(&written, at("fn g").start).is_some());
    assert_eq!(switch::before(&written, 3), None);
}

#[test]
fn a_seed_draws_the_same_sample_every_time() {
    let text = "fn f() { a + b }";
    let drawn = |seed, first_line: usize| {
        let mut mutants: Vec<Mutant> = (0..40).map(|_| mutant(text, "BinaryOperator", "+", "-")).collect();
        for (number, mutant) in mutants.iter_mut().enumerate() {
            // Two alike, then two others.
            mutant.name = format!("a.rs:{}:1: replace {} with 0", first_line + number, number / 2);
            mutant.before = number % 2;
        }
        let mutants = shuffled(mutants, seed);
        let line = |mutant: &Mutant| mutant.name.split(':').nth(1).unwrap().parse::<usize>().unwrap();
        mutants.iter().map(|mutant| line(mutant) - first_line).collect::<Vec<_>>()
    };
    assert_eq!(drawn(1, 1), drawn(1, 1));
    assert_eq!(drawn(1, 1), drawn(1, 70), "lines that have moved change nothing");
    assert_ne!(drawn(1, 1), drawn(2, 1));
    let mut all = drawn(1, 1);
    assert_ne!(all, (0..40).collect::<Vec<_>>());
    all.sort();
    assert_eq!(all, (0..40).collect::<Vec<_>>());
}

#[test]
fn alike_changes_of_a_file_have_names_of_their_own() {
    let one = |line| {
        let span = "{\"start\": {\"line\": 1, \"column\": 1}, \"end\": {\"line\": 1, \"column\": 2}}";
        format!(
            "{{\"name\": \"a.rs:{line}:9: replace > with < in f\", \"file\": \"a.rs\", \"package\": \"p\",
              \"genre\": \"BinaryOperator\", \"replacement\": \"<\", \"span\": {span}}}"
        )
    };
    let mutants = list::parse(&format!("[{}, {}]", one(3), one(8))).unwrap();
    let names: Vec<String> = mutants.iter().map(Mutant::identity).collect();
    assert_eq!(names, ["a.rs: replace > with < in f", "a.rs: replace > with < in f (2)"]);
}

#[test]
fn a_run_goes_on_with_what_its_journal_says() {
    let path = std::env::temp_dir().join(format!("ensue-mutants-journal-{}", std::process::id()));
    let names = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
    let begun = Known {
        key: "tree 1".into(),
        commits: names(&["abc"]),
        total: 9,
        sample: names(&["a", "b", "c", "d"]),
        left_out: names(&["e"]),
        ..Known::default()
    };
    let mut journal = Journal::begin(&path, begun.clone()).unwrap();
    assert_eq!(Known::read(&path).unwrap(), begun);
    let measured = Measured { cost_ms: 7, reached: [1, 3].into() };
    journal.measure("a unit", &measured).unwrap();
    journal.judged("a", &Verdict::Noticed("the tests of x".into()), 5).unwrap();
    journal.judged("b", &Verdict::Survived, 6).unwrap();
    journal.judged("c", &Verdict::Unreached, 0).unwrap();
    let known = Known::read(&path).unwrap();
    assert_eq!(&known, journal.known());
    assert_eq!(Journal::go_on(&path, known.clone()).unwrap().measured("a unit"), Some(measured));
    let open: Vec<&str> = ["a", "b", "c", "d", "e"].into_iter().filter(|name| known.is_open(name)).collect();
    assert_eq!(open, ["b", "c", "d"], "`d` has no verdict yet, `e` is not of the sample");
    let noticed = known.noticed();
    assert_eq!((noticed.verdicts.len(), noticed.total, noticed.sample.len()), (1, 9, 0));

    // A line that was broken off is of no account; one that makes no sense is an error.
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}verdict\td\t1\tnot")).unwrap();
    assert_eq!(Known::read(&path).unwrap().verdicts.len(), 3);
    std::fs::write(&path, format!("{text}verdict\td\t1\tnot\n")).unwrap();
    assert!(Known::read(&path).is_err());
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn what_the_shell_says_of_its_children_is_read() {
    assert_eq!(unit::children_ms("0m0.000000s 0m0.010000s\n1m1.250000s 0m0.040000s\n"), Some(61_290));
    assert_eq!(unit::children_ms("nothing\n"), None);
}

#[test]
fn tests_come_first_and_then_who_objects_most_for_its_cost() {
    let unit = |name: &str, tests: Option<&str>, cost_ms| {
        let (judge, tests) = (name.to_owned(), tests.map(str::to_owned));
        let unit = Unit { judge, tests, program: name.into(), folder: PathBuf::new(), arguments: Vec::new() };
        (unit, Measured { cost_ms, reached: [1].into() })
    };
    let units = [unit("script", None, 10), unit("tests", Some("p"), 20), unit("seed", None, 300)];
    let asked = |objections: u64| {
        let turns =
            judge::turns(units.iter(), "p", |label| u64::from(label.starts_with("seed")) * objections);
        turns.iter().flatten().map(|known| known.0.judge.clone()).collect::<Vec<_>>()
    };
    assert_eq!(asked(0), ["tests", "script", "seed"]);
    assert_eq!(asked(28), ["tests", "script", "seed"]);
    assert_eq!(asked(30), ["tests", "seed", "script"]);
}
