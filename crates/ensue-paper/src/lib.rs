//! The figures and tables of the papers, repeated: what each paper measured, what is measured here, and whether both
//! say the same.
//!
//! Arrives: a paper and a figure. Promises: a figure is data, one definition in the table of its paper (`papers/`);
//! one runner (`run.rs`) goes through its lines and points with one of three instruments (`instrument/`): real
//! processes under load, simulated worlds whose cores take time, and transactions on branches in this process. What
//! the paper says is only what its text or its tables say, and each statement is judged by what was measured
//! (`claim.rs`). Results are records (`record.rs`), which tables, pictures and pages are made of; a record outlives
//! the run.

pub mod claim;
pub mod figure;
pub mod instrument;
pub mod page;
pub mod papers;
pub mod record;
pub mod run;

#[cfg(test)]
mod tests;
