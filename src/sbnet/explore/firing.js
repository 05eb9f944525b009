/* The sum over independent causes of findings that are present, without a minus sign: a cause in state s fires each of
   its findings with a probability of its own, and a finding is present if something has fired it. With rest_j[A] the
   probability that the causes from j on and the leaks fire all findings outside the set A,

       rest_j[A] = sum over s of P(s) sum over B of P(j in state s fires B) rest_{j+1}[A + B] .

   A set is a number with a bit for each finding. `causes` are lists of states, {weight, edges: [{bit, fail, fire}]};
   `leaks` the probabilities that findings are present by themselves. The answer: the sum, and the parts of it with
   each cause in each state; null if the sum is too small for full precision. */
"use strict";

const Firing = (() => {
  const TINY = 1e-250;  // a smaller sum may have lost digits among denormal numbers

  function solve(causes, leaks) {
    const size = 1 << leaks.length, { length } = causes, stride = Math.max(1, Math.ceil(Math.sqrt(length)));
    const rest = new Float64Array(size).fill(1), kept = new Map();
    const work = [new Float64Array(size), new Float64Array(size)];
    leaks.forEach((p, k) => { for (let a = 0; a < size; a++) if (!(a >> k & 1)) rest[a] *= p; });
    for (let c = length; c > 0; c--) {  // kept at the ends of stretches, of which each is gone through once more
      if (c === length || c % stride === 0) kept.set(c, Float64Array.from(rest));
      before(causes[c - 1], rest, work);
    }
    if (!(rest[0] > TINY)) return null;
    const sets = new Float64Array(size), shares = [];
    sets[0] = 1;
    for (let first = 0; first < length; first += stride) {
      const last = Math.min(first + stride, length), rests = [kept.get(last)];
      for (let c = last - 1; c > first; c--) {
        rests.unshift(Float64Array.from(rests[0]));
        before(causes[c], rests[0], work);
      }
      for (let c = first; c < last; c++) shares.push(after(causes[c], rests[c - first], sets, work));
    }
    return { total: rest[0], shares };
  }

  function before(states, rest, [branch, sum]) {  // rest before a cause, from rest after it
    sum.fill(0);
    for (const { weight, edges } of states) {
      branch.set(rest);
      for (const { bit, fail, fire } of edges)
        for (let first = 0; first < branch.length; first += 2 * bit)
          for (let a = first; a < first + bit; a++) branch[a] = fail * branch[a] + fire * branch[a + bit];
      for (let a = 0; a < sum.length; a++) sum[a] += weight * branch[a];
    }
    rest.set(sum);
  }

  function after(states, rest, sets, [branch, sum]) {  // the parts of the sum by state; the sets move past the cause
    sum.fill(0);
    const shares = states.map(({ weight, edges }) => {
      for (let a = 0; a < sets.length; a++) branch[a] = weight * sets[a];
      for (const { bit, fail, fire } of edges)
        for (let first = 0; first < branch.length; first += 2 * bit)
          for (let a = first; a < first + bit; a++) { branch[a + bit] += fire * branch[a]; branch[a] *= fail; }
      let share = 0;
      for (let a = 0; a < sets.length; a++) { share += branch[a] * rest[a]; sum[a] += branch[a]; }
      return share;
    });
    sets.set(sum);
    return shares;
  }

  return { solve };
})();
