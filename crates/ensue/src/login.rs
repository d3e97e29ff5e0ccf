//! The flags by which the commands that ask a server log in and encrypt; they are those of redis-cli.

use crate::tls::TlsArgs;
use ensue_client::Options;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LoginArgs {
    /// User who logs in; with a password alone it is the default one
    #[arg(long, value_name = "NAME", requires = "password", global = true)]
    user: Option<String>,
    /// Password of the user
    #[arg(
        short = 'a',
        long,
        value_name = "PASSWORD",
        env = "REDISCLI_AUTH",
        hide_env_values = true,
        global = true
    )]
    password: Option<String>,
    #[command(flatten)]
    tls: TlsArgs,
}

impl LoginArgs {
    /// As where no flag is given.
    #[cfg(test)]
    pub(crate) fn none() -> LoginArgs {
        LoginArgs { user: None, password: None, tls: TlsArgs::none() }
    }

    /// These options, with what the flags say.
    pub(crate) fn with(&self, options: Options) -> anyhow::Result<Options> {
        let (user, password) = (self.user.clone(), self.password.clone());
        Ok(Options { user, password, tls: self.tls.options()?, ..options })
    }
}
