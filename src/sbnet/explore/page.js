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
  source: given.source.map(prose), states: given.states.map(states => states.map(visible)) };
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

/* --- the network ----------------------------------------------------------------------------------------------- */

const units = net.names.map((_, i) => i);
const place = new Map(given.names.map((name, i) => [name, i]));
const children = units.map(() => []);
net.parents.forEach((parents, i) => parents.forEach(j => children[j].push(i)));
const { causes, findings } = net;
const isCause = new Set(causes), searched = net.observable;
const letters = text => plain(text).replace(/ /g, "");
const isSaid = i => letters(net.about[i]) === letters(net.names[i]);  // said once is enough
const about = units.map(i => isSaid(i) ? "" : net.about[i]);
const texts = searched.map(i => indexed(`${net.names[i]} ${net.about[i]} ${net.group[i]}`));
const engine = net.server ? new Remote() : new Local(net);

const SHOWN = 12, FOUND = 40, FOLDED = 0.1;  // causes and matches at first; nats below which a reason is folded away
let answer = null, prior = null, intervals = null, questions = null, turn = 0;
let chosen = null, follow = true, everyone = false;
let answered = null;  // the findings of the answer: those that are known, unless it is awaited or did not come
let nats = new Map();  // variable -> {finding: nats by state}, of the answer
let other = null;  // another case: {known, answer}
const unsure = new Set();  // variables whose likelihoods are being told

/* --- words and numbers ----------------------------------------------------------------------------------------- */

function percent(p) {  // with spaces that no line breaks at
  const x = 100 * p, ends = Math.min(x, 100 - x);
  if (p === 0 || p === 1) return `${x}\u00a0%`;
  if (ends < 0.01) return p < 0.5 ? "<\u00a00.01\u00a0%" : ">\u00a099.99\u00a0%";
  return `${x.toFixed(ends < 1 ? 2 : ends < 10 ? 1 : 0)}\u00a0%`;
}

const minus = text => text.replace("-", "−");
const times = x => (x < 9.95 ? x.toFixed(1) : x < 1e4 ? Math.round(x).toLocaleString("en") : x.toExponential(0));
const odds = x => `${times(Math.exp(Math.abs(x)))} times ${x < 0 ? "less likely" : "likelier"}`;
const isYesNo = i => net.states[i].length === 2 && net.states[i][0] === "no" && net.states[i][1] === "yes";
const likelihoods = (i, state) => state.map((x, s) => `${net.states[i][s]} ${Number(x.toPrecision(3))}`).join(", ");
const saying = (i, state) => typeof state === "number" ? net.states[i][state] : `unsure (${likelihoods(i, state)})`;
const heading = i => about[i] ? `${net.names[i]}, ${about[i]}` : net.names[i];

/* The states of a cause that have a bar: all but the first where there are two. */
const barred = i => net.states[i].map((_, s) => s).filter(s => s > 0 || net.states[i].length > 2);
const present = (beliefs, i) => beliefs[i] ? 1 - beliefs[i][0] : 0;
const leading = i => barred(i).filter(s => s > 0).reduce((a, s) => answer.beliefs[i][s] > answer.beliefs[i][a] ? s : a, 1);
const kindOf = found => found.kind === "exact" ? "exact" : "estimate";

function say(text) { $("status").textContent = text; }

/* --- variables and their states -------------------------------------------------------------------------------- */

function choice(i, where, chances = null) {
  const now = known.get(i);
  const option = (state, label, kind, title = label) => el("label", { class: kind },
    el("input", { type: "radio", name: `${where}-${i}`, checked: now === state, "aria-label": title,
      onchange: () => { unsure.delete(i); tell(i, state); } }),
    el("span", { title, "--p": chances && state !== undefined ? chances[state] : 0 }, label,
      ...(chances && state !== undefined ? [el("small", {}, ` ${percent(chances[state])}`)] : [])));
  const states = net.states[i].map((name, s) => option(s, name, s ? "on" : "off"));
  const order = net.states[i].length === 2 ? states.reverse() : states;
  const soft = el("button", { type: "button", class: "not-sure", title: "not sure: how well does each state fit?",
    "aria-label": `${net.names[i]}: not sure`, "aria-pressed": Array.isArray(now) ? "true" : "false",
    onclick: () => { if (unsure.has(i)) unsure.delete(i); else unsure.add(i); showKnown(); } }, "≈");
  return el("fieldset", { class: "choice" }, el("legend", {}, net.names[i]), ...order,
    option(undefined, "?", "unknown", "unknown"), soft);
}

/* How well each state fits what was reported: soft evidence. */
function sliders(i) {
  const now = known.get(i), states = net.states[i];
  const start = states.map((_, s) => Array.isArray(now) ? now[s] : now === undefined || now === s ? 1 : 0);
  const inputs = start.map((x, s) => el("input", { type: "range", min: "0", max: "1", step: "0.01", value: x,
    "aria-label": `${net.names[i]}: how well ${states[s]} fits`, onchange: changed, oninput: shown }));
  const values = start.map(x => el("output", {}, x.toFixed(2)));
  const wrong = el("p", { class: "warning", role: "alert", hidden: true }, "At least one state has to fit.");
  function shown() { inputs.forEach((input, s) => { values[s].textContent = Number(input.value).toFixed(2); }); }
  function changed() {
    const likelihood = inputs.map(input => Number(input.value));
    wrong.hidden = likelihood.some(x => x > 0);
    if (wrong.hidden) tell(i, likelihood.every(x => x === likelihood[0]) ? undefined : likelihood);
  }
  return el("div", { class: "sliders" },
    el("p", { class: "soft" }, "How well does each state fit what was reported? Only the proportions count."),
    ...states.map((name, s) => el("label", {}, el("span", {}, name), inputs[s], values[s])), wrong);
}

function variableRow(i, where, chances = null, ...more) {
  const name = el("span", { class: "unit-name" }, net.names[i]);
  if (about[i]) name.append(el("small", { class: "unit-about" }, about[i]));
  const title = net.source[i] ? `Source: ${net.source[i]}` : "";
  const told = known.has(i) ? [el("span", { class: "said" }, saying(i, known.get(i)))] : [];
  const open = unsure.has(i) ? [sliders(i)] : Array.isArray(known.get(i))
    ? [el("p", { class: "soft likelihoods" }, `Not sure: ${likelihoods(i, known.get(i))}`)] : [];
  return el("li", { "data-unit": i, title }, name, ...told, choice(i, where, chances), ...open, ...more);
}

/* Lists are made anew; whoever had the keyboard in one keeps it. */
function refill(list, rows) {
  const at = document.activeElement, held = list.contains(at) && at.closest("[data-unit]");
  const index = held ? [...list.querySelectorAll("[data-unit]")].indexOf(held) : -1, label = held && at.ariaLabel;
  list.replaceChildren(...rows);
  if (!held) return;
  const all = [...list.querySelectorAll("[data-unit]")];
  const row = all.find(one => one.dataset.unit === held.dataset.unit) || all[Math.min(index, all.length - 1)];
  const same = row && row.dataset.unit === held.dataset.unit && at.type !== "radio"
    && [...row.querySelectorAll("input, button")].find(one => one.ariaLabel === label);
  if (same) same.focus(); else focusRow(row);
}

function focusRow(row) {
  if (row) (row.querySelector("input:checked") || row.querySelector("input, button") || row).focus();
}

function showKnown() {
  $("nothing").hidden = known.size > 0;
  $("known-count").textContent = known.size ? `${known.size}` : "";
  $("undo").disabled = !past.length;
  $("redo").disabled = !future.length;
  $("reset").disabled = !known.size;
  refill($("known"), [...known.keys()].map(i => variableRow(i, "known")));
  showMatches();
  if (questions) showQuestions();
  for (const row of $("all").querySelectorAll("li")) row.replaceWith(variableRow(Number(row.dataset.unit), "all"));
}

const matches = text => search(text, texts, k => isCause.has(searched[k]) ? 0.5 : 0).map(k => searched[k]);

function showMatches() {
  const text = $("search").value.trim(), found = matches(text);
  refill($("results"), found.slice(0, FOUND).map(i => variableRow(i, "found")));
  $("matches").textContent = !text ? ""
    : found.length > FOUND ? `${FOUND} of ${found.length} matches; type more to narrow.`
    : found.length ? `${found.length} ${found.length === 1 ? "match" : "matches"}` : `Nothing is called “${text}”.`;
}

function showQuestions() {
  const best = questions.filter(q => q.information > 0 && !certain(q.unit)).slice(0, 6);
  const most = best.length ? best[0].information : 1;
  $("ask-note").textContent = best.length ? "Ranked by what the answer is expected to tell about the causes."
    : "No answer would tell anything more about the causes.";
  refill($("ask"), best.map(q => variableRow(q.unit, "ask", q.chances,
    el("span", { class: "tell" },
      el("span", { class: "gauge", "aria-hidden": "true" }, el("i", { "--share": q.information / most })),
      `${q.information.toPrecision(2)} nats`))));
}

/* --- the ranking ----------------------------------------------------------------------------------------------- */

/* How far the findings moved a variable: half the sum of the changes of its probabilities. */
const moved = i => answer.beliefs[i].reduce((x, p, s) => x + Math.abs(p - answer.prior[i][s]) / 2, 0);
const by = score => [...causes].sort((a, b) => score(b) - score(a) || a - b);
const ranked = () => by(i => present(answer.beliefs, i));
const ordered = () => $("order").value === "moved" ? by(moved) : ranked();
const shownCauses = () => everyone ? ordered() : ordered().slice(0, SHOWN);

/* A cause in a few words: its state, where that is not simply yes, and the probability of it. */
function inShort(i) {
  const s = leading(i);
  return `${net.names[i]}${isYesNo(i) ? "" : ` ${net.states[i][s]}`}\u00a0${percent(answer.beliefs[i][s])}`;
}

function showAnswer() {
  if (follow) chosen = ranked().find(i => !certain(i)) ?? null;  // until someone chooses, it is the likeliest one
  for (const [i, row] of rows) if (i !== chosen) row.querySelector(".why").replaceChildren();  // of former findings
  showRanking();
  showBound();
  draw();
  const top = ordered().filter(i => !certain(i)).slice(0, 2).map(inShort);
  const what = $("order").value === "moved" ? "Changed most" : known.size ? "Likeliest now" : "Likeliest before any finding";
  say(`${what}: ${top.join(", ")} (${kindOf(answer)})`);
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
  $("other-case").hidden = $("legend-other").hidden = other === null;
  if (other) $("other-text").textContent = `Beside it the other case: ${listed(other.known) || "nothing known"}.`;
}

function causeRow(i) {
  const title = el("span", { class: "title" }, net.names[i]), part = kind => el("i", { class: kind });
  if (about[i]) title.append(el("small", {}, about[i]));
  const line = s => el("span", { class: "state", "data-state": s },
    el("span", { class: "label" }, isYesNo(i) ? "" : net.states[i][s]), el("span", { class: "numbers" }),
    el("span", { class: "track", "aria-hidden": "true" },
      part("fill"), part("tick"), part("whisker")),
    el("span", { class: "track other", "aria-hidden": "true" }, part("fill")));
  const onclick = () => choose(chosen === i ? null : i);
  const button = el("button", { type: "button", class: barred(i).length > 1 ? "cause" : "cause two", "aria-expanded": "false", onclick },
    title, el("span", { class: "badge" }), ...barred(i).map(line));
  return el("li", { "data-unit": i }, button, el("div", { class: "why" }));
}

function fillRow(i) {
  const row = rows.get(i), state = known.get(i), open = chosen === i, ends = intervals && intervals.units[i];
  row.classList.toggle("set", certain(i) && state > 0);
  row.classList.toggle("off", state === 0);
  const kind = certain(i) ? "known" : ends ? "bound" : kindOf(answer), badge = row.querySelector(".badge");
  badge.textContent = kind;
  badge.className = `badge ${kind}`;
  for (const line of row.querySelectorAll(".state")) fillLine(i, line, ends);
  row.querySelector(".cause").setAttribute("aria-expanded", open);
  row.querySelector(".cause").setAttribute("aria-label", `${heading(i)}: ${barred(i).map(s => heard(i, s, ends)).join("; ")}`);
  row.querySelector(".why").hidden = !open;
}

function fillLine(i, line, all) {
  const s = Number(line.dataset.state), mean = answer.beliefs[i][s], before = answer.prior[i][s], ends = all && all[s];
  const beside = other && other.answer.beliefs[i];
  const style = { "--mean": mean, "--prior": before, "--low": ends ? ends[0] : 0, "--high": ends ? ends[1] : 0,
    "--other": beside ? beside[s] : 0 };
  for (const [key, value] of Object.entries(style)) line.style.setProperty(key, value);
  line.querySelector(".whisker").hidden = !ends;
  line.querySelector(".other").hidden = !beside;
  const only = known.get(i) === 0 && net.states[i].length === 2;  // the bar is of the other state
  line.querySelector(".numbers").replaceChildren(
    el("small", {}, ends ? between(ends.map(percent)) : `${percent(before)} →`),
    el("b", {}, certain(i) && (known.get(i) === s || only) ? net.states[i][known.get(i)] : percent(mean)),
    ...(beside ? [el("small", { class: "beside" }, percent(beside[s]))] : []));
}

function heard(i, s, ends) {
  const guaranteed = ends ? `, guaranteed ${ends[s].map(percent).join(" to ")}` : "", beside = other && other.answer.beliefs[i];
  const state = certain(i) ? net.states[i][known.get(i)] : percent(answer.beliefs[i][s]);
  const compared = beside ? `, other case ${percent(beside[s])}` : "", name = isYesNo(i) ? "" : `${net.states[i][s]} `;
  return `${name}${state}, before ${percent(answer.prior[i][s])}${guaranteed}${compared}`;
}

const between = ([low, high]) => low === high ? "guaranteed" : `${low} to ${high}`;

function choose(i) {
  chosen = i;
  follow = false;
  showRanking();
  draw();
  showReasons(turn, new Map(known));
}

/* --- why ------------------------------------------------------------------------------------------------------- */

async function showReasons(mine, now) {
  if (!current()) return;  // they come with the answer
  const i = chosen, box = i === null ? null : rows.get(i)?.querySelector(".why");
  let wrong = null;
  if (box) box.classList.add("busy");
  try { await askReasons(mine, now); } catch (error) { wrong = error; }
  if (mine !== turn) return;
  draw();
  if (!box || i !== chosen) return;
  box.classList.remove("busy");
  const why = wrong ? el("p", { class: "warning" }, `Why: ${missing(wrong)}`)
    : certain(i) || (known.size && !nats.has(i)) ? "" : reasonTable(i);
  box.replaceChildren(why, el("div", { class: "row" }, el("span", { class: "soft" }, "Is it known?"), choice(i, "cause")));
  if (net.source[i]) box.append(el("p", { class: "soft" }, `Source: ${net.source[i]}`));
}

/* What each finding adds to the leading state of a cause, the largest first. */
function reasonsFor(i) {
  const s = leading(i), list = Object.entries(nats.get(i) || {}).map(([f, x]) => [Number(f), x[s]]);
  return list.filter(([f]) => known.has(f)).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
}

function reasonTable(i) {
  const list = reasonsFor(i), scale = Math.max(1, ...list.map(pair => Math.abs(pair[1])));
  const whole = isYesNo(i) ? net.names[i] : `${net.names[i]}: ${net.states[i][leading(i)]}`;
  if (!list.length) return el("p", { class: "soft" }, `Nothing is known yet: the probability is ${percent(present(answer.prior, i))}.`);
  const line = ([f, x]) => el("tr", {},
    el("th", { scope: "row" }, `${net.names[f]}: ${saying(f, known.get(f))}`),
    el("td", { class: "pull", "aria-hidden": "true" }, el("span", { class: "lean" },
      el("i", { class: x > 0 ? "for" : "against", "--share": Math.abs(x) / scale }))),
    el("td", { class: "nats" }, `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(2)}`),
    el("td", { class: "odds" }, odds(x)));
  const large = list.filter(pair => Math.abs(pair[1]) >= FOLDED), small = list.filter(pair => Math.abs(pair[1]) < FOLDED);
  const caption = `What each finding adds to “${whole}”: nats of log-odds, and times the odds`
    + (single() ? ". (If several causes may be present.)" : "");
  const table = el("table", {}, el("caption", {}, caption), el("tbody", {}, ...large.map(line)));
  if (!small.length) return table;
  return el("div", {}, table, el("details", { class: "folded" },
    el("summary", {}, `${small.length} ${small.length === 1 ? "finding adds" : "findings add"} less than ${FOLDED} nats`),
    el("table", {}, el("tbody", {}, ...small.map(line)))));
}

function showBound() {
  const digits = x => minus(x.toFixed(3)), exact = answer.kind === "exact";
  const settled = answer.converged === false ? ", stopped before it settled" : "";
  $("legend-interval").hidden = !intervals;
  $("kind").textContent = !current() ? "" : single() ? "Exact, if exactly one of the causes is present."
    : exact ? "Exact: sums over all states."
    : answer.method === "samples" ? "Estimates from samples: right to about two digits."
    : `Estimates by mean field theory${settled}: often overconfident of one cause where several would do.`;
  $("bound").textContent = !current() || single() || !known.size ? ""
    : intervals ? `ln P of the findings lies between ${digits(intervals.lower)} and ${digits(intervals.upper)} nats, guaranteed.`
    : exact ? `ln P of the findings is ${digits(answer.logP)} nats, exact.`
    : `ln P of the findings is at least ${digits(answer.logP)} nats, a bound.`;
}

/* --- two cases side by side ------------------------------------------------------------------------------------ */

function compare() {
  if (!answer || !current()) return;
  other = { known: answered, answer };
  showRanking();
  say("This case is kept beside those that follow.");
}

function swap() {
  const now = other.known;
  if (current()) other = { known: answered, answer };
  remember();
  restore(now);
}

function dropOther() {
  other = null;
  showRanking();
}

/* --- the keyboard ---------------------------------------------------------------------------------------------- */

const LISTS = ["results", "known", "ask", "all", "ranking"];

function onKey(event) {
  const inSearch = event.target === $("search"), row = event.target.closest("[data-unit]"), key = event.key.toLowerCase();
  if (event.key === "/" && !inSearch) return act(event, () => { $("search").focus(); $("search").select(); });
  const command = (event.ctrlKey || event.metaKey) && !event.altKey, own = inSearch && $("search").value !== "";
  if (command && !own && (key === "y" || (key === "z" && event.shiftKey))) return act(event, redo);
  if (command && !own && key === "z") return act(event, undo);
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  if (inSearch) return searchKey(event);
  if (key === "escape") return act(event, escape);
  if (!row || event.target.type === "range") return null;
  const i = Number(row.dataset.unit), state = stateOfKey(i, key);
  if (state !== null) return act(event, () => tell(i, state));
  const down = event.key === "ArrowDown";
  if (down || event.key === "ArrowUp") return act(event, () => step(row, down ? 1 : -1));
  return null;
}

/* y and n for two states, the number of a state as it is shown, u for unknown; null for other keys. */
function stateOfKey(i, key) {
  const n = net.states[i].length;
  if (key === "u") return undefined;
  if (n === 2 && (key === "y" || key === "n")) return Number(key === "y");
  const k = /^[1-9]$/.test(key) ? Number(key) - 1 : n;
  return k >= n ? null : n === 2 ? 1 - k : k;
}

/* Close what is open, the nearest first: likelihoods, the search, the reasons. */
function escape() {
  if (unsure.size) { unsure.clear(); showKnown(); }
  else if ($("search").value) { $("search").value = ""; showMatches(); }
  else if (chosen !== null) choose(null);
}

function searchKey(event) {
  if (event.key === "ArrowDown") return act(event, () => step(null, 1));
  if (event.key === "Escape") return act(event, escape);
  if (event.key !== "Enter") return null;
  return act(event, () => {
    const [first] = matches($("search").value.trim());
    if (first === undefined) return;
    if (net.states[first].length > 2) { step(null, 1); return; }  // which state, is for the reader to say
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
    $("all").append(...title, el("ul", { class: "units" }, ...members.map(i => variableRow(i, "all"))));
  }
  if (findings.length <= 500) return;
  const rest = `The first 500 of ${findings.length.toLocaleString("en")}; the search finds all.`;
  $("all").append(el("p", { class: "soft" }, rest));
}

function switched() {
  intervals = null;
  changedEvidence();
}

function begin() {
  const counts = [[causes.length, "cause"], [findings.length, "finding"]];
  const counted = ([n, word]) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
  $("size").textContent = counts.map(counted).join(", ");
  $("small-print").textContent = net.server
    ? "Answered by sbnet on this machine: exactly where that is feasible, else by estimates, and each number says which. "
      + "Guaranteed intervals hold the exact probabilities in any case."
    : "One file that computes its own answers, exactly, and sends nothing anywhere. Where that is too large, it says so; "
      + "sbnet explore, with a server, then has bounds and estimates.";
  $("certain-box").hidden = !engine.certifies;
  $("single-box").hidden = !engine.single || causes.length < 2;
  $("certain").addEventListener("change", () => {
    intervals = null;
    if (answer) { showRanking(); showBound(); askIntervals(turn, new Map(known)); }
  });
  const clicks = { undo, redo, reset, link: copyLink, again: changedEvidence, compare, swap, drop: dropOther,
    copy: copySummary, print: () => window.print(), more: () => { everyone = !everyone; showRanking(); } };
  for (const [id, action] of Object.entries(clicks)) $(id).addEventListener("click", () => action());
  $("single").addEventListener("change", switched);
  $("order").addEventListener("change", () => { if (answer) showAnswer(); });
  $("search").addEventListener("input", showMatches);
  $("browse").addEventListener("toggle", browse);
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", followLink);
  new ResizeObserver(drawAnew).observe($("drawing"));
  for (const [i, s] of Object.entries(net.evidence)) known.set(Number(i), s);
  followLink();
}

begin();
