/* The causes, ranked: bars, badges, why, and another case beside them. */
"use strict";

/* How far the findings moved a variable: half the sum of the changes of its probabilities. */
const moved = i => answer.beliefs[i].reduce((x, p, s) => x + Math.abs(p - answer.prior[i][s]) / 2, 0);
const answerable = () => listed.filter(i => answer.beliefs[i] && answer.prior[i]);
const by = score => answerable().sort((a, b) => score(b) - score(a) || a - b);
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
  const likeliest = known.size ? "Likeliest now" : "Likeliest before any finding";
  const what = $("order").value === "moved" ? "Changed most" : likeliest;
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
  const all = ordered().length;
  $("more").hidden = all <= SHOWN;
  $("more").textContent = everyone ? `Show the first ${SHOWN}` : `Show all ${all.toLocaleString("en")}`;
  $("other-case").hidden = $("legend-other").hidden = other === null;
  if (other) $("other-text").textContent = `Beside it the other case: ${inWords(other.known) || "nothing known"}.`;
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
  const kind = barred(i).length > 1 ? "cause" : "cause two";
  const button = el("button", { type: "button", class: kind, "aria-expanded": "false", onclick },
    title, el("span", { class: "badge" }), ...barred(i).map(line));
  return el("li", { "data-unit": i }, button, el("div", { class: "why" }));
}

function fillRow(i) {
  const row = rows.get(i), state = known.get(i), open = chosen === i, ends = intervals && intervals.units[i];
  row.classList.toggle("set", certain(i) && state !== net.nothing[i]);
  row.classList.toggle("off", state === net.nothing[i]);
  const kind = certain(i) ? "known" : ends ? "bound" : kindOf(answer), badge = row.querySelector(".badge");
  badge.textContent = kind;
  badge.className = `badge ${kind}`;
  for (const line of row.querySelectorAll(".state")) fillLine(i, line, ends);
  const button = row.querySelector(".cause");
  button.setAttribute("aria-expanded", open);
  button.setAttribute("aria-label", `${heading(i)}: ${barred(i).map(s => heard(i, s, ends)).join("; ")}`);
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
  const only = known.get(i) === net.nothing[i] && net.states[i].length === 2;  // the bar is of the other state
  line.querySelector(".numbers").replaceChildren(
    el("small", {}, ends ? between(ends.map(percent)) : `${percent(before)} →`),
    el("b", {}, certain(i) && (known.get(i) === s || only) ? net.states[i][known.get(i)] : percent(mean)),
    ...(beside ? [el("small", { class: "beside" }, percent(beside[s]))] : []));
}

function heard(i, s, ends) {
  const guaranteed = ends ? `, guaranteed ${ends[s].map(percent).join(" to ")}` : "";
  const beside = other && other.answer.beliefs[i];
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
  const panel = unsure.get(i) === "cause" ? [sliders(i)] : [];
  const row = el("div", { class: "row" }, el("span", { class: "soft" }, "Is it known?"), choice(i, "cause"));
  box.replaceChildren(why, row, ...panel);
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
  const nothing = `Nothing is known yet: the probability is ${percent(answer.prior[i][leading(i)])}.`;
  if (!list.length) return el("p", { class: "soft" }, nothing);
  const line = ([f, x]) => el("tr", {},
    el("th", { scope: "row" }, `${net.names[f]}: ${saying(f, known.get(f))}`),
    el("td", { class: "pull", "aria-hidden": "true" }, el("span", { class: "lean" },
      el("i", { class: x > 0 ? "for" : "against", "--share": Math.abs(x) / scale }))),
    el("td", { class: "nats" }, signed(x)),
    el("td", { class: "odds" }, odds(x)));
  const isLarge = pair => Math.abs(pair[1]) >= FOLDED, large = list.filter(isLarge), small = list.slice(large.length);
  const caption = `What each finding adds to “${whole}”: nats of log-odds, and times the odds`
    + (single() ? ". (If several causes may be present.)" : "");
  const table = el("table", {}, el("caption", {}, caption), el("tbody", {}, ...large.map(line)));
  if (!small.length) return table;
  return el("div", {}, table, el("details", { class: "folded" },
    el("summary", {}, `${small.length} ${small.length > 1 ? "findings add" : "finding adds"} less than ${FOLDED} nats`),
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
    : intervals
    ? `ln P of the findings lies between ${digits(intervals.lower)} and ${digits(intervals.upper)} nats, guaranteed.`
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
