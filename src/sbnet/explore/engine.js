/* Who answers: a server, or this page itself. Both take what is known, {variable: state or likelihoods}, and say

       answer     ln P, the kind of numbers (exact, or an estimate by some method), probabilities of states by variable
       reasons    what each finding adds to some variables: nats of log-odds of each state, by variable and finding
       questions  what to ask next: nats of information about the causes, and the probabilities of the answers
       single     the probabilities if exactly one cause is present

   Both are exact where elimination is feasible, and follow the same rules, so they show the same numbers. */
"use strict";

class Unreachable extends Error {}

class Remote {
  constructor() { this.certifies = true; }
  async post(verb, known, more = {}) {
    let reply, found;
    try {
      reply = await fetch(verb, { method: "POST", headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ evidence: Object.fromEntries(known), ...more }) });
      found = await reply.json();
    } catch {
      throw new Unreachable("the server cannot be reached");
    }
    if (found.error) throw new Error(found.error);
    return found;
  }
  async answer(known, units) {
    const found = await this.post("answer", known, { units });
    if (found.logP === null) throw new Error("these findings cannot be, their probability is 0");
    return found;
  }
  reasons(known, units) { return this.post("reasons", known, { units }); }
  questions(known) { return this.post("questions", known); }
  single(known) { return this.post("single", known); }
  certificate(known) { return this.post("certificate", known); }
  intervals(known, units) { return this.post("intervals", known, { units }); }
}

const SMALL = 150, TRIES = 24, EDGE = 1e-12;  // variables up to which all questions are worked out; else so many

class Local {
  constructor(net) { Object.assign(this, { net, certifies: false }); }

  async answer(known, units) { return { ...this.exact(known, units), kind: "exact" }; }

  /* All of them at once; or, where that is too large, each of those that have no say in the evidence by itself: null
     for one that is too large even so. */
  exact(known, units) {
    const plain = ({ logP, beliefs }) => ({ logP, beliefs: Object.fromEntries(beliefs) });
    try {
      return plain(this.solve(known, units));
    } catch (error) {
      if (!(error instanceof TooLarge)) throw error;
    }
    const above = new Set(Elimination.live(this.net, [...known.keys()]));
    const core = units.filter(i => above.has(i) || !this.net.parents[i].length), found = this.solve(known, core);
    for (const i of units) if (!found.beliefs.has(i)) found.beliefs.set(i, this.alone(known, i));
    return plain(found);
  }

  alone(known, i) {
    try {
      return this.solve(known, [i]).beliefs.get(i);
    } catch (error) {
      if (error instanceof TooLarge) return null;
      throw error;
    }
  }

  solve(known, units) {
    try {
      return Elimination.solve(this.net, known, units);
    } catch (error) {
      if (!(error instanceof TooLarge)) throw error;
      throw new TooLarge(`${error.message}, too large for this file; sbnet explore, with a server, answers by bounds `
        + "and estimates. Fewer findings, or “exactly one cause”, have an answer here");
    }
  }

  async reasons(known, units) {
    const about = units.filter(i => !Elimination.hard(known.get(i)));
    const before = this.exact(known, about).beliefs, found = Object.fromEntries(about.map(i => [i, {}]));
    for (const f of known.keys()) {
      await pause();
      const less = new Map([...known].filter(([i]) => i !== f)), { beliefs } = this.exact(less, about);
      for (const i of about) found[i][f] = before[i].map((p, s) => logOdds(p) - logOdds(beliefs[i][s]));
    }
    return found;
  }

  async single(known) {
    const one = new OneCause(this.net, known);
    return { kind: "exact", beliefs: one.beliefs(one.rest), prior: one.beliefs(new Map()) };
  }

  /* The sum of the mutual informations of a finding with each cause. */
  async questions(known, stopped = () => false) {
    const { net } = this, open = i => !Elimination.hard(known.get(i)), about = net.causes.filter(open);
    let among = net.findings.filter(open);
    if (!about.length || !among.length) return [];
    if (net.names.length > SMALL) among = promising(net, among, this.exact(known, net.causes).beliefs);
    const few = net.names.length <= SMALL && about.length < among.length;
    try {
      return await this.informed(known, about, among, few, stopped);
    } catch (error) {
      if (!few || !(error instanceof TooLarge)) throw error;
      return this.informed(known, about, among, false, stopped);  // findings one by one
    }
  }

  /* Each cause, or else each finding, is given in turn in each of its states: both ways have the same numbers. */
  async informed(known, about, among, byCause, stopped) {
    const [given, others] = byCause ? [about, among] : [among, about];
    const score = new Map(among.map(f => [f, 0])), chances = new Map();
    for (const c of given) {
      await pause();
      if (stopped()) return null;
      const { weights, beliefs } = this.given(known, c, others);
      for (const o of others) {
        if (o === c) continue;
        const part = (s, t) => beliefs[s] ? weights[s] * beliefs[s].get(o)[t] : 0;
        const mean = this.net.states[o].map((_, t) => weights.reduce((x, _w, s) => x + part(s, t), 0));
        const told = weights.reduce((x, w, s) => x - w * (beliefs[s] ? entropy(beliefs[s].get(o)) : 0), entropy(mean));
        const f = byCause ? o : c;
        score.set(f, score.get(f) + Math.max(told, 0));
        chances.set(o, mean);
      }
      chances.set(c, weights);
    }
    const nats = f => score.get(f) < 1e-9 ? 0 : score.get(f);
    const found = among.map(f => ({ unit: f, information: nats(f), chances: chances.get(f) }));
    return found.sort((a, b) => b.information - a.information || a.unit - b.unit);
  }

  /* P(c = s | known), and the posteriors of others given each state that can be. */
  given(known, c, others) {
    const soft = known.get(c), states = this.net.states[c];
    const solved = states.map((_, s) => {
      if (soft && !(soft[s] > 0)) return null;
      try { return this.solve(new Map([...known, [c, s]]), others); }
      catch (error) { if (error instanceof Impossible) return null; throw error; }
    });
    const logs = solved.map((one, s) => one ? one.logP + (soft ? Math.log(soft[s]) : 0) : -Infinity);
    const top = Math.max(...logs), raw = logs.map(x => Math.exp(x - top)), total = raw.reduce((x, y) => x + y, 0);
    return { weights: raw.map(x => x / total), beliefs: solved.map(one => one && one.beliefs) };
  }
}

const NONE = "no single cause explains these findings; leave one out, or allow several causes";

/* Exactly one cause: each in each of its states but the first, with all others in their first one. */
class OneCause {
  constructor(net, known) {
    Object.assign(this, { net, known, rest: new Map([...known].filter(([i]) => !net.causes.includes(i))) });
    this.absent = new Map(net.causes.map(c => [c, 0]));
    const sure = net.causes.filter(c => Elimination.hard(known.get(c)) && known.get(c) > 0);
    const names = sure.slice(0, 2).map(c => net.names[c]).join(" and ");
    if (sure.length > 1) throw new Error(`${names} are both known as present, and one is to be`);
    const free = c => sure.length ? c === sure[0] : !Elimination.hard(known.get(c));
    const states = c => net.states[c].map((_, s) => s).filter(s => s > 0 && (!sure.length || s === known.get(c)));
    this.pairs = net.causes.filter(free).flatMap(c => states(c).map(s => [c, s]));
  }

  /* The probabilities of states by cause, given other findings or none. */
  beliefs(rest) {
    const { net, pairs, known } = this, logs = this.logs(rest);
    const scores = logs.map((x, k) => {
      const [c, s] = pairs[k], soft = known.get(c);
      return rest.size && Array.isArray(soft) ? x + Math.log(soft[s]) - Math.log(soft[0]) : x;
    });
    const top = scores.reduce((x, y) => Math.max(x, y), -Infinity);
    if (top === -Infinity) throw new Error(NONE);
    const raw = scores.map(x => Math.exp(x - top)), total = raw.reduce((x, y) => x + y, 0);
    const found = Object.fromEntries(net.causes.map(c => [c, net.states[c].map((_, s) => s ? 0 : 1)]));
    pairs.forEach(([c, s], k) => { found[c][s] = raw[k] / total; found[c][0] -= raw[k] / total; });
    for (const c of net.causes) found[c][0] = Math.max(found[c][0], 0);
    return found;
  }

  /* ln P with each of them present; a closed form where nothing else is hidden: only its own family and its children
     change. Factors of zero are counted apart. */
  logs(rest) {
    const { net, pairs, absent } = this, states = new Map([...rest, ...absent]);
    const live = Elimination.live(net, [...states.keys()]);
    if (live.some(v => !Elimination.hard(states.get(v)))) return this.eliminated(rest);
    const inside = new Set(live), below = new Map(net.causes.map(c => [c, [c]]));
    for (const v of live) for (const u of net.parents[v]) if (below.has(u) && v !== u) below.get(u).push(v);
    const split = x => x === -Infinity ? [0, 1] : [x, 0];
    const base = new Map([...inside].map(v => [v, split(Elimination.logOf(net, v, states))]));
    const [sum, zeros] = [...base.values()].reduce(([x, n], [y, m]) => [x + y, n + m], [0, 0]);
    return pairs.map(([c, s]) => {
      let [x, n] = [sum, zeros];
      states.set(c, s);
      for (const v of below.get(c)) {
        const [old, was] = base.get(v), [now, is] = split(Elimination.logOf(net, v, states));
        x += now - old;
        n += is - was;
      }
      states.set(c, 0);
      return n > 0 ? -Infinity : x;
    });
  }

  eliminated(rest) {
    return this.pairs.map(([c, s]) => {
      try { return Elimination.solve(this.net, new Map([...rest, ...this.absent, [c, s]])).logP; }
      catch (error) { if (error instanceof Impossible) return -Infinity; throw error; }
    });
  }
}

const pause = () => new Promise(done => setTimeout(done));
const logOdds = p => { const q = Math.min(Math.max(p, EDGE), 1 - EDGE); return Math.log(q) - Math.log1p(-q); };
const entropy = p => p.reduce((x, q) => q > 0 ? x - q * Math.log(q) : x, 0);

/* Of many findings, those next to causes that are neither certain nor excluded, by the strength of the links. */
function promising(net, among, beliefs) {
  const open = j => beliefs[j] ? beliefs[j][0] * (1 - beliefs[j][0]) : 0.01;
  const pull = f => net.parents[f].reduce((x, j, e) => x + Math.abs(net.strength[f][e]) * open(j), 0);
  const score = new Map(among.map(f => [f, pull(f)]));
  return [...among].sort((a, b) => score.get(b) - score.get(a) || a - b).slice(0, TRIES).sort((a, b) => a - b);
}
