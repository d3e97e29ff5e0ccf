//! What the session layer costs a command, run by hand: `cargo test --release -- --ignored --nocapture session`.

use super::*;

#[test]
#[ignore = "a measurement"]
#[allow(clippy::disallowed_methods, clippy::disallowed_macros, clippy::disallowed_types)]
fn pipelined_runs() {
    let mut world = World::new();
    let commands: Vec<Args> = (0..64).map(|index| args(&format!("GET {{tag}}:user:{index:08}"))).collect();
    let replies = vec![bulk("value-of-sixteen"); 64];
    let rounds = 20_000;
    let mut spent = std::time::Duration::ZERO;
    for _ in 0..rounds {
        let (commands, replies) = (commands.clone(), replies.clone());
        let begun = std::time::Instant::now();
        world.sessions.on_commands(world.now, CLIENT, commands);
        let Some(SessionOutput::Send(envelope)) = world.sessions.next_output() else { panic!("not sent") };
        spent += begun.elapsed();
        let request = request(&envelope);
        let message = Message::Executed { request, context: Context::default(), replies };
        let answer = Envelope { from: envelope.to, to: envelope.from, time: LogicalTime(1), message };
        let begun = std::time::Instant::now();
        world.sessions.on_message(world.now, answer);
        while world.sessions.next_output().is_some() {}
        spent += begun.elapsed();
    }
    println!("{} ns a command", spent.as_nanos() / (64 * rounds as u128));
}
