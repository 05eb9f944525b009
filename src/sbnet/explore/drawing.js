/* A drawing of what matters: what is known, the likely causes of it, and what else these causes would show.

   Columns go by depth, causes on the left; a box is filled as far as its variable is likely to be in another state than
   the first. It is as wide as its place, and has as many rows as fit into the window. */
"use strict";

const FEW_CAUSES = 5, LEAST_KNOWN = 8, MOST_KNOWN = 18, FEW_OTHERS = 5;
const BOX = { height: 32, gap: 9, least: 88, most: 260 };  // pixels
let drawnWidth = 0;

/* As many findings as fit beside each other into the window. */
const fewKnown = () => {
  const room = Math.floor((window.innerHeight - 220) / (BOX.height + BOX.gap)) - FEW_OTHERS;
  return Math.max(LEAST_KNOWN, Math.min(room, MOST_KNOWN));
};

function ancestors(below) {
  const found = new Set(), open = [...below];
  while (open.length) for (const j of net.parents[open.pop()]) if (!found.has(j)) { found.add(j); open.push(j); }
  return found;
}

/* The causes to draw: the chosen one, and likely ones above what is known. */
function drawnCauses() {
  const above = ancestors(known.keys()), first = chosen === null || certain(chosen) ? [] : [chosen];
  const likely = ranked().filter(i => !certain(i) && (!known.size || above.has(i)) && i !== chosen);
  return [...first, ...likely.slice(0, FEW_CAUSES - first.length)];
}

/* What is known, as far as it is drawn: the findings that add most to one of these causes, in nats. */
function drawnFindings(shown) {
  const largest = x => Math.max(0, ...x.map(Math.abs));
  const size = i => Math.max(0, ...shown.map(c => largest((nats.get(c) || {})[i] || [0])));
  return [...known.keys()].map(i => [i, size(i)]).sort((a, b) => b[1] - a[1]).slice(0, fewKnown()).map(pair => pair[0]);
}

/* The variables to draw: causes, what is known, and the findings worth asking. */
function neighbourhood() {
  const shown = drawnCauses(), told = drawnFindings(shown), picked = new Set([...shown, ...told]);
  if (chosen !== null) picked.add(chosen);
  const near = i => children[i].filter(c => !known.has(c));
  const worth = new Map((questions || []).map((q, rank) => [q.unit, -rank]));
  const likely = j => 0.1 + present(answer.beliefs, j);
  const share = c => (x, j, e) => picked.has(j) ? x + Math.abs(net.strength[c][e]) * likely(j) : x;
  const pull = c => net.parents[c].reduce(share(c), 0), rank = c => worth.has(c) ? worth.get(c) : -1e6;
  const others = [...new Set([...picked].filter(i => !certain(i)).flatMap(near))].filter(c => !picked.has(c));
  others.sort((a, b) => rank(b) - rank(a) || pull(b) - pull(a));
  for (const c of others.slice(0, FEW_OTHERS)) picked.add(c);
  for (const i of told) for (const j of onTheWay(i, picked)) picked.add(j);
  return [...picked].sort((a, b) => a - b);
}

/* Variables between a drawn cause and something known, if they are few. */
function onTheWay(i, picked) {
  const way = net.parents[i].filter(j => !picked.has(j) && net.parents[j].some(k => picked.has(k)));
  return way.length <= 3 ? way : [];
}

function layOut(drawn) {
  const inside = new Set(drawn), depth = new Map();
  const below = (d, j) => inside.has(j) ? Math.max(d, depth.get(j) + 1) : d;
  for (const i of drawn) depth.set(i, net.parents[i].reduce(below, isCause.has(i) ? 0 : 1));
  const columns = [];
  for (const i of drawn) (columns[depth.get(i)] ||= []).push(i);
  const filled = columns.filter(Boolean), spot = new Map();
  filled.forEach((column, c) => {
    const key = i => c === 0 ? -present(answer.beliefs, i) : middle(i, spot);
    column.sort((a, b) => key(a) - key(b) || a - b).forEach((i, r) => spot.set(i, [c, r, column.length]));
  });
  return { spot, columns: filled.length, rows: Math.max(...filled.map(column => column.length)) };
}

function middle(i, spot) {
  const rows = net.parents[i].filter(j => spot.has(j)).map(j => spot.get(j)[1] / spot.get(j)[2]);
  return rows.length ? rows.reduce((x, y) => x + y, 0) / rows.length : 1;
}

function drawAnew() {
  if (answer && Math.abs($("drawing").clientWidth - drawnWidth) > 1) draw();
}

function draw() {
  if (!answer) return;
  const shown = drawnCauses(), waiting = known.size > fewKnown() && shown.length > 0 && shown.every(i => !nats.has(i));
  $("drawing").classList.toggle("busy", waiting);
  if (waiting) return;  // which findings matter is not known yet
  const drawn = neighbourhood(), { spot, columns, rows } = layOut(drawn), { height, gap, least, most } = BOX;
  drawnWidth = $("drawing").clientWidth;
  const apart = Math.max(24, Math.min(80, drawnWidth * 0.3 / columns));
  const width = Math.max(least, Math.min(most, (drawnWidth - 4 - (columns - 1) * apart) / columns));
  const spread = columns > 1 ? Math.max(apart, (drawnWidth - 4 - columns * width) / (columns - 1)) : apart;
  const wide = columns * width + (columns - 1) * spread + 4, high = rows * (height + gap) + 4;
  const corner = i => {
    const [c, r, n] = spot.get(i), pitch = (rows * (height + gap)) / n;
    return [2 + c * (width + spread), 2 + (r + 0.5) * pitch - height / 2];
  };
  const svg = el("svg:svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, role: "group",
    "aria-label": "Causes and findings that matter now" });
  const edges = [];
  for (const i of drawn)
    net.parents[i].forEach((j, e) => { if (spot.has(j)) edges.push([j, i, net.strength[i][e]]); });
  edges.sort((a, b) => (a[0] === chosen) - (b[0] === chosen));
  const touched = (j, i) => j === chosen || i === chosen;
  for (const [j, i, strength] of edges) svg.append(edge(corner(j), corner(i), width, strength, touched(j, i)));
  for (const i of drawn) svg.append(box(i, corner(i), width));
  const focused = document.activeElement && document.activeElement.closest("#drawing .node");
  $("drawing").replaceChildren(svg);
  if (focused) svg.querySelector(`[data-node="${focused.dataset.node}"]`)?.focus();
  describe(drawn.length);
  askDrawn(drawn);
}

function describe(n) {
  const few = fewKnown(), all = units.length.toLocaleString("en");
  const subject = known.size > few ? `the ${few} of ${known.size} known findings that matter most, their` : "what is known, its";
  $("drawing-note").textContent = known.size
    ? `${n} of ${all} variables: ${subject} likely causes, and what else they would show.`
    : `The likeliest causes and what they would show: ${n} of ${all} variables.`;
}

function edge([x, y], [u, v], width, strength, near) {
  const { height } = BOX, a = x + width, b = y + height / 2, d = v + height / 2, bend = Math.max((u - a) / 2, 12);
  const thick = Math.min(0.8 + Math.abs(strength) * 0.9, 4.5);
  const kind = `edge${near ? " near" : ""}${strength < 0 ? " against" : ""}`;
  return el("svg:path", { class: kind, "stroke-width": thick.toFixed(2),
    d: `M${a} ${b}C${a + bend} ${b} ${u - bend} ${d} ${u} ${d}` });
}

/* What stands in a box: the state that is known, the probability of the second of two states, or the likeliest one. */
function boxed(i) {
  const belief = answer.beliefs[i], n = net.states[i].length;
  if (known.has(i) && certain(i)) return net.states[i][known.get(i)];
  if (!belief) return "";
  if (n === 2) return percent(belief[1]);
  const best = belief.reduce((a, p, s) => p > belief[a] ? s : a, 0);
  return `${shorten(net.states[i][best], 8)} ${percent(belief[best])}`;
}

const nextState = i => {  // of a click: the second state, and so on, then the first, then unknown
  const n = net.states[i].length, now = certain(i) ? known.get(i) : undefined;
  return now === undefined ? 1 : now === 0 ? undefined : (now + 1) % n;
};

function box(i, [x, y], width) {
  const { height } = BOX, state = known.get(i), value = boxed(i), mean = present(answer.beliefs, i);
  const kind = state === 0 ? " no" : certain(i) ? " yes" : "";
  const act = () => isCause.has(i) ? choose(i) : tell(i, nextState(i));
  const node = el("svg:g", {
    class: `node${kind}${i === chosen ? " chosen" : ""}`, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
    tabindex: "0", role: "button", "data-node": i, "aria-label": `${net.names[i]}: ${value}`, onclick: act,
    onkeydown: event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); } } });
  node.append(el("svg:title", {}, `${heading(i)} (${value})`), el("svg:rect", { class: "box", width, height, rx: 6 }));
  if (!certain(i))
    node.append(el("svg:rect", {
      class: "level", x: 1, y: 1, width: Math.max(mean * (width - 2), 0).toFixed(1), height: height - 2, rx: 5,
    }));
  const right = shorten(value, Math.floor(width * 0.5 / 6.4));
  const left = shorten(net.names[i], Math.floor((width - 26 - 6.4 * [...right].length) / 6.6));
  node.append(el("svg:text", { x: 9, y: height / 2 + 4.5 }, left),
    el("svg:text", { class: "value", x: width - 8, y: height / 2 + 4.5, "text-anchor": "end" }, right));
  return node;
}

/* At most so many characters. */
function shorten(name, most) {
  const all = [...name], room = Math.max(most, 4);
  return all.length > room ? `${all.slice(0, room - 1).join("")}…` : name;
}
