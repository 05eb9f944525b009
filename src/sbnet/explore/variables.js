/* Rows of variables: a button for each state, likelihoods for who is not sure, and the lists that they stand in. */
"use strict";

function choice(i, where, chances = null) {
  const now = known.get(i);
  const option = (state, label, kind, title = label) => el("label", { class: kind },
    el("input", { type: "radio", name: `${where}-${i}`, checked: now === state, "aria-label": title,
      onchange: () => { unsure.delete(i); tell(i, state); } }),
    el("span", { title, "--p": chances && state !== undefined ? chances[state] : 0 }, label,
      ...(chances && state !== undefined ? [el("small", {}, ` ${percent(chances[state])}`)] : [])));
  const kind = s => net.states[i].length > 2 ? "one" : s !== net.nothing[i] ? "on" : "off";
  const states = net.states[i].map((name, s) => option(s, name, kind(s)));
  const order = net.states[i].length === 2 && net.nothing[i] === 0 ? states.reverse() : states;
  const soft = el("button", { type: "button", class: "not-sure", title: "not sure: how well does each state fit?",
    "aria-label": `${net.names[i]}: not sure`, "aria-pressed": Array.isArray(now) ? "true" : "false",
    onclick: () => doubt(i, where) }, "≈");
  return el("fieldset", { class: "choice" }, el("legend", {}, net.names[i]), ...order,
    option(undefined, "?", "unknown", "unknown"), soft);
}

/* Open or close the likelihoods of a variable in one list. */
function doubt(i, where) {
  if (unsure.get(i) === where) unsure.delete(i); else unsure.set(i, where);
  showPanels(where);
}

function showPanels(where) {
  if (where === "cause") showReasons(turn, new Map(known)); else showKnown();
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
  const open = unsure.get(i) === where ? [sliders(i)] : Array.isArray(known.get(i))
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
  else for (const panel of $("ask").querySelectorAll(".sliders")) panel.remove();
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
      `${q.information.toPrecision(2)} nats (×${times(Math.exp(q.information))})`))));
}
