//! Whole runs against a server in this process; and what a user may write wrongly.

mod fake;
mod runs;
mod words;
