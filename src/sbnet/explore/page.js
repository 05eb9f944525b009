/* The page: what is known, the ranking of causes that follows, why, what to ask next, and a drawing.

   Every text that comes from the network goes into the page as text, never as markup. */
"use strict";

/* Characters that show nothing, move the cursor or turn the direction of writing stand as escapes: \x1b, \u202e. */
const UNSEEN = new RegExp("[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e"
  + "\u2060-\u2069\ufeff\ufff9-\ufffb]", "g");
const hex = (c, digits) => c.charCodeAt(0).toString(16).padStart(digits, "0");
const code = c => c < "\u0100" ? `\\x${hex(c, 2)}` : `\\u${hex(c, 4)}`;
const visible = text => text.replace(UNSEEN, code);
const prose = text => text.replace(/\s+/g, " ").replace(UNSEEN, code);  // notes may have lines

const given = JSON.parse(document.getElementById("network").textContent);
const net = { ...given, names: given.names.map(visible), about: given.about.map(prose), group: given.group.map(prose),
  source: given.source.map(prose), states: given.states.map(pair => pair && pair.map(visible)) };
const $ = id => document.getElementById(id);

function el(tag, attributes = {}, ...children) {
  const node = tag.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("--")) node.style.setProperty(key, value);
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (typeof value === "boolean") node.toggleAttribute(key, value);
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

/* --- the network, and what is known ---------------------------------------------------------------------------- */

const units = net.names.map((_, i) => i);
const place = new Map(given.names.map((name, i) => [name, i]));
const children = units.map(() => []);
net.parents.forEach((parents, i) => parents.forEach(j => children[j].push(i)));
const { causes, findings } = net;
const isCause = new Set(causes), searched = net.observable;
const letters = text => text.toLocaleLowerCase().replace(/[\s_-]+/g, "");
const isSaid = i => letters(net.about[i]) === letters(net.names[i]);  // said once is enough
const about = units.map(i => isSaid(i) ? "" : net.about[i]);
const words = units.map(i => `${net.names[i]} ${net.about[i]} ${net.group[i]}`.toLocaleLowerCase());
const engine = net.server ? new Remote() : new Local(net, causes, findings);

const SHOWN = 12, FOUND = 40;
const known = new Map();  // unit -> 0 or 1, in the order of telling
const past = [];
let answer = null, prior = null, intervals = null, questions = null, turn = 0;
let chosen = null, follow = true, everyone = false;
let answered = null;  // the findings of the answer: those that are known, unless it is awaited or did not come
let nats = new Map();  // unit -> {finding: nats}, of the answer
let probabilities = new Map();  // of a yes, of units asked about: better than the means of independent causes

const states = () => Int8Array.from(units, i => known.has(i) ? known.get(i) : -1);
const stateName = (i, s) => net.states[i] ? net.states[i][s] : s ? "yes" : "no";

function percent(p) {  // with spaces that no line breaks at
  const x = 100 * p, ends = Math.min(x, 100 - x);
  if (p === 0 || p === 1) return `${x}\u00a0%`;
  if (ends < 0.01) return p < 0.5 ? "<\u00a00.01\u00a0%" : ">\u00a099.99\u00a0%";
  return `${x.toFixed(ends < 1 ? 2 : ends < 10 ? 1 : 0)}\u00a0%`;
}

function tell(i, state) {
  const before = known.has(i) ? known.get(i) : -1;
  if (before === state) return;
  past.push([...known]);
  if (state < 0) known.delete(i); else known.set(i, state);
  changedEvidence();
}

function restore(pairs) {
  known.clear();
  for (const [i, s] of pairs) known.set(i, s);
  changedEvidence();
}

function undo() { if (past.length) restore(past.pop()); }

function reset() {
  if (!known.size) return;
  past.push([...known]);
  follow = true;
  $("strange").hidden = true;
  restore([]);
}

/* --- showing --------------------------------------------------------------------------------------------------- */

function say(text) { $("status").textContent = text; }

function choice(i, where) {
  const now = known.has(i) ? known.get(i) : -1;
  const option = (state, label, kind) => el("label", { class: kind },
    el("input", { type: "radio", name: `${where}-${i}`, checked: now === state, onchange: () => tell(i, state) }),
    el("span", { title: label }, kind === "unknown" ? "?" : label));
  const unknown = option(-1, "unknown", "unknown");
  unknown.querySelector("input").setAttribute("aria-label", "unknown");
  return el("fieldset", { class: "choice" }, el("legend", {}, net.names[i]),
    option(1, stateName(i, 1), "yes"), option(0, stateName(i, 0), "no"), unknown);
}

const heading = i => about[i] ? `${net.names[i]}, ${about[i]}` : net.names[i];

function unitRow(i, where, ...more) {
  const name = el("span", { class: "unit-name" }, net.names[i]);
  if (about[i]) name.append(el("small", { class: "unit-about" }, about[i]));
  const title = net.source[i] ? `Source: ${net.source[i]}` : "";
  return el("li", { "data-unit": i, title }, name, choice(i, where), ...more);
}

/* Lists are made anew; whoever had the keyboard in one keeps it. */
function refill(list, rows) {
  const at = document.activeElement, held = list.contains(at) && at.closest("[data-unit]");
  const index = held ? [...list.querySelectorAll("[data-unit]")].indexOf(held) : -1;
  list.replaceChildren(...rows);
  if (!held) return;
  const all = [...list.querySelectorAll("[data-unit]")];
  focusRow(all.find(row => row.dataset.unit === held.dataset.unit) || all[Math.min(index, all.length - 1)]);
}

function focusRow(row) {
  if (row) (row.querySelector("input:checked") || row.querySelector("input, button") || row).focus();
}

function showKnown() {
  $("nothing").hidden = known.size > 0;
  $("known-count").textContent = known.size ? `${known.size}` : "";
  $("undo").disabled = !past.length;
  $("reset").disabled = !known.size;
  refill($("known"), [...known.keys()].map(i => unitRow(i, "known")));
  showMatches();
  for (const box of $("all").querySelectorAll("li"))
    box.querySelector(".choice").replaceWith(choice(Number(box.dataset.unit), "all"));
}

function matches(text) {
  const parts = text.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  if (!parts.length) return [];
  const rank = i => { const at = words[i].indexOf(parts[0]); return at === 0 ? 0 : words[i][at - 1] === " " ? 1 : 2; };
  return searched.filter(i => parts.every(part => words[i].includes(part)))
    .map(i => [rank(i) + (isCause.has(i) ? 0.5 : 0), i])
    .sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(pair => pair[1]);
}

function showMatches() {
  const text = $("search").value.trim(), found = matches(text);
  refill($("results"), found.slice(0, FOUND).map(i => unitRow(i, "found")));
  $("matches").textContent = !text ? ""
    : found.length > FOUND ? `${FOUND} of ${found.length} matches; type more to narrow.`
    : found.length ? `${found.length} ${found.length === 1 ? "match" : "matches"}` : `Nothing is called “${text}”.`;
}

function showQuestions() {
  const best = questions.filter(q => q.information > 0).slice(0, 6), most = best.length ? best[0].information : 1;
  $("ask-note").textContent = best.length ? "Ranked by what the answer is expected to tell about the causes."
    : "No answer would tell anything more about the causes.";
  refill($("ask"), best.map(q => unitRow(q.unit, "ask",
    el("span", { class: "tell" },
      el("span", { class: "gauge", "aria-hidden": "true" }, el("i", { "--share": q.information / most })),
      `${q.information.toPrecision(2)} nats, ${percent(q.probability)} ${stateName(q.unit, 1)}`))));
}

function ranked() { return [...causes].sort((a, b) => answer.means[b] - answer.means[a] || a - b); }
function shownCauses() { return everyone ? ranked() : ranked().slice(0, SHOWN); }

function showAnswer() {
  if (follow) chosen = ranked().find(i => !known.has(i)) ?? null;  // until someone chooses, it is the likeliest one
  showRanking();
  showBound();
  draw();
  const told = i => `${net.names[i]}\u00a0${percent(answer.means[i])}`;
  const top = ranked().filter(i => !known.has(i)).slice(0, 2).map(told);
  say(`${known.size ? "Likeliest now" : "Likeliest before any finding"}: ${top.join(", ")}`);
}

const rows = new Map();  // kept, so that bars move instead of jumping

function showRanking() {
  const list = shownCauses(), at = document.activeElement;
  for (const i of list) {
    if (!rows.has(i)) rows.set(i, causeRow(i));
    fillRow(i);
  }
  $("ranking").replaceChildren(...list.map(i => rows.get(i)));
  if (at && at.isConnected && at !== document.activeElement) at.focus();
  $("more").hidden = causes.length <= SHOWN;
  const all = causes.length.toLocaleString("en");
  $("more").textContent = everyone ? `Show the first ${SHOWN}` : `Show all ${all} causes`;
}

function causeRow(i) {
  const title = el("span", { class: "title" }, net.names[i]);
  if (about[i]) title.append(el("small", {}, about[i]));
  const onclick = () => choose(chosen === i ? null : i), part = kind => el("i", { class: kind });
  const button = el("button", { type: "button", class: "cause", "aria-expanded": "false", onclick },
    title, el("span", { class: "numbers" }),
    el("span", { class: "track", "aria-hidden": "true" }, part("fill"), part("tick"), part("whisker")));
  return el("li", { "data-unit": i }, button, el("div", { class: "why" }));
}

function fillRow(i) {
  const row = rows.get(i), mean = answer.means[i], ends = intervals && intervals.units[i];
  const style = { "--mean": mean, "--prior": prior[i], "--low": ends ? ends[0] : 0, "--high": ends ? ends[1] : 0 };
  for (const [key, value] of Object.entries(style)) row.style.setProperty(key, value);
  row.classList.toggle("set", known.get(i) === 1);
  row.classList.toggle("off", known.get(i) === 0);
  row.querySelector(".whisker").hidden = !ends;
  row.querySelector(".numbers").replaceChildren(
    el("small", {}, ends ? between(ends.map(percent)) : `${percent(prior[i])} →`),
    el("b", {}, known.has(i) ? stateName(i, known.get(i)) : percent(mean)));
  const open = chosen === i, button = row.querySelector(".cause");
  const certain = ends ? `, guaranteed ${ends.map(percent).join(" to ")}` : "";
  button.setAttribute("aria-expanded", open);
  const state = known.has(i) ? stateName(i, known.get(i)) : percent(mean);
  button.setAttribute("aria-label", `${heading(i)}: ${state}, before ${percent(prior[i])}${certain}`);
  row.querySelector(".why").hidden = !open;
}

const between = ([low, high]) => low === high ? "guaranteed" : `${low} to ${high}`;

function choose(i) {
  chosen = i;
  follow = false;
  showRanking();
  draw();
  showReasons(turn, states());
}

async function showReasons(mine, now) {
  if (!current()) return;  // they come with the answer
  const i = chosen, box = i === null ? null : rows.get(i)?.querySelector(".why");
  if (box) box.classList.add("busy");
  try {
    await askReasons(mine, now);
  } catch (error) {
    const why = [...rows.values()].map(row => row.querySelector(".why"));
    without(mine, error, "Why", ...why, $("drawing"), $("drawing-note"));
  }
  if (mine !== turn) return;
  draw();
  if (!box || i !== chosen) return;
  box.classList.remove("busy");
  box.replaceChildren(...(known.has(i) || (known.size && !nats.has(i)) ? [] : [reasonTable(i)]),
    el("div", { class: "row" }, el("span", { class: "soft" }, "Is it known?"), choice(i, "cause")));
  if (net.source[i]) box.append(el("p", { class: "soft" }, `Source: ${net.source[i]}`));
}

function reasonTable(i) {
  const list = Object.entries(nats.get(i) || {}).map(([f, x]) => [Number(f), x]);
  list.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const scale = Math.max(1, ...list.map(pair => Math.abs(pair[1])));
  const caption = list.length ? `What each finding adds to “${net.names[i]}”, in nats of log-odds`
    : `Nothing is known yet: the probability is ${percent(prior[i])}.`;
  return el("table", {}, el("caption", {}, caption), el("tbody", {}, ...list.map(([f, x]) => el("tr", {},
    el("th", { scope: "row" }, `${net.names[f]}: ${stateName(f, known.get(f))}`),
    el("td", { class: "pull", "aria-hidden": "true" }, el("span", { class: "lean" },
      el("i", { class: x > 0 ? "for" : "against", "--share": Math.abs(x) / scale }))),
    el("td", { class: "nats" }, `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(2)}`)))));
}

function showBound() {
  const digits = x => x.toFixed(3).replace("-", "−"), least = `at least ${digits(answer.bound)} nats`;
  const settled = answer.converged === false ? ", stopped before it settled" : "";
  $("legend-interval").hidden = !intervals;
  $("bound").textContent = !current() ? "" : intervals
    ? `ln P of the findings lies between ${digits(intervals.lower)} and ${digits(intervals.upper)} nats, guaranteed.`
    : !known.size ? ""
    : answer.sampled ? `From samples: right to about two digits. ln P of the findings is ${least}.`
    : answer.exact ? `Exact: sums over all states. ln P of the findings is ${digits(answer.bound)} nats.`
    : `Mean field${settled}: an approximation, and often overconfident in one cause where several would do. `
      + `ln P of the findings is ${least}.`;
}

/* --- the keyboard ---------------------------------------------------------------------------------------------- */

const LISTS = ["results", "known", "ask", "all", "ranking"];

function onKey(event) {
  const inSearch = event.target === $("search"), row = event.target.closest("[data-unit]");
  if (event.key === "/" && !inSearch) return act(event, () => { $("search").focus(); $("search").select(); });
  if (event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey) && !inSearch) return act(event, undo);
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  if (inSearch) return searchKey(event);
  if (!row) return null;
  const state = { y: 1, n: 0, u: -1 }[event.key];
  if (state !== undefined) return act(event, () => tell(Number(row.dataset.unit), state));
  const down = event.key === "ArrowDown";
  if (down || event.key === "ArrowUp") return act(event, () => step(row, down ? 1 : -1));
  return null;
}

function searchKey(event) {
  if (event.key === "ArrowDown") return act(event, () => step(null, 1));
  if (event.key === "Escape") return act(event, () => { $("search").value = ""; showMatches(); });
  if (event.key !== "Enter") return null;
  return act(event, () => {
    const [first] = matches($("search").value.trim());
    if (first === undefined) return;
    $("search").value = "";
    tell(first, event.shiftKey ? 0 : 1);
    showMatches();
  });
}

function act(event, action) { event.preventDefault(); action(); }

function step(row, by) {
  const rowsOf = id => [...$(id).querySelectorAll(":scope [data-unit]")];
  const all = LISTS.flatMap(rowsOf).filter(r => r.offsetParent !== null);
  const next = row ? all[all.indexOf(row) + by] : all[0];
  if (next) focusRow(next); else if (by < 0) $("search").focus();
}

/* --- beginning ------------------------------------------------------------------------------------------------- */

function browse() {
  if ($("all").childElementCount) return;
  const groups = new Map();
  for (const i of findings.slice(0, 500)) groups.set(net.group[i], [...(groups.get(net.group[i]) || []), i]);
  for (const [group, members] of groups) {
    const title = groups.size > 1 && group ? [el("h3", {}, group)] : [];
    $("all").append(...title, el("ul", { class: "units" }, ...members.map(i => unitRow(i, "all"))));
  }
  if (findings.length <= 500) return;
  const rest = `The first 500 of ${findings.length.toLocaleString("en")}; the search finds all.`;
  $("all").append(el("p", { class: "soft" }, rest));
}

function begin() {
  const counts = [[causes.length, "cause"], [findings.length, "finding"]];
  const counted = ([n, word]) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
  $("size").textContent = counts.map(counted).join(", ");
  $("small-print").textContent = net.server
    ? "Answered by sbnet on this machine: exactly where the sums are small, else by mean field theory. Guaranteed "
      + "intervals hold the exact probabilities in any case."
    : "One file that computes its own answers and sends nothing anywhere: exactly where the sums are small, else by "
      + "mean field theory. It has no guaranteed intervals; sbnet explore has.";
  $("certain-box").hidden = !engine.certifies;
  $("certain").addEventListener("change", () => {
    intervals = null;
    if (answer) { showRanking(); showBound(); askIntervals(turn, states()); }
  });
  $("search").addEventListener("input", showMatches);
  $("undo").addEventListener("click", undo);
  $("reset").addEventListener("click", reset);
  $("link").addEventListener("click", copyLink);
  $("more").addEventListener("click", () => { everyone = !everyone; showRanking(); });
  $("again").addEventListener("click", changedEvidence);
  $("browse").addEventListener("toggle", browse);
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", followLink);
  for (const [i, s] of Object.entries(net.evidence)) known.set(Number(i), s);
  followLink();
}

begin();
