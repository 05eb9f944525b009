/* Exact answers in the page itself: sums over the states of hidden variables, one variable after the other.

   The network: {states, gate, parents, bias, weights, tables} with parents before children. Variable v with K states
   has the inputs x_l = bias[v][l] + sum over parents u of J_l[u, s_u], where J_l[u, 0] = 0 and weights[v][e] has the
   block of parent e, thresholds by states from 1 on. A sigmoid variable goes on from state l - 1 to l with probability
   sigma(x_l); a noisy-MAX variable has P(v <= k) = exp(-sum of x_l, l > k); tables[v] has P(v | parents), flat.

   A noisy-MAX variable with several hidden parents is a chain of accumulators, "the largest so far", which the parents
   pass in the order of the network; so no table is over all causes of a finding, and no term is negative. One pass up
   gives ln P of the evidence; its derivatives, one pass down, are the posteriors of all variables. */
"use strict";

class TooLarge extends Error {}
class Impossible extends Error {}

const Elimination = (() => {
  const SIGMOID = 0, TABLE = 2, FEW = 2, FIRED = 16;  // FIRED: findings that are present in one sum
  const BITS = 21, WORK = 3e7;  // of the largest table; numbers in all of them
  const NEVER = -999, LEAST = -600;  // ln of what counts as zero; ln P from which on digits may be lost
  const CANNOT = "these findings cannot be, their probability is 0";

  const logSigmoid = x => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x)));
  const logSome = x => x <= 0 ? -Infinity : x < Math.LN2 ? Math.log(-Math.expm1(-x)) : Math.log1p(-Math.exp(-x));
  const largest = logs => logs.reduce((x, y) => Math.max(x, y), -Infinity);
  const hard = known => typeof known === "number";

  /* ln P(v = k) of a variable with inputs x[0 ... K - 2]. */
  function logP(gate, x, k) {
    let total = 0;
    for (let l = 1; l <= x.length; l++)
      if (gate === SIGMOID) total += k >= l ? logSigmoid(x[l - 1]) : k === l - 1 ? logSigmoid(-x[l - 1]) : 0;
      else total += k < l ? -x[l - 1] : k === l ? logSome(x[l - 1]) : 0;
    return total;
  }

  const joints = sizes => sizes.reduce((n, k) => n * k, 1);

  function tooLarge(net, scope, sizes) {
    const bits = scope.reduce((x, v) => x + Math.log2(sizes[v]), 0);
    const names = [...new Set(scope.filter(v => v < net.names.length))].slice(0, 4).map(v => net.names[v]).join(", ");
    return new TooLarge(`an exact answer needs a table of 2^${Math.round(bits)} numbers (${names}, …)`);
  }

  /* --- the factors ---------------------------------------------------------------------------------------------- */

  /* The problem: sizes of variables, tables of logarithms, and the order in which accumulators meet their causes. */
  class Problem {
    constructor(net, known, wanted) {
      Object.assign(this, { net, known, tables: [], constant: 0, single: new Map(), present: [] });
      this.sizes = net.states.map(states => states.length);
      this.turn = net.states.map((_, v) => 2 * v + 1);
      for (const v of live(net, [...known.keys(), ...wanted])) this.family(v);
      for (const [v, likelihood] of known) if (!hard(likelihood)) this.put([v], likelihood.map(Math.log));
    }

    state(v) { const s = this.known.get(v); return hard(s) ? s : -1; }

    add(log) {
      if (log <= NEVER) throw new Impossible(CANNOT);
      this.constant += log;
    }

    put(scope, given) {
      const logs = Float64Array.from(given, x => x <= NEVER ? -Infinity : x);
      if (largest(logs) === -Infinity) throw new Impossible(CANNOT);
      if (!scope.length) this.add(logs[0]);
      else if (scope.length > 1) this.tables.push({ scope, logs });
      else if (!this.single.has(scope[0])) this.single.set(scope[0], logs);
      else this.single.get(scope[0]).forEach((x, s, all) => { all[s] = x + logs[s]; });
    }

    /* A table of f(states) over some hidden variables, the last one fastest. */
    fill(scope, f) {
      const sizes = scope.map(v => this.sizes[v]), n = joints(sizes);
      if (n > 2 ** BITS) throw tooLarge(this.net, scope, this.sizes);
      const logs = new Float64Array(n), at = scope.map(() => 0);
      for (let k = 0; k < n; k++) {
        logs[k] = f(at);
        for (let d = at.length - 1; d >= 0 && ++at[d] === sizes[d]; d--) at[d] = 0;
      }
      this.put(scope, logs);
    }

    family(v) {
      const { net } = this, parents = net.parents[v], gate = net.gate[v], own = this.state(v);
      const near = parents.map((_, e) => e).filter(e => this.state(parents[e]) < 0);
      const above = near.map(e => parents[e]), scope = own < 0 ? [...above, v] : above;
      if (gate === TABLE) return this.fill(scope, at => this.inTable(v, near, at, own));
      const levels = this.sizes[v] - 1, x = Float64Array.from(net.bias[v]);
      parents.forEach((u, e) => { for (let l = 0; l < levels; l++) x[l] += this.weight(v, e, l, this.state(u)); });
      if (gate === SIGMOID || !above.length || (own < 0 && above.length <= FEW))
        return this.fill(scope, at => {
          const sum = x.map((h, l) => near.reduce((z, e, d) => z + this.weight(v, e, l, at[d]), h));
          return logP(gate, sum, own < 0 ? at[at.length - 1] : own);
        });
      if (own < 0) return this.chain(v, near, x, [...x.keys()], v);
      for (let l = own; l < levels; l++) {  // no cause brings about more than what was seen
        this.add(-x[l]);
        for (const e of near) this.fill([parents[e]], ([s]) => -this.weight(v, e, l, s));
      }
      if (own > 0) this.present.push({ v, near, x, level: own - 1, causes: above });
      return null;
    }

    /* A finding that is present: a table over few causes, or a chain that ends when it has fired. */
    addPresent({ v, near, x, level, causes }) {
      if (causes.length > FEW) return this.chain(v, near, x, [level], -1);
      return this.fill(causes, at => logSome(near.reduce((z, e, d) => z + this.weight(v, e, level, at[d]), x[level])));
    }

    weight(v, e, l, s) {
      return s > 0 ? this.net.weights[v][e][l * (this.sizes[this.net.parents[v][e]] - 1) + s - 1] : 0;
    }

    inTable(v, near, at, own) {
      let k = 0;
      this.net.parents[v].forEach((u, e) => {
        const d = near.indexOf(e);
        k = k * this.sizes[u] + (d < 0 ? this.state(u) : at[d]);
      });
      return Math.log(this.net.tables[v][k * this.sizes[v] + (own < 0 ? at[at.length - 1] : own)]);
    }

    /* The largest so far of some thresholds, z, from the leak through all causes to `last`; or until it has fired. */
    chain(v, near, x, levels, last) {
      const K = levels.length, counts = e => levels.some(l => this.weight(v, e, l, 1) !== 0 || this.moves(v, e, l));
      const passing = near.filter(counts), fired = last < 0;
      let z = null;
      passing.forEach((e, k) => {
        const u = this.net.parents[v][e], end = k === passing.length - 1;
        const theta = s => levels.map(l => this.weight(v, e, l, s));
        const next = end ? last : this.accumulator(K + 1, this.net.parents[v][passing[k + 1]]);
        const leak = z === null ? levels.map(l => x[l]) : null;
        const scope = [...(leak ? [] : [z]), u, ...(end && fired ? [] : [next])];
        this.fill(scope, at => {
          const now = end && fired ? 1 : at[at.length - 1], s = at[leak ? 0 : 1];
          if (leak) return logP(1, theta(s).map((t, l) => t + leak[l]), now);
          return passed(theta(s), at[0], now);
        });
        z = next;
      });
      if (!passing.length) this.fill(fired ? [] : [last], at => logP(1, levels.map(l => x[l]), fired ? 1 : at[0]));
    }

    moves(v, e, l) {
      for (let s = 2; s < this.sizes[this.net.parents[v][e]]; s++) if (this.weight(v, e, l, s) !== 0) return true;
      return false;
    }

    accumulator(size, cause) {  // summed out just before the next cause
      this.sizes.push(size);
      this.turn.push(2 * cause);
      return this.sizes.length - 1;
    }
  }

  /* ln P(the largest is `now`, if it was `before` and a cause has thresholds theta). */
  function passed(theta, before, now) {
    if (now < before) return -Infinity;
    let kept = 0;
    for (let l = now; l < theta.length; l++) kept -= theta[l];
    return now === before ? kept : kept + logSome(theta[now - 1]);
  }

  /* Variables that are among these, or above one of them, in order. */
  function live(net, these) {
    const found = new Set(these), open = [...these];
    while (open.length) for (const u of net.parents[open.pop()]) if (!found.has(u)) { found.add(u); open.push(u); }
    return [...found].sort((a, b) => a - b);
  }

  /* --- the order ------------------------------------------------------------------------------------------------- */

  /* The cheapest of three orders: by least fill, by least size, and along the network. */
  function bestOrder(problem, scopes) {
    const coupled = [...new Set(scopes.flat())], inside = new Set(coupled), { sizes } = problem;
    const alone = [...problem.single.keys()].filter(v => !inside.has(v));
    const swept = [...coupled].sort((a, b) => problem.turn[a] - problem.turn[b]);
    const orders = [greedy(coupled, scopes, sizes, true), greedy(coupled, scopes, sizes, false), swept];
    const costs = orders.map(order => cost(order, scopes, sizes));
    const feasible = costs.map((_, k) => k).filter(k => costs[k].bits <= BITS && costs[k].work <= WORK);
    const cheapest = among => among.reduce((b, k) => costs[k].work < costs[b].work ? k : b, among[0]);
    if (!feasible.length) throw tooLarge(problem.net, costs[cheapest([0, 1, 2])].widest, sizes);
    return [...alone, ...orders[cheapest(feasible)]];
  }

  function neighbours(members, scopes) {
    const near = new Map(members.map(v => [v, new Set()]));
    for (const scope of scopes) for (const v of scope) for (const w of scope) if (v !== w) near.get(v).add(w);
    return near;
  }

  function greedy(members, scopes, sizes, byFill) {
    const near = neighbours(members, scopes), left = new Set(members), order = [], scores = new Map();
    const score = v => {
      const around = [...near.get(v)], size = around.reduce((x, w) => x + Math.log2(sizes[w]), 0);
      let fill = 0;
      for (let a = 0; a < around.length; a++)
        for (let b = a + 1; b < around.length; b++) if (!near.get(around[a]).has(around[b])) fill++;
      return byFill ? [fill, size] : [size, fill];
    };
    for (const v of members) scores.set(v, score(v));
    const before = (a, b) => { const [p, q] = scores.get(a), [r, s] = scores.get(b); return p - r || q - s || a - b; };
    while (left.size) {
      let best = null;
      for (const v of left) if (best === null || before(v, best) < 0) best = v;
      const around = [...near.get(best)], touched = new Set(around);
      left.delete(best);
      order.push(best);
      for (const v of around) {
        const mine = near.get(v);
        mine.delete(best);
        for (const w of around) if (w !== v && !mine.has(w)) mine.add(w);
      }
      if (byFill) for (const v of around) for (const w of near.get(v)) touched.add(w);
      for (const v of touched) scores.set(v, score(v));
    }
    return order;
  }

  function cost(order, scopes, sizes) {
    const near = neighbours(order, scopes);
    let bits = 0, work = 0, widest = [];
    for (const v of order) {
      const around = [...near.get(v)], mine = around.reduce((x, w) => x + Math.log2(sizes[w]), Math.log2(sizes[v]));
      work += 2 ** mine;
      if (mine > bits) [bits, widest] = [mine, [v, ...around]];
      for (const a of around) { near.get(a).delete(v); for (const b of around) if (a !== b) near.get(a).add(b); }
      if (work > 1e3 * WORK) break;
    }
    return { bits, work, widest };
  }

  /* --- the passes ------------------------------------------------------------------------------------------------ */

  /* Where the numbers of a table stand, for each joint state of a larger scope. */
  function places(table, joint, sizes) {
    const stride = new Map();
    let all = 1;
    for (const v of [...table.scope].reverse()) {
      stride.set(v, all);
      all *= sizes[v];
    }
    const out = new Int32Array(joint.reduce((n, v) => n * sizes[v], 1));
    let filled = 1;
    for (let d = joint.length - 1; d >= 0; d--) {
      const step = stride.get(joint[d]) || 0;
      for (let s = 1; s < sizes[joint[d]]; s++)
        for (let k = 0; k < filled; k++) out[s * filled + k] = out[k] + s * step;
      filled *= sizes[joint[d]];
    }
    return out;
  }

  function product(step, sizes) {
    const at = step.inputs.map(table => places(table, step.joint, sizes));
    const all = new Float64Array(at[0].length).fill(1);
    step.inputs.forEach(({ values }, i) => {
      const own = at[i];
      for (let k = 0; k < all.length; k++) all[k] *= values[own[k]];
    });
    return { at, all };
  }

  function up(order, tables, sizes) {
    const steps = [], inside = new Map(order.map(v => [v, new Set()]));
    let logs = 0, least = 0;
    for (const table of tables) for (const v of table.scope) inside.get(v).add(table);
    for (const v of order) {
      const inputs = [...inside.get(v)], scope = [...new Set(inputs.flatMap(t => t.scope))].filter(w => w !== v);
      const step = { v, inputs, joint: [v, ...scope], out: { scope, values: null, from: steps.length } };
      const { all } = product(step, sizes), size = all.length / sizes[v], values = new Float64Array(size);
      for (let k = 0; k < all.length; k++) values[k % size] += all[k];
      const most = values.reduce((x, y) => Math.max(x, y), 0);
      if (!(most > 0)) return null;
      for (let k = 0; k < size; k++) values[k] /= most;
      step.out.values = values;
      step.logs = Math.log(most) + inputs.reduce((x, t) => x + (t.logs || 0), 0);
      step.out.logs = step.logs;
      if (!scope.length) { logs += step.logs; least = Math.min(least, step.logs); }
      for (const t of inputs) for (const w of t.scope) inside.get(w).delete(t);
      for (const w of scope) inside.get(w).add(step.out);
      steps.push(step);
    }
    return { steps, logs, least };
  }

  /* Posteriors: the derivative of the sum by the states of each variable, from the last step to the first. */
  function down(steps, sizes, n, wanted, found) {
    for (const step of [...steps].reverse()) {
      const { at, all } = product(step, sizes), size = all.length / sizes[step.v];
      const outer = step.out.adjoint || new Float64Array(size).fill(1);
      if (step.v < n && wanted.has(step.v)) {
        const own = new Float64Array(sizes[step.v]);
        for (let k = 0; k < all.length; k++) own[Math.floor(k / size)] += all[k] * outer[k % size];
        const total = own.reduce((x, y) => x + y, 0);
        found.set(step.v, Array.from(own, x => x / total));
      }
      step.inputs.forEach((table, i) => { if (table.from !== undefined) adjoint(step, i, at, all, outer, size); });
    }
  }

  function adjoint(step, i, at, all, outer, size) {
    const table = step.inputs[i], { values } = table, own = at[i], sum = new Float64Array(values.length);
    for (let k = 0; k < all.length; k++) {
      const here = values[own[k]];
      let rest = all[k] / here;
      if (!(here > 1e-290)) {
        rest = 1;
        step.inputs.forEach((other, j) => { if (j !== i) rest *= other.values[at[j][k]]; });
      }
      sum[own[k]] += rest * outer[k % size];
    }
    const most = sum.reduce((x, y) => Math.max(x, y), 0) || 1;
    table.adjoint = sum.map(x => x / most);
  }

  /* Groups of independent causes whose findings are present, and which nothing else couples: summed by `Firing`. All
     other findings that are present become tables. */
  function fire(problem, found) {
    const label = new Map(), root = v => { while (label.get(v) !== v) v = label.get(v); return v; };
    const join = scope => {
      for (const v of scope) if (!label.has(v)) label.set(v, v);
      for (const v of scope) label.set(root(v), root(scope[0]));
    };
    problem.tables.forEach(table => join(table.scope));
    problem.present.forEach(one => join(one.causes));
    const coupled = new Set(problem.tables.map(table => root(table.scope[0]))), groups = new Map();
    for (const one of problem.present) {
      const group = root(one.causes[0]);
      groups.set(group, [...(groups.get(group) || []), one]);
    }
    let logs = 0;
    for (const [group, findings] of groups) {
      const part = coupled.has(group) || findings.length > FIRED ? null : fired(problem, findings, found);
      if (part === null) findings.forEach(one => problem.addPresent(one)); else logs += part;
    }
    return logs;
  }

  /* ln of the sum over one such group; its causes are then done with. */
  function fired(problem, findings, found) {
    const causes = [...new Set(findings.flatMap(one => one.causes))].sort((a, b) => a - b);
    const top = causes.map(u => largest(problem.single.get(u)));
    const lists = causes.map((u, c) => Array.from(problem.single.get(u), (x, s) => {
      const edges = findings.flatMap(({ v, near, level, causes: above }, k) => {
        const theta = above.includes(u) ? problem.weight(v, near[above.indexOf(u)], level, s) : 0;
        return theta > 0 ? [{ bit: 1 << k, fail: Math.exp(-theta), fire: -Math.expm1(-theta) }] : [];
      });
      return { weight: Math.exp(x - top[c]), edges };
    }));
    const solved = Firing.solve(lists, findings.map(({ x, level }) => -Math.expm1(-x[level])));
    if (solved === null) return null;
    causes.forEach((u, c) => {
      const all = solved.shares[c].reduce((x, y) => x + y, 0);
      found.set(u, solved.shares[c].map(x => x / all));
      problem.single.delete(u);
    });
    return Math.log(solved.total) + top.reduce((x, y) => x + y, 0);
  }

  /* ln P of what is known, {variable: state or likelihoods}, and the posteriors of some variables. */
  function solve(net, known, wanted = []) {
    const asked = new Set(wanted.filter(v => !hard(known.get(v)))), problem = new Problem(net, known, asked);
    for (const one of problem.single.values()) if (largest(one) === -Infinity) throw new Impossible(CANNOT);
    const beliefs = new Map(), constant = problem.constant + fire(problem, beliefs);
    const logs = [...problem.single].map(([v, one]) => ({ scope: [v], logs: one })).concat(problem.tables);
    const order = bestOrder(problem, problem.tables.map(table => table.scope));
    const numbers = value => logs.map(table => ({ scope: table.scope, ...value(table.logs) }));
    const scaled = table => {
      const top = largest(table);
      return { logs: top, values: table.map(x => Math.exp(x - top)) };
    };
    const passes = up(order, numbers(scaled), problem.sizes);
    if (!passes || passes.least < LEAST) {
      const possible = table => ({ logs: 0, values: table.map(x => x > -Infinity ? 1 : 0) });
      if (!up(order, numbers(possible), problem.sizes)) throw new Impossible(CANNOT);
      throw new TooLarge("these findings are so unlikely together that the digits of an exact sum do not suffice");
    }
    if (asked.size) down(passes.steps, problem.sizes, net.names.length, asked, beliefs);
    const sure = wanted.filter(v => hard(known.get(v)));
    for (const v of sure) beliefs.set(v, net.states[v].map((_, s) => Number(s === known.get(v))));
    return { logP: passes.logs + constant, beliefs };
  }

  /* ln P of a variable, if it and all its parents have states. */
  function logOf(net, v, states) {
    const parents = net.parents[v];
    if (net.gate[v] === TABLE) {
      const row = parents.reduce((k, u) => k * net.states[u].length + states.get(u), 0);
      return Math.log(net.tables[v][row * net.states[v].length + states.get(v)]);
    }
    const x = net.bias[v].map((h, l) => parents.reduce((sum, u, e) => {
      const s = states.get(u);
      return s > 0 ? sum + net.weights[v][e][l * (net.states[u].length - 1) + s - 1] : sum;
    }, h));
    return logP(net.gate[v], x, states.get(v));
  }

  return { solve, live, hard, logOf };
})();
