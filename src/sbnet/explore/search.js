/* A search that forgives: capitals, accents, the order of words, and a typo or two. */
"use strict";

/* Letters without accents and capitals; words apart from each other by single spaces. */
const plain = text => text.normalize("NFD").replace(/\p{Mn}/gu, "").toLocaleLowerCase()
  .replace(/ß/g, "ss").replace(/ø/g, "o").replace(/ł/g, "l").replace(/æ/g, "ae")
  .replace(/[^\p{L}\p{N}]+/gu, " ").trim();

const typos = length => length < 4 ? 0 : length < 7 ? 1 : 2;  // that a word of such a length may have

/* How many letters differ between a part of a query and the beginning of a word, two that change places count once. */
function distance(part, word, most) {
  if (!most || Math.abs(Math.min(word.length, part.length + most) - part.length) > most) return most + 1;
  const n = Math.min(word.length, part.length + most);
  let before = null, row = Array.from({ length: n + 1 }, (_, k) => k);
  for (let a = 1; a <= part.length; a++) {
    const next = [a];
    for (let b = 1; b <= n; b++) {
      const same = part[a - 1] === word[b - 1];
      next[b] = Math.min(row[b] + 1, next[b - 1] + 1, row[b - 1] + (same ? 0 : 1));
      if (a > 1 && b > 1 && part[a - 1] === word[b - 2] && part[a - 2] === word[b - 1])
        next[b] = Math.min(next[b], before[b - 2] + 1);
    }
    [before, row] = [row, next];
  }
  return Math.min(...row.slice(Math.max(part.length - most, 0)));
}

/* How badly a part of the query fits a text: 0 at its beginning, 1 at that of a word, 2 within, more with typos. */
function misfit(part, { text, words }, forgiving) {
  const at = text.indexOf(part);
  if (at === 0) return 0;
  if (text.includes(` ${part}`)) return 1;
  if (at > 0) return 2;
  if (!forgiving) return Infinity;
  const most = typos(part.length), least = Math.min(most + 1, ...words.map(word => distance(part, word, most)));
  return least > most ? Infinity : 3 + least;
}

const indexed = text => ({ text: plain(text), words: [...new Set(plain(text).split(" "))] });

/* The places of texts that fit a query, the best first; with typos only if nothing fits without. */
function search(query, texts, rank = () => 0, forgiving = false) {
  const parts = plain(query).split(" ").filter(Boolean);
  if (!parts.length) return [];
  const found = texts.map((one, k) => [parts.reduce((x, part) => x + misfit(part, one, forgiving), rank(k)), k]);
  const fitting = found.filter(([x]) => x < Infinity).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  return fitting.length || forgiving ? fitting.map(([, k]) => k) : search(query, texts, rank, true);
}
