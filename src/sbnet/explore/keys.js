/* The keyboard: everything can be done with it. */
"use strict";

const LISTS = ["results", "known", "ask", "all", "ranking"];

function onKey(event) {
  const { target } = event, inSearch = target === $("search"), row = target.closest("[data-unit]");
  const key = event.key.toLowerCase();
  if (event.key === "/" && !inSearch) return act(event, () => { $("search").focus(); $("search").select(); });
  const command = (event.ctrlKey || event.metaKey) && !event.altKey, own = inSearch && $("search").value !== "";
  if (command && !own && (key === "y" || (key === "z" && event.shiftKey))) return act(event, redo);
  if (command && !own && key === "z") return act(event, undo);
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  if (inSearch) return searchKey(event);
  if (key === "escape") return act(event, escape);
  if (!row || target.type === "range") return null;
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
  if (n === 2 && key === "n") return net.nothing[i];
  if (n === 2 && key === "y") return 1 - net.nothing[i];
  const k = /^[1-9]$/.test(key) ? Number(key) - 1 : n;
  return k >= n ? null : n === 2 && net.nothing[i] === 0 ? 1 - k : k;
}

/* Close what is open, the nearest first: likelihoods, the search, the reasons. */
function escape() {
  if (unsure.size) { const lists = [...unsure.values()]; unsure.clear(); lists.forEach(showPanels); }
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
    tell(first, event.shiftKey ? net.nothing[first] : 1 - net.nothing[first]);
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
