/* A drawing of what matters: what is known, the likely causes of it, and what else these causes would show.

   Columns go by depth, causes on the left; where there are too many of them, lines go by depth, causes at the top.
   A box is filled as far as its variable is likely to be present. The drawing is as wide as its place, and has as many
   findings as fit into the window. */
"use strict";

const MOST = 5, LEAST_KNOWN = 8, MOST_KNOWN = 18;
let few = MOST;  // causes, and other findings; fewer where lines would wrap
const BOX = { gap: 9, least: 88, most: 260, narrow: 128 };  // pixels
const HIGH = { one: 32, two: 44 };  // of boxes with the value beside the name, and below it
let drawnWidth = 0, height = HIGH.one;

/* As many findings as fit beside each other into the window. */
const fewKnown = () => {
  const room = Math.floor((window.innerHeight - 220) / (HIGH.one + BOX.gap)) - MOST;
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
  return [...first, ...likely.slice(0, few - first.length)];
}

/* What is known, as far as it is drawn: the findings that add most to one of these causes, in nats. */
function drawnFindings(shown) {
  const largest = x => Math.max(0, ...x.map(Math.abs));
  const size = i => Math.max(0, ...shown.map(c => largest((nats.get(c) || {})[i] || [0])));
  const sized = [...known.keys()].map(i => [i, size(i)]).sort((a, b) => b[1] - a[1]);
  return sized.slice(0, fewKnown()).map(pair => pair[0]);
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
  for (const c of others.slice(0, few)) picked.add(c);
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
  return filled;
}

function middle(i, spot) {
  const rows = net.parents[i].filter(j => spot.has(j)).map(j => spot.get(j)[1] / spot.get(j)[2]);
  return rows.length ? rows.reduce((x, y) => x + y, 0) / rows.length : 1;
}

/* Where each box is: columns beside each other if they fit, else below each other in lines. */
function places(columns, room) {
  const { gap, least, most, narrow } = BOX, n = columns.length, corner = new Map();
  const apart = Math.max(24, Math.min(80, room * 0.3 / n)), own = (room - 4 - (n - 1) * apart) / n;
  if (own < least && n > 2) return inLines(columns, room);
  const width = Math.max(least, Math.min(most, own)), rows = Math.max(...columns.map(column => column.length));
  const spread = n > 1 ? Math.max(apart, (room - 4 - n * width) / (n - 1)) : apart;
  height = width < narrow ? HIGH.two : HIGH.one;
  const all = rows * (height + gap);
  columns.forEach((column, c) => column.forEach((i, r) =>
    corner.set(i, [2 + c * (width + spread), 2 + (r + 0.5) * all / column.length - height / 2])));
  return { corner, width, wide: n * width + (n - 1) * spread + 4, high: all + 4, down: false, wraps: 0 };
}

function inLines(columns, room) {
  const { gap, least } = BOX, most = Math.max(2, Math.floor((room - 4 + gap) / (least + gap))), corner = new Map();
  const width = (room - 4 - (most - 1) * gap) / most;
  let y = 2;
  height = HIGH.two;
  for (const column of columns) {
    const lines = Math.ceil(column.length / most), own = Math.ceil(column.length / lines);
    for (let first = 0; first < column.length; first += own) {
      const line = column.slice(first, first + own), free = (room - 4 - line.length * width) / (line.length + 1);
      const aside = lines > 1 && line.length < most ? (first / own % 2 - 0.5) * Math.min(width + gap, 2 * free) : 0;
      line.forEach((i, k) => corner.set(i, [2 + k * width + (k + 1) * free + aside, y]));  // edges pass between boxes
      y += height + gap;
    }
    y += 30;
  }
  const wraps = columns.filter(column => column.length > most).length;
  return { corner, width, wide: room, high: y - 30, down: true, wraps };
}

function drawAnew() {
  if (answer && Math.abs($("drawing").clientWidth - drawnWidth) > 1) draw();
}

function draw() {
  if (!answer) return;
  const shown = drawnCauses(), waiting = known.size > fewKnown() && shown.length > 0 && shown.every(i => !nats.has(i));
  $("drawing").classList.toggle("busy", waiting);
  if (waiting) return;  // which findings matter is not known yet
  drawnWidth = $("drawing").clientWidth;
  const attempt = n => {
    few = n;
    const some = neighbourhood();
    return { drawn: some, ...places(layOut(some), Math.max(drawnWidth, 200)) };
  };
  let best = attempt(MOST), n = MOST;
  for (let less = MOST - 1; best.wraps && less > 1; less--) {
    const other = attempt(less);
    if (other.wraps < best.wraps) [best, n] = [other, less];
  }
  few = n;
  const { drawn, corner, width, wide, high, down } = best;
  const svg = el("svg:svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, role: "group",
    "aria-label": "Causes and findings that matter now" });
  const edges = [];
  for (const i of drawn)
    net.parents[i].forEach((j, e) => { if (corner.has(j)) edges.push([j, i, net.strength[i][e]]); });
  edges.sort((a, b) => (a[0] === chosen) - (b[0] === chosen));
  const touched = (j, i) => j === chosen || i === chosen;
  for (const [j, i, strength] of edges)
    svg.append(edge(corner.get(j), corner.get(i), width, strength, touched(j, i), down));
  for (const i of drawn) svg.append(box(i, corner.get(i), width));
  const focused = document.activeElement && document.activeElement.closest("#drawing .node");
  $("drawing").replaceChildren(svg);
  if (focused) svg.querySelector(`[data-node="${focused.dataset.node}"]`)?.focus();
  describe(drawn.length);
  askDrawn(drawn);
}

function describe(n) {
  const few = fewKnown(), all = units.length.toLocaleString("en");
  const some = `the ${few} of ${known.size} known findings that matter most, their`;
  const subject = known.size > few ? some : "what is known, its";
  $("drawing-note").textContent = known.size
    ? `${n} of ${all} variables: ${subject} likely causes, and what else they would show.`
    : `The likeliest causes and what they would show: ${n} of ${all} variables.`;
}

function edge([x, y], [u, v], width, strength, near, down) {
  const thick = Math.min(0.8 + Math.abs(strength) * 0.9, 4.5);
  const kind = `edge${near ? " near" : ""}${strength < 0 ? " against" : ""}`;
  const [a, b] = down ? [x + width / 2, y + height] : [x + width, y + height / 2];
  const [c, d] = down ? [u + width / 2, v] : [u, v + height / 2];
  const bend = Math.max((down ? d - b : c - a) / 2, 12), [right, low] = down ? [0, bend] : [bend, 0];
  return el("svg:path", { class: kind, "stroke-width": thick.toFixed(2),
    d: `M${a} ${b}C${a + right} ${b + low} ${c - right} ${d - low} ${c} ${d}` });
}

/* What stands in a box, a word and a number after it: the state that is known, the probability of the second of two states, or
   the likeliest one. */
function boxed(i) {
  const belief = answer.beliefs[i], n = net.states[i].length;
  if (known.has(i) && certain(i)) return [net.states[i][known.get(i)], ""];
  if (!belief) return ["", ""];
  if (n === 2) return ["", percent(present(answer.beliefs, i))];
  const best = belief.reduce((a, p, s) => p > belief[a] ? s : a, 0);
  return [net.states[i][best], ` ${percent(belief[best])}`];
}

const nextState = i => {  // of a click: all states, the one that means nothing last, then unknown
  const order = [...somewhere(i), net.nothing[i]], at = certain(i) ? order.indexOf(known.get(i)) : -1;
  return order[at + 1];
};

function box(i, [x, y], width) {
  const state = known.get(i), two = height === HIGH.two, [word, number] = boxed(i), mean = present(answer.beliefs, i);
  const kind = !certain(i) ? "" : net.states[i].length > 2 ? " one" : state !== net.nothing[i] ? " yes" : " no";
  const act = () => isListed.has(i) ? choose(i) : tell(i, nextState(i));
  const node = el("svg:g", {
    class: `node${kind}${i === chosen ? " chosen" : ""}`, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
    tabindex: "0", role: "button", "data-node": i, "aria-label": `${net.names[i]}: ${word}${number}`, onclick: act,
    onkeydown: event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); } } });
  node.append(el("svg:title", {}, `${heading(i)} (${word}${number})`), el("svg:rect", { class: "box", width, height, rx: 6 }));
  if (!certain(i))
    node.append(el("svg:rect", {
      class: "level", x: 1, y: 1, width: Math.max(mean * (width - 2), 0).toFixed(1), height: height - 2, rx: 5,
    }));
  const right = fitted(word, number, two ? width - 14 : width * 0.5, certain(i) ? "600 11.5px" : "11.5px");
  const left = fitted(net.names[i], "", two ? width - 14 : width - 26 - pen.measureText(right).width, "12.5px");
  node.append(el("svg:text", { x: two ? 7 : 9, y: two ? 18 : height / 2 + 4.5 }, left),
    el("svg:text", two ? { class: "value", x: 7, y: 35 }
      : { class: "value", x: width - 8, y: height / 2 + 4.5, "text-anchor": "end" }, right));
  return node;
}

const pen = document.createElement("canvas").getContext("2d");  // measures texts

/* As much of a text as has room, in pixels, before an end that stays. */
function fitted(text, end, room, font) {
  const all = [...text], cut = n => n < all.length ? `${all.slice(0, n).join("")}…${end}` : text + end;
  let n = all.length;
  pen.font = `${font} ${getComputedStyle(document.body).fontFamily}`;
  while (n > 1 && pen.measureText(cut(n)).width > room) n--;
  return cut(n);
}

/* At most so many characters. */
function shorten(name, most) {
  const all = [...name], room = Math.max(most, 4);
  return all.length > room ? `${all.slice(0, room - 1).join("")}…` : name;
}
