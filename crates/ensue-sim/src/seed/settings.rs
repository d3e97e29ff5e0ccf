//! Options by name, as scripts write them: `datacenters=3`, `delay=20ms`, `jitter=0us`.

use super::SCRIPT_STEPS;
use crate::faults::text::parse_us;
use crate::protocols;
use crate::world::options::{DiskOptions, Options};
use ensue_node::{AppendFsync, Collection, Tuning};
use ensue_protocol::Registration;
use ensue_types::DatacenterId;

/// Most of everything that a script may ask for.
const DATACENTERS_MAX: u8 = 8;
const CORES_MAX: u16 = 16;

/// That of servers, but for runaway scripts, which would have half of all scenarios' time to themselves.
fn usual_tuning() -> Tuning {
    Tuning { script_steps: SCRIPT_STEPS, script_paused_steps: SCRIPT_STEPS, ..Tuning::default() }
}

impl Options {
    /// Changes what of the shape this names.
    fn set_shape(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "partitions" => self.shape.partitions = between(value, 1, 1_024)? as u16,
            "cores" => self.shape.cores = between(value, 1, CORES_MAX.into())? as u16,
            "one_process" => self.shape.one_process = choice(value, &[("yes", true), ("no", false)])?,
            _ => match between(value, 1, 3)? {
                3 => self.make_replicated(),
                1 => self.shape.replicas = 1,
                other => return Err(format!("there are no worlds of {other} replicas")),
            },
        }
        Ok(())
    }

    /// Changes what `name=value` names.
    pub fn set(&mut self, setting: &str) -> Result<(), String> {
        let (name, value) = setting.split_once('=').ok_or("a setting needs `=`")?;
        match name {
            "datacenters" => {
                self.shape.datacenters = between(value, 1, DATACENTERS_MAX.into())? as u8;
                self.resize_links();
            }
            "partitions" | "cores" | "one_process" | "replicas" => self.set_shape(name, value)?,
            "protocol" => self.protocol = protocol(value)?,
            "fsync" => {
                let choices = [
                    ("always", AppendFsync::Always),
                    ("everysec", AppendFsync::EverySecond),
                    ("no", AppendFsync::No),
                ];
                self.append_fsync = choice(value, &choices)?;
            }
            "conflicts" => {
                let (pattern, handler) = value.rsplit_once(',').ok_or("a pattern, a comma and a handler")?;
                if crate::world::handlers::by_name(handler).is_none() {
                    return Err(format!("no handler of conflicts: {handler}"));
                }
                self.handlers.push((pattern.to_owned(), handler.to_owned()));
            }
            "home" => {
                let (pattern, name) = value.rsplit_once(',').ok_or("a pattern, a comma and a datacenter")?;
                let number = name.strip_prefix("dc").and_then(|number| number.parse::<u8>().ok());
                let place = number.and_then(|number| number.checked_sub(1)).ok_or("a datacenter as dc1")?;
                self.homes.push((pattern.to_owned(), DatacenterId(place)));
            }
            "home_round_ms" => self.tuning.home_round_ms = number(value)?,
            "home_wait_ms" => self.tuning.home_wait_ms = number(value)?,
            "delay" => {
                let delay_us = time_us(value)?;
                self.links.delay_us.iter_mut().flatten().for_each(|each| *each = delay_us);
            }
            "jitter" => self.links.jitter_us = time_us(value)?,
            "local" => self.links.local_us = (time_us(value)?, time_us(value)?),
            "sync" => self.disk.sync_us = (time_us(value)?, time_us(value)?),
            "turn" => self.turn_us_max = time_us(value)?,
            "clock_bound_ms" => self.clock.bound_ms = number(value)?,
            "drift_ppm" => self.clock.drift_ppm = number(value)?,
            "loses_datacenter" => {
                self.faults.loses_datacenter = choice(value, &[("yes", true), ("no", false)])?;
            }
            "loses_directories" => match choice(value, &[("yes", true), ("no", false)])? {
                true => self.make_directories_lost(),
                false => self.faults.loses_directories = false,
            },
            "joins" => choice(value, &[("yes", ())]).map(|()| self.make_one_join())?,
            "moves_homes" => choice(value, &[("yes", ())]).map(|()| self.make_homes_move())?,
            "retires" => choice(value, &[("yes", ())]).map(|()| self.make_one_retire())?,
            "wild_clocks" => {
                choice(value, &[("yes", ())])?;
                self.faults.loses_directories = false;
                self.make_clocks_wild();
            }
            "operations" => self.workload.operations = number(value)?,
            "clients" => self.workload.clients = between(value, 1, 100)? as usize,
            "pipeline" => self.workload.pipeline = number(value)?,
            "disk" => {
                choice(value, &[("calm", ())])?;
                self.disk = DiskOptions { append_us: (1, 1), sync_us: (200, 200) };
            }
            "tuning" => self.tuning = choice(value, &[("usual", ())]).map(|()| usual_tuning())?,
            _ => self.tune(name, value)?,
        }
        Ok(())
    }

    fn tune(&mut self, name: &str, value: &str) -> Result<(), String> {
        let tuning = &mut self.tuning;
        match name {
            "proof_wait_ms" => tuning.proof_wait_ms = number(value)?,
            "request_timeout_ms" => tuning.request_timeout_ms = number(value)?,
            "read_transaction_timeout_ms" => tuning.read_transaction_timeout_ms = number(value)?,
            "read_mark_ms" => tuning.read_mark_ms = number(value)?,
            "context_operations_max" => tuning.context_operations_max = number(value)? as usize,
            "stream_batch_entries" => tuning.stream_batch_entries = number(value)? as usize,
            "collect_interval_ms" => tuning.collect_interval_ms = number(value)?,
            "acknowledge_interval_ms" => tuning.acknowledge_interval_ms = number(value)?,
            "heartbeat_interval_ms" => tuning.heartbeat_interval_ms = number(value)?,
            "stabilization_interval_ms" => tuning.stabilization_interval_ms = number(value)?,
            "relaxed_sync_interval_ms" => tuning.relaxed_sync_interval_ms = number(value)?,
            "turn_answer_bytes" => tuning.turn_answer_bytes = number(value)? as usize,
            "turn_cells" => tuning.turn_cells = number(value)? as usize,
            "row_columns_max" => tuning.row_columns_max = number(value)? as u16,
            "script_steps" => tuning.script_steps = number(value)?,
            "script_steps_to_pause" => tuning.script_steps_to_pause = number(value)?,
            "script_pause_us" => tuning.script_pause_us = number(value)?,
            "block_ms_max" => tuning.block_ms_max = number(value)?,
            "stream_memory_bytes" => tuning.stream_memory_bytes = number(value)? as usize,
            "checkpoint_bytes" => tuning.checkpoint_bytes = number(value)?,
            "segment_bytes" => tuning.segment_bytes = number(value)?,
            "branch_collection" => {
                let choices =
                    [("pessimistic", Collection::Pessimistic), ("optimistic", Collection::Optimistic)];
                tuning.branching.collection = choice(value, &choices)?;
            }
            "branch_ceiling_every" => tuning.branching.ceiling_every = number(value)?,
            "branch_leaves_max" => tuning.branching.leaves_max = number(value)? as usize,
            "branch_transaction_timeout_ms" => tuning.branching.transaction_timeout_ms = number(value)?,
            _ => return Err(format!("unknown setting {name}")),
        }
        Ok(())
    }

    /// Datacenters that come new are as far away as the first two are from each other.
    fn resize_links(&mut self) {
        let count = usize::from(self.shape.datacenters);
        let delays = &mut self.links.delay_us;
        let usual = delays.first().and_then(|row| row.get(1)).copied().unwrap_or(20_000);
        delays.resize(count, Vec::new());
        delays.iter_mut().for_each(|row| row.resize(count, usual));
    }
}

fn number(value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("no number: {value}"))
}

fn between(value: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = number(value)?;
    if (least..=most).contains(&number) {
        Ok(number)
    } else {
        Err(format!("not between {least} and {most}: {value}"))
    }
}

fn choice<T: Copy>(value: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let found = choices.iter().find(|(name, _)| *name == value);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        format!("not one of {}: {value}", names.join(", "))
    })
}

fn time_us(value: &str) -> Result<u64, String> {
    parse_us(value).ok_or_else(|| format!("no time: {value}"))
}

fn protocol(value: &str) -> Result<&'static Registration, String> {
    protocols::find(value)
}

#[cfg(test)]
mod tests;
