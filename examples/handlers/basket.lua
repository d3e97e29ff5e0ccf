-- A basket is lines of `item quantity`. Of two baskets that were changed at once, each item is in the merged one as
-- often as in the one that has it most often: nothing that somebody put in is lost. docs/conflicts.md has the commands.

local most = {}
for _, sibling in ipairs(siblings) do
  for line in (sibling.value or ""):gmatch("[^\n]+") do
    -- Of one line, and from its begin: a pattern that may begin anywhere takes the square of a long value's length.
    local item, quantity = line:match("^(%S+) (%d+)$")
    if item then
      most[item] = math.max(most[item] or 0, tonumber(quantity))
    end
  end
end

local lines = {}
for item, quantity in pairs(most) do
  table.insert(lines, item .. " " .. tostring(quantity))
end
table.sort(lines)
return table.concat(lines, "\n")
