/* Exact inference for one pattern of evidence, where the sums over all states are small. It stands on Solver. */
"use strict";

const Sums = (() => {
  const { pose, allMeans, NONE, logP, sigmoid, softplus } = Solver;
  const logAdd = (x, y) => x > y ? x + Math.log1p(Math.exp(y - x)) : y === -Infinity ? y : y + Math.log1p(Math.exp(x - y));

  function groupsOf({ hidden, factors }) {  // hidden units that factors couple; an absent finding couples nobody
    const label = hidden.map((_, j) => j), root = j => label[j] === j ? j : label[j] = root(label[j]);
    for (const f of factors) {
      if (f.term === NONE) continue;
      const all = f.self === undefined ? f.parents : [...f.parents, f.self];
      for (const j of all) label[root(j)] = root(all[0]);
    }
    const groups = new Map();
    hidden.forEach((_, j) => groups.set(root(j), [...(groups.get(root(j)) || []), j]));
    return [...groups.values()];
  }

  /* Depth first: units in order, parents first; a factor counts as soon as all its units have a state. */
  function sumGroup(hidden, members, means) {
    const k = members.length, spot = new Map(members.map((j, n) => [j, n])), x = [], opened = new Map();
    const steps = members.map(j => ({ free: hidden[j].odds || 0, base: hidden[j].rest || 0, closing: [], at: [], weight: [] }));
    members.forEach((j, n) => {
      const { own, children } = hidden[j];
      if (own) steps[n].closing.push({ f: own, o: opened.get(own) });
      for (const [f, s] of children) {
        if (f.term === NONE) { steps[n].free -= f.weight[s]; continue; }
        if (!opened.has(f)) {
          opened.set(f, x.push(f.bias) - 1);
          if (f.self === undefined) steps[Math.max(...f.parents.map(p => spot.get(p)))].closing.push({ f, o: opened.get(f) });
        }
        steps[n].at.push(opened.get(f));
        steps[n].weight.push(f.weight[s]);
      }
    });
    const on = new Float64Array(k).fill(-Infinity);
    function below(n, logp) {
      if (n === k) return logp;
      const { free, base, closing, at, weight } = steps[n], before = at.map(o => x[o]);
      const counted = s => closing.reduce((sum, { f, o }) => sum + logP(f.gate, f.self === undefined ? f.value : s, x[o]), logp + base);
      const off = below(n + 1, counted(0));
      for (let c = 0; c < at.length; c++) x[at[c]] += weight[c];
      const found = below(n + 1, counted(1) + free);
      for (let c = 0; c < at.length; c++) x[at[c]] = before[c];  // put back, not subtracted: a small leak survives
      on[n] = logAdd(on[n], found);
      return logAdd(off, found);
    }
    const total = below(0, 0);
    members.forEach((j, n) => { means[j] = Math.min(Math.exp(on[n] - total), 1); });
    return total;
  }

  /* Independent causes and findings that are present: a sum over subsets of these, of alternating signs (Heckerman's
     quickscore). Null if there are too many, or if the terms cancel so far that few digits are left. */
  function sumFindings(hidden, members, means, most = 11) {
    const spot = new Map(members.map((j, n) => [j, n])), factors = new Set(), p = new Float64Array(members.length);
    let total = 0;
    for (const j of members) {
      const { own, odds, rest, children } = hidden[j];
      let free = odds;
      if (own) return null;
      for (const [f, s] of children) {
        if (f.term === NONE) free -= f.weight[s];
        else if (f.gate && f.self === undefined) factors.add(f);
        else return null;
      }
      p[spot.get(j)] = sigmoid(free);
      total += rest + softplus(free);
    }
    const found = [...factors];
    if (found.length > most || found.length >= members.length) return null;
    const on = new Float64Array(members.length), kept = new Float64Array(members.length).fill(1);
    let sum = 0, size = 0;
    (function below(n, sign) {
      if (n < found.length) {
        const { parents, weight, bias } = found[n], before = parents.map(j => kept[spot.get(j)]);
        below(n + 1, sign);
        parents.forEach((j, s) => { kept[spot.get(j)] *= Math.exp(-weight[s]); });
        below(n + 1, -sign * Math.exp(-bias));
        parents.forEach((j, s) => { kept[spot.get(j)] = before[s]; });
        return;
      }
      let term = sign;
      for (let j = 0; j < p.length; j++) term *= 1 - p[j] + p[j] * kept[j];
      for (let j = 0; j < p.length; j++) on[j] += term * p[j] * kept[j] / (1 - p[j] + p[j] * kept[j]);
      sum += term;
      size += Math.abs(term);
    })(0, 1);
    if (!(size * (p.length + 10 * found.length) * 2 ** -53 < 1e-6 * sum)) return null;
    members.forEach((j, n) => { means[j] = Math.min(Math.max(on[n] / sum, 0), 1); });
    return total + Math.log(sum);
  }

  /* The same as `solve` with exact numbers, or null if that takes too long: more than `limit` coupled hidden units. */
  function exact(net, states, limit = 14) {
    const problem = pose(net, states), { hidden, factors } = problem, groups = groupsOf(problem);
    const means = new Float64Array(hidden.length);
    let bound = problem.constant;
    for (const { odds, rest } of hidden) if (odds !== undefined) bound -= rest;  // counted again, with its group
    for (const f of factors) if (f.term === NONE) bound -= f.bias;
    for (const group of groups) {
      const part = sumFindings(hidden, group, means) ?? (group.length > limit ? null : sumGroup(hidden, group, means));
      if (part === null) return null;
      bound += part;
    }
    return { bound, means: allMeans(net, states, hidden, means), sweeps: 0, converged: true, exact: true };
  }

  /* Exact where that is quick, mean field elsewhere. */
  function best(net, states, options) { return exact(net, states) || Solver.solve(net, states, options); }

  return { exact, best };
})();
