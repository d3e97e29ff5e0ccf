-- A profile is a JSON object. Of two that were changed at once, each member is that of the newest one that has it; what
-- is no object counts as an empty one. docs/conflicts.md has the commands.

local merged = {}
for _, sibling in ipairs(siblings) do -- the oldest first
  local is_json, object = pcall(cjson.decode, sibling.value or "")
  if is_json and type(object) == "table" then
    for member, value in pairs(object) do
      if type(member) == "string" then
        merged[member] = value
      end
    end
  end
end

local members = {}
for member, value in pairs(merged) do
  local is_text, text = pcall(cjson.encode, value)
  if is_text then
    table.insert(members, cjson.encode(member) .. ":" .. text)
  end
end
table.sort(members)
return "{" .. table.concat(members, ",") .. "}"
