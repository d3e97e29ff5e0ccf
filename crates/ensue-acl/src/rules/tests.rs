//! Words that become rules.

use super::*;

#[track_caller]
fn check(words: &str, expected: Result<&[&str], usize>) {
    let words: Vec<&str> = words.split(',').collect();
    let expected =
        expected.map(|rules| rules.iter().map(|rule| rule.as_bytes().to_vec()).collect::<Vec<_>>());
    assert_eq!(join_selectors(&words), expected, "{words:?}");
}

#[test]
fn selectors_are_joined() {
    check("on,+get", Ok(&["on", "+get"]));
    check("(~a +get ),( ~b,+get,),(~c,+get),(~d)", Ok(&["(~a +get )", "( ~b +get )", "(~c +get)", "(~d)"]));
    check("(+PING,(+SELECT,(+DEL,),),)", Ok(&["(+PING (+SELECT (+DEL )", ")", ")"]));
    check("on,(+PING,(+SELECT,(+DEL", Err(1));
    check("(", Err(0));
    check(")", Ok(&[")"]));
    check("", Ok(&[""]));
}
