"""Hostile tables by the thousand: csv files, arrays, frames and records of cells and names that no table should have.

Hypothesis chooses the form and a seed; a seeded generator chooses the cells.
"""

from __future__ import annotations

import bz2
import csv
import datetime
import decimal
import fractions
import gzip
import io
import lzma
import random

import numpy as np
import pandas as pd
import scipy.sparse
from hypothesis import strategies as st

LONG = "long " * 2_000
CELLS = (
    "0",
    "1",
    "",
    "0.0",
    "1.0",
    "nan",
    "NA",
    " 1 ",
    "2",
    "-1",
    "yes",
    "1e400",
    "0" * 500,
    "1\n",
    '"',
    "\0",
    "é",
    "1,0",
)
HEADS = (
    "rain",
    "wet",
    "slippery",
    "sprinkler",
    "rain ",
    "snow",
    "",
    "Rain",
    LONG,
    "\ufeffrain",
    "a\nb",
    '"',
    "0",
    "é",
    "\0",
)


@st.composite
def csv_files(draw):
    """Csv files about rain, sprinkler, wet and slippery, good ones among them: a function from numbers to bytes."""
    seed, wrong = draw(st.integers(0, 2**32 - 1)), draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
    return lambda number: _csv_file(random.Random(f"{seed} {number}"), *wrong)


def _csv_file(rng, bad_head, bad_cell, ragged):
    width = rng.randrange(5)
    heads = rng.sample(HEADS[:4], width)
    if bad_head:
        heads = [rng.choice(HEADS) for _ in heads]
    rows = [
        [rng.choice(CELLS if bad_cell and rng.random() < 0.2 else CELLS[:8]) for _ in heads]
        for _ in range(rng.randrange(5))
    ]
    if ragged and rows:
        rows[-1] = (rows[-1] * 2)[: rng.randrange(2 * width + 1)]
    text = io.StringIO()
    quoting = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    csv.writer(text, lineterminator=rng.choice(["\n", "\r\n", "\r"]), quoting=quoting).writerows([heads, *rows])
    data = text.getvalue().encode(rng.choice(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"]), "replace")
    if rng.random() < 0.1 and data:
        at = rng.randrange(len(data))
        data = data[:at] + rng.choice([b"\xff", b'"', b"\0", b"\r", b",", b"\n" * 20, b"x" * 200_000]) + data[at:]
    return data


VALUES = (0, 1, None, np.nan, -1, True, False, 0.0, 1.0, np.int8(1), np.float32(0), np.bool_(True), pd.NA, pd.NaT)
BAD = (
    2,
    0.5,
    "1",
    "yes",
    b"1",
    10**400,
    -(10**5000),
    1e308,
    np.inf,
    1j,
    decimal.Decimal("NaN"),
)
BAD += (
    fractions.Fraction(1, 2),
    datetime.date(2000, 1, 1),
    np.datetime64("NaT"),
    [],
    [0],
    {},
    (),
    object,
    LONG,
    np.zeros(2),
)
BAD += (np.array(1), "\ud800", np.uint64(2**64 - 1), decimal.Decimal(1), range(3))
LABELS = (
    "rain",
    "sprinkler",
    "wet",
    "slippery",
    "snow",
    0,
    1,
    2,
    3,
    4,
    -1,
    10**400,
    None,
    np.nan,
    ("rain", 1),
    True,
    1.0,
    LONG,
)
NUMPY = (
    "int8",
    "uint8",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex128",
    "bool",
    "U3",
    "S2",
    "M8[s]",
    "m8[s]",
)


def _cells(rng, shape, bad):
    return [[rng.choice(BAD if rng.random() < bad else VALUES) for _ in range(shape[1])] for _ in range(shape[0])]


def _rows(rng, bad):
    return _cells(rng, (rng.randrange(4), rng.randrange(6)), bad)


def _ragged(rng, bad):
    rows = _rows(rng, bad)
    return [row[: rng.randrange(len(row) + 1)] for row in rows]


def _array(rng, bad):
    shape = tuple(rng.randrange(6) for _ in range(rng.choice([0, 1, 2, 2, 2, 3])))
    array = np.array([rng.choice([0, 1]) for _ in range(int(np.prod(shape)))]).reshape(shape).astype(rng.choice(NUMPY))
    if array.size and rng.random() < bad and array.dtype.kind in "iuf":
        info = np.iinfo(array.dtype) if array.dtype.kind in "iu" else np.finfo(array.dtype)
        array.flat[rng.randrange(array.size)] = rng.choice([info.max, info.min, 2])
    return array


def _objects(rng, bad):
    rows = _rows(rng, bad)
    array = np.empty((len(rows), len(rows[0]) if rows else 2), dtype=object)
    for r, row in enumerate(rows):
        for c, value in enumerate(row):
            array[r, c] = value
    return array


def _frame(rng, bad):
    objects = _objects(rng, bad)
    labels = [rng.choice(LABELS if rng.random() < bad else LABELS[:4]) for _ in range(objects.shape[1])]
    frame = pd.DataFrame(objects, dtype=object)
    frame.columns = pd.Index(labels, dtype=object)
    if not bad and frame.columns.is_unique and len(frame):
        return frame.convert_dtypes() if rng.random() < 0.5 else frame.astype("category")
    return frame


def _records(rng, bad):
    return [{_label(rng, bad): value for value in row} for row in _rows(rng, bad)]


def _label(rng, bad):
    return rng.choice(LABELS if rng.random() < bad else LABELS[:4])


def _series(rng, bad):
    values = (_rows(rng, bad) or [[0]])[0]
    labels = pd.Index([_label(rng, bad) for _ in values], dtype=object)
    return pd.Series(values, dtype=object, index=labels if rng.random() < 0.5 else None)


def _masked(rng, bad):
    array = _array(rng, bad)
    return np.ma.masked_array(array, mask=np.ones(array.shape, bool) if rng.random() < 0.5 else np.ma.nomask)


def _sparse(rng, bad):
    array = np.atleast_2d(_array(rng, bad).real.astype(float))
    return scipy.sparse.csr_array(array) if array.ndim == 2 else array


def _odd(rng, bad):
    return rng.choice(
        [None, 3, "rain", b"rain", object(), {1, 2}, iter([]), [[]], [], {}, [{}], [[], {}], [[[0]]], [None], [LONG]]
    )


FORMS = (_rows, _ragged, _array, _array, _objects, _frame, _frame, _records, _series, _masked, _sparse, _odd)


@st.composite
def tables(draw):
    """Evidence of every form about rain, sprinkler, wet and slippery, good ones among them, by numbers."""
    form, bad = draw(st.sampled_from(FORMS)), draw(st.sampled_from([0.0, 0.1, 0.5]))
    seed = draw(st.integers(0, 2**32 - 1))
    return lambda number: form(random.Random(f"{seed} {number}"), bad)


PACKERS = {"csv": bytes, "csv.gz": gzip.compress, "csv.bz2": bz2.compress, "csv.xz": lzma.compress}
WRITERS = (*PACKERS, "npz", "parquet")


@st.composite
def packed_tables(draw):
    """Files of every form, most of them compressed or damaged: a function from numbers to an ending and bytes."""
    seed, ending = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from(WRITERS))
    wrong = draw(st.sampled_from([0.0, 0.5, 0.5, 1.0]))
    return lambda number: (ending, _packed(random.Random(f"{seed} {number}"), ending, wrong))


def _packed(rng, ending, wrong):
    if ending in PACKERS:
        data = PACKERS[ending](_csv_file(rng, False, rng.random() < 0.2, False))
    else:
        data = _written(rng, ending)
    return _damaged(data, rng) if rng.random() < wrong else data


def _written(rng, ending):
    file, names = io.BytesIO(), list(HEADS[: rng.randrange(1, 5)])
    cells = np.array([[rng.choice([0.0, 1.0, np.nan, 2.0]) for _ in names] for _ in range(rng.randrange(4))])
    table = cells.reshape(-1, len(names))
    if ending == "npz":
        rng.choice([np.savez, np.savez_compressed])(file, table=table, names=np.array(names))
    else:
        pd.DataFrame(table, columns=names).to_parquet(file)
    return file.getvalue()


def _damaged(data, rng):
    """Bytes changed, cut out, added or doubled, anywhere."""
    for _ in range(rng.choice([1, 1, 3])):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(4)
        more = rng.randbytes(rng.randrange(1, 5)) if kind < 2 else data[: rng.randrange(len(data) + 1)] * (kind == 2)
        data = data[:at] + more + data[at + (rng.randrange(9) if kind else len(more)) :]
    return data
