//! The parameters of whoever owns the sockets and the log, which `CONFIG SET` changes while the node runs.

use crate::size;
use ensue_types::limits;
use std::fmt;

/// The name of the parameter that limits what waits for clients, one limit a class.
pub(crate) const OUTPUT_LIMITS: &str = "client-output-buffer-limit";

/// The values of all these parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostParameters {
    /// How many clients a node serves at once.
    pub clients_max: usize,
    /// Refuse everybody who is not on this machine as long as nobody needs a password.
    pub is_protected: bool,
    /// Seconds between probes of a silent client; zero is none.
    pub keepalive_s: u64,
    /// Seconds after which an idle client is disconnected; zero is never.
    pub timeout_s: u64,
    pub output_limits: OutputLimits,
    /// The least level of lines that are written into the log, by its name.
    pub log_level: String,
}

/// What may wait for a client that does not read: bytes, and as many for so many seconds; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OutputLimit {
    pub hard: u64,
    pub soft: u64,
    pub soft_s: u64,
}

/// `client-output-buffer-limit`: one a class of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutputLimits {
    /// Clients that wait for answers. No more than [`limits::CLIENT_OUTPUT_BYTES_MAX`] wait for one of them.
    pub normal: OutputLimit,
    /// Kept and told, because tools set it; nothing here is one.
    pub replica: OutputLimit,
    /// Clients that subscribe.
    pub pubsub: OutputLimit,
}

impl Default for OutputLimits {
    fn default() -> OutputLimits {
        OutputLimits {
            normal: OutputLimit { hard: limits::CLIENT_OUTPUT_BYTES_MAX as u64, soft: 0, soft_s: 0 },
            replica: OutputLimit { hard: 256 << 20, soft: 64 << 20, soft_s: 60 },
            pubsub: OutputLimit {
                hard: limits::SUBSCRIBER_OUTPUT_BYTES_MAX as u64,
                soft: limits::SUBSCRIBER_OUTPUT_SOFT_BYTES as u64,
                soft_s: limits::SUBSCRIBER_OUTPUT_SOFT_S,
            },
        }
    }
}

impl OutputLimits {
    /// Changes those of the classes that are named: a class, two numbers of bytes and seconds each, with blanks
    /// between. Nothing changes if something is wrong with it.
    ///
    /// # Errors
    ///
    /// What is wrong, in the words of Redis.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        if words.is_empty() || words.len() % 4 != 0 {
            return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
        }
        let mut changed = *self;
        for group in words.chunks(4) {
            let bytes = |word| size::parse(word).ok();
            let numbers = [bytes(group[1]), bytes(group[2]), group[3].parse().ok()];
            let [Some(hard), Some(soft), Some(soft_s)] = numbers else {
                let words = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
                return Err(words.to_owned());
            };
            let class = match group[0].to_ascii_lowercase().as_str() {
                "normal" => &mut changed.normal,
                "replica" | "slave" => &mut changed.replica,
                "pubsub" => &mut changed.pubsub,
                _ => return Err("Invalid client class specified in buffer limit configuration.".to_owned()),
            };
            *class = OutputLimit { hard, soft, soft_s };
        }
        *self = changed;
        Ok(())
    }
}

/// As `CONFIG GET` tells them.
impl fmt::Display for OutputLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutputLimits { normal, replica, pubsub } = self;
        write!(f, "normal {normal} slave {replica} pubsub {pubsub}")
    }
}

impl fmt::Display for OutputLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutputLimit { hard, soft, soft_s } = self;
        write!(f, "{hard} {soft} {soft_s}")
    }
}
