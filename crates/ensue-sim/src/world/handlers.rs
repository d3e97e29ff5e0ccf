//! The handlers of conflicts that a world may have: those that are built in, and a few Lua texts.
//!
//! The texts are compiled once and shared by all worlds: what they make depends on the siblings alone. One fails on
//! some values, which a server would refuse at its start, so that what is shown then is tried, too.

use ensue_node::LuaHandler;
use ensue_store::fold::{self, Fold};
use std::sync::{Arc, OnceLock};

/// Each with its name.
const TEXTS: [(&str, &str); 5] = [
    (
        "lua-longest",
        "local longest
         for _, sibling in ipairs(siblings) do
           local value = sibling.value
           if value and (not longest or #value > #longest or #value == #longest and value > longest) then
             longest = value
           end
         end
         return longest",
    ),
    (
        "lua-sum",
        "local sum = 0
         for _, sibling in ipairs(siblings) do sum += tonumber(sibling.value) or 0 end
         return tostring(sum)",
    ),
    (
        "lua-union",
        "local seen, all = {}, {}
         for _, sibling in ipairs(siblings) do
           for element in (sibling.value or ''):gmatch('[^,]+') do
             if not seen[element] then
               seen[element] = true
               table.insert(all, element)
             end
           end
         end
         table.sort(all)
         return table.concat(all, ',')",
    ),
    (
        "lua-numbers-only",
        "local most
         for _, sibling in ipairs(siblings) do
           local value = sibling.value
           if value and not tonumber(value) then error('no number: ' .. value) end
           if value and (not most or tonumber(value) > tonumber(most)) then most = value end
         end
         return most",
    ),
    (
        "lua-in-order",
        "local all = {}
         for _, sibling in ipairs(siblings) do all[#all + 1] = sibling.value end
         return table.concat(all, ',')",
    ),
];

/// The handler of this name.
pub fn by_name(name: &str) -> Option<Arc<dyn Fold>> {
    static COMPILED: OnceLock<Vec<(&str, Arc<dyn Fold>)>> = OnceLock::new();
    let compiled = || {
        let handler = |(name, text): (&'static str, &str)| {
            let handler = LuaHandler::unproved(name, text.as_bytes()).ok()?;
            Some((name, Arc::new(handler) as Arc<dyn Fold>))
        };
        TEXTS.into_iter().filter_map(handler).collect()
    };
    let own = || COMPILED.get_or_init(compiled).iter().find(|(known, _)| *known == name);
    fold::by_name(name).or_else(|| own().map(|(_, fold)| fold.clone()))
}

#[cfg(all(test, feature = "scripts"))]
mod tests {
    use super::*;

    #[test]
    fn a_server_would_take_them_all_but_the_one_that_fails() {
        for (name, text) in TEXTS {
            assert!(by_name(name).is_some(), "{name}");
            let proved = LuaHandler::proved(name, text.as_bytes());
            assert_eq!(proved.is_err(), name == "lua-numbers-only", "{name}: {proved:?}");
        }
    }
}
