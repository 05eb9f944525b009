"""Faults at every call that writing makes of the system: afterwards there is the old file or the new one, whole.

As in the tests of SQLite: the first call fails, then the second, and so on until all goes well; once for a fault that
passes, and once for one that lasts, after which nothing can be put in order, as when the machine stops.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest

import sbnet as sb
from sbnet.cli import main
from sbnet.files import atomic

FAULTS = {
    "full": lambda: OSError(errno.ENOSPC, "No space left on device"),
    "broken": lambda: OSError(errno.EIO, "Input/output error", "/a/temporary/.sbnet-file.tmp"),
    "memory": MemoryError,
    "interrupt": KeyboardInterrupt,
}
CALLS = ("open", "fdopen", "write", "flush", "fsync", "close", "stat", "chmod", "chown", "replace", "unlink")


class System:
    """The system as files are written with it, of whose calls the one of number `at` fails, or all from there on."""

    def __init__(self, fault, at, lasting):
        self.fault, self.at, self.lasting = fault, at, lasting
        self.made: list[str] = []

    def __getattr__(self, name):
        real = getattr(os, name)
        return self._failing(name, real) if name in CALLS else real

    @property
    def fired(self):
        return len(self.made) >= self.at

    def count(self, name):
        self.made.append(name)
        if len(self.made) == self.at or (self.lasting and self.fired):
            raise self.fault()

    def _failing(self, name, real):
        def call(*arguments, **options):
            self.count(name)
            return real(*arguments, **options)

        return call

    def fdopen(self, handle, mode):
        self.count("fdopen")
        return Torn(os.fdopen(handle, mode), self)


class Torn:
    """A file of which half is written when the fault strikes."""

    def __init__(self, file, system):
        self.file, self.system = file, system

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def fileno(self):
        return self.file.fileno()

    def write(self, data):
        self.file.write(data[: len(data) // 2])
        self.system.count("write")
        self.file.write(data[len(data) // 2 :])

    def flush(self):
        self.system.count("flush")
        self.file.flush()


LAWN = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5})
ROWS = np.array([[1.0], [0.0]])


def lawn(k):
    return LAWN.with_parameters(bias=[float(k), 0.0, 0.0])


def by_save(path, k):
    sb.save(lawn(k), path)


def by_fit(path, k):
    sb.fit(lawn(k), ROWS, epochs=1, checkpoint=path, threads=1, rng=0)


def by_command(path, k):
    """As the command does it; bad news come back as errors."""
    network = path.parent.parent / "lawn.sbn"
    if not network.exists():
        sb.save(LAWN, network)
    status = main(["infer", str(network), f"wet={k}", "--out", str(path)])
    if status:
        raise OSError(status, f"the command said so about {path}", str(path))


def by_report(path, k):
    atomic.write_atomically(path, b"a page" * 1000 * (k + 1))


WRITERS = {"save": by_save, "fit(checkpoint=)": by_fit, "infer --out": by_command, "report": by_report}


def whole(name, data):
    """Contents without what differs from run to run: the header of a checkpoint tells how long learning took."""
    return data[8 + int.from_bytes(data[:8], "little") :] if name.startswith("fit") else data


def strike_everywhere(folder, name, fault, lasting, existing, ends):
    """Let every call fail in turn, and look at what is left."""
    write, path = WRITERS[name], folder / "target"
    folder.mkdir(exist_ok=True)
    write(path, 1)
    new = whole(name, path.read_bytes())
    write(path, 0)
    old = whole(name, path.read_bytes())
    assert old != new
    at = 0
    while True:
        at += 1
        if existing:
            write(path, 0)
        else:
            path.unlink(missing_ok=True)
        system, caught = System(FAULTS[fault], at, lasting), None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(atomic, "os", system)
            try:
                write(path, 1)
            except (Exception, KeyboardInterrupt) as error:
                caught = error
        if not system.fired:
            assert caught is None
            assert whole(name, path.read_bytes()) == new
            return
        left = whole(name, path.read_bytes()) if path.exists() else None
        assert left in ((old, new) if existing else (None, new)), (name, fault, system.made)
        if isinstance(caught, OSError):
            assert str(path) in str(caught)
            assert ".sbnet-" not in str(caught)
        if caught is None and not (fault == "interrupt" and name.startswith(("fit", "infer"))):
            assert left == new, (name, fault, system.made)  # what did not fail, or did not matter, is done
        rest = [item for item in folder.iterdir() if item != path]
        if not lasting and system.made[-1] != "unlink":
            assert rest == [], (name, fault, system.made)
        for item in rest:
            item.unlink()
        ends["new" if left == new else "old" if left == old else "none, as before"] += 1
        ends[system.made[at - 1]] += 1


def strike(tmp_path, names, faults, lastings, existings):
    ends = Counter()
    for name in names:
        for fault in faults:
            for lasting in lastings:
                for existing in existings:
                    strike_everywhere(tmp_path / "folder", name, fault, lasting, existing, ends)
    return ends


@pytest.mark.parametrize("name", ["save", "report"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("lasting", [False, True], ids=["passing", "lasting"])
def test_a_fault_at_any_call_leaves_the_old_file_or_the_new_one(tmp_path, name, fault, lasting):
    ends = strike(tmp_path, [name], [fault], [lasting], [True, False])
    assert {"open", "write", "flush", "fsync", "replace"} <= ends.keys()
    assert min(ends["old"], ends["new"], ends["none, as before"]) > 0


def test_a_fault_at_any_call_of_a_checkpoint_or_a_command(tmp_path, capfd):
    ends = strike(tmp_path, ["fit(checkpoint=)", "infer --out"], ["full"], [False], [True])
    assert {"open", "write", "flush", "fsync", "replace"} <= ends.keys()


@pytest.mark.slow
def test_faults_everywhere(tmp_path, capfd):
    begin = time.process_time()
    ends = strike(tmp_path, WRITERS, FAULTS, [False, True], [True, False])
    capfd.readouterr()  # the errors that the command tells, or they would be shown after all
    calls = ", ".join(f"{ends[name]} {name}" for name in CALLS if ends[name])
    states = {key: ends[key] for key in ("old", "new", "none, as before")}
    with capfd.disabled():
        print(
            f"\nfaults while writing: {sum(states.values()):,} injected ({calls}); left the old file {states['old']}, "
            f"the new one {states['new']}, no file as before {states['none, as before']}, never half a file, "
            f"{time.process_time() - begin:.0f} s of processor time"
        )
    assert sum(states.values()) > 500


# --- out of memory, in the interpreter itself -----------------------------------------------------------------------

SCRIPT = """
import os, sys
import _testcapi
import sbnet as sb

path, step = sys.argv[1], int(sys.argv[2])
old, new = sb.layered((2, 3), rng=0), sb.layered((2, 3), rng=1)
failed = quiet = at = 0
ends = {"old": 0, "new": 0}
while quiet < 30 // step + 3:
    sb.save(old, path)
    caught = None
    _testcapi.set_nomemory(at, at + 1)
    try:
        sb.save(new, path)
    except BaseException as error:
        caught = error
    finally:
        _testcapi.remove_mem_hooks()
    left = sb.load(path)
    assert left in (old, new)
    assert os.listdir(os.path.dirname(path)) == ["net.sbn"]
    if caught is None:
        assert left == new
        quiet += 1
    else:
        ends["old" if left == old else "new"] += 1
        quiet = 0
    at += step
print(ends["old"], ends["new"])
"""


def out_of_memory(folder, step):
    pytest.importorskip("_testcapi")
    (folder / "script.py").write_text(SCRIPT)
    (folder / "target").mkdir()
    done = subprocess.run(
        [sys.executable, str(folder / "script.py"), str(folder / "target" / "net.sbn"), str(step)],
        capture_output=True,
        text=True,
        env={**os.environ, "RUST_BACKTRACE": "0"},
    )
    assert done.returncode == 0, done.stderr
    return tuple(int(count) for count in done.stdout.split())


def test_memory_that_runs_out_while_saving(tmp_path):
    old, _ = out_of_memory(tmp_path, 37)
    assert old > 5


@pytest.mark.slow
def test_memory_that_runs_out_at_every_allocation(tmp_path):
    old, new = out_of_memory(tmp_path, 1)
    print(
        f"\nout of memory while saving: {old + new} allocations failed, one at a time; left the old file {old}, "
        f"the new one {new}"
    )
    assert old > 100
