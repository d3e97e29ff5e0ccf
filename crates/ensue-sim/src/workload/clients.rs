//! What a run asks of its clients, whatever they do.

use crate::oracle::Violation;
use crate::world::World;
use crate::world::event::ConnectionId;
use crate::world::marks::Marks;

/// Those who ask, as a run meets them.
pub trait Clients {
    /// Whether everything was issued and answered, or has an unknown outcome.
    fn is_idle(&self) -> bool;

    /// From now on nothing new is asked.
    fn stop(&mut self);

    /// How long a request may wait for another datacenter.
    fn waits_us(&self, world: &World) -> u64;

    /// A request that a healthy datacenter, or after long any running core, should have answered by now.
    fn overdue(&self, world: &mut World, patience_us: u64) -> Option<Violation>;

    /// A client has thought enough.
    fn on_alarm(&mut self, world: &mut World, index: usize);

    /// Bytes from a server.
    fn on_answer(
        &mut self,
        world: &mut World,
        marks: &mut Marks,
        connection: ConnectionId,
        bytes: &[u8],
    ) -> Result<(), Violation>;

    /// A connection is lost.
    fn on_hangup(&mut self, world: &mut World, connection: ConnectionId);

    /// Power failed, and may have taken what was acknowledged.
    fn on_power_losses(&mut self, world: &World);
}
