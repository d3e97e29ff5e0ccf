//! The pages: which there are, and what stands in one.

use super::*;
use crate::Ensue;
use clap::CommandFactory;
use std::collections::BTreeSet;

#[test]
fn there_is_a_page_for_every_command_that_is_for_people() {
    let folder = std::env::temp_dir().join(format!("ensue-man-{}", std::process::id()));
    write_all(&folder, Ensue::command()).unwrap();
    let entries = std::fs::read_dir(&folder).unwrap();
    let names: BTreeSet<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let page = std::fs::read_to_string(folder.join("ensue-dev.1")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(names.contains("ensue.1") && names.contains("ensue-bench-paper.1"), "{names:?}");
    for command in Ensue::command().get_subcommands() {
        let name = format!("ensue-{}.1", command.get_name());
        assert_eq!(names.contains(&name), !command.is_hide_set(), "{name} of {names:?}");
    }
    assert!(page.contains(".TH ensue-dev 1") && page.contains("\\-\\-datacenters"), "{page}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let file = std::env::temp_dir().join(format!("ensue-man-file-{}", std::process::id()));
    std::fs::write(&file, "").unwrap();
    let error = write_all(&file.join("man"), Ensue::command()).unwrap_err();
    std::fs::remove_file(&file).unwrap();
    assert!(error.to_string().starts_with("cannot make"), "{error}");
}
