//! Orders in which writes may arrive, for the properties of merging.

/// Everything of all streams twice, in an order that no datacenter may see.
pub(crate) fn shuffled<T: Clone>(streams: &[Vec<T>], order: &[usize]) -> Vec<T> {
    let all: Vec<T> = streams.iter().flatten().cloned().collect();
    let twice = all.len() * 2;
    let mut places: Vec<usize> = (0..twice).collect();
    for (at, &with) in (0..twice).zip(order.iter().cycle()) {
        places.swap(at, with % twice);
    }
    places.into_iter().map(|place| all[place % all.len()].clone()).collect()
}
