//! Panics of simulated nodes: caught with their words and their place, and never printed.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

thread_local! {
    /// Whether this thread runs a simulated world now.
    static SIMULATES: RefCell<bool> = const { RefCell::new(false) };
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What the work gives, or what it panicked with and where.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    listen();
    let before = SIMULATES.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    SIMULATES.set(before);
    outcome.map_err(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let words = payload.downcast_ref::<String>().cloned().or(text).unwrap_or_default();
        format!("{words}\nat {}", LAST.take())
    })
}

/// Other threads, tests among them, keep what hook they had.
fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            if SIMULATES.with(|simulates| *simulates.borrow()) {
                let place = info.location().map(ToString::to_string).unwrap_or_default();
                LAST.set(place);
            } else {
                others(info);
            }
        }));
    });
}
