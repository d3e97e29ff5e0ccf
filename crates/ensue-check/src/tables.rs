//! Hash tables with a fixed seed, so that the same file gives the same report in every run.

pub(crate) type Map<K, V> = hashbrown::HashMap<K, V, foldhash::fast::FixedState>;
pub(crate) type Set<K> = hashbrown::HashSet<K, foldhash::fast::FixedState>;
