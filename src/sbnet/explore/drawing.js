/* A drawing of what matters: what is known, the likely causes of it, and what else these causes would show.

   Columns go by depth, causes on the left; a box is filled as far as its unit is likely. */
"use strict";

const FEW_CAUSES = 5, FEW_KNOWN = 8, FEW_OTHERS = 5;
const BOX = { height: 30, gap: 9 }, TWO = { width: 168, apart: 70 }, MORE = { width: 124, apart: 42 };  // columns

function ancestors(below) {
  const found = new Set(), open = [...below];
  while (open.length) for (const j of net.parents[open.pop()]) if (!found.has(j)) { found.add(j); open.push(j); }
  return found;
}

/* The causes to draw: the chosen one, and likely ones above what is known. */
function drawnCauses() {
  const above = ancestors(known.keys()), first = chosen === null || known.has(chosen) ? [] : [chosen];
  const likely = ranked().filter(i => !known.has(i) && (!known.size || above.has(i)) && i !== chosen);
  return [...first, ...likely.slice(0, FEW_CAUSES - first.length)];
}

/* What is known, as far as it is drawn: the findings that add most to one of these causes, in nats. */
function drawnFindings(shown) {
  const size = i => Math.max(0, ...shown.map(c => Math.abs((nats.get(c) || {})[i] || 0)));
  return [...known.keys()].map(i => [i, size(i)]).sort((a, b) => b[1] - a[1]).slice(0, FEW_KNOWN).map(pair => pair[0]);
}

/* The units to draw: causes, what is known, and the findings worth asking. */
function neighbourhood() {
  const shown = drawnCauses(), told = drawnFindings(shown), picked = new Set([...shown, ...told]);
  if (chosen !== null) picked.add(chosen);
  const near = i => children[i].filter(c => !known.has(c));
  const worth = new Map((questions || []).map((q, rank) => [q.unit, -rank]));
  const share = c => (x, j, e) => picked.has(j) ? x + Math.abs(net.weights[c][e]) * (0.1 + answer.means[j]) : x;
  const pull = c => net.parents[c].reduce(share(c), 0), rank = c => worth.has(c) ? worth.get(c) : -1e6;
  const others = [...new Set([...picked].filter(i => !known.has(i)).flatMap(near))].filter(c => !picked.has(c));
  others.sort((a, b) => rank(b) - rank(a) || pull(b) - pull(a));
  for (const c of others.slice(0, FEW_OTHERS)) picked.add(c);
  for (const i of told) for (const j of onTheWay(i, picked)) picked.add(j);
  return [...picked].sort((a, b) => a - b);
}

/* Units between a drawn cause and something known, if they are few. */
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
    const key = i => c === 0 ? -answer.means[i] : middle(i, spot);
    column.sort((a, b) => key(a) - key(b) || a - b).forEach((i, r) => spot.set(i, [c, r, column.length]));
  });
  return { spot, columns: filled.length, rows: Math.max(...filled.map(column => column.length)) };
}

function middle(i, spot) {
  const rows = net.parents[i].filter(j => spot.has(j)).map(j => spot.get(j)[1] / spot.get(j)[2]);
  return rows.length ? rows.reduce((x, y) => x + y, 0) / rows.length : 1;
}

function draw() {
  if (!answer) return;
  const waiting = known.size > FEW_KNOWN && drawnCauses().every(i => !nats.has(i)) && drawnCauses().length > 0;
  $("drawing").classList.toggle("busy", waiting);
  if (waiting) return;  // which findings matter is not known yet
  const drawn = neighbourhood(), { spot, columns, rows } = layOut(drawn), { height, gap } = BOX;
  const { width, apart } = columns > 2 ? MORE : TWO;
  const wide = columns * width + (columns - 1) * apart + 4, high = rows * (height + gap) + 4;
  const corner = i => {
    const [c, r, n] = spot.get(i), spare = (rows - n) * (height + gap) / 2;
    return [2 + c * (width + apart), 2 + spare + r * (height + gap)];
  };
  const label = "Causes and findings that matter now";
  const svg = el("svg:svg", { viewBox: `0 0 ${wide} ${high}`, role: "group", "aria-label": label });
  if (columns > 3) svg.style.minWidth = `${wide * 0.8}px`;
  const edges = [];
  for (const i of drawn) net.parents[i].forEach((j, e) => { if (spot.has(j)) edges.push([j, i, net.weights[i][e]]); });
  edges.sort((a, b) => (a[0] === chosen) - (b[0] === chosen));
  const touched = (j, i) => j === chosen || i === chosen;
  for (const [j, i, weight] of edges) svg.append(edge(corner(j), corner(i), width, weight, touched(j, i)));
  for (const i of drawn) svg.append(box(i, corner(i), width));
  const focused = document.activeElement && document.activeElement.closest("#drawing .node");
  $("drawing").replaceChildren(svg);
  if (focused) svg.querySelector(`[data-node="${focused.dataset.node}"]`)?.focus();
  const matter = `the ${FEW_KNOWN} of ${known.size} known findings that matter most, their`;
  const subject = known.size > FEW_KNOWN ? matter : "what is known, its", all = units.length.toLocaleString("en");
  $("drawing-note").textContent = known.size
    ? `${drawn.length} of ${all} units: ${subject} likely causes, and what else they would show.`
    : `The likeliest causes and what they would show: ${drawn.length} of ${all} units.`;
}

function edge([x, y], [u, v], width, weight, near) {
  const { height } = BOX, a = x + width, b = y + height / 2, d = v + height / 2, bend = Math.max((u - a) / 2, 20);
  const thick = Math.min(0.8 + Math.abs(weight) * 0.9, 4.5);
  const kind = `edge${near ? " near" : ""}${weight < 0 ? " against" : ""}`;
  return el("svg:path", { class: kind, "stroke-width": thick.toFixed(2),
    d: `M${a} ${b}C${a + bend} ${b} ${u - bend} ${d} ${u} ${d}` });
}

function box(i, [x, y], width) {
  const { height } = BOX, state = known.get(i), mean = probabilities.get(i) ?? answer.means[i];
  const kind = state === 1 ? " yes" : state === 0 ? " no" : "";
  const value = state === undefined ? percent(mean) : stateName(i, state);
  const act = () => isCause.has(i) ? choose(i) : tell(i, state === undefined ? 1 : state === 1 ? 0 : -1);
  const node = el("svg:g", {
    class: `node${kind}${i === chosen ? " chosen" : ""}`, transform: `translate(${x} ${y})`, tabindex: "0",
    role: "button", "data-node": i, "aria-label": `${net.names[i]}: ${value}`, onclick: act,
    onkeydown: event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); } } });
  node.append(el("svg:title", {}, `${heading(i)} (${value})`),
    el("svg:rect", { class: "box", width, height, rx: 6 }));
  if (state === undefined)
    node.append(el("svg:rect", {
      class: "level", x: 1, y: 1, width: Math.max(mean * (width - 2), 0).toFixed(1), height: height - 2, rx: 5,
    }));
  const short = shorten(net.names[i], width - 24 - 6.4 * value.length);
  node.append(el("svg:text", { x: 9, y: height / 2 + 4.5 }, short),
    el("svg:text", { class: "value", x: width - 8, y: height / 2 + 4.5, "text-anchor": "end" }, value));
  return node;
}

function shorten(name, room) {
  const most = Math.max(Math.floor(room / 6.6), 5), all = [...name];
  return all.length > most ? `${all.slice(0, most - 1).join("")}…` : name;
}
