/* Exact inference for one pattern of evidence, where the sums over all states are small. It stands on Solver. */
"use strict";

const Sums = (() => {
  const { pose, liveUnits, allMeans, NONE, logP, sigmoid, softplus } = Solver;
  const LIMIT = 12, MOST = 2000;  // coupled hidden units or findings that are present; sums for barren units
  const TINY = 1e-250;  // a smaller sum may have lost digits among denormal numbers
  const exceeding = (x, y) => x + Math.log1p(Math.exp(y - x));
  const logAdd = (x, y) => x > y ? exceeding(x, y) : y === -Infinity ? y : exceeding(y, x);

  function groupsOf({ hidden, factors }) {  // hidden units that factors couple
    const label = hidden.map((_, j) => j);
    const root = j => { while (label[j] !== j) j = label[j] = label[label[j]]; return j; };
    for (const f of factors) {
      const all = f.self === undefined ? f.parents : [...f.parents, f.self];
      for (const j of all) label[root(j)] = root(all[0]);
    }
    const groups = new Map();
    hidden.forEach((_, j) => { if (groups.has(root(j))) groups.get(root(j)).push(j); else groups.set(root(j), [j]); });
    return [...groups.values()];
  }

  /* Depth first: units in order, parents first; a factor counts as soon as all its units have a state. */
  function sumGroup(hidden, members, means) {
    const k = members.length, spot = new Map(members.map((j, n) => [j, n])), x = [], opened = new Map();
    const steps = members.map(j =>
      ({ free: hidden[j].odds || 0, base: hidden[j].rest || 0, closing: [], at: [], weight: [] }));
    members.forEach((j, n) => {
      const { own, children } = hidden[j];
      if (own) steps[n].closing.push({ f: own, o: opened.get(own) });
      for (const [f, s] of children) {
        if (f.term === NONE) { steps[n].free -= f.weight[s]; continue; }
        if (!opened.has(f)) {
          opened.set(f, x.push(f.bias) - 1);
          const last = f.self === undefined && steps[Math.max(...f.parents.map(p => spot.get(p)))];
          if (last) last.closing.push({ f, o: opened.get(f) });
        }
        steps[n].at.push(opened.get(f));
        steps[n].weight.push(f.weight[s]);
      }
    });
    const on = new Float64Array(k).fill(-Infinity);
    function below(n, logp) {
      if (n === k) return logp;
      const { free, base, closing, at, weight } = steps[n], before = at.map(o => x[o]);
      const stateOf = (f, s) => f.self === undefined ? f.value : s;
      const counted = s =>
        closing.reduce((sum, { f, o }) => sum + logP(f.gate, stateOf(f, s), x[o]), logp + base);
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

  /* A group as independent causes with noisy-OR findings, or null if it has another form: the findings that are
     present, the log-odds of each cause given the others, and the constant that goes with these. */
  function twoLevels(hidden, members) {
    const present = new Set(), odds = [];
    let constant = 0;
    for (const j of members) {
      const { own, odds: before, rest, children } = hidden[j];
      if (own) return null;
      let free = before;
      for (const [f, s] of children) {
        if (!f.gate || f.self !== undefined) return null;
        if (f.term === NONE) free -= f.weight[s]; else present.add(f);
      }
      odds.push(free);
      constant += rest + softplus(free);
    }
    return { members, present: [...present], odds, constant };
  }

  /* The sum over such a group, without a minus sign: a cause that is on fires each of its findings with a probability
     of its own, and a finding is present if something has fired it. With rest[A] the probability that the causes from
     j on and the leaks fire all findings outside the set A,

         rest_j[A] = off_j rest_{j+1}[A] + on_j sum over B of P(j fires B) rest_{j+1}[A + B] .

     A set is a number with a bit for each finding. Null if the sum is too small for full precision. */
  function sumFindings({ members, present, odds, constant }, means) {
    const spot = new Map(members.map((j, n) => [j, n])), fired = members.map(() => []), size = 1 << present.length;
    present.forEach((f, k) => f.parents.forEach((j, s) =>
      fired[spot.get(j)].push({ bit: 1 << k, fail: Math.exp(-f.weight[s]), fire: -Math.expm1(-f.weight[s]) })));
    members.forEach((j, n) => { means[j] = sigmoid(odds[n]); });
    const causes = members.map((_, n) => n).filter(n => fired[n].length), branch = new Float64Array(size);
    const { length } = causes, stride = Math.max(1, Math.ceil(Math.sqrt(length))), kept = new Map();
    let rest = leaks(present);
    for (let c = length; c > 0; c--) {  // kept at the ends of stretches, of which each is gone through once more
      if (c === length || c % stride === 0) kept.set(c, Float64Array.from(rest));
      before(fired[causes[c - 1]], odds[causes[c - 1]], rest, branch);
    }
    const total = rest[0], sets = new Float64Array(size);
    if (!(total > TINY)) return null;
    sets[0] = 1;
    for (let first = 0; first < length; first += stride) {
      const last = Math.min(first + stride, length), rests = [kept.get(last)];
      for (let c = last - 1; c > first; c--) {
        rests.unshift(Float64Array.from(rests[0]));
        before(fired[causes[c]], odds[causes[c]], rests[0], branch);
      }
      for (let c = first; c < last; c++) {
        const share = after(fired[causes[c]], odds[causes[c]], rests[c - first], sets, branch);
        means[members[causes[c]]] = Math.min(share / total, 1);
      }
    }
    return constant + Math.log(total);
  }

  function leaks(present) {  // by set: the probability that the leaks fire all findings outside it
    const all = new Float64Array(1 << present.length).fill(1);
    present.forEach((f, k) => {
      const fire = Math.exp(logP(1, 1, f.bias));
      for (let a = 0; a < all.length; a++) if (!(a >> k & 1)) all[a] *= fire;
    });
    return all;
  }

  function before(edges, odds, rest, branch) {  // rest before a cause, from rest after it
    const off = sigmoid(-odds), on = sigmoid(odds);
    branch.set(rest);
    for (const { bit, fail, fire } of edges)
      for (let first = 0; first < branch.length; first += 2 * bit)
        for (let a = first; a < first + bit; a++) branch[a] = fail * branch[a] + fire * branch[a + bit];
    for (let a = 0; a < rest.length; a++) rest[a] = off * rest[a] + on * branch[a];
  }

  function after(edges, odds, rest, sets, branch) {  // the part of the sum with a cause on; the sets move past it
    const off = sigmoid(-odds), on = sigmoid(odds);
    for (let a = 0; a < sets.length; a++) branch[a] = on * sets[a];
    for (const { bit, fail, fire } of edges)
      for (let first = 0; first < branch.length; first += 2 * bit)
        for (let a = first; a < first + bit; a++) { branch[a + bit] += fire * branch[a]; branch[a] *= fail; }
    let share = 0;
    for (let a = 0; a < sets.length; a++) { share += branch[a] * rest[a]; sets[a] = off * sets[a] + branch[a]; }
    return share;
  }

  /* The groups of a problem, each with the sum that is the smaller one: over its findings or over its states. Null if
     that is too large for one of them. This is the rule of the library, so that a server and a file say the same. */
  function smallSums(problem) {
    const groups = groupsOf(problem).map(members => ({ members, two: twoLevels(problem.hidden, members) }));
    for (const group of groups) {
      if (group.two && group.two.present.length >= group.members.length) group.two = null;
      if ((group.two ? group.two.present : group.members).length > LIMIT) return null;
    }
    return groups;
  }

  /* As `solve` with exact numbers, or null if that takes too long; `wanted` are units whose means are exact even if
     nothing below them is observed, each by a sum of its own. */
  function exact(net, states, wanted = []) {
    const problem = pose(net, states), { hidden, factors } = problem, groups = smallSums(problem);
    if (!groups) return null;
    const means = new Float64Array(hidden.length), small = groups.every(({ members }) => members.length <= LIMIT);
    let bound = problem.constant;
    for (const { odds, rest } of hidden) if (odds !== undefined) bound -= rest;  // counted again, with its group
    for (const f of factors) if (f.term === NONE) bound -= f.bias;
    for (const { members, two } of groups) {
      const part = (two && sumFindings(two, means)) ?? (small ? sumGroup(hidden, members, means) : null);
      if (part === null) return null;
      bound += part;
    }
    const found = { bound, means: allMeans(net, states, hidden, means), sweeps: 0, converged: true, exact: true };
    return addBarren(net, states, wanted, found) ? found : null;
  }

  /* The means of wanted units that dropped out of the sum, P(S = 1 | V) = P(S = 1, V) / P(V); a noisy-OR unit is asked
     for its absence, which couples nobody. */
  function addBarren(net, states, wanted, { bound, means }) {
    const live = liveUnits(net, states), barren = wanted.filter(i => !live[i] && net.parents[i].length);
    if (barren.length > MOST) return false;
    return barren.every(i => {
      const absent = net.gate[i] === 1, row = Int8Array.from(states);
      row[i] = absent ? 0 : 1;
      const joint = exact(net, row);
      if (!joint) return false;
      const ratio = Math.min(joint.bound - bound, 0);
      means[i] = absent ? -Math.expm1(ratio) : Math.exp(ratio);
      return true;
    });
  }

  const small = (net, states) => smallSums(pose(net, states)) !== null;

  /* Mean field, where it says something. */
  function approximate(net, states, options) {
    if (Solver.tied(net, states))
      throw new Error("some units exclude each other, such as the states of one variable, and the sums over them are "
        + "too large for this file; sbnet explore can do more");
    return Solver.solve(net, states, options);
  }

  /* Answers that are compared, one for each row: exact where that is quick for all of them, else by mean field. */
  function best(net, rows, wanted, options) {
    const found = [];
    if (rows.every(row => small(net, row)))
      while (found.length < rows.length && found.at(-1) !== null) found.push(exact(net, rows[found.length], wanted));
    return found.length && found.at(-1) !== null ? found : rows.map(row => approximate(net, row, options));
  }

  return { small, exact, approximate, best };
})();
