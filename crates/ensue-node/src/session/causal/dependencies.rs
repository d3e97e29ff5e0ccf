//! The dependencies of a past, grouped by whom to ask about them.

use ensue_types::{Dependency, PartitionId};
use std::collections::BTreeMap;

/// Dependencies by the partition that knows of them.
pub(crate) fn by_partition(dependencies: Vec<Dependency>) -> BTreeMap<PartitionId, Vec<Dependency>> {
    let mut groups: BTreeMap<PartitionId, Vec<Dependency>> = BTreeMap::new();
    for dependency in dependencies {
        groups.entry(dependency.operation.partition).or_default().push(dependency);
    }
    groups
}
