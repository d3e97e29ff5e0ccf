//! Where in a file a change is made: found in its syntax tree by what cargo-mutants says of it.
//!
//! What is not found, such as an operator inside a macro call, has no site and cannot be switched.

use super::list::{Genre, Mutant, Place};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// A stretch of a file and what can be switched on there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Site {
    /// The bytes that are written anew.
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
}

/// Each change with its number.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The statements of a function, and what it may return instead.
    Body(Vec<(u32, String)>),
    /// The guard of an arm of a match, or the empty place where one could stand.
    Guard {
        present: bool,
        choices: Vec<(u32, Guard)>,
    },
    Binary {
        operator: Range<usize>,
        choices: Vec<(u32, String)>,
    },
    Unary {
        operator: Range<usize>,
        number: u32,
    },
    /// An expression of a struct, and the fields that may be left out.
    Struct {
        choices: Vec<(u32, Range<usize>)>,
    },
}

/// What becomes of a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    True,
    /// Also what becomes of an arm that is left out.
    False,
}

impl Site {
    /// Outer sites come before what they contain.
    fn order(&self) -> (usize, std::cmp::Reverse<usize>, u8) {
        let rank = match self.kind {
            Kind::Body(_) => 0,
            Kind::Guard { .. } => 1,
            _ => 2,
        };
        (self.range.start, std::cmp::Reverse(self.range.end), rank)
    }
}

/// The sites of these changes, outer ones first, and the numbers of those that have none.
pub(super) fn find(text: &str, mutants: &[(u32, &Mutant)]) -> Result<(Vec<Site>, Vec<u32>)> {
    let syntax = syn::parse_file(text).context("no Rust")?;
    let mut tree = Tree { text, ..Tree::default() };
    tree.visit_file(&syntax);
    let mut sites: BTreeMap<(usize, usize, u8), Site> = BTreeMap::new();
    let mut without = Vec::new();
    for &(number, mutant) in mutants {
        let Some(site) = tree.site(number, mutant) else {
            without.push(number);
            continue;
        };
        let key = (site.range.start, site.range.end, site.order().2);
        match sites.entry(key) {
            std::collections::btree_map::Entry::Vacant(entry) => drop(entry.insert(site)),
            std::collections::btree_map::Entry::Occupied(mut entry) => entry.get_mut().kind.join(site.kind),
        }
    }
    let mut sites: Vec<Site> = sites.into_values().collect();
    sites.sort_by_key(Site::order);
    Ok((sites, without))
}

impl Kind {
    /// Takes in the choices of the same place.
    fn join(&mut self, other: Kind) {
        match (self, other) {
            (Kind::Body(choices), Kind::Body(more)) => choices.extend(more),
            (Kind::Guard { choices, .. }, Kind::Guard { choices: more, .. }) => choices.extend(more),
            (Kind::Binary { choices, .. }, Kind::Binary { choices: more, .. }) => choices.extend(more),
            (Kind::Struct { choices }, Kind::Struct { choices: more }) => choices.extend(more),
            (kind, other) => unreachable!("one place is {kind:?} and {other:?}"),
        }
    }
}

/// What stands where; the keys are the first bytes of what cargo-mutants names.
#[derive(Default)]
struct Tree<'t> {
    text: &'t str,
    /// By operator: the whole expression, and the operator.
    binaries: BTreeMap<usize, (Range<usize>, Range<usize>)>,
    unaries: BTreeMap<usize, (Range<usize>, Range<usize>)>,
    /// By guard.
    guards: BTreeMap<usize, Range<usize>>,
    /// By arm: its guard, or the place after its pattern, and whether there is one.
    arms: BTreeMap<usize, (Range<usize>, bool)>,
    /// By field: the expression of the struct.
    fields: BTreeMap<usize, Range<usize>>,
}

impl Tree<'_> {
    fn site(&self, number: u32, mutant: &Mutant) -> Option<Site> {
        let span = mutant.span.bytes(self.text)?;
        let replacement = mutant.replacement.clone();
        Some(match mutant.genre {
            Genre::FnValue => Site { range: span, kind: Kind::Body(vec![(number, replacement)]) },
            Genre::BinaryOperator => {
                let (range, operator) = self.binaries.get(&span.start)?.clone();
                Site { range, kind: Kind::Binary { operator, choices: vec![(number, replacement)] } }
            }
            Genre::UnaryOperator if replacement.is_empty() => {
                let (range, operator) = self.unaries.get(&span.start)?.clone();
                Site { range, kind: Kind::Unary { operator, number } }
            }
            Genre::MatchArmGuard => {
                let guard = match replacement.as_str() {
                    "true" => Guard::True,
                    "false" => Guard::False,
                    _ => return None,
                };
                let range = self.guards.get(&span.start)?.clone();
                Site { range, kind: Kind::Guard { present: true, choices: vec![(number, guard)] } }
            }
            Genre::MatchArm => {
                let (range, present) = self.arms.get(&span.start)?.clone();
                Site { range, kind: Kind::Guard { present, choices: vec![(number, Guard::False)] } }
            }
            Genre::StructField => {
                let range = self.fields.get(&span.start)?.clone();
                Site { range, kind: Kind::Struct { choices: vec![(number, span)] } }
            }
            Genre::UnaryOperator | Genre::Other => return None,
        })
    }

    fn bytes(&self, item: &impl Spanned) -> Range<usize> {
        let span = item.span();
        let offset = |place: proc_macro2::LineColumn| {
            Place { line: place.line, column: place.column + 1 }
                .offset(self.text)
                .expect("it was parsed from this")
        };
        offset(span.start())..offset(span.end())
    }
}

impl<'ast> Visit<'ast> for Tree<'_> {
    fn visit_expr_binary(&mut self, expression: &'ast syn::ExprBinary) {
        let operator = self.bytes(&expression.op);
        let range = self.bytes(&expression.left).start..self.bytes(&expression.right).end;
        self.binaries.insert(operator.start, (range, operator));
        syn::visit::visit_expr_binary(self, expression);
    }

    fn visit_expr_unary(&mut self, expression: &'ast syn::ExprUnary) {
        let operator = self.bytes(&expression.op);
        let range = operator.start..self.bytes(&expression.expr).end;
        self.unaries.insert(operator.start, (range, operator));
        syn::visit::visit_expr_unary(self, expression);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let pattern = self.bytes(&arm.pat);
        let guard = arm.guard.as_ref().map(|(_, guard)| self.bytes(guard));
        if let Some(guard) = &guard {
            self.guards.insert(guard.start, guard.clone());
        }
        let present = guard.is_some();
        self.arms.insert(self.bytes(arm).start, (guard.unwrap_or(pattern.end..pattern.end), present));
        syn::visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, expression: &'ast syn::ExprStruct) {
        let range = self.bytes(expression);
        for field in &expression.fields {
            self.fields.insert(self.bytes(field).start, range.clone());
        }
        syn::visit::visit_expr_struct(self, expression);
    }
}
