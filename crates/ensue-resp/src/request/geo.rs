//! Commands on the places of members of sorted sets.
//!
//! Arguments of the right number arrive, a request or Redis's error leaves. `GEOADD` is a `ZADD` whose scores are the
//! cells of the places, and is read as one.

use super::{AddCondition, Request, SortedSet, integer, is_word};
use crate::{CommandError, number};
use bytes::Bytes;
use ensue_types::{GeoPoint, GeoShape, Score};

/// What the owner of sorted sets evaluates by places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Geo {
    /// `GEOPOS`: for each member longitude and latitude, or nil.
    Places { key: Bytes, members: Vec<Bytes> },
    /// `GEOHASH`: for each member a text, or nil.
    Texts { key: Bytes, members: Vec<Bytes> },
    /// `GEODIST`: in the unit, or nil.
    Distance { key: Bytes, members: [Bytes; 2], unit: Score },
    /// `GEOSEARCH`, `GEORADIUS`, `GEORADIUSBYMEMBER`: the members found.
    Search { key: Bytes, search: GeoSearch, fields: GeoFields, reads_only: bool },
    /// `GEOSEARCHSTORE`, and the others with `STORE`: the number of members stored, with their cells or distances.
    SearchStore { target: Bytes, source: Bytes, search: GeoSearch, distances: bool },
}

/// Which members are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeoSearch {
    pub origin: GeoOrigin,
    pub shape: GeoShape,
    /// How many metres it has. Distances are told in it.
    pub unit: Score,
    /// Nearest first, or farthest first; nothing for any order.
    pub nearest_first: Option<bool>,
    pub limit: Option<GeoLimit>,
}

/// Around what is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GeoOrigin {
    Member(Bytes),
    Point(GeoPoint),
}

/// At most so many members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeoLimit {
    pub count: usize,
    /// Not those that come first in the order, but those that are found first.
    pub any: bool,
}

/// What is told of a member beside its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeoFields {
    pub distance: bool,
    pub cell: bool,
    pub place: bool,
}

impl Geo {
    pub(super) fn is_write(&self) -> bool {
        match self {
            Geo::Places { .. } | Geo::Texts { .. } | Geo::Distance { .. } => false,
            Geo::Search { reads_only, .. } => !reads_only,
            Geo::SearchStore { .. } => true,
        }
    }

    pub(super) fn key(&self) -> Option<&Bytes> {
        match self {
            Geo::Places { key, .. } | Geo::Texts { key, .. } | Geo::Distance { key, .. } => Some(key),
            Geo::Search { key, reads_only: true, .. } => Some(key),
            // It may name another key, and is asked for with all of its keys.
            Geo::Search { .. } | Geo::SearchStore { .. } => None,
        }
    }
}

pub(super) fn parse(name: &'static str, args: &[Bytes]) -> Result<Option<Request>, CommandError> {
    let key = args[1].clone();
    let members = || args[2..].to_vec();
    let geo = match name {
        "geoadd" => return add(key, &args[2..]).map(Request::Sorted).map(Some),
        "geopos" => Geo::Places { key, members: members() },
        "geohash" => Geo::Texts { key, members: members() },
        "geodist" => {
            let unit = match &args[4..] {
                [] => Score::ONE,
                [unit] => metres(unit)?,
                _ => return Err(CommandError::Syntax),
            };
            Geo::Distance { key, members: [args[2].clone(), args[3].clone()], unit }
        }
        "geosearch" => {
            let Options { search, fields, .. } = search(name, &args[2..])?;
            Geo::Search { key, search, fields, reads_only: true }
        }
        "geosearchstore" => {
            let Options { search, fields, store_distances, .. } = search(name, &args[3..])?;
            if fields != GeoFields::default() {
                return Err(CommandError::Argument(SEARCH_STORES));
            }
            Geo::SearchStore { target: key, source: args[2].clone(), search, distances: store_distances }
        }
        "georadius" | "georadius_ro" | "georadiusbymember" | "georadiusbymember_ro" => {
            radius(name, key, &args[2..])?
        }
        _ => return Ok(None),
    };
    Ok(Some(Request::Geo(geo)))
}

/// `GEOADD` behind its key.
fn add(key: Bytes, args: &[Bytes]) -> Result<SortedSet, CommandError> {
    let (mut condition, mut changed) = (AddCondition::default(), false);
    let mut rest = args;
    while let [option, others @ ..] = rest {
        match option {
            option if is_word(option, "NX") => condition.absent = true,
            option if is_word(option, "XX") => condition.present = true,
            option if is_word(option, "CH") => changed = true,
            _ => break,
        }
        rest = others;
    }
    if rest.is_empty() || rest.len() % 3 != 0 || condition.absent && condition.present {
        return Err(CommandError::Syntax);
    }
    let cell = |place: &[Bytes]| Ok((Score::of_integer(point(place)?.cell()), place[2].clone()));
    let pairs = rest.chunks_exact(3).map(cell).collect::<Result<_, CommandError>>()?;
    Ok(SortedSet::Add { key, pairs, condition, changed })
}

/// A longitude and a latitude.
fn point(args: &[Bytes]) -> Result<GeoPoint, CommandError> {
    let float = |argument: &Bytes| number::parse_score(argument).ok_or(CommandError::NotFloat);
    let (longitude, latitude) = (float(&args[0])?, float(&args[1])?);
    GeoPoint::new(longitude, latitude)
        .ok_or_else(|| CommandError::InvalidPlace(format!("{longitude:.6},{latitude:.6}")))
}

/// How many metres a unit has.
fn metres(unit: &[u8]) -> Result<Score, CommandError> {
    let metres = match unit {
        unit if is_word(unit, "M") => 1.0,
        unit if is_word(unit, "KM") => 1000.0,
        unit if is_word(unit, "FT") => 0.3048,
        unit if is_word(unit, "MI") => 1609.34,
        _ => return Err(CommandError::Argument("unsupported unit provided. please use M, KM, FT, MI")),
    };
    Score::new(metres).ok_or(CommandError::NotFloat)
}

/// A number that is not negative.
fn length(argument: &[u8], not_numeric: &'static str, negative: &'static str) -> Result<f64, CommandError> {
    let value = number::parse_score(argument).ok_or(CommandError::Argument(not_numeric))?;
    if value < 0.0 { Err(CommandError::Argument(negative)) } else { Ok(value) }
}

/// A shape, and the unit that it was told in.
fn circle(radius: &[u8], unit: &[u8]) -> Result<(GeoShape, Score), CommandError> {
    let radius = length(radius, "need numeric radius", "radius cannot be negative")?;
    let unit = metres(unit)?;
    Ok((GeoShape::Circle { radius: radius * unit.value() }, unit))
}

fn rectangle(width: &[u8], height: &[u8], unit: &[u8]) -> Result<(GeoShape, Score), CommandError> {
    const NEGATIVE: &str = "height or width cannot be negative";
    let width = length(width, "need numeric width", NEGATIVE)?;
    let height = length(height, "need numeric height", NEGATIVE)?;
    let unit = metres(unit)?;
    let shape = GeoShape::Rectangle { width: width * unit.value(), height: height * unit.value() };
    Ok((shape, unit))
}

/// The options of a search, and what they say about storing.
struct Options {
    search: GeoSearch,
    fields: GeoFields,
    /// The last `STORE` or `STOREDIST`.
    target: Option<Bytes>,
    store_distances: bool,
}

/// `GEORADIUS` and its kind behind their key.
fn radius(name: &'static str, key: Bytes, args: &[Bytes]) -> Result<Geo, CommandError> {
    let by_member = name.starts_with("georadiusbymember");
    let (origin, rest) = match by_member {
        true => (GeoOrigin::Member(args[0].clone()), &args[1..]),
        false => (GeoOrigin::Point(point(args)?), &args[2..]),
    };
    let [distance, unit, rest @ ..] = rest else { return Err(CommandError::wrong_arity(name)) };
    let around = (origin, circle(distance, unit)?);
    let reads_only = name.ends_with("_ro");
    let words = Words { searches: false, stores: !reads_only, store_distances: false };
    let Options { search, fields, target, store_distances } = options(name, Some(around), rest, words)?;
    Ok(match target {
        Some(_) if fields != GeoFields::default() => return Err(CommandError::Argument(RADIUS_STORES)),
        Some(target) => Geo::SearchStore { target, source: key, search, distances: store_distances },
        None => Geo::Search { key, search, fields, reads_only },
    })
}

/// `GEOSEARCH` and `GEOSEARCHSTORE` behind their keys.
fn search(name: &'static str, args: &[Bytes]) -> Result<Options, CommandError> {
    options(
        name,
        None,
        args,
        Words { searches: true, stores: false, store_distances: name.ends_with("store") },
    )
}

type Shape = Option<(GeoShape, Score)>;

/// Which words a command knows beside those that all know.
#[derive(Clone, Copy)]
struct Words {
    /// Where and how far is said by words.
    searches: bool,
    /// `STORE` and `STOREDIST` with a key behind them.
    stores: bool,
    /// `STOREDIST` alone.
    store_distances: bool,
}

fn options(
    name: &'static str,
    around: Option<(GeoOrigin, (GeoShape, Score))>,
    args: &[Bytes],
    words: Words,
) -> Result<Options, CommandError> {
    let is_point = |origin: &Option<GeoOrigin>| matches!(origin, Some(GeoOrigin::Point(_)));
    let is_member = |origin: &Option<GeoOrigin>| matches!(origin, Some(GeoOrigin::Member(_)));
    let is_circle = |shape: &Shape| matches!(shape, Some((GeoShape::Circle { .. }, _)));
    let is_rectangle = |shape: &Shape| matches!(shape, Some((GeoShape::Rectangle { .. }, _)));
    let (mut origin, mut shape) = around.unzip();
    let (mut fields, mut nearest_first) = (GeoFields::default(), None);
    let (mut count, mut any, mut target, mut store_distances) = (None, false, None, false);
    let mut rest = args;
    while let [word, others @ ..] = rest {
        let mut taken = 0;
        match (word, others) {
            (word, _) if is_word(word, "WITHDIST") => fields.distance = true,
            (word, _) if is_word(word, "WITHHASH") => fields.cell = true,
            (word, _) if is_word(word, "WITHCOORD") => fields.place = true,
            (word, _) if is_word(word, "ANY") => any = true,
            (word, _) if is_word(word, "ASC") => nearest_first = Some(true),
            (word, _) if is_word(word, "DESC") => nearest_first = Some(false),
            (word, [number, ..]) if is_word(word, "COUNT") => {
                let number = usize::try_from(integer(number)?).ok().filter(|number| *number > 0);
                count = Some(number.ok_or(CommandError::Argument("COUNT must be > 0"))?);
                taken = 1;
            }
            (word, [key, ..]) if words.stores && (is_word(word, "STORE") || is_word(word, "STOREDIST")) => {
                (target, store_distances, taken) = (Some(key.clone()), is_word(word, "STOREDIST"), 1);
            }
            (word, _) if words.store_distances && is_word(word, "STOREDIST") => store_distances = true,
            (word, [member, ..]) if words.searches && is_word(word, "FROMMEMBER") && !is_point(&origin) => {
                (origin, taken) = (Some(GeoOrigin::Member(member.clone())), 1);
            }
            (word, [_, _, ..]) if words.searches && is_word(word, "FROMLONLAT") && !is_member(&origin) => {
                (origin, taken) = (Some(GeoOrigin::Point(point(others)?)), 2);
            }
            (word, [radius, unit, ..])
                if words.searches && is_word(word, "BYRADIUS") && !is_rectangle(&shape) =>
            {
                (shape, taken) = (Some(circle(radius, unit)?), 2);
            }
            (word, [width, height, unit, ..])
                if words.searches && is_word(word, "BYBOX") && !is_circle(&shape) =>
            {
                (shape, taken) = (Some(rectangle(width, height, unit)?), 3);
            }
            _ => return Err(CommandError::Syntax),
        }
        rest = &others[taken..];
    }
    let origin = origin.ok_or(CommandError::OneOrigin(name))?;
    let (shape, unit) = shape.ok_or(CommandError::OneShape(name))?;
    if any && count.is_none() {
        return Err(CommandError::Argument("the ANY argument requires COUNT argument"));
    }
    let limit = count.map(|count| GeoLimit { count, any });
    Ok(Options {
        search: GeoSearch { origin, shape, unit, nearest_first, limit },
        fields,
        target,
        store_distances,
    })
}

const RADIUS_STORES: &str =
    "STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options";
const SEARCH_STORES: &str = "GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options";
