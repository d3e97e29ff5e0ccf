//! A state of a tiny world, what may happen next, and what each of these leads to.

use super::case::{self, Case};
use super::client::Client;
use super::line::{Line, Packet};
use super::machine::{Disks, Effects, Machine, Shared};
use super::print::{Print, Printer};
use super::reaction::{Cause, Reactions};
use ensue_node::{Input, NodeConfig};
use ensue_sim::oracle::{Violation, property};
use ensue_sim::rules::Rules;
use ensue_sim::world::clock::EPOCH_MS;
use ensue_sim::world::options::Options;
use ensue_sim::world::shape::{ProcessId, Shape, Site};
use ensue_types::{CoreId, DatacenterId, Now, PartitionId, SessionId};
use std::fmt::Write;
use std::rc::Rc;
use std::sync::Arc;

/// The reading of every monotonic clock at the beginning.
const START_US: u64 = 1_000_000;

/// What does not change in a search.
#[derive(Debug)]
pub struct Setting {
    pub case: Case,
    pub shape: Shape,
    options: Options,
    reactions: Reactions,
}

/// Something that may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The first of what is on its way arrives.
    Deliver { from: Site, to: Site },
    /// The oldest operation of a disk is carried out.
    Disk { site: Site, partition: PartitionId },
    /// A client says its next command.
    Say { client: usize },
    /// A connection breaks, loses what is on its way, and comes back.
    Break { a: Site, b: Site },
    /// A process is killed and starts again.
    Crash { process: ProcessId },
    /// A datacenter's clock moves on by a millisecond.
    Tick { datacenter: u8 },
}

/// See the module.
#[derive(Clone)]
pub struct State {
    setting: Rc<Setting>,
    machines: Vec<Shared>,
    /// By sender and receiver.
    lines: Vec<Line>,
    pub clients: Vec<Client>,
    /// How long the world has existed, in microseconds.
    elapsed_us: u64,
    ticks: [u64; 2],
    boots: Vec<u32>,
    breaks_left: u8,
    crashes_left: u8,
    ticks_left: u8,
    sessions: u64,
}

impl Setting {
    pub fn new(case: Case, rules: Rules) -> Setting {
        let shape =
            Shape { replicas: 1, datacenters: 2, cores: 2, partitions: 2, one_process: case.one_process };
        let mut options = Options::calm(shape, 0, rules);
        // No disk fills here, and every state of a core has its disks.
        options.tuning.reserve_bytes = 512;
        Setting { case, shape, options, reactions: Reactions::default() }
    }

    fn has_slow_disks(&self, site: Site) -> bool {
        self.case.slow_disks.contains(&(self.shape.datacenter(site).0, self.shape.core(site).0))
    }

    fn is_mortal(&self, process: ProcessId) -> bool {
        let mut sites = self.shape.sites_of(process).into_iter();
        sites.any(|site| self.case.mortal.contains(&self.shape.datacenter(site).0))
    }

    fn config(&self, site: Site, boot: u32) -> NodeConfig {
        NodeConfig { boot, boot_id: [1; 16], identity_seed: u128::from(boot), ..self.options.node(site) }
    }
}

impl State {
    /// All processes started for the first time, and their links on their way up.
    pub fn new(setting: Rc<Setting>) -> Result<State, Violation> {
        let shape = setting.shape;
        let mut state = State {
            machines: Vec::new(),
            lines: vec![Line::default(); shape.sites() * shape.sites()],
            clients: Vec::new(),
            elapsed_us: START_US,
            ticks: [0, 0],
            boots: vec![1; shape.processes()],
            breaks_left: 0,
            crashes_left: 0,
            ticks_left: 0,
            sessions: 0,
            setting,
        };
        for site in (0..shape.sites()).map(Site) {
            let (now, mut effects) = (state.now(site), Effects::default());
            let machine = Machine::start(state.setting.config(site, 1), now, Disks::new(), &mut effects);
            state.machines.push(Shared::new(machine));
            state.take_effects(site, &effects)?;
        }
        for (from, to) in pairs(shape) {
            state.line(from, to).forget();
        }
        state.link_processes()?;
        Ok(state)
    }

    /// What the case allows to happen from now on.
    pub fn unleash(&mut self) {
        let case = self.setting.case;
        (self.breaks_left, self.crashes_left, self.ticks_left) = (case.breaks, case.crashes, case.ticks);
        let sites = (0..self.machines.len()).map(Site);
        for site in sites.filter(|&site| self.setting.has_slow_disks(site)) {
            let mut machine = Machine::clone(&self.machines[site.0].machine);
            machine.let_disks_wait();
            self.machines[site.0] = Shared::new(machine);
        }
    }

    /// Connects a client.
    pub fn connect(
        &mut self,
        datacenter: u8,
        core: u16,
        program: Vec<case::Command>,
    ) -> Result<usize, Violation> {
        self.sessions += 1;
        let session = SessionId(self.sessions);
        let site = self.setting.shape.site(DatacenterId(datacenter), CoreId(core));
        self.clients.push(Client::new(site, session, Arc::new(program)));
        let address = format!("10.0.0.1:{}", 40_000 + session.0);
        let local_address = "10.0.1.1:6379".to_owned();
        self.give(site, Input::ClientConnected { session, address, local_address })?;
        Ok(self.clients.len() - 1)
    }

    /// Everything that may happen next.
    pub fn choices(&self) -> Vec<Choice> {
        let mut choices = self.steps();
        choices.extend(self.says());
        let shape = self.setting.shape;
        if self.breaks_left > 0 {
            let breakable = pairs(shape).filter(|&(a, b)| a < b && shape.process(a) != shape.process(b));
            choices.extend(
                breakable.filter(|&(a, b)| self.connected(a, b)).map(|(a, b)| Choice::Break { a, b }),
            );
        }
        if self.crashes_left > 0 {
            let processes = (0..shape.processes()).map(ProcessId);
            let mortal = processes.filter(|&process| self.setting.is_mortal(process));
            choices.extend(mortal.map(|process| Choice::Crash { process }));
        }
        if self.ticks_left > 0 {
            choices.extend((0..shape.datacenters).map(|datacenter| Choice::Tick { datacenter }));
        }
        choices
    }

    /// Commands that clients could say now.
    pub fn says(&self) -> impl Iterator<Item = Choice> + '_ {
        let ready = self.clients.iter().enumerate().filter(|(_, client)| client.next().is_some());
        ready.map(|(client, _)| Choice::Say { client })
    }

    /// What happens by itself: deliveries and disk work.
    pub fn steps(&self) -> Vec<Choice> {
        let full =
            pairs(self.setting.shape).filter(|&(from, to)| !self.lines[self.index(from, to)].is_empty());
        let mut choices: Vec<Choice> = full.map(|(from, to)| Choice::Deliver { from, to }).collect();
        for (site, shared) in self.machines.iter().enumerate() {
            let site = Site(site);
            choices.extend(shared.machine.busy_disks().map(|partition| Choice::Disk { site, partition }));
        }
        choices
    }

    /// What a choice leads to.
    pub fn take(&mut self, choice: Choice) -> Result<(), Violation> {
        match choice {
            Choice::Deliver { from, to } => self.deliver(from, to),
            Choice::Disk { site, partition } => self.react(site, Cause::Disk(partition)),
            Choice::Say { client } => self.say(client),
            Choice::Break { a, b } => {
                self.breaks_left -= 1;
                self.line(a, b).renew();
                self.line(b, a).renew();
                Ok(())
            }
            Choice::Crash { process } => self.crash(process),
            Choice::Tick { datacenter } => {
                self.ticks_left -= 1;
                self.ticks[usize::from(datacenter)] += 1;
                Ok(())
            }
        }
    }

    /// Lets time pass until the next timer of any core, and runs the timers that are due then.
    pub fn pass_time(&mut self, until_us: u64) -> Result<bool, Violation> {
        let next = self.machines.iter().filter_map(|shared| shared.machine.next_timer()).min();
        let Some(next) = next.filter(|&next| next <= until_us) else { return Ok(false) };
        self.elapsed_us = self.elapsed_us.max(next);
        for site in 0..self.machines.len() {
            if self.machines[site].machine.next_timer().is_some_and(|due| due <= self.elapsed_us) {
                self.give(Site(site), Input::Timer)?;
            }
        }
        Ok(true)
    }

    /// Whether something was broken within the datacenter of a core, for which clients there may be answered errors.
    pub fn is_excused(&self, site: Site) -> bool {
        let Setting { shape, case, .. } = &*self.setting;
        let processes = shape.processes_of(shape.datacenter(site));
        let was_cut = !shape.one_process && self.breaks_left < case.breaks;
        was_cut || processes.iter().any(|process| self.boots[process.0] > 1)
    }

    pub fn elapsed_us(&self) -> u64 {
        self.elapsed_us
    }

    /// Of everything that can make a difference to what happens from here on.
    pub fn print(&self) -> Print {
        let mut printer = Printer::default();
        self.machines.iter().for_each(|shared| printer.print(shared.print));
        self.lines.iter().for_each(|line| line.print(&mut printer));
        for client in &self.clients {
            printer.number(client.sent as u64 * 2 + u64::from(client.gone));
            // Writing into memory cannot fail.
            let _ = write!(printer, "{:?}", client.answers);
        }
        printer.number(self.elapsed_us);
        self.ticks.iter().for_each(|&ticks| printer.number(ticks));
        self.boots.iter().for_each(|&boot| printer.number(u64::from(boot)));
        let left = [self.breaks_left, self.crashes_left, self.ticks_left];
        left.iter().for_each(|&left| printer.number(u64::from(left)));
        printer.finish()
    }

    /// A choice in words, in the state before it.
    pub fn describe(&self, choice: Choice) -> String {
        match choice {
            Choice::Deliver { from, to } => {
                let (from_name, to_name) = (self.name(from), self.name(to));
                match self.lines[self.index(from, to)].first() {
                    Some(Packet::Message(envelope)) => {
                        format!("{from_name} -> {to_name}  {:?} at {}", envelope.message, envelope.time)
                    }
                    packet => format!("{to_name} learns that {from_name} is {packet:?}"),
                }
            }
            Choice::Disk { site, partition } => format!("{}  disk of {partition}", self.name(site)),
            Choice::Say { client } => {
                let client = &self.clients[client];
                let words = client.next().map(|command| command.args.join(&b' ')).unwrap_or_default();
                let words = String::from_utf8_lossy(&words).into_owned();
                format!("client {} at {}: {words}", client.session.0, self.name(client.site))
            }
            Choice::Break { a, b } => {
                format!("the connection of {} and {} breaks", self.name(a), self.name(b))
            }
            Choice::Crash { process } => {
                let sites = self.setting.shape.sites_of(process);
                let names: Vec<String> = sites.into_iter().map(|site| self.name(site)).collect();
                format!("{} dies and begins again", names.join(" and "))
            }
            Choice::Tick { datacenter } => format!("the clock of {} moves on", DatacenterId(datacenter)),
        }
    }

    fn deliver(&mut self, from: Site, to: Site) -> Result<(), Violation> {
        let Some(packet) = self.line(from, to).pop() else { return Ok(()) };
        let shape = self.setting.shape;
        let (datacenter, core) = (shape.datacenter(from), shape.core(from));
        let input = match packet.as_ref() {
            Packet::Message(envelope) => Input::Message(envelope.clone()),
            Packet::Up => Input::LinkUp { datacenter, core },
            Packet::Down => Input::LinkDown { datacenter, core },
        };
        if let Packet::Up = *packet {
            self.line(to, from).sender_up = true;
        }
        self.give(to, input)
    }

    fn say(&mut self, index: usize) -> Result<(), Violation> {
        let client = &mut self.clients[index];
        let Some(command) = client.next().cloned() else { return Ok(()) };
        client.sent += 1;
        let (site, session) = (client.site, client.session);
        self.give(site, Input::ClientCommands { session, commands: vec![command.args] })
    }

    fn crash(&mut self, process: ProcessId) -> Result<(), Violation> {
        self.crashes_left -= 1;
        self.boots[process.0] += 1;
        let (shape, boot) = (self.setting.shape, self.boots[process.0]);
        let sites = shape.sites_of(process);
        for client in self.clients.iter_mut().filter(|client| sites.contains(&client.site)) {
            client.gone = true;
        }
        for (from, to) in pairs(shape).filter(|(from, to)| sites.contains(from) || sites.contains(to)) {
            self.line(from, to).clear();
        }
        for &site in &sites {
            let (now, mut effects) = (self.now(site), Effects::default());
            let disks = self.machines[site.0].machine.as_ref().clone().into_disks();
            let mut machine = Machine::start(self.setting.config(site, boot), now, disks, &mut effects);
            if self.setting.has_slow_disks(site) {
                machine.let_disks_wait();
            }
            self.machines[site.0] = Shared::new(machine);
            self.take_effects(site, &effects)?;
        }
        for (from, to) in pairs(shape).filter(|(from, to)| sites.contains(from) || sites.contains(to)) {
            if sites.contains(&to) { self.line(from, to).forget() } else { self.line(from, to).renew() }
        }
        self.link_processes()
    }

    /// Cores that have begun are told at once of the other cores of their process.
    fn link_processes(&mut self) -> Result<(), Violation> {
        let shape = self.setting.shape;
        for (from, to) in pairs(shape).filter(|&(from, to)| shape.process(from) == shape.process(to)) {
            if let Some(Packet::Up) = self.lines[self.index(from, to)].first() {
                self.deliver(from, to)?;
            }
        }
        Ok(())
    }

    fn give(&mut self, site: Site, input: Input) -> Result<(), Violation> {
        self.react(site, Cause::Input(input))
    }

    fn react(&mut self, site: Site, cause: Cause) -> Result<(), Violation> {
        let reaction = self.setting.reactions.of(&self.machines[site.0], self.now(site), cause);
        self.machines[site.0] = reaction.machine;
        self.take_effects(site, &reaction.effects)
    }

    fn take_effects(&mut self, site: Site, effects: &Effects) -> Result<(), Violation> {
        if let Some(why) = &effects.stopped {
            return Err(Violation::new(property::STOPPED, format!("{} {why}", self.name(site))));
        }
        for (datacenter, core, message) in &effects.sent {
            let to = self.setting.shape.site(*datacenter, *core);
            assert!(
                pairs(self.setting.shape).any(|pair| pair == (site, to)),
                "these cores never talk: {message:?}"
            );
            self.line(site, to).send(message.clone());
        }
        let mine = |client: &&mut Client, session| client.session == session && !client.gone;
        for (session, bytes) in &effects.replies {
            if let Some(client) = self.clients.iter_mut().find(|client| mine(client, *session)) {
                client.hear(bytes).map_err(|why| Violation::new(property::PROTOCOL, why))?;
            }
        }
        for session in &effects.closed {
            if let Some(client) = self.clients.iter_mut().find(|client| mine(client, *session)) {
                client.gone = true;
            }
        }
        Ok(())
    }

    fn connected(&self, a: Site, b: Site) -> bool {
        self.lines[self.index(a, b)].sender_up && self.lines[self.index(b, a)].sender_up
    }

    fn now(&self, site: Site) -> Now {
        let datacenter = usize::from(self.setting.shape.datacenter(site).0);
        let ahead = self.setting.case.clocks_ms[datacenter] + self.ticks[datacenter];
        Now { monotonic_us: self.elapsed_us, wall_ms: EPOCH_MS + self.elapsed_us / 1_000 + ahead }
    }

    fn name(&self, site: Site) -> String {
        format!("{}.{}", self.setting.shape.datacenter(site), self.setting.shape.core(site).0)
    }

    fn index(&self, from: Site, to: Site) -> usize {
        from.0 * self.setting.shape.sites() + to.0
    }

    fn line(&mut self, from: Site, to: Site) -> &mut Line {
        let index = self.index(from, to);
        &mut self.lines[index]
    }
}

/// Cores that talk to one another: those of a datacenter, and those of two that own the same partition.
fn pairs(shape: Shape) -> impl Iterator<Item = (Site, Site)> {
    let all = move || (0..shape.sites()).map(Site);
    let talk =
        move |from, to| shape.datacenter(from) == shape.datacenter(to) || shape.core(from) == shape.core(to);
    all()
        .flat_map(move |from| all().map(move |to| (from, to)))
        .filter(move |&(from, to)| from != to && talk(from, to))
}
