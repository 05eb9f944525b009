/* The page: what is known, the ranking of causes that follows, why, what to ask next, and a drawing.

   Every text that comes from the network goes into the page as text, never as markup. */
"use strict";

/* Characters that show nothing, move the cursor or turn the direction of writing stand as escapes: \x1b, \u202e. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;
const code = c => c < "\u0100" ? `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}` : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
const visible = text => text.replace(UNSEEN, code);
const prose = text => text.replace(/\s+/g, " ").replace(UNSEEN, code);  // notes may have lines

const given = JSON.parse(document.getElementById("network").textContent);
const net = { ...given, names: given.names.map(visible), about: given.about.map(prose), group: given.group.map(prose),
  source: given.source.map(prose), states: given.states.map(pair => pair && pair.map(visible)) };
const $ = id => document.getElementById(id);

function el(tag, attributes = {}, ...children) {
  const node = tag.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4)) : document.createElement(tag);
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
const about = units.map(i => letters(net.about[i]) === letters(net.names[i]) ? "" : net.about[i]);  // said once is enough
const words = units.map(i => `${net.names[i]} ${net.about[i]} ${net.group[i]}`.toLocaleLowerCase());
const engine = net.server ? new Remote() : new Local(net, causes, findings);

const SHOWN = 12, FOUND = 40;
const known = new Map();  // unit -> 0 or 1, in the order of telling
const past = [];
let answer = null, prior = null, chosen = null, follow = true, everyone = false, intervals = null, questions = null, turn = 0;
let answered = null;  // the findings that the answer is about: those that are known, unless it is awaited or did not come
let nats = new Map();  // unit -> {finding: nats}, of the answer
let probabilities = new Map();  // of a yes, of the units that were asked about: better than the means of independent causes

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

/* --- a link that holds the state ------------------------------------------------------------------------------- */

function decoded(text) { try { return decodeURIComponent(text); } catch { return text; } }

/* The findings of a link, and what in it is none of this network; null if it is no link of findings. */
function readFragment() {
  const text = location.hash.slice(1), found = new Map(), strange = [];
  if (!text.includes("=")) return null;
  for (const part of text.split("&").filter(Boolean)) {
    const cut = part.lastIndexOf("="), i = place.get(decoded(part.slice(0, cut))), state = ["no", "yes"].indexOf(part.slice(cut + 1));
    if (i === undefined || state < 0 || (found.has(i) && found.get(i) !== state)) strange.push(visible(decoded(part)));
    else found.set(i, state);
  }
  return { found, strange };
}

function followLink() {
  const { found, strange } = readFragment() || { found: known, strange: [] };
  const most = 10, list = strange.slice(0, most).map(part => `“${shorten(part, 400)}”`).join(", ");
  const more = strange.length > most ? ` and ${strange.length - most} more` : "";
  $("strange").hidden = !strange.length;
  $("strange").textContent = `This link also says ${list}${more}. The model has no such finding, or not with that answer, so this is left out of all numbers here.`;
  restore([...found]);
}

let unlinked = "";  // why the address does not hold what is known

function writeFragment() {
  const parts = [];
  unlinked = "";
  for (const [i, s] of known)
    try { parts.push(`${encodeURIComponent(given.names[i])}=${s ? "yes" : "no"}`); }
    catch { unlinked = `No address can hold the name “${net.names[i]}”: the link has the other findings.`; }
  try { history.replaceState(null, "", `${location.pathname}${location.search}${parts.length ? `#${parts.join("&")}` : ""}`); }
  catch { unlinked = "This page is inside another one and has no address of its own."; }
}

async function copyLink() {
  try { await navigator.clipboard.writeText(location.href); say(unlinked || "The link is copied."); }
  catch { prompt(unlinked || "This address holds the findings:", location.href); }
}

/* --- asking ---------------------------------------------------------------------------------------------------- */

const SOON = 400, AGAIN = 4000;  // milliseconds until it is said that an answer is awaited; until a server is asked again
let retry = 0;

async function changedEvidence() {
  const mine = ++turn, now = states();
  clearTimeout(retry);
  writeFragment();
  showKnown();
  outdated(mine);
  try {
    prior ??= (await engine.answer(now.map(() => -1))).means;
    const found = await engine.answer(now);
    if (mine !== turn) return;
    answer = found;
  } catch (error) {
    if (mine === turn) unanswered(error);
    return;
  }
  answered = [...known];
  [probabilities, nats, intervals, questions] = [new Map(), new Map(), null, null];
  upToDate();
  showAnswer();
  await new Promise(done => setTimeout(done, 60));  // the rest can wait for the next click, if it comes at once
  if (mine === turn) await Promise.all([askQuestions, showReasons, askIntervals].map(ask => ask(mine, now)));
}

/* The numbers on the page are about former findings, from now until an answer comes. */
function outdated(mine) {
  document.body.classList.add("outdated");
  setTimeout(() => { if (mine === turn && !current() && $("no-answer").hidden) tellOutdated("An answer is on its way."); }, SOON);
}

function upToDate() {
  document.body.classList.remove("outdated");
  $("no-answer").hidden = true;
}

const current = () => !document.body.classList.contains("outdated");

function tellOutdated(reason) {
  const former = (answered || []).map(([i, s]) => `${net.names[i]}: ${stateName(i, s)}`), most = 6;
  const list = former.slice(0, most).join(", ") + (former.length > most ? ` and ${former.length - most} more` : "");
  $("no-answer").hidden = $("again").hidden = false;
  say(reason);
  $("no-answer-text").textContent = `${reason} ` + (answered === null ? "There are no numbers yet."
    : `The grey numbers belong to the former findings (${list || "none"}), not to those that are known now.`);
}

/* Nothing guaranteed stays beside findings that it is not about. */
function unanswered(error) {
  const again = error instanceof Unreachable;
  intervals = questions = null;
  if (answer) { showRanking(); showBound(); }
  $("ask").replaceChildren();
  tellOutdated(`No answer: ${error.message}.${again ? " Is sbnet explore still running? It is asked again every few seconds." : ""}`);
  $("again").hidden = !again;
  if (again) retry = setTimeout(changedEvidence, AGAIN);
}

/* A part of the answer that did not come: nothing stands in its place. */
function without(mine, error, part, ...boxes) {
  if (mine !== turn) return;
  for (const box of boxes) { box.replaceChildren(); box.classList.remove("busy"); }
  say(`${part}: no answer, ${error.message}.`);
}

async function askQuestions(mine, now) {
  $("ask-box").classList.add("busy");
  try {
    const found = await engine.questions(now, () => mine !== turn);
    if (mine !== turn || found === null) return;
    questions = found;
    probabilities = new Map(found.map(q => [q.unit, q.probability]));
    showQuestions();
    draw();
  } catch (error) {
    if (mine === turn) questions = [];
    without(mine, error, "What to ask next", $("ask"));
  }
  if (mine === turn) $("ask-box").classList.remove("busy");
}

async function askIntervals(mine, now) {  // a few at a time: after the next click, nobody wants the rest
  if (!engine.certifies || !$("certain").checked || !current()) return;
  try {
    const wanted = shownCauses().filter(i => !known.has(i)), mineOnly = { ...await engine.certificate(now), units: {} };
    while (mine === turn && $("certain").checked) {
      intervals = mineOnly;
      showRanking();
      showBound();
      if (!wanted.length) return;
      Object.assign(mineOnly.units, await engine.intervals(now, wanted.splice(0, 2)));
    }
  } catch (error) {
    without(mine, error, "Guaranteed intervals");
  }
}

/* What each finding adds to the causes that are drawn and to the one that is explained. */
async function askReasons(mine, now) {
  const missing = drawnCauses().filter(i => !nats.has(i));
  if (!missing.length || !known.size) return;
  const found = await engine.reasons(now, missing);
  if (mine === turn) for (const i of missing) nats.set(i, found[i]);
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
  return el("li", { "data-unit": i, title: net.source[i] ? `Source: ${net.source[i]}` : "" }, name, choice(i, where), ...more);
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
  for (const box of $("all").querySelectorAll("li")) box.querySelector(".choice").replaceWith(choice(Number(box.dataset.unit), "all"));
}

function matches(text) {
  const parts = text.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  if (!parts.length) return [];
  const rank = i => { const at = words[i].indexOf(parts[0]); return at === 0 ? 0 : words[i][at - 1] === " " ? 1 : 2; };
  return searched.filter(i => parts.every(part => words[i].includes(part)))
    .map(i => [rank(i) + (isCause.has(i) ? 0.5 : 0), i]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(pair => pair[1]);
}

function showMatches() {
  const text = $("search").value.trim(), found = matches(text);
  refill($("results"), found.slice(0, FOUND).map(i => unitRow(i, "found")));
  $("matches").textContent = !text ? "" : found.length > FOUND ? `${FOUND} of ${found.length} matches; type more to narrow.`
    : found.length ? `${found.length} ${found.length === 1 ? "match" : "matches"}` : `Nothing is called “${text}”.`;
}

function showQuestions() {
  const best = questions.filter(q => q.information > 0).slice(0, 6), most = best.length ? best[0].information : 1;
  $("ask-note").textContent = best.length ? "Ranked by what the answer is expected to tell about the causes."
    : "No answer would tell anything more about the causes.";
  refill($("ask"), best.map(q => unitRow(q.unit, "ask",
    el("span", { class: "tell" }, el("span", { class: "gauge", "aria-hidden": "true" }, el("i", { "--share": q.information / most })),
      `${q.information.toPrecision(2)} nats, ${percent(q.probability)} ${stateName(q.unit, 1)}`))));
}

function ranked() { return [...causes].sort((a, b) => answer.means[b] - answer.means[a] || a - b); }
function shownCauses() { return everyone ? ranked() : ranked().slice(0, SHOWN); }

function showAnswer() {
  if (follow) chosen = ranked().find(i => !known.has(i)) ?? null;  // until someone chooses, the likeliest one is explained
  showRanking();
  showBound();
  draw();
  const top = ranked().filter(i => !known.has(i)).slice(0, 2).map(i => `${net.names[i]}\u00a0${percent(answer.means[i])}`);
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
  $("more").textContent = everyone ? `Show the first ${SHOWN}` : `Show all ${causes.length.toLocaleString("en")} causes`;
}

function causeRow(i) {
  const title = el("span", { class: "title" }, net.names[i]);
  if (about[i]) title.append(el("small", {}, about[i]));
  const button = el("button", { type: "button", class: "cause", "aria-expanded": "false", onclick: () => choose(chosen === i ? null : i) },
    title, el("span", { class: "numbers" }),
    el("span", { class: "track", "aria-hidden": "true" }, el("i", { class: "fill" }), el("i", { class: "tick" }), el("i", { class: "whisker" })));
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
  const open = chosen === i, button = row.querySelector(".cause"), certain = ends ? `, guaranteed ${ends.map(percent).join(" to ")}` : "";
  button.setAttribute("aria-expanded", open);
  button.setAttribute("aria-label", `${heading(i)}: ${known.has(i) ? stateName(i, known.get(i)) : percent(mean)}, before ${percent(prior[i])}${certain}`);
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
    without(mine, error, "Why", ...[...rows.values()].map(row => row.querySelector(".why")), $("drawing"), $("drawing-note"));
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
  const list = Object.entries(nats.get(i) || {}).map(([f, x]) => [Number(f), x]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const scale = Math.max(1, ...list.map(pair => Math.abs(pair[1])));
  const caption = list.length ? `What each finding adds to “${net.names[i]}”, in nats of log-odds`
    : `Nothing is known yet: the probability is ${percent(prior[i])}.`;
  return el("table", {}, el("caption", {}, caption), el("tbody", {}, ...list.map(([f, x]) => el("tr", {},
    el("th", { scope: "row" }, `${net.names[f]}: ${stateName(f, known.get(f))}`),
    el("td", { class: "pull", "aria-hidden": "true" }, el("span", { class: "lean" }, el("i", { class: x > 0 ? "for" : "against", "--share": Math.abs(x) / scale }))),
    el("td", { class: "nats" }, `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(2)}`)))));
}

function showBound() {
  const digits = x => x.toFixed(3).replace("-", "−");
  $("legend-interval").hidden = !intervals;
  $("bound").textContent = !current() ? "" : intervals
    ? `ln P of the findings lies between ${digits(intervals.lower)} and ${digits(intervals.upper)} nats, guaranteed.`
    : !known.size ? "" : answer.sampled ? `From samples: right to about two digits. ln P of the findings is at least ${digits(answer.bound)} nats.` : answer.exact ? `Exact: sums over all states. ln P of the findings is ${digits(answer.bound)} nats.`
    : `Mean field${answer.converged === false ? ", stopped before it settled" : ""}: an approximation, and often overconfident in one cause where several would do. ln P of the findings is at least ${digits(answer.bound)} nats.`;
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
  if (event.key === "ArrowDown" || event.key === "ArrowUp") return act(event, () => step(row, event.key === "ArrowDown" ? 1 : -1));
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
  const all = LISTS.flatMap(id => [...$(id).querySelectorAll(":scope [data-unit]")]).filter(r => r.offsetParent !== null);
  const next = row ? all[all.indexOf(row) + by] : all[0];
  if (next) focusRow(next); else if (by < 0) $("search").focus();
}

/* --- beginning ------------------------------------------------------------------------------------------------- */

function browse() {
  if ($("all").childElementCount) return;
  const groups = new Map();
  for (const i of findings.slice(0, 500)) groups.set(net.group[i], [...(groups.get(net.group[i]) || []), i]);
  for (const [group, members] of groups)
    $("all").append(...(groups.size > 1 && group ? [el("h3", {}, group)] : []), el("ul", { class: "units" }, ...members.map(i => unitRow(i, "all"))));
  if (findings.length > 500) $("all").append(el("p", { class: "soft" }, `The first 500 of ${findings.length.toLocaleString("en")}; the search finds all.`));
}

function begin() {
  const counts = [[causes.length, "cause"], [findings.length, "finding"]];
  $("size").textContent = counts.map(([n, word]) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`).join(", ");
  $("small-print").textContent = net.server
    ? "Answered by sbnet on this machine: exactly where the sums are small, else by mean field theory. Guaranteed intervals hold the exact probabilities in any case."
    : "One file that computes its own answers and sends nothing anywhere: exactly where the sums are small, else by mean field theory. It has no guaranteed intervals; sbnet explore has.";
  $("certain-box").hidden = !engine.certifies;
  $("certain").addEventListener("change", () => { intervals = null; if (!answer) return; showRanking(); showBound(); askIntervals(turn, states()); });
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
