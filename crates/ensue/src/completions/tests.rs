//! The scripts name every command that is for people, and no other.

use super::*;
use crate::Ensue;
use clap::CommandFactory;

#[test]
fn every_shell_has_every_command_and_no_hidden_one() {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let script = String::from_utf8(text(shell, &Ensue::command())).unwrap();
        for command in Ensue::command().get_subcommands() {
            let name = command.get_name();
            let is_named =
                script.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| word == name);
            assert_eq!(is_named, !command.is_hide_set(), "{name} for {shell:?}");
        }
        assert!(script.contains("appendfsync") && script.contains("everysec"), "{shell:?}");
    }
}
