//! `ensue completions`: what a shell needs to complete commands and flags, made of the command line itself.

use clap::{Command, ValueEnum};
use std::io::Write;
use std::process::ExitCode;

/// Print the completions of a shell
///
/// bash: into /usr/share/bash-completion/completions/ensue; zsh: into a file _ensue in a folder of $fpath; fish: into
/// ~/.config/fish/completions/ensue.fish. The Debian package has them.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// What the binary is called.
const NAME: &str = "ensue";

pub(crate) fn run(args: &CompletionsArgs, command: Command) -> anyhow::Result<ExitCode> {
    std::io::stdout().write_all(&text(args.shell, &command))?;
    Ok(ExitCode::SUCCESS)
}

/// The script of a shell, which names no command that is hidden.
fn text(shell: Shell, command: &Command) -> Vec<u8> {
    let generator = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let visible = command.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let mut visible = Command::new(NAME).version(env!("CARGO_PKG_VERSION")).subcommands(visible);
    let mut text = Vec::new();
    clap_complete::generate(generator, &mut visible, NAME, &mut text);
    text
}

#[cfg(test)]
mod tests;
