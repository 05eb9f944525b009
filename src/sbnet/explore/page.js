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
const { causes, findings } = net, listed = net.ranked;  // listed: causes, and what lies between them and the findings
const isListed = new Set(listed), isCause = new Set(causes), searched = net.observable;
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
const unsure = new Map();  // variables whose likelihoods are being told -> the list in which they are

/* --- words and numbers ----------------------------------------------------------------------------------------- */

function percent(p) {  // with spaces that no line breaks at
  const x = 100 * p, ends = Math.min(x, 100 - x);
  if (p === 0 || p === 1) return `${x}\u00a0%`;
  if (ends < 0.01) return p < 0.5 ? "<\u00a00.01\u00a0%" : ">\u00a099.99\u00a0%";
  return `${x.toFixed(ends < 1 ? 2 : ends < 10 ? 1 : 0)}\u00a0%`;
}

const signed = x => `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(2)}`;
const minus = text => text.replace("-", "−");
const times = x => (x < 9.95 ? x.toFixed(1) : x < 1e4 ? Math.round(x).toLocaleString("en") : x.toExponential(0));
const odds = x => `${times(Math.exp(Math.abs(x)))} times ${x < 0 ? "less likely" : "likelier"}`;
const isYesNo = i => net.states[i].length === 2 && net.states[i][0] === "no" && net.states[i][1] === "yes";
const likelihoods = (i, state) => state.map((x, s) => `${net.states[i][s]} ${Number(x.toPrecision(3))}`).join(", ");
const saying = (i, state) => typeof state === "number" ? net.states[i][state] : `unsure (${likelihoods(i, state)})`;
const heading = i => about[i] ? `${net.names[i]}, ${about[i]}` : net.names[i];

/* A variable is present if it is in another state than the one that means nothing; these have bars, all of them where
   there are more than two states. */
const somewhere = i => net.states[i].map((_, s) => s).filter(s => s !== net.nothing[i]);
const barred = i => net.states[i].length > 2 ? net.states[i].map((_, s) => s) : somewhere(i);
const present = (beliefs, i) => beliefs[i] ? 1 - beliefs[i][net.nothing[i]] : 0;
const leading = i => somewhere(i).reduce((a, s) => answer.beliefs[i][s] > answer.beliefs[i][a] ? s : a);
const kindOf = found => found.kind === "exact" ? "exact" : "estimate";

function say(text) { $("status").textContent = text; }

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
  if (listed.length > causes.length) $("causes-title").textContent = "Causes, and what lies between";
  $("small-print").textContent = net.server
    ? "Answered by sbnet on this machine: exactly where that is feasible, else by estimates, and each number says "
      + "which. Guaranteed intervals hold the exact probabilities in any case."
    : "One file that computes its own answers, exactly, and sends nothing anywhere. Where that is too large, it says "
      + "so; sbnet explore, with a server, then has bounds and estimates.";
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
