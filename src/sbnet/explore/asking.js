/* What the page asks of its engine, and when; and the link that holds the findings. */
"use strict";

/* --- a link that holds the state ------------------------------------------------------------------------------- */

function decoded(text) { try { return decodeURIComponent(text); } catch { return text; } }

/* The findings of a link, and what in it is none of this network; null if it is no link of findings. */
function readFragment() {
  const text = location.hash.slice(1), found = new Map(), strange = [];
  if (!text.includes("=")) return null;
  for (const part of text.split("&").filter(Boolean)) {
    const cut = part.lastIndexOf("="), i = place.get(decoded(part.slice(0, cut)));
    const state = ["no", "yes"].indexOf(part.slice(cut + 1));
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
  $("strange").textContent = `This link also says ${list}${more}. The model has no such finding, or not with that `
    + "answer, so this is left out of all numbers here.";
  restore([...found]);
}

let unlinked = "";  // why the address does not hold what is known

function writeFragment() {
  const parts = [];
  unlinked = "";
  for (const [i, s] of known)
    try { parts.push(`${encodeURIComponent(given.names[i])}=${s ? "yes" : "no"}`); }
    catch { unlinked = `No address can hold the name “${net.names[i]}”: the link has the other findings.`; }
  const fragment = parts.length ? `#${parts.join("&")}` : "";
  try { history.replaceState(null, "", `${location.pathname}${location.search}${fragment}`); }
  catch { unlinked = "This page is inside another one and has no address of its own."; }
}

async function copyLink() {
  try { await navigator.clipboard.writeText(location.href); say(unlinked || "The link is copied."); }
  catch { prompt(unlinked || "This address holds the findings:", location.href); }
}

/* --- asking ---------------------------------------------------------------------------------------------------- */

const SOON = 400, AGAIN = 4000;  // milliseconds until it is said that an answer is awaited; until it is asked again
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
  const late = () => mine === turn && !current() && $("no-answer").hidden;
  setTimeout(() => { if (late()) tellOutdated("An answer is on its way."); }, SOON);
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
  const running = again ? " Is sbnet explore still running? It is asked again every few seconds." : "";
  tellOutdated(`No answer: ${error.message}.${running}`);
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
    const wanted = shownCauses().filter(i => !known.has(i));
    const mineOnly = { ...await engine.certificate(now), units: {} };
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
