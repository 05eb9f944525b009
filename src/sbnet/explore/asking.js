/* What is known, with undo and redo; the link that holds it; and what the page asks of its engine, and when. */
"use strict";

/* --- what is known --------------------------------------------------------------------------------------------- */

const known = new Map();  // variable -> number of its state, or likelihoods of all of them, in the order of telling
const past = [], future = [];
const certain = i => typeof known.get(i) === "number";
const alike = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/* A variable is in a state, or was reported with some likelihoods; undefined if nothing is known of it. */
function tell(i, state) {
  if (alike(known.get(i), state)) return;
  remember();
  if (state === undefined) known.delete(i); else known.set(i, state);
  changedEvidence();
}

function remember() {
  past.push([...known]);
  future.length = 0;
}

function restore(pairs) {
  known.clear();
  for (const [i, s] of pairs) known.set(i, s);
  changedEvidence();
}

function move(from, to) {
  if (!from.length) return;
  to.push([...known]);
  restore(from.pop());
}

const undo = () => move(past, future), redo = () => move(future, past);

function reset() {
  if (!known.size) return;
  remember();
  follow = true;
  unsure.clear();
  $("strange").hidden = true;
  restore([]);
}

/* --- a link that holds it --------------------------------------------------------------------------------------- */

function decoded(text) { try { return decodeURIComponent(text); } catch { return text; } }

/* A state by its name, by yes or no where there are two, or likelihoods such as ~0.2~0.9. */
function readState(i, text) {
  const states = given.states[i], at = states.indexOf(text);
  if (at >= 0) return at;
  if (states.length === 2 && (text === "yes" || text === "no")) return Number(text === "yes");
  const parts = text.startsWith("~") ? text.slice(1).split("~").map(Number) : [];
  const fit = parts.length === states.length && parts.every(x => x >= 0 && x < Infinity) && parts.some(x => x > 0);
  return fit ? parts : undefined;
}

const writtenState = (i, state) => typeof state === "number" ? given.states[i][state] : `~${state.join("~")}`;

/* The findings of a link, and what in it is none of this network; null if it is no link of findings. */
function readFragment() {
  const text = location.hash.slice(1), found = new Map(), strange = [];
  if (!text.includes("=")) return null;
  for (const part of text.split("&").filter(Boolean)) {
    const cut = part.indexOf("="), i = place.get(decoded(part.slice(0, Math.max(cut, 0))));
    const state = i === undefined ? undefined : readState(i, decoded(part.slice(cut + 1)));
    if (state === undefined || (found.has(i) && !alike(found.get(i), state))) strange.push(visible(decoded(part)));
    else found.set(i, state);
  }
  return { found, strange };
}

function followLink() {
  const { found, strange } = readFragment() || { found: known, strange: [] };
  const most = 10, list = strange.slice(0, most).map(part => `“${shorten(part, 60)}”`).join(", ");
  const more = strange.length > most ? ` and ${strange.length - most} more` : "";
  $("strange").hidden = !strange.length;
  $("strange").textContent = `This link also says ${list}${more}. The model has no such finding, or not with that `
    + "answer, so this is left out of all numbers here.";
  restore([...found]);
}

let unlinked = "";  // why the address does not hold what is known

function writeFragment() {
  const parts = [], written = text => encodeURIComponent(text);
  unlinked = "";
  for (const [i, s] of known)
    try { parts.push(`${written(given.names[i])}=${written(writtenState(i, s))}`); }
    catch { unlinked = `No address can hold the name “${net.names[i]}”: the link has the other findings.`; }
  const fragment = parts.length ? `#${parts.join("&")}` : "";
  try { history.replaceState(null, "", `${location.pathname}${location.search}${fragment}`); }
  catch { unlinked = "This page is inside another one and has no address of its own."; }
}

async function copy(text, what, note = "") {
  try { await navigator.clipboard.writeText(text); say(note || `${what} is copied.`); }
  catch { prompt(note || `${what}:`, text); }
}

const copyLink = () => copy(location.href, "The link", unlinked);

/* --- asking ---------------------------------------------------------------------------------------------------- */

const SOON = 400, AGAIN = 4000;  // milliseconds until it is said that an answer is awaited; until it is asked again
let retry = 0;

const single = () => $("single").checked;

/* The answer and the probabilities before any finding, of exactly one cause or of any number of them. */
async function asked(now) {
  if (single()) return engine.single(now);
  prior ??= (await engine.answer(new Map(), listed)).beliefs;
  return { ...await engine.answer(now, listed), prior };
}

async function changedEvidence() {
  const mine = ++turn, now = new Map(known);
  clearTimeout(retry);
  writeFragment();
  showKnown();
  outdated(mine);
  try {
    const found = await asked(now);
    if (mine !== turn) return;
    answer = found;
  } catch (error) {
    if (mine === turn) unanswered(error);
    return;
  }
  answered = [...known];
  [nats, intervals, questions] = [new Map(), null, null];
  upToDate();
  showAnswer();
  await new Promise(done => setTimeout(done, 60));  // the rest can wait for the next click, if it comes at once
  if (mine === turn) await Promise.all([askQuestions, showReasons, askIntervals].map(ask => ask(mine, now)));
}

/* The numbers on the page are about former findings, from now until an answer comes. */
function outdated(mine) {
  document.body.classList.add("outdated");
  const late = () => mine === turn && !current() && $("no-answer").hidden;
  setTimeout(() => { if (late()) tellOutdated("An answer is on its way."); }, SOON);
}

function upToDate() {
  document.body.classList.remove("outdated");
  $("no-answer").hidden = true;
}

const current = () => !document.body.classList.contains("outdated");

function inWords(pairs, most = 6) {
  const first = pairs.slice(0, most).map(([i, s]) => `${net.names[i]}: ${saying(i, s)}`).join(", ");
  return first + (pairs.length > most ? ` and ${pairs.length - most} more` : "");
}

function tellOutdated(reason) {
  $("no-answer").hidden = $("again").hidden = false;
  say(reason);
  const former = `The grey numbers belong to the former findings (${inWords(answered || []) || "none"}), not to those `
    + "that are known now.";
  $("no-answer-text").textContent = `${reason} ${answered === null ? "There are no numbers yet." : former}`;
}

/* Nothing guaranteed stays beside findings that it is not about. */
function unanswered(error) {
  const again = error instanceof Unreachable;
  intervals = questions = null;
  if (answer) { showRanking(); showBound(); }
  $("ask").replaceChildren();
  $("ask-note").textContent = "";
  const running = again ? " Is sbnet explore still running? It is asked again every few seconds." : "";
  tellOutdated(`No answer: ${error.message}.${running}`);
  $("again").hidden = !again;
  if (again) retry = setTimeout(changedEvidence, AGAIN);
}

const missing = error => `No answer: ${error.message}.`;

async function askQuestions(mine, now) {
  $("ask-box").classList.add("busy");
  try {
    const found = await engine.questions(now, () => mine !== turn);
    if (mine !== turn || found === null) return;
    questions = found;
    showQuestions();
    draw();
  } catch (error) {
    if (mine !== turn) return;
    questions = [];
    $("ask").replaceChildren();
    $("ask-note").textContent = missing(error);
  }
  $("ask-box").classList.remove("busy");
}

async function askIntervals(mine, now) {  // a few at a time: after the next click, nobody wants the rest
  if (!engine.certifies || !$("certain").checked || !current() || single()) return;
  try {
    const wanted = shownCauses().filter(i => !certain(i));
    const mineOnly = { ...await engine.certificate(now), units: {} };
    while (mine === turn && $("certain").checked && !single()) {
      intervals = mineOnly;
      showRanking();
      showBound();
      if (!wanted.length) return;
      Object.assign(mineOnly.units, await engine.intervals(now, wanted.splice(0, 2)));
    }
  } catch (error) {
    if (mine !== turn) return;
    intervals = null;
    $("bound").textContent = `Guaranteed intervals: ${missing(error)}`;
  }
}

/* What each finding adds to the causes that are drawn and to the one that is explained. */
async function askReasons(mine, now) {
  const open = drawnCauses().filter(i => !nats.has(i));
  if (!open.length || !known.size) return;
  const found = await engine.reasons(now, open);
  if (mine === turn) for (const i of open) nats.set(i, found[i] || {});
}

/* The probabilities of what is drawn, where they did not come with the answer. */
async function askDrawn(drawn) {
  const open = drawn.filter(i => !(i in answer.beliefs) && !certain(i)), mine = turn, to = answer;
  if (!open.length || !current() || single()) return;
  for (const i of open) to.beliefs[i] = null;  // asked for once
  try {
    const found = await engine.answer(new Map(known), open);
    if (found.kind === to.kind) Object.assign(to.beliefs, found.beliefs);
  } catch { return; }  // boxes without a number
  if (mine === turn && to === answer) draw();
}
