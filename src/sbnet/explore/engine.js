/* Where answers come from: a server on this machine, or the solver in this page. Both have the same verbs, with states
   as arrays of 0, 1 and -1 for "not observed":

       answer(states)           {bound, means, exact, converged}
       reasons(states, units)   {unit: {finding: nats}}: what would be lost of a unit's log-odds without that finding
       questions(states)        [{unit, information, probability}], the best first
       certificate(states)      {lower, upper} of ln P, guaranteed; a server only
       intervals(states, units) {unit: [low, high]}, guaranteed; a server only */
"use strict";

const observed = states => Array.from(states.keys()).filter(i => states[i] >= 0);

function changed(states, i, value) {
  const copy = Int8Array.from(states);
  copy[i] = value;
  return copy;
}

const IMPOSSIBLE = "by this model these findings cannot be, their probability is 0";

class Unreachable extends Error {}  // nobody answers; later, someone may

class Remote {
  constructor(path = "") { this.path = path; this.certifies = true; }
  async post(verb, states, more = {}) {
    const evidence = Object.fromEntries(observed(states).map(i => [i, states[i]]));
    const body = JSON.stringify({ evidence, ...more });
    const headers = { "Content-Type": "application/json" };
    const lost = () => { throw new Unreachable("the server cannot be reached"); };
    const reply = await fetch(this.path + verb, { method: "POST", headers, body, credentials: "omit" }).catch(lost);
    if (reply.ok) return reply.json().catch(lost);
    throw new Error((await reply.json().catch(() => ({}))).error || `the server answered ${reply.status}`);
  }
  async answer(states) {
    const found = await this.post("answer", states);
    if (found.bound === null) throw new Error(IMPOSSIBLE);
    return found;
  }
  reasons(states, units) { return this.post("reasons", states, { units }); }
  questions(states) { return this.post("questions", states); }
  certificate(states) { return this.post("certificate", states); }
  intervals(states, units) { return this.post("intervals", states, { units }); }
}

const PATIENCE = { patience: 1000 }, LONG = 4000;  // milliseconds for one answer; for all questions

class Local {
  constructor(net, causes, findings) { Object.assign(this, { net, causes, findings, certifies: false, tries: 24 }); }
  async answer(states) {
    const cannot = Solver.impossible(this.net, states).map(i => `“${this.net.names[i]}”`);
    if (cannot.length) throw new Error(`${IMPOSSIBLE}: they leave no state for ${cannot.join(", ")}`);
    return Sums.best(this.net, [states], this.causes, PATIENCE)[0];
  }

  async reasons(states, units) {
    const given = observed(states), without = given.map(f => changed(states, f, -1)), nothing = states.map(() => -1);
    const [all, ...less] = Sums.best(this.net, [states, ...without, nothing], units, PATIENCE);
    const lost = (f, n, i) => [f, logit(all.means[i]) - logit(less[n].means[i])];
    return Object.fromEntries(units.map(i => [i, Object.fromEntries(given.map((f, n) => lost(f, n, i)))]));
  }

  async questions(states, stale = () => false) {
    const { net } = this, about = this.causes.filter(i => states[i] < 0), candidates = this.promising(states, about);
    const ways = [row => Sums.exact(net, row, about), row => Sums.approximate(net, row, PATIENCE)];
    const rows = candidates.flatMap(f => [0, 1].map(s => changed(states, f, s)));
    if (![states, ...rows].every(row => Sums.small(net, row))) ways.shift();
    for (const way of ways) {
      const found = way(states) && await this.worth(candidates, rows, about, way, stale);
      if (found) return found.sort((a, b) => b.information - a.information || a.unit - b.unit);
      if (stale()) return null;
    }
    return [];
  }

  /* What each candidate is expected to tell, from its answers to no and yes by turns; null if there is no answer. */
  async worth(candidates, rows, about, way, stale) {
    const found = [], start = performance.now();
    for (const [n, unit] of candidates.entries()) {
      const no = way(rows[2 * n]), yes = way(rows[2 * n + 1]);
      if (!no || !yes) return null;
      const p = 1 / (1 + Math.exp(no.bound - yes.bound));
      const information = about.reduce((sum, i) => sum + entropy(p * yes.means[i] + (1 - p) * no.means[i])
        - p * entropy(yes.means[i]) - (1 - p) * entropy(no.means[i]), 0);
      found.push({ unit, information: information < 1e-9 ? 0 : information, probability: p });
      await new Promise(done => setTimeout(done));  // a click comes first
      if (stale()) return null;
      if (performance.now() - start > LONG) break;
    }
    return found;
  }

  /* The candidates that would say most about the units next to them, if all hidden units were independent. */
  promising(states, about) {
    const { net } = this, candidates = this.findings.filter(i => states[i] < 0);
    if (candidates.length <= this.tries) return candidates;
    const { means } = Solver.solve(net, states, PATIENCE), score = new Float64Array(means.length);
    const asked = new Set(about);
    net.parents.forEach((parents, i) => {
      if (states[i] >= 0) return;
      const [off, on] = [0, 1].map(s => edgeProbabilities(net, i, means, s));
      parents.forEach((j, e) => {
        const m = means[j];
        const information = entropy(m * on[e] + (1 - m) * off[e]) - m * entropy(on[e]) - (1 - m) * entropy(off[e]);
        score[i] += Math.max(information, 0) * (asked.has(j) ? 1 : 0.01);
        score[j] += Math.max(information, 0) * (asked.has(i) ? 1 : 0.01);
      });
    });
    return candidates.sort((a, b) => score[b] - score[a] || a - b).slice(0, this.tries);
  }
}

/* For each parent of unit i: the probability of i with that parent in state s and the others at their means. */
function edgeProbabilities(net, i, means, s) {
  const mu = net.parents[i].map(j => means[j]), weight = net.weights[i];
  if (net.gate[i]) {
    const stays = weight.map((w, e) => Math.log(Math.max(1 + mu[e] * Math.expm1(-w), 1e-300)));
    const all = stays.reduce((x, y) => x + y, -net.bias[i]);
    return weight.map((w, e) => -Math.expm1(Math.min(all - stays[e] - w * s, 0)));
  }
  const spread = weight.map((w, e) => w * w * mu[e] * (1 - mu[e])), all = spread.reduce((x, y) => x + y, 0);
  const mean = weight.reduce((x, w, e) => x + w * mu[e], net.bias[i]);
  return weight.map((w, e) =>
    1 / (1 + Math.exp(-(mean + w * (s - mu[e])) / Math.sqrt(1 + Math.PI / 8 * Math.max(all - spread[e], 0)))));
}

const entropy = p => p > 0 && p < 1 ? -p * Math.log(p) - (1 - p) * Math.log1p(-p) : 0;
const logit = p => { const q = Math.min(Math.max(p, 1e-12), 1 - 1e-12); return Math.log(q / (1 - q)); };
