//! Faults of a run, drawn from its seed: what breaks next, for how long, and where crashes are aimed.

use crate::event::Alarm;
use crate::marks::{Mark, Marks};
use crate::network::Break;
use crate::random::Random;
use crate::seed::FaultOptions;
use crate::shape::{ProcessId, Site};
use crate::workload::Workload;
use crate::world::{Aim, World};
use ensue_node::TransactionStep;
use ensue_types::DatacenterId;

/// Decides what breaks.
pub struct Faults {
    random: Random,
    options: FaultOptions,
}

impl Faults {
    /// Orders the first fault, and aims the crashes.
    pub fn new(world: &mut World) -> Faults {
        let options = world.options.faults;
        let mut faults = Faults { random: Random::stream(world.options.seed, "faults"), options };
        for _ in 0..options.aimed {
            let aim = faults.aim();
            world.aims.push(aim);
        }
        faults.order(world);
        faults
    }

    /// The alarm rang: something breaks.
    pub fn on_alarm(&mut self, world: &mut World, workload: &mut Workload, marks: &mut Marks) {
        let o = self.options;
        let weights = [
            o.cut_datacenters,
            o.cut_one_connection,
            o.flap,
            o.lag,
            o.kill,
            o.power,
            o.clock_jump,
            o.disconnect_client,
        ];
        self.order(world);
        if weights.iter().sum::<u64>() == 0 {
            return;
        }
        match self.random.weighted(&weights) {
            0 => self.cut_datacenters(world, marks),
            1 => self.cut_one(world, marks),
            2 => {
                let (a, b) = self.two_sites(world);
                marks.add(Mark::Flapped);
                world.flap(a, b);
            }
            3 => self.lag(world, marks),
            4 => {
                let process = self.process(world);
                if world.is_alive(process) {
                    marks.add(Mark::Killed);
                    world.kill(process);
                    self.restart(world, marks, process);
                }
            }
            5 => {
                let process = self.process(world);
                if world.is_alive(process) {
                    marks.add(Mark::PowerLost);
                    if world.lose_power(process) {
                        marks.add(Mark::PowerTore);
                    }
                    self.restart(world, marks, process);
                }
            }
            6 => {
                let process = self.process(world);
                let by_ms = self.random.around_zero(world.options.clock.jump_ms);
                marks.add(Mark::ClockJumped);
                world.jump_clock(process, by_ms);
            }
            _ => workload.disconnect_one(world),
        }
    }

    /// An aimed crash was carried out: the process comes back, and another crash may be aimed.
    pub fn on_struck(&mut self, world: &mut World, marks: &mut Marks, process: ProcessId, aim: Aim) {
        marks.add(Mark::Crash { step: aim.step, remote: aim.remote });
        marks.add(if aim.power { Mark::PowerLost } else { Mark::Killed });
        self.restart(world, marks, process);
        if self.random.chance(600) {
            let aim = self.aim();
            world.aims.push(aim);
        }
    }

    fn aim(&mut self) -> Aim {
        let step = self.random.pick(&[
            TransactionStep::Begun,
            TransactionStep::Voted,
            TransactionStep::Decided,
            TransactionStep::Committed,
            TransactionStep::Completed,
        ]);
        Aim {
            step,
            remote: self.random.chance(500),
            skip: self.random.below(30) as u32,
            power: self.options.power > 0 && self.random.chance(500),
        }
    }

    fn order(&mut self, world: &mut World) {
        if self.options.interval_ms > 0 {
            let at = world.now() + self.random.between(1_000, 2_000 * self.options.interval_ms);
            world.alarm(at, Alarm::Fault);
        }
    }

    fn duration_us(&mut self) -> u64 {
        self.random.skewed(200, 1_000 * self.options.duration_ms_max)
    }

    fn restart(&mut self, world: &mut World, marks: &mut Marks, process: ProcessId) {
        marks.add(Mark::Restarted);
        let at = world.now() + self.duration_us();
        world.alarm(at, Alarm::Start(process));
    }

    fn process(&mut self, world: &World) -> ProcessId {
        ProcessId(self.random.index(world.options.shape.processes()))
    }

    fn how(&mut self) -> Break {
        if self.random.chance(500) { Break::Prompt } else { Break::Silent }
    }

    fn cut_datacenters(&mut self, world: &mut World, marks: &mut Marks) {
        let count = u64::from(world.options.shape.datacenters);
        let a = self.random.below(count);
        let b = (a + self.random.between(1, count - 1)) % count;
        let (a, b) = (DatacenterId(a as u8), DatacenterId(b as u8));
        let how = self.how();
        marks.add(Mark::DatacentersCut);
        world.cut_datacenters(a, b, how);
        let at = world.now() + self.duration_us();
        world.alarm(at, Alarm::HealDatacenters(a, b));
    }

    fn cut_one(&mut self, world: &mut World, marks: &mut Marks) {
        let (a, b) = self.two_sites(world);
        let how = self.how();
        marks.add(Mark::ConnectionCut);
        world.cut(a, b, how);
        let at = world.now() + self.duration_us();
        world.alarm(at, Alarm::Heal(a, b));
    }

    fn lag(&mut self, world: &mut World, marks: &mut Marks) {
        let (a, b) = self.two_sites(world);
        let extra = self.random.skewed(500, 300_000);
        marks.add(Mark::Lagged);
        world.network.lag(a, b, extra);
        let at = world.now() + self.duration_us();
        world.alarm(at, Alarm::Unlag(a, b));
    }

    fn two_sites(&mut self, world: &World) -> (Site, Site) {
        let count = world.options.shape.sites();
        let a = self.random.index(count);
        let b = (a + 1 + self.random.index(count - 1)) % count;
        (Site(a), Site(b))
    }
}
