//! What the development commands are made of: `steps` runs programs one after the other, `gate` is the list of steps
//! a change must pass, `python` is what some of them are run with, `tidy` reads the tree and says what is out of place,
//! `mutants` asks whether the tests notice a wrong line.
//!
//! Nothing here is part of the product.

pub mod fuzz;
pub mod gate;
pub mod instructions;
pub mod mutants;
pub mod python;
pub mod sbom;
pub mod steps;
pub mod tidy;
