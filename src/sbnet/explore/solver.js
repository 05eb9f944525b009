/* Mean field inference for one pattern of evidence: the bound and the fixed point of MeanField(log_term="xi").

   A unit with state S and input x = h + sum of J S adds a(S) x - c(S) t(x) to ln P:

       gate 0, sigmoid     a = S        c = 1    t(x) = ln(1 + e^x)
       gate 1, noisy-OR    a = S - 1    c = S    t(x) = -ln(1 - e^-x)

   Under independent means mu the bound is the sum of a(mu) <x> - c(mu) <t(x)> and the entropy. <t(x)> is a sum over
   states if a unit has up to four hidden parents; else the paper's bound with its xi for sigmoid units, and for
   noisy-OR units a sum of exponentials above t, whose means are products. Units that nothing observed depends on drop
   out. The network: {gate, bias, parents, weights, series}, parents before children. */
"use strict";

const Solver = (() => {
  const EDGE = 1e-14, FEW = 4, LEAST = 1e-300, NOTHING = 1e-20, POINTS = 5, STRONG = 40, CERTAIN = 1000;
  const { LN2 } = Math;

  const softplus = x => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
  const sigmoid = x => { const t = Math.exp(-Math.abs(x)); return x >= 0 ? 1 / (1 + t) : t / (1 + t); };
  const rarity = x => {
    const y = Math.max(x, LEAST);
    return y < LN2 ? -Math.log(-Math.expm1(-y)) : -Math.log1p(-Math.exp(-y));
  };
  const t = (gate, x) => gate ? rarity(x) : softplus(x);
  const probability = (gate, x) => gate ? -Math.expm1(-Math.max(x, LEAST)) : sigmoid(x);
  const logOdds = (gate, x) => gate ? Math.max(x, 0) - rarity(x) : x;
  const loads = (gate, s) => gate ? [s - 1, s] : [s, 1];
  const logP = (gate, s, x) => gate ? (s ? -rarity(x) : -Math.max(x, 0)) : -softplus(s ? -x : x);
  const entropy = m => -m * Math.log(m) - (1 - m) * Math.log1p(-m);

  // ln(1 - m + m e^u), and its gradient in m; e^u may be too large for a number
  const logMix = (u, m) => u > 0 ? u + Math.log1p((1 - m) * Math.expm1(-u)) : Math.log1p(m * Math.expm1(u));
  const mixGradient = (u, m) => u > 0
    ? -Math.expm1(-u) / ((1 - m) * Math.exp(-u) + m)
    : Math.expm1(u) / (1 + m * Math.expm1(u));

  /* The three ways to bound <t(x)>. Each has `renew` (everything at the present means), `gradient` (of <t> in the
     mean of parent s) and `move` (that mean has gone from `old` to `now`). */

  class Enumerated {
    constructor(gate, weight, bias) {
      this.table = Float64Array.from({ length: 1 << weight.length }, (_, state) =>
        t(gate, weight.reduce((x, w, s) => state >> s & 1 ? x + w : x, bias)));
    }
    contract(mu, skip) {  // the mean over independent parents; of `skip`, the difference between on and off
      const values = Float64Array.from(this.table);
      for (let s = mu.length - 1, size = values.length >> 1; s >= 0; s--, size >>= 1)
        for (let k = 0; k < size; k++) {
          const change = values[k + size] - values[k];
          values[k] = s === skip ? change : values[k] + mu[s] * change;
        }
      return values[0];
    }
    renew(mu) { this.term = this.contract(mu, -1); }
    gradient(mu, s) { return this.contract(mu, s); }
    move(mu) { this.renew(mu); }
  }

  class Xi {  // <t> <= xi <z> + ln(A + B), eqs. (19)-(20), with A = <e^{-xi z}> and B = <e^{(1 - xi) z}>
    constructor(weight, bias) { Object.assign(this, { weight, bias, xi: null }); }
    measure(mu, xi) {  // ln A, ln B, and the first two derivatives of the term in xi
      const { weight, bias } = this;
      let a = -xi * bias, b = (1 - xi) * bias, mean = bias, meanA = bias, meanB = bias, varA = 0, varB = 0;
      for (let s = 0; s < weight.length; s++) {
        const j = weight[s], odds = Math.log(mu[s]) - Math.log1p(-mu[s]);
        const alpha = sigmoid(odds - xi * j), beta = sigmoid(odds + (1 - xi) * j);
        a += logMix(-xi * j, mu[s]);
        b += logMix((1 - xi) * j, mu[s]);
        mean += j * mu[s];
        meanA += j * alpha;
        meanB += j * beta;
        varA += j * j * alpha * (1 - alpha);
        varB += j * j * beta * (1 - beta);
      }
      const phi = sigmoid(b - a);  // eq. (32)
      const tilt = mean - (1 - phi) * meanA - phi * meanB;
      const bend = (1 - phi) * varA + phi * varB + phi * (1 - phi) * (meanB - meanA) ** 2;
      return { xi, a, b, mean, tilt, bend, term: xi * mean + a + softplus(b - a) };
    }
    renew(mu) {  // Newton's method within what the sign of the gradient leaves; the first time xi stays at one half
      let left = 0, right = 1, x = this.xi === null ? 0.5 : this.xi, best = null;
      for (let step = 0; step < 60; step++) {
        const here = this.measure(mu, x);
        if (best === null || here.term <= best.term) best = here;
        if (this.xi === null) break;
        if (here.tilt > 0) right = x; else left = x;
        let next = here.bend > 0 ? x - here.tilt / here.bend : (left + right) / 2;
        next = Math.min(Math.max(next, left), right);
        if ((next === left && left > 0) || (next === right && right < 1)) next = (left + right) / 2;
        if (Math.abs(next - x) < 1e-12) break;
        x = next;
      }
      Object.assign(this, best);
    }
    gradient(mu, s) {
      const phi = sigmoid(this.b - this.a), j = this.weight[s];
      return this.xi * j + (1 - phi) * mixGradient(-this.xi * j, mu[s]) + phi * mixGradient((1 - this.xi) * j, mu[s]);
    }
    move(mu, s, old, now) {
      const j = this.weight[s];
      this.a += logMix(-this.xi * j, now) - logMix(-this.xi * j, old);
      this.b += logMix((1 - this.xi) * j, now) - logMix((1 - this.xi) * j, old);
      this.mean += j * (now - old);
      this.term = this.xi * this.mean + this.a + softplus(this.b - this.a);
    }
  }

  class Series {  // t(x) <= sum of w e^{-kx} + tail; a node k = infinity puts right the state with no cause on
    constructor(weight, bias, { nodes, weights, until }) {
      const counts = weight.filter(w => w > NOTHING), least = Math.min(...counts);
      const n = nodesFor(until, least), reach = until[n - 1] * (least + bias);
      this.tail = counts.length ? Math.exp(-reach) / reach : 0;
      this.share = new Float64Array(n + 1);
      for (let q = 0; q < n; q++) this.share[q] = weights[q] * Math.exp(-nodes[q] * bias);
      this.share[n] = rarity(bias) - this.tail - this.share.reduce((x, y) => x + y, 0);
      this.decay = weight.map(w => Float64Array.from({ length: n + 1 }, (_, q) =>
        w > NOTHING ? (q < n ? Math.exp(-nodes[q] * w) : 0) : 1));
      this.product = new Float64Array(n + 1);
    }
    sum() {
      let total = this.tail;
      for (let q = 0; q < this.share.length; q++) total += this.share[q] * this.product[q];
      return total;
    }
    renew(mu) {
      this.product.fill(1);
      this.decay.forEach((_, s) => this.exchange(s, 0, mu[s]));
      this.term = this.sum();
    }
    gradient(mu, s) {
      const m = mu[s], decay = this.decay[s];
      let total = 0;
      for (let q = 0; q < decay.length; q++)
        total += this.share[q] * this.product[q] * (decay[q] - 1) / (1 - m + m * decay[q]);
      return total;
    }
    move(mu, s, old, now) {
      this.exchange(s, old, now);
      this.term = this.sum();
    }
    exchange(s, old, now) {
      const decay = this.decay[s], product = this.product;
      for (let q = 0; q < decay.length; q++) product[q] *= (1 - now + now * decay[q]) / (1 - old + old * decay[q]);
    }
  }

  const NONE = { term: 0, renew() {}, gradient: () => 0, move() {} };  // an absent finding is linear in its causes

  function nodesFor(until, weakest) {  // as many as leave less than 1e-13 beyond the last; whole stretches
    let n = 0;
    while (n < until.length && until[n] * weakest < 30) n++;
    n = Math.min(n + POINTS, until.length);
    while (n < until.length && until[n] === until[n - 1]) n++;
    return n;
  }

  function termOf(net, gate, state, weight, bias) {
    if (gate && state === 0) return NONE;
    if (weight.length <= FEW) return new Enumerated(gate, weight, bias);
    return gate ? new Series(weight, bias, net.series) : new Xi(weight, bias);
  }

  function liveUnits(net, states) {  // observed, or with something observed below
    const live = new Uint8Array(states.length);
    for (let i = states.length - 1; i >= 0; i--) {
      if (states[i] >= 0) live[i] = 1;
      if (live[i]) for (const j of net.parents[i]) live[j] = 1;
    }
    return live;
  }

  /* Units that can be in neither state: the rules of `sbnet.questions.support`, propagated until nothing follows.
     A unit that needs a cause is off if all of them are; one that is always on, or has a cause that is on and never
     fails, is on; a cause that never fails is off if its effect is. */
  function impossible(net, states) {
    const n = states.length, off = Array.from(states, s => s === 0), on = Array.from(states, s => s === 1);
    const rules = net.rules ??= Array.from({ length: n }, (_, i) => {
      const gate = net.gate[i], bias = net.bias[i], parents = net.parents[i], weights = net.weights[i];
      const prevented = weights.some(w => w < 0), needs = gate ? bias === 0 : bias === -CERTAIN;
      const fails = w => gate ? w !== CERTAIN : prevented || Math.abs(bias + w - CERTAIN) > 1e-9;
      return {
        needs, always: bias === CERTAIN && !prevented,
        causes: needs ? parents.filter((_, e) => weights[e] > 0) : [],
        sure: parents.filter((_, e) => !fails(weights[e])),
      };
    });
    for (let moved = true; moved;) {
      moved = false;
      const set = (known, i) => { if (!known[i]) known[i] = moved = true; };
      rules.forEach(({ needs, always, causes, sure }, i) => {
        if (always || sure.some(j => on[j])) set(on, i);
        if (needs && causes.every(j => off[j])) set(off, i);
        if (off[i]) sure.forEach(j => set(off, j));
      });
    }
    return off.flatMap((never, i) => never && on[i] ? [i] : []);
  }

  /* Is a hidden unit tied to a hidden parent by a weight that leaves one state, such as the states of one variable?
     Means of independent units contradict each other there. A unit that only follows one parent, and that nothing
     observed is below, does no harm. */
  function tied(net, states) {
    const live = liveUnits(net, states);
    return states.some((s, i) => {
      const near = s < 0 ? net.parents[i].map((_, e) => e).filter(e => states[net.parents[i][e]] < 0) : [];
      return near.some(e => Math.abs(net.weights[i][e]) >= STRONG) && (near.length > 1 || live[i] === 1);
    });
  }

  function absorbed(net, states, i) {  // observed parents only shift the bias
    return net.parents[i].reduce((x, j, e) => states[j] === 1 ? x + net.weights[i][e] : x, net.bias[i]);
  }

  function pose(net, states) {  // the problem: hidden units, and factors, the units that have hidden parents
    const live = liveUnits(net, states), place = new Map(), hidden = [], factors = [];
    let constant = 0;
    live.forEach((on, i) => {
      if (!on || states[i] >= 0) return;
      place.set(i, hidden.length);
      hidden.push({ i, own: null, children: [] });
    });
    live.forEach((on, i) => {
      if (!on) return;
      const near = net.parents[i].map((_, e) => e).filter(e => place.has(net.parents[i][e]));
      const gate = net.gate[i], bias = absorbed(net, states, i), mine = hidden[place.get(i)];
      if (near.length) {
        const weight = near.map(e => net.weights[i][e]), parents = near.map(e => place.get(net.parents[i][e]));
        const term = termOf(net, gate, states[i], weight, bias);
        const factor = { gate, weight, bias, value: states[i], term, parents, self: place.get(i) };
        parents.forEach((j, s) => hidden[j].children.push([factor, s]));
        factors.push(factor);
        if (mine) mine.own = factor;
      } else if (mine) {
        mine.odds = logOdds(gate, bias);
        mine.rest = logP(gate, 0, bias);
        constant += mine.rest;
      } else constant += logP(gate, states[i], bias);
    });
    return { hidden, factors, constant };
  }

  function renew(factors, mu) {
    for (const f of factors) {
      f.near = Float64Array.from(f.parents, j => mu[j]);
      f.mean = f.weight.reduce((x, w, s) => x + w * f.near[s], f.bias);
      f.term.renew(f.near);
    }
  }

  function boundOf({ hidden, factors, constant }, mu) {
    let total = constant;
    for (const f of factors) {
      const [a, c] = loads(f.gate, f.value);
      total += a * f.mean - c * f.term.term;
    }
    hidden.forEach((unit, j) => { total += entropy(mu[j]) + (unit.own ? 0 : mu[j] * unit.odds); });
    return total;
  }

  function sweep({ hidden }, mu) {  // eq. (24), one unit at a time: all at once, the bound could fall
    hidden.forEach(({ own, odds, children }, j) => {
      let field = own ? own.mean - (own.gate ? own.term.term : 0) : odds;
      for (const [f, s] of children) {
        const [a, c] = loads(f.gate, f.value);
        field += a * f.weight[s] - c * f.term.gradient(f.near, s);
      }
      const old = mu[j], now = mu[j] = Math.min(Math.max(sigmoid(field), EDGE), 1 - EDGE);
      if (own) own.value = now;
      for (const [f, s] of children) {
        f.near[s] = now;
        f.mean += f.weight[s] * (now - old);
        f.term.move(f.near, s, old, now);
      }
    });
  }

  function meanProbability(gate, weight, mu, bias) {  // of a unit that has no say in the evidence
    if (gate) return 1 - weight.reduce((x, w, s) => x * (1 + mu[s] * Math.expm1(-w)), Math.exp(-bias));
    if (weight.length > 6) return meanSigmoid(weight, mu, bias);
    let total = 0;
    for (let state = 0; state < 1 << weight.length; state++) {
      let x = bias, p = 1;
      weight.forEach((w, s) => { if (state >> s & 1) { x += w; p *= mu[s]; } else p *= 1 - mu[s]; });
      total += p * probability(gate, x);
    }
    return Math.min(total, 1);
  }

  function meanSigmoid(weight, mu, bias) {  // 1/2 + int_0^5 of Im <e^{iwz}> / sinh(pi w) dw, by the trapezoid rule
    let low = bias, high = bias, mean = bias, variance = 0, largest = 0;
    weight.forEach((w, s) => {
      low += Math.min(w, 0); high += Math.max(w, 0); mean += w * mu[s];
      variance += w * w * mu[s] * (1 - mu[s]); largest = Math.max(largest, Math.abs(w));
    });
    const third = largest * 16 / 3, reach = third + Math.sqrt(third * third + 32 * variance);
    const far = Math.max(-Math.max(low, mean - reach), Math.min(high, mean + reach), 0);
    const n = Math.ceil(5 * (far + 15) / (2 * Math.PI)), step = 5 / n;
    if (low > 20 || high < -20 || n > 512) return sigmoid(mean / Math.sqrt(1 + Math.PI * variance / 8));
    let total = 0.5 + step * mean / (2 * Math.PI);
    for (let q = 1; q <= n; q++) {
      let re = Math.cos(q * step * bias), im = Math.sin(q * step * bias);
      weight.forEach((w, s) => {
        const c = 1 - mu[s] + mu[s] * Math.cos(q * step * w), d = mu[s] * Math.sin(q * step * w);
        [re, im] = [re * c - im * d, re * d + im * c];
      });
      total += step * im / Math.sinh(Math.PI * q * step);
    }
    return Math.min(Math.max(total, 0), 1);
  }

  function allMeans(net, states, hidden, mu) {
    const means = Float64Array.from(states), known = Uint8Array.from(states, s => s >= 0);
    hidden.forEach(({ i }, j) => { means[i] = mu[j]; known[i] = 1; });
    for (let i = 0; i < means.length; i++) {
      if (known[i]) continue;
      const weight = [], near = [];
      net.parents[i].forEach((j, e) => {
        if (states[j] < 0) { weight.push(net.weights[i][e]); near.push(means[j]); }
      });
      means[i] = meanProbability(net.gate[i], weight, near, absorbed(net, states, i));
    }
    return means;
  }

  /* states: 0, 1, or -1 for a hidden unit. `patience` is in milliseconds; the bound holds after
     every sweep. Returns {bound, means, sweeps, converged, exact}. */
  function solve(net, states, { tol = 1e-9, maxSweeps = 500, patience = Infinity } = {}) {
    const start = performance.now();
    const problem = pose(net, states), mu = new Float64Array(problem.hidden.length).fill(0.5);
    problem.hidden.forEach(({ own }, j) => { if (own) own.value = mu[j]; });
    renew(problem.factors, mu);
    let bound = boundOf(problem, mu), sweeps = 0, converged = mu.length === 0;
    while (!converged && sweeps < maxSweeps && performance.now() - start < patience) {
      sweep(problem, mu);
      renew(problem.factors, mu);
      const before = bound;
      bound = boundOf(problem, mu);
      sweeps++;
      converged = bound - before < tol;
    }
    return { bound, means: allMeans(net, states, problem.hidden, mu), sweeps, converged, exact: false };
  }

  return { solve, impossible, tied, pose, liveUnits, allMeans, NONE, logP, sigmoid, softplus };
})();
