// Keys and conflicts of the page: asked for when somebody presses a button, and shown as text.
//
// The first part computes; the second part draws. A character of an answer is a byte of a key or a value.

import { bytes, count, duration } from "/gauges.js";

const PATIENCE_MS = 20000;

// ---- What is computed ----

/// Bytes as text: what is UTF-8 as it is meant, and everything else with its bytes in hexadecimal digits.
function readable(latin) {
  const raw = Uint8Array.from(latin, (letter) => letter.charCodeAt(0));
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(raw);
    return text.replace(/[\u0000-\u001f\u007f]/g, (letter) => `\\x${letter.charCodeAt(0).toString(16).padStart(2, "0")}`);
  } catch {
    return [...raw].map((byte) => (byte >= 0x20 && byte < 0x7f
      ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`)).join("");
  }
}

/// A deadline in milliseconds, as `PTTL` says it.
function deadline(ttl_ms) {
  return ttl_ms === undefined ? "–" : ttl_ms < 0 ? "none" : duration(ttl_ms / 1e3);
}

/// The beginning of a value, by its type, with `…` where there is more.
function preview(row) {
  if (row.value === null || row.value === undefined) return row.length === undefined ? "" : "too large to be shown";
  if (row.value.error) return row.value.error;
  const words = (values) => values.map((value) => written(value));
  const pairs = (values) => values.flatMap((value, index) => (index % 2 === 0
    ? [`${written(value)}: ${written(values[index + 1])}`] : []));
  switch (row.type) {
    case "string": return readable(row.value) + (row.length > row.value.length ? " …" : "");
    case "hash": return more(pairs(row.value[1]), row.length);
    case "zset": return more(pairs(row.value), row.length);
    case "set": return more(words(row.value[1]), row.length);
    case "stream": return more(row.value.map(([id, fields]) => `${id} {${pairs(fields).join(", ")}}`), row.length);
    default: return more(words(row.value), row.length);
  }
}

/// A part of a value in words, whatever it is made of.
function written(value) {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return `[${value.map((item) => written(item)).join(", ")}]`;
  if (typeof value === "object") return value.error ?? JSON.stringify(value);
  return typeof value === "string" ? readable(value) : String(value);
}

const more = (words, length) => words.slice(0, 8).join(", ") + (length > Math.min(8, words.length) ? " …" : "");

/// One side of a conflict: who wrote what.
function side(write) {
  if (!write) return "–";
  return `${write.origin ?? "?"}: ${write.delete ? "deleted" : written(write.value)}`;
}

/// What conflicted, as it was seen: key, place within it, what came, what it met, and what is shown.
function conflictRow(line) {
  const column = ["field", "member", "element"].map((name) => line[name]).find((value) => value !== undefined);
  return [
    String(line.keyspace), readable(line.key), column === undefined ? "" : readable(column), side(line.arrived),
    (line.met ?? []).map((write) => side(write)).join(" | "),
    written(line.shows) + (line.failed ? ` (${line.handler} failed: ${line.failed})` : ""),
  ];
}

export { conflictRow, deadline, preview, readable, written };

// ---- What is drawn ----

const byId = (id) => document.getElementById(id);

function cells(name, row) {
  const made = document.createElement("tr");
  for (const words of row) {
    const cell = document.createElement(name);
    cell.textContent = words;
    made.append(cell);
  }
  return made;
}

function fill(id, headings, rows) {
  const [head, body] = [document.createElement("thead"), document.createElement("tbody")];
  head.append(cells("th", headings));
  body.append(...rows.map((row) => cells("td", row)));
  byId(id).replaceChildren(head, body);
  byId(id).hidden = rows.length === 0;
}

async function ask(path, parameters, note) {
  note.textContent = "…";
  try {
    const query = new URLSearchParams(parameters).toString();
    const answer = await fetch(`${path}?${query}`, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    if (answer.ok) return await answer.json();
    note.textContent = (await answer.text()).trim().slice(0, 200) || `status ${answer.status}`;
  } catch (error) {
    note.textContent = error.name === "TimeoutError" ? "the node does not answer in time" : "the node is not reached";
  }
  return null;
}

let cursor = "0";

async function showKeys(from) {
  const note = byId("keys-note");
  const [keyspace, match, type] = ["keyspace", "pattern", "type"].map((id) => byId(id).value);
  const found = await ask("/v1/keys", { keyspace, match, type, cursor: from }, note);
  if (found === null) return;
  cursor = found.cursor;
  byId("keys-next").hidden = cursor === "0";
  const row = (one) => [
    readable(one.key), one.type ?? "", deadline(one.ttl_ms), bytes(one.bytes), count(one.length), preview(one),
  ];
  fill("keys", ["key", "type", "deadline in", "memory", "length", "value"], found.keys.map(row));
  const end = cursor === "0" ? "these are the last ones" : "there may be more";
  note.textContent = `${found.keys.length} keys; ${end}`;
}

async function showConflicts() {
  const note = byId("conflicts-note");
  const found = await ask("/v1/conflicts", { keyspace: byId("keyspace").value }, note);
  if (found === null) return;
  const seen = [...found.seen].reverse().map(conflictRow);
  fill("conflicts-seen", ["keyspace", "key", "part", "came", "met", "shown"], seen);
  const standing = found.standing.map((one) => [
    readable(one.key), one.values.map((value) => side(value.write)).join(" | "), one.values[0]?.handler ?? "",
  ]);
  fill("conflicts-standing", ["key", "values that stand beside each other", "handler"], standing);
  const branches = found.in_branches.map((one) => [readable(one.key), ...[one.values].flat().map(written)]);
  const leaves = (found.leaves ?? []).map((leaf) => `at ${leaf}`);
  fill("conflicts-branches", ["key", ...leaves], branches);
  const parts = [
    `${seen.length} conflicts seen lately in all keyspaces`, `${standing.length} keys with several values`,
    ...(found.leaves === null ? [] : [`${leaves.length} branches, ${branches.length} keys differ`]),
  ];
  note.textContent = parts.join("; ");
}

function begin() {
  byId("keys-look").addEventListener("click", () => showKeys("0"));
  byId("keys-next").addEventListener("click", () => showKeys(cursor));
  byId("conflicts-look").addEventListener("click", showConflicts);
  for (const id of ["keyspace", "pattern", "type"]) {
    byId(id).addEventListener("keydown", (event) => {
      if (event.key === "Enter") showKeys("0");
    });
  }
}

if (typeof document !== "undefined") begin();
