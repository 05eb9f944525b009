"""Texts from anywhere, TOML and those of other programs: each is read, or refused in one short sentence."""

from __future__ import annotations

import pytest

import hostile_texts
import sbnet as sb
from sbnet.datasets import clinic_path
from sbnet.errors import FileFormatError
from test_formats import TEXTS as OTHERS
from test_hostile import Tally, check_network
from test_tables_in import ASIA, COUGH, SMALL, XDSL
from test_text import CLINIC

pytestmark = pytest.mark.filterwarnings("ignore::sbnet.errors.ConversionWarning")

ODD_NAMES = '[units."a.b"]\nprior = 0.5\n[units."é\\u0000\\""]\nweights."a.b" = 1\n[units.c.weights]\n"a.b" = -2e3\n'
SOURCES = {
    "toml": [CLINIC.encode(), ODD_NAMES.encode(), clinic_path().read_bytes()[-2500:]],
    "bif": [ASIA.encode()],
    "uai": [SMALL.encode(), SMALL.replace("1 0\n", "1 0 # a\n").encode()],
    "xdsl": [XDSL.encode(), COUGH.encode()],
    **{ending: [text.encode()] for ending, text in OTHERS.items()},
}


def fuzz(folder, ending, count, tally):
    """So many changed files; what can be read is written and read again."""
    path = folder / f"changed.{ending}"
    for seed in range(count):
        sources = SOURCES[ending.removesuffix(".gz")]
        data = hostile_texts.changed(sources[seed % len(sources)], seed)
        path.write_bytes(hostile_texts.packed(data, seed) if path.suffix == ".gz" else data)
        try:
            network = sb.read(path)
        except FileFormatError as error:
            tally.refused(str(error))
            continue
        check_network(network)
        tally.ends["read"] += 1
        if ending == "toml":
            sb.write(network, folder / "again.toml")
            assert sb.read(folder / "again.toml") == network


ENDINGS = [*SOURCES, *(f"{ending}.gz" for ending in SOURCES)]


@pytest.mark.parametrize("ending", ENDINGS)
def test_some_changed_texts(tmp_path, ending):
    tally = Tally(ending)
    fuzz(tmp_path, ending, 200, tally)
    assert min(tally.ends["read"], tally.ends["refused"]) > 10


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_twenty_thousand_changed_texts(tmp_path, ending):
    tally = Tally(f"changed .{ending} files")
    fuzz(tmp_path, ending, 20_000, tally)
    print(f"\n{tally}")
    assert tally.ends.total() == 20_000
    assert min(tally.ends.values()) > 1_000, tally
