//! Commands on the places of members of sorted sets: the scores are cells of the earth.
//!
//! A search asks the order of the sorted set for the few ranges of cells that cover the area, and looks at the members
//! in these.

use crate::command::sorted_sets::{ranges, store};
use crate::evaluate::{Evaluation, Halt};
use bytes::Bytes;
use ensue_resp::CommandError;
use ensue_resp::request::{Geo, GeoFields, GeoLimit, GeoOrigin, GeoSearch, ScoreBound, SortedRange};
use ensue_types::{Column, GeoPoint, Reply, Score};

/// A member that was found.
struct Found {
    name: Bytes,
    score: Score,
    point: GeoPoint,
    /// In the unit of the search.
    distance: f64,
}

pub(super) fn evaluate(request: &Geo, evaluation: &mut Evaluation<'_>) -> Result<Reply, Halt> {
    match request {
        Geo::Places { key, members } => {
            each(evaluation, key, members, |point| point.map_or(Reply::NilArray, place))
        }
        Geo::Texts { key, members } => {
            each(evaluation, key, members, |point| point.map_or(Reply::Nil, |point| bulk(point.text())))
        }
        Geo::Distance { key, members: [first, second], unit } => {
            let (first, second) = (point(evaluation, key, first)?, point(evaluation, key, second)?);
            let distance = first.zip(second).map(|(first, second)| first.distance(second) / unit.value());
            Ok(distance.map_or(Reply::Nil, distance_text))
        }
        Geo::Search { key, search, fields, .. } => {
            let found = find(evaluation, key, search)?;
            Ok(Reply::Array(found.into_iter().map(|found| found.reply(*fields)).collect()))
        }
        Geo::SearchStore { target, source, search, distances } => {
            let found = find(evaluation, source, search)?.into_iter();
            let scored = |found: Found| {
                let distance = Score::new(found.distance).filter(|_| *distances);
                (distance.unwrap_or(found.score), found.name)
            };
            let members = found.map(scored).collect();
            store(evaluation, target, members)
        }
    }
}

/// An answer for each member, whether it is there or not.
fn each(
    evaluation: &mut Evaluation<'_>,
    key: &Bytes,
    members: &[Bytes],
    answer: impl Fn(Option<GeoPoint>) -> Reply,
) -> Result<Reply, Halt> {
    // A key of another kind is an error, though no member is asked for.
    evaluation.count(key, ensue_store::row::Kind::SortedSet)?;
    let answers = members.iter().map(|member| Ok(answer(point(evaluation, key, member)?)));
    Ok(Reply::Array(answers.collect::<Result<_, Halt>>()?))
}

fn point(evaluation: &mut Evaluation<'_>, key: &Bytes, member: &Bytes) -> Result<Option<GeoPoint>, Halt> {
    let content = evaluation.content(key, &Column::Scored(member.clone()))?;
    Ok(content.score().map(|score| GeoPoint::of_cell(score.value() as u64)))
}

/// The members in an area, in the order that was asked for.
fn find(evaluation: &mut Evaluation<'_>, key: &Bytes, search: &GeoSearch) -> Result<Vec<Found>, Halt> {
    if evaluation.count(key, ensue_store::row::Kind::SortedSet)? == 0 {
        return Ok(Vec::new());
    }
    let center = match &search.origin {
        GeoOrigin::Point(point) => *point,
        GeoOrigin::Member(member) => {
            const UNKNOWN: CommandError = CommandError::Argument("could not decode requested zset member");
            point(evaluation, key, member)?.ok_or(UNKNOWN)?
        }
    };
    let bound = |cell, is_exclusive| ScoreBound { score: Score::of_integer(cell), is_exclusive };
    let cells = search.shape.cells(center).into_iter();
    let ranges: Vec<SortedRange> = cells
        .map(|cells| SortedRange::Score { min: bound(cells.start, false), max: bound(cells.end, true) })
        .collect();
    let candidates = ranges::within_any(evaluation, key, &ranges)?.into_iter();
    let found = candidates.filter_map(|(score, name)| {
        let point = GeoPoint::of_cell(score.value() as u64);
        let distance = search.shape.distance_within(center, point)? / search.unit.value();
        Some(Found { name, score, point, distance })
    });
    Ok(ordered(found, search))
}

fn ordered(found: impl Iterator<Item = Found>, search: &GeoSearch) -> Vec<Found> {
    let (any, last) = match search.limit {
        Some(GeoLimit { count, any: true }) => (count, count),
        Some(GeoLimit { count, any: false }) => (usize::MAX, count),
        None => (usize::MAX, usize::MAX),
    };
    let mut found: Vec<Found> = found.take(any).collect();
    let is_first_wanted = last < any;
    match search.nearest_first.or(is_first_wanted.then_some(true)) {
        Some(true) => found.sort_by(|one, other| one.distance.total_cmp(&other.distance)),
        Some(false) => found.sort_by(|one, other| other.distance.total_cmp(&one.distance)),
        None => {}
    }
    found.truncate(last);
    found
}

impl Found {
    fn reply(self, fields: GeoFields) -> Reply {
        let distance = fields.distance.then(|| distance_text(self.distance));
        let cell = fields.cell.then(|| Reply::Integer(self.score.value() as i64));
        let place = fields.place.then(|| place(self.point));
        let told: Vec<Reply> = [distance, cell, place].into_iter().flatten().collect();
        let name = Reply::Bulk(self.name);
        if told.is_empty() { name } else { Reply::Array([vec![name], told].concat()) }
    }
}

fn place(point: GeoPoint) -> Reply {
    Reply::Array(vec![degrees(point.longitude), degrees(point.latitude)])
}

/// With as many digits as Redis has, and none that says nothing.
fn degrees(value: f64) -> Reply {
    let text = format!("{value:.17}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    bulk(if text == "-0" { "0".to_owned() } else { text.to_owned() })
}

fn distance_text(distance: f64) -> Reply {
    bulk(format!("{distance:.4}"))
}

fn bulk(text: String) -> Reply {
    Reply::Bulk(Bytes::from(text))
}
