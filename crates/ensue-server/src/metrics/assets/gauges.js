// The page of a node: asks its own node once a second for `/v1/state`, and draws what it says.
//
// The first part computes: two states and the time between them in, numbers out. The second part draws. Whatever a
// state says is data: it becomes text or a number of a drawing, and never a piece of the page's language.

const PAUSE_MS = 1000;
const PATIENCE_MS = 10000;
const KEPT_S = 300;
/// What charts show at the least, so that the first seconds are seen.
const SHOWN_S_MIN = 60;
const SAMPLES_MAX = 600;
const LINES_MAX = 8;

// ---- What is computed ----

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const figure = (state, name) => state.figures[name] ?? 0;

/// How much a counter has grown a second; null where that cannot be said: a start between, or counters that were reset.
function rate(before, now, read) {
  if (!before || before.start_time_seconds !== now.start_time_seconds) return null;
  const seconds = now.observed_seconds - before.observed_seconds;
  const grown = read(now) - read(before);
  return seconds > 0 && grown >= 0 ? grown / seconds : null;
}

/// The mean and a bound of the 99th of a hundred delays that came between; null if there were none.
function delaysBetween(before, now) {
  const count = now.count - before.count;
  if (count <= 0 || now.sum < before.sum) return null;
  let counted = 0;
  let most = null;
  for (let index = 0; index < now.buckets.length; index += 1) {
    counted += now.buckets[index][1] - before.buckets[index][1];
    if (counted >= 0.99 * count) {
      most = now.buckets[index][0] ?? Infinity;
      break;
    }
  }
  return { mean: (now.sum - before.sum) / count, most };
}

function delays(before, now, peer) {
  if (!before || before.start_time_seconds !== now.start_time_seconds) return null;
  const there = before.peers.find((other) => other.name === peer.name);
  return there ? delaysBetween(there.visibility_delay_seconds, peer.visibility_delay_seconds) : null;
}

const executed = (group) => (state) => state.commands[group]?.executed ?? 0;
const allExecuted = (state) => sum(Object.values(state.commands).map((group) => group.executed));
const ofKeyspaces = (name) => (state) => sum(state.keyspaces.map((keyspace) => keyspace.figures[name] ?? 0));
const entriesOf = (pairs) => Object.fromEntries(pairs);

/// What the charts show of one moment: for each of them, the lines by their names.
function sample(before, now) {
  const ofPeers = (read) => entriesOf(now.peers.map((peer) => [peer.name, read(peer)]));
  const busy = Object.keys(now.commands).sort(
    (one, other) => now.commands[other].executed - now.commands[one].executed || (one < other ? -1 : 1),
  );
  const groups = busy.slice(0, LINES_MAX - 1).map((group) => [group, rate(before, now, executed(group))]);
  return {
    operations: entriesOf([["all", rate(before, now, allExecuted)], ...groups]),
    visibility: ofPeers((peer) => delays(before, now, peer)?.mean ?? null),
    unreceived: ofPeers((peer) => peer.figures.replication_unreceived_seconds ?? null),
    behind: ofPeers((peer) => peer.figures.replication_behind_seconds ?? null),
    memory: { allocated: now.memory_bytes.allocated, resident: now.memory_bytes.resident, rows: now.memory_bytes.rows },
    keys: entriesOf(now.keyspaces.slice(0, LINES_MAX).map((keyspace) => [
      `keyspace ${keyspace.keyspace}`, keyspace.figures.keys ?? 0,
    ])),
    waiting: {
      entries: figure(now, "waiting_entries"),
      reads: figure(now, "waiting_reads") + figure(now, "waiting_for_times"),
      keys: figure(now, "waiting_rows"),
      "blocked clients": figure(now, "blocked_clients"),
    },
    conflicts: { conflicts: rate(before, now, ofKeyspaces("conflicts_total")) },
  };
}

/// How the link to a peer is: as this node says, or `dead` if the peer was declared so.
const linkOf = (peer) => (peer.figures.declared_dead_partitions > 0 ? "dead" : peer.link);

/// The places of datacenters on the map, by name; the same on the page of each of them.
function places(names, width, height) {
  const sorted = [...names].sort();
  if (sorted.length === 1) return { [sorted[0]]: { x: width / 2, y: height / 2 - 20 } };
  const turn = sorted.length === 2 ? Math.PI : Math.PI / 2 + Math.PI / sorted.length;
  return entriesOf(sorted.map((name, index) => {
    const angle = turn - (2 * Math.PI * index) / sorted.length;
    const spread = { x: width / 2 - 66, y: height / 2 - 46 };
    return [name, { x: width / 2 + spread.x * Math.cos(angle), y: height / 2 - 16 - spread.y * Math.sin(angle) }];
  }));
}

/// The pieces of a line on a plane of 1000 by 100, which shows so many seconds, with a gap where there is no number.
function pieces(points, now_s, shown_s, top) {
  let text = "";
  let is_drawing = false;
  for (const [at_s, value] of points) {
    if (value === null || value === undefined) {
      is_drawing = false;
      continue;
    }
    const x = 1000 * (1 - (now_s - at_s) / shown_s);
    const y = 98 - 94 * Math.min(1, Math.max(0, value / top));
    text += `${is_drawing ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    is_drawing = true;
  }
  return text;
}

/// A round number that is not below: 1, 2 or 5 times a power of ten, of bytes in their unit.
function roundUp(value, base = 10) {
  if (!(value > 0)) return 1;
  if (base !== 10) {
    const unit = base ** Math.max(0, Math.floor(Math.log(value) / Math.log(base)));
    return unit * roundUp(value / unit);
  }
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((round) => round >= value * 0.999) ?? 10 * power;
}

// ---- How numbers are written ----

function count(value) {
  if (value === null || value === undefined) return "–";
  for (const [unit, name] of [[1e9, " G"], [1e6, " M"], [1e4, " k"]]) {
    if (value >= unit) {
      const scaled = value / (unit === 1e4 ? 1e3 : unit);
      return `${scaled.toFixed(scaled < 100 ? 1 : 0)}${name}`;
    }
  }
  return Number.isInteger(value) || value >= 100 ? value.toFixed(0) : value.toFixed(1);
}

function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let scaled = value;
  let unit = 0;
  while (scaled >= 1024 && unit + 1 < units.length) {
    scaled /= 1024;
    unit += 1;
  }
  return `${scaled.toFixed(unit === 0 || scaled >= 100 ? 0 : 1)} ${units[unit]}`;
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds === Infinity) return "> 65 s";
  if (seconds < 0) return `−${duration(-seconds)}`;
  if (seconds < 1) return `${(seconds * 1e3).toFixed(seconds < 0.01 && seconds > 0 ? 1 : 0)} ms`;
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} days`;
}

export { bytes, count, delaysBetween, duration, pieces, places, rate, roundUp, sample };

// ---- What is drawn ----

const SVG = "http://www.w3.org/2000/svg";
const CHARTS = [
  ["operations", "Operations a second", "by group of commands", count],
  ["visibility", "Visibility delay", "from a write there until it is visible here", duration],
  ["unreceived", "Lag of the others", "age of the first own write that is not received there", duration],
  ["behind", "Behind the others", "age of the first write from there that is not visible here", duration],
  ["waiting", "Waiting", "at this moment", count],
  ["conflicts", "Conflicts a second", "where the protocol looks for them", count],
  ["keys", "Keys", "of each keyspace", count],
  ["memory", "Memory", "rows are part of what is allocated", bytes],
];

const samples = [];
let latest = null;
let answered_ms = null;
const charts = new Map();

const byId = (id) => document.getElementById(id);

/// An element with these children; a string is text, whatever stands in it.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function shape(name, attributes, words) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (words !== undefined) made.textContent = words;
  return made;
}

class Chart {
  constructor([id, title, note, format]) {
    Object.assign(this, { id, format, cursor: null });
    const plane = { viewBox: "0 0 1000 100", preserveAspectRatio: "none" };
    this.svg = shape("svg", { ...plane, role: "img", "aria-label": title });
    this.top = element("span", { class: "top" });
    this.legend = element("ul", { class: "legend" });
    this.begin = element("span");
    const times = element("div", { class: "times" }, this.begin, element("span", {}, "now"));
    const plot = element("div", { class: "plot" }, this.svg, this.top);
    const heading = [element("h2", {}, title), element("p", { class: "note" }, note)];
    this.card = element("section", { class: "card chart" }, ...heading, plot, times, this.legend);
    const follow = (event) => {
      const box = this.svg.getBoundingClientRect();
      this.cursor = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      this.draw();
    };
    this.svg.addEventListener("pointermove", follow);
    this.svg.addEventListener("pointerdown", follow);
    this.svg.addEventListener("pointerleave", () => {
      this.cursor = null;
      this.draw();
    });
  }

  draw() {
    if (samples.length === 0) return;
    const now_s = samples[samples.length - 1].at_s;
    this.shown_s = Math.min(KEPT_S, Math.max(SHOWN_S_MIN, now_s - samples[0].at_s));
    this.begin.textContent = `${duration(this.shown_s)} ago`;
    const names = [...new Set(samples.flatMap((one) => Object.keys(one[this.id] ?? {})))].slice(0, LINES_MAX);
    const values = samples.flatMap((one) => names.map((name) => one[this.id]?.[name] ?? 0));
    const most = values.reduce((greatest, value) => Math.max(greatest, value), 0);
    const top = roundUp(1.05 * most, this.format === bytes ? 1024 : 10);
    this.top.textContent = this.format(top);
    const drawn = [4, 51, 98].map((y) => shape("path", { class: "grid", d: `M0 ${y}H1000` }));
    names.forEach((name, index) => {
      const points = samples.map((one) => [one.at_s, one[this.id]?.[name]]);
      drawn.push(shape("path", { class: `series k${index % LINES_MAX}`, d: pieces(points, now_s, this.shown_s, top) }));
    });
    const shown = this.shownSample(now_s);
    if (this.cursor !== null) {
      const x = 1000 * (1 - (now_s - shown.at_s) / this.shown_s);
      drawn.push(shape("path", { class: "cursor", d: `M${x.toFixed(1)} 0V100` }));
    }
    this.svg.replaceChildren(...drawn);
    const ago = this.cursor === null ? "" : ` (${duration(now_s - shown.at_s)} ago)`;
    const entry = (name, index) => {
      const words = `${name} ${this.format(shown[this.id]?.[name])}${index === 0 ? ago : ""}`;
      return element("li", { class: `k${index % LINES_MAX}` }, words);
    };
    this.legend.replaceChildren(...names.map(entry));
  }

  /// The last sample, or the one next to the pointer.
  shownSample(now_s) {
    if (this.cursor === null) return samples[samples.length - 1];
    const wanted_s = now_s - this.shown_s * (1 - this.cursor);
    const distance = (one) => Math.abs(one.at_s - wanted_s);
    return samples.reduce((best, one) => (distance(one) < distance(best) ? one : best));
  }
}

function drawMap(state) {
  const map = byId("map");
  const [width, height] = [440, 290];
  const at = places([state.datacenter, ...state.peers.map((peer) => peer.name)], width, height);
  const own = at[state.datacenter];
  const [drawn, texts] = [[], []];
  for (const peer of state.peers) {
    const { x, y } = at[peer.name];
    drawn.push(shape("line", { class: linkOf(peer), x1: own.x, y1: own.y, x2: x, y2: y }));
  }
  const last = samples[samples.length - 1];
  // Where there are many, the table below says what has no place here.
  const is_crowded = state.peers.length > 4;
  const radius = is_crowded ? 15 : 24;
  const station = (name, kind, lines) => {
    const { x, y } = at[name];
    drawn.push(shape("circle", { class: kind, cx: x, cy: y, r: radius }));
    const is_inside = name.length <= 6 && !is_crowded;
    if (is_inside) texts.push(shape("text", { x, y: y + 5 }, name));
    [...(is_inside ? [] : [name]), ...(is_crowded ? [] : lines)].forEach((words, index) => {
      texts.push(shape("text", { class: "small", x, y: y + radius + 18 + 15 * index }, words));
    });
  };
  for (const peer of state.peers) {
    const [link, delay] = [linkOf(peer), last?.visibility[peer.name] ?? null];
    const entries = peer.figures.replication_unreceived_entries ?? 0;
    const lag_s = peer.figures.replication_unreceived_seconds ?? 0;
    const lag = entries > 0 && lag_s > 0 ? `lags ${duration(lag_s)}, ${count(entries)} writes` : "no lag";
    const state_words = link === "dead" ? "declared dead" : `link ${link}`;
    station(peer.name, link, [delay === null ? state_words : `${state_words}, visible in ${duration(delay)}`, lag]);
  }
  station(state.datacenter, "own", ["this page"]);
  map.replaceChildren(...drawn, ...texts);
  const words = state.peers.map((peer) => `${peer.name}: ${linkOf(peer)}`).join(", ");
  map.setAttribute("aria-label", `Links of ${state.datacenter}: ${words}`);
  byId("map-note").textContent = state.peers.length === 0
    ? "There is no other datacenter."
    : `Links as ${state.datacenter} sees them; those between the others are on their own pages.`;
}

function drawTiles(state) {
  const last = samples[samples.length - 1];
  const waiting = last ? sum(Object.values(last.waiting)) : 0;
  const tile = (name, value, more = "") => [
    element("dt", {}, name), element("dd", {}, value, element("small", {}, more)),
  ];
  const tiles = [
    tile("operations", count(last?.operations.all ?? null), " /s"),
    tile("keys", count(sum(state.keyspaces.map((keyspace) => keyspace.figures.keys ?? 0)))),
    tile("memory", bytes(state.memory_bytes.resident)),
    tile("clients", count(figure(state, "connected_clients"))),
    tile("waiting", count(waiting)),
    tile("conflicts", count(ofKeyspaces("conflicts_total")(state))),
    tile("standing conflicts", count(figure(state, "conflicting_values"))),
    tile("log", bytes(figure(state, "log_bytes"))),
    tile("hits", hitShare(state)),
    tile("up for", duration(Date.now() / 1e3 - state.start_time_seconds)),
  ];
  byId("tiles").replaceChildren(...tiles.map((parts) => element("div", {}, ...parts)));
}

function hitShare(state) {
  const [hits, misses] = [figure(state, "keyspace_hits_total"), figure(state, "keyspace_misses_total")];
  return hits + misses > 0 ? `${((100 * hits) / (hits + misses)).toFixed(0)} %` : "–";
}

function table(id, headings, rows) {
  const cells = (name, row) => element("tr", {}, ...row.map((words) => element(name, {}, words)));
  const body = rows.map((row) => cells("td", row));
  byId(id).replaceChildren(element("thead", {}, cells("th", headings)), element("tbody", {}, ...body));
}

function drawPeers(before, state) {
  const rows = state.peers.map((peer) => {
    const recent = delays(before, state, peer);
    const of = (name) => peer.figures[name] ?? 0;
    return [
      peer.name,
      linkOf(peer) === "dead" ? "declared dead" : `${peer.link} (${peer.links_up}/${peer.links})`,
      `${count(of("replication_unreceived_entries"))} / ${duration(of("replication_unreceived_seconds"))}`,
      `${count(of("replication_unsynced_entries"))} / ${duration(of("replication_unsynced_seconds"))}`,
      `${count(of("replication_behind_entries"))} / ${duration(of("replication_behind_seconds"))}`,
      duration(recent?.mean ?? null),
      recent ? `≤ ${duration(recent.most)}` : "–",
      duration(of("peer_time_ahead_seconds")),
    ];
  });
  const headings = [
    "datacenter", "links", "not received there", "not synced there", "not visible here", "visible after", "99 %",
    "its clock, less the way",
  ];
  table("peers", headings, rows);
}

function drawErrors(before, state) {
  const read = (word) => (one) => one.error_replies_total[word] ?? 0;
  const words = Object.entries(state.error_replies_total).filter(([, total]) => total > 0);
  words.sort(([one, many], [other, more]) => more - many || (one < other ? -1 : 1));
  byId("errors-card").hidden = words.length === 0;
  const shown = words.slice(0, 10);
  const rows = shown.map(([word, total]) => [word, count(total), count(rate(before, state, read(word)))]);
  table("errors", ["first word", "since the start", "a second"], rows);
}

function drawHealth(state) {
  const [words, tone] = state.ready
    ? ["ready", "good"]
    : state.serving ? ["serving, not ready", "warn"] : ["not serving", "bad"];
  const health = byId("health");
  health.textContent = words;
  health.className = `pill ${tone}`;
  const reasons = byId("reasons");
  reasons.hidden = state.reasons.length === 0;
  reasons.replaceChildren(...state.reasons.map((reason) => element("li", {}, reason)));
  byId("name").textContent = state.datacenter;
  byId("about").textContent = `node ${state.node}, Ensue ${state.version}`;
  document.title = `${state.datacenter} (${words})`;
}

function keep(one) {
  samples.push(one);
  while (samples.length > SAMPLES_MAX || one.at_s - samples[0].at_s > KEPT_S) samples.shift();
}

function show(state) {
  const before = latest;
  latest = state;
  answered_ms = performance.now();
  keep({ at_s: performance.now() / 1e3, ...sample(before, state) });
  byId("silence").hidden = true;
  document.body.classList.remove("stale");
  drawHealth(state);
  drawMap(state);
  drawTiles(state);
  drawPeers(before, state);
  drawErrors(before, state);
  for (const chart of charts.values()) chart.draw();
}

/// The node does not answer: what is shown is old, and charts have a gap.
function showSilence(why) {
  const old_s = answered_ms === null ? null : (performance.now() - answered_ms) / 1e3;
  const since = old_s === null ? "" : ` What is shown is ${duration(old_s)} old.`;
  byId("silence").textContent = `The node gives no figures: ${why}.${since}`;
  byId("silence").hidden = false;
  document.body.classList.add("stale");
  const health = byId("health");
  health.textContent = "no answer";
  health.className = "pill bad";
  if (latest !== null) {
    document.title = `${latest.datacenter} (no answer)`;
    keep({ at_s: performance.now() / 1e3 });
    for (const chart of charts.values()) chart.draw();
  }
}

async function ask() {
  try {
    const answer = await fetch("/v1/state", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
    if (!answer.ok) {
      showSilence((await answer.text()).trim().slice(0, 200) || `status ${answer.status}`);
      return;
    }
    show(await answer.json());
  } catch (error) {
    showSilence(error.name === "TimeoutError" ? "it does not answer in time" : "it is not reached");
  }
}

/// One question after the other, however long an answer takes.
async function watch() {
  for (const one of CHARTS) {
    const chart = new Chart(one);
    charts.set(one[0], chart);
    byId("charts").append(chart.card);
  }
  for (;;) {
    await ask();
    await new Promise((resolve) => { setTimeout(resolve, PAUSE_MS); });
  }
}

if (typeof document !== "undefined") watch();
