//! Whole runs against a server in this process; and what a user may write wrongly.

mod costs;
mod fake;
mod handover;
mod runs;
mod words;
