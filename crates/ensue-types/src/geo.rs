//! Points on the earth, the cells that stand for them in sorted sets, and areas around them.
//!
//! A cell is a number of 52 bits: 26 times the longitude and the latitude are halved, and their bits alternate. So the
//! cells of one square at any such halving are one range of numbers. The bounds of latitudes, the radius of the earth
//! and the order of the bits are those of Redis, whose clients send and read cells as scores.

use std::f64::consts::PI;
use std::ops::Range;

/// How often each axis is halved.
const HALVINGS: u32 = 26;
const LONGITUDES: (f64, f64) = (-180.0, 180.0);
const LATITUDES: (f64, f64) = (-85.051_128_78, 85.051_128_78);
/// Of a text: its latitudes are all that there are.
const TEXT_LATITUDES: (f64, f64) = (-90.0, 90.0);
const TEXT_LETTERS: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
const EARTH_RADIUS_M: f64 = 6_372_797.560_856;
/// An area is looked for in at most so many squares of one halving.
const SQUARES_MAX: u64 = 9;
/// How much wider an area is looked for than it is, so that no rounding leaves out what lies at its edge.
const MARGIN: f64 = 1.000_001;

/// A place on the earth, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeoPoint {
    pub longitude: f64,
    pub latitude: f64,
}

impl Eq for GeoPoint {}

/// What is around a point, in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GeoShape {
    Circle { radius: f64 },
    Rectangle { width: f64, height: f64 },
}

impl Eq for GeoShape {}

impl GeoPoint {
    /// Nothing for a place that has no cell.
    pub fn new(longitude: f64, latitude: f64) -> Option<GeoPoint> {
        let is_within = |value: f64, (low, high): (f64, f64)| (low..=high).contains(&value);
        (is_within(longitude, LONGITUDES) && is_within(latitude, LATITUDES))
            .then_some(GeoPoint { longitude, latitude })
    }

    /// The cell that it lies in.
    pub fn cell(self) -> u64 {
        interleave(step_of(self.latitude, LATITUDES), step_of(self.longitude, LONGITUDES))
    }

    /// The middle of a cell.
    pub fn of_cell(cell: u64) -> GeoPoint {
        let middle = |step: u64, bounds: (f64, f64)| {
            let edge = |step: u64| bounds.0 + (step as f64 / steps()) * (bounds.1 - bounds.0);
            ((edge(step) + edge(step + 1)) / 2.0).clamp(bounds.0, bounds.1)
        };
        GeoPoint {
            longitude: middle(every_second(cell >> 1), LONGITUDES),
            latitude: middle(every_second(cell), LATITUDES),
        }
    }

    /// The cell as letters, eleven of them; the last says nothing.
    pub fn text(self) -> String {
        let bits = interleave(step_of(self.latitude, TEXT_LATITUDES), step_of(self.longitude, LONGITUDES));
        let letter = |at: u32| match (2 * HALVINGS).checked_sub(5 * (at + 1)) {
            Some(shift) => char::from(TEXT_LETTERS[(bits >> shift & 31) as usize]),
            None => char::from(TEXT_LETTERS[0]),
        };
        (0..11).map(letter).collect()
    }

    /// How far it is to another, in metres, along a great circle.
    pub fn distance(self, other: GeoPoint) -> f64 {
        let half_longitude = ((other.longitude.to_radians() - self.longitude.to_radians()) / 2.0).sin();
        if half_longitude == 0.0 {
            return self.distance_in_latitude(other);
        }
        let (first, second) = (self.latitude.to_radians(), other.latitude.to_radians());
        let half_latitude = ((second - first) / 2.0).sin();
        let a = half_latitude * half_latitude + first.cos() * second.cos() * half_longitude * half_longitude;
        2.0 * EARTH_RADIUS_M * a.sqrt().asin()
    }

    fn distance_in_latitude(self, other: GeoPoint) -> f64 {
        EARTH_RADIUS_M * (other.latitude.to_radians() - self.latitude.to_radians()).abs()
    }
}

impl GeoShape {
    /// How far a point is from the centre, if it lies in the area around it.
    pub fn distance_within(self, center: GeoPoint, point: GeoPoint) -> Option<f64> {
        let distance = center.distance(point);
        let lies_within = match self {
            GeoShape::Circle { radius } => distance <= radius,
            GeoShape::Rectangle { width, height } => {
                let beside = GeoPoint { longitude: center.longitude, latitude: point.latitude };
                center.distance_in_latitude(point) <= height / 2.0 && beside.distance(point) <= width / 2.0
            }
        };
        lies_within.then_some(distance)
    }

    /// Cells among which are those of all points in the area: a few ranges, which do not overlap, in their order.
    pub fn cells(self, center: GeoPoint) -> Vec<Range<u64>> {
        let (half_width, half_height) = match self {
            GeoShape::Circle { radius } => (radius, radius),
            GeoShape::Rectangle { width, height } => (width / 2.0, height / 2.0),
        };
        let reach = (MARGIN * half_height / EARTH_RADIUS_M).to_degrees();
        let latitudes =
            ((center.latitude - reach).max(LATITUDES.0), (center.latitude + reach).min(LATITUDES.1));
        // Where a parallel is shortest, the same distance spans most degrees.
        let widest = latitudes.0.abs().max(latitudes.1.abs()).to_radians();
        let sine = (MARGIN * half_width / (2.0 * EARTH_RADIUS_M)).min(PI / 2.0).sin() / widest.cos();
        let reach = if sine < 1.0 { (2.0 * sine.asin()).to_degrees() } else { 180.0 };
        let (low, high) = (center.longitude - reach, center.longitude + reach);
        let (from, to) = LONGITUDES;
        let longitudes = match (low < from, high > to) {
            _ if reach >= 180.0 => vec![LONGITUDES],
            (true, _) => vec![(low + 360.0, to), (from, high)],
            (_, true) => vec![(low, to), (from, high - 360.0)],
            _ => vec![(low, high)],
        };
        let mut cells: Vec<Range<u64>> =
            longitudes.into_iter().flat_map(|longitudes| squares(longitudes, latitudes)).collect();
        cells.sort_by_key(|range| range.start);
        cells.dedup_by(|next, range| {
            let touches = next.start <= range.end;
            if touches {
                range.end = range.end.max(next.end);
            }
            touches
        });
        cells
    }
}

/// The squares of the finest halving of which few cover a part of the earth.
fn squares(longitudes: (f64, f64), latitudes: (f64, f64)) -> Vec<Range<u64>> {
    let steps = |(low, high): (f64, f64), bounds| (step_of(low, bounds), step_of(high, bounds));
    let (east, north) = (steps(longitudes, LONGITUDES), steps(latitudes, LATITUDES));
    let count = |(low, high): (u64, u64), coarser: u32| (high >> coarser) - (low >> coarser) + 1;
    let fits = |coarser: &u32| count(east, *coarser) * count(north, *coarser) <= SQUARES_MAX;
    let coarser = (0..=HALVINGS).find(fits).unwrap_or(HALVINGS);
    let square = |east: u64, north: u64| {
        let first = interleave(north << coarser, east << coarser);
        first..first + (1 << (2 * coarser))
    };
    let rows = north.0 >> coarser..=north.1 >> coarser;
    rows.flat_map(|row| (east.0 >> coarser..=east.1 >> coarser).map(move |column| square(column, row)))
        .collect()
}

fn steps() -> f64 {
    f64::from(1_u32 << HALVINGS)
}

/// Which of the smallest parts of an axis a value lies in.
fn step_of(value: f64, (low, high): (f64, f64)) -> u64 {
    let step = ((value - low) / (high - low) * steps()).max(0.0) as u64;
    step.min((1 << HALVINGS) - 1)
}

/// The bits of two numbers in turn, the first one's at the even places.
fn interleave(even: u64, odd: u64) -> u64 {
    let spread = |number: u64| (0..HALVINGS).fold(0, |all, bit| all | (number >> bit & 1) << (2 * bit));
    spread(even) | spread(odd) << 1
}

/// The bits at the even places.
fn every_second(number: u64) -> u64 {
    (0..HALVINGS).fold(0, |all, bit| all | (number >> (2 * bit) & 1) << bit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PALERMO: (f64, f64) = (13.361389, 38.115556);
    const CATANIA: (f64, f64) = (15.087269, 37.502669);

    fn point((longitude, latitude): (f64, f64)) -> GeoPoint {
        GeoPoint::new(longitude, latitude).expect("it has a cell")
    }

    /// What Redis 7.0.15 answers for the example of its documentation.
    #[test]
    fn cells_texts_and_distances_are_those_of_redis() {
        assert_eq!(point(PALERMO).cell(), 3_479_099_956_230_698);
        assert_eq!(point(CATANIA).cell(), 3_479_447_370_796_909);
        let [palermo, catania] = [PALERMO, CATANIA].map(|place| GeoPoint::of_cell(point(place).cell()));
        assert_eq!((palermo.text(), catania.text()), ("sqc8b49rny0".into(), "sqdtr74hyu0".into()));
        assert_eq!(format!("{:.4}", palermo.distance(catania)), "166274.1516");
        assert_eq!(format!("{:.17}", palermo.longitude), "13.36138933897018433");
    }

    #[test]
    fn the_poles_have_no_cells() {
        assert_eq!(GeoPoint::new(0.0, 86.0), None);
        assert_eq!(GeoPoint::new(180.1, 0.0), None);
        assert_eq!(GeoPoint::new(f64::NAN, 0.0), None);
        assert!(GeoPoint::new(180.0, 85.0).is_some_and(|point| point.cell() < 1 << (2 * HALVINGS)));
    }

    fn place() -> impl Strategy<Value = GeoPoint> {
        let near = |value: f64| prop_oneof![Just(value), (value - 0.01)..(value + 0.01)];
        let longitude = prop_oneof![-180.0..180.0, near(179.99), near(-179.99), near(0.0)];
        let latitude = prop_oneof![-85.0..85.0, near(85.0), near(-85.0), near(0.0)];
        (longitude, latitude).prop_map(point)
    }

    fn shape() -> impl Strategy<Value = GeoShape> {
        let length = || (0.0_f64..7.5).prop_map(|exponent| 10_f64.powf(exponent));
        prop_oneof![
            length().prop_map(|radius| GeoShape::Circle { radius }),
            (length(), length()).prop_map(|(width, height)| GeoShape::Rectangle { width, height }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn what_lies_in_an_area_lies_in_its_cells(
            center in place(),
            other in place(),
            near in (-1.0_f64..1.0, -1.0_f64..1.0),
            shape in shape(),
        ) {
            let cells = shape.cells(center);
            prop_assert!(cells.len() as u64 <= 2 * SQUARES_MAX);
            let degrees = match shape {
                GeoShape::Circle { radius } => radius,
                GeoShape::Rectangle { width, height } => width.max(height),
            } / 100_000.0;
            let beside = GeoPoint::new(center.longitude + near.0 * degrees, center.latitude + near.1 * degrees);
            for found in [Some(center), Some(other), beside].into_iter().flatten() {
                let cell = found.cell();
                if shape.distance_within(center, GeoPoint::of_cell(cell)).is_some() {
                    prop_assert!(cells.iter().any(|range| range.contains(&cell)), "{found:?} of {cells:?}");
                }
            }
        }

        #[test]
        fn a_cell_stands_for_the_places_in_it(place in place()) {
            let cell = place.cell();
            prop_assert_eq!(GeoPoint::of_cell(cell).cell(), cell);
            prop_assert!(GeoPoint::of_cell(cell).distance(place) < 1.0);
        }
    }
}
