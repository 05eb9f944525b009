"""Print the benchmark tables: ``python -m benchmarks [name ...]``, from the project folder."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from . import (
    certificates,
    classify,
    clinic,
    cluster,
    compile,
    density,
    diagnosis,
    digits,
    exact,
    explore,
    gibbs,
    growth,
    imputation,
    log_terms,
    regressions,
    scaling,
    states,
    structured,
    tables,
    tightness,
    training,
    upper,
)
from .report import Table, busy_note, say

TABLES: dict[str, tuple[str, Callable[..., list[Table]]]] = {
    "compile": ("what the first calls after installation cost, and later ones", compile.table),
    "digits": ("digit networks: sbnet, C++, NumPy, PyTorch", digits.table),
    "log-terms": ("tightness against time of the four logarithm terms", log_terms.table),
    "training": ("rows a second of learning: sbnet, C++, scikit-learn, PyTorch", training.table),
    "density": ("log-likelihoods of public tables, with nothing set", density.table),
    "regressions": ("L1 logistic regressions: sbnet, scikit-learn, skglm", regressions.table),
    "scaling": ("time and memory for large networks and long tables", scaling.table),
    "cluster": ("other processes: overhead, scaling, bytes; a stream; a billion rows", cluster.table),
    "growth": ("what twice the units, equal rows, more components cost", growth.table),
    "exact": ("pyAgrum's tables, enumeration, and the bound", exact.table),
    "tightness": ("how near the tighter lower bounds come to the truth", tightness.table),
    "structured": ("lower bounds for hidden chains that are seen together", structured.table),
    "upper": ("how near the upper bound comes to the truth", upper.table),
    "certificates": ("how wide the interval for ln P is, by method and time", certificates.table),
    "clinic": ("diagnosis with noisy-OR units: a symptom, a made clinic, a public graph", clinic.table),
    "diagnosis": ("which rare disease real patients have, by a catalogue's network", diagnosis.table),
    "explore": ("how long a click on the page of a large clinic takes", explore.table),
    "imputation": ("missing cells of public tables filled in, beside other imputers", imputation.table),
    "classify": ("digits named, whole and with missing pixels; classes of few rows", classify.table),
    "states": ("three states beside two, with as many weights", states.table),
    "tables": ("ordinary tables, the CSV files of a FOLDER: label, missing cells, density", tables.table),
    "gibbs": ("how long Gibbs sampling needs to be as accurate", gibbs.table),
}


def main() -> int:
    listing = "\n".join(f"  {name:<14}{what}" for name, (what, _) in TABLES.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Print benchmark tables. Progress goes to standard error.",
        epilog=f"tables:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="name", help="tables to print; all by default")
    parser.add_argument("--markdown", action="store_true", help="print GitHub tables")
    arguments = parser.parse_args()
    folders = [name for name in arguments.names if name not in TABLES and Path(name).is_dir()]
    names = [name for name in arguments.names if name not in folders]
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        parser.error(f"there is no table {unknown[0]!r}; choose from {', '.join(TABLES)}")
    start = time.perf_counter()
    for name in names or [name for name in TABLES if name != "tables"]:
        say(f"{name}: {TABLES[name][0]}")
        found = TABLES[name][1](*folders) if name == "tables" else TABLES[name][1]()
        remark = busy_note()
        for table in [t._replace(notes=(*t.notes, *remark)) for t in found]:
            if arguments.markdown:
                print(table.markdown(), flush=True)
            else:
                table.print()
    say(f"done in {time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
