"""Hostile text files by the thousand: good ones taken apart into words and lines, changed, and put together again."""

from __future__ import annotations

import gzip
import random
import re

WORDS = re.compile(rb'"[^"\n]*"|[A-Za-z0-9_.+-]+|\s+|.', re.DOTALL)
ODD = (
    b"",
    b"0",
    b"1",
    b"-1",
    b"2",
    b"nan",
    b"inf",
    b"1e999",
    b"1e-320",
    b"9" * 400,
    b"0x" + b"f" * 9000,
    b"true",
    b"1979-05-27",
    b'"x"',
    b'"' + b"long " * 500 + b'"',
    b"\xff",
    "é".encode(),
    b"\0",
    b"[" * 3000,
    b"{",
    b"}",
    b"(",
    b")",
    b"=",
    b",",
    b";",
    b"#",
    b"//",
    b"/*",
    b"\n",
    b"units",
    b"table",
    b"default",
    b"property",
    b"BAYES",
    b"MARKOV",
    b"1000000000",
    b"4000",
)


def changed(data: bytes, seed: int) -> bytes:
    """The file with one to three changes: of words, of lines, of bytes, or cut short."""
    rng = random.Random(seed)
    for _ in range(rng.choice((1, 1, 2, 3))):
        data = rng.choice((_word, _word, _space, _space, _swap, _line, _byte, _cut))(data, rng)
    return data


def _space(data: bytes, rng: random.Random) -> bytes:
    """More room between words, which most formats do not mind."""
    words = WORDS.findall(data) or [b""]
    words[rng.randrange(len(words))] += rng.choice((b" ", b"  ", b"\t", b"\n", b"\r\n"))
    return b"".join(words)


def _word(data: bytes, rng: random.Random) -> bytes:
    words = WORDS.findall(data) or [b""]
    own = [word for word in words if not word.isspace()] or [b""]
    words[rng.randrange(len(words))] = rng.choice((*ODD, rng.choice(own), rng.choice(own)))
    return b"".join(words)


def _swap(data: bytes, rng: random.Random) -> bytes:
    words = WORDS.findall(data) or [b""]
    i, j = rng.randrange(len(words)), rng.randrange(len(words))
    words[i], words[j] = words[j], words[i]
    return b"".join(words)


def _line(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(3)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(i, lines[j])
    else:
        lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def _byte(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + rng.randrange(2) :]


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def packed(data: bytes, seed: int) -> bytes:
    """The file compressed, and every other one damaged after that."""
    rng, small = random.Random(-seed - 1), gzip.compress(data, mtime=0)
    return rng.choice((_byte, _byte, _cut))(small, rng) if rng.random() < 0.5 else small
