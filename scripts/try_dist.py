"""Try every archive in a folder as a stranger would: install it in an empty environment with the extras that the README
names, ask it something, and run the blocks of the README as printed.

python scripts/try_dist.py dist
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ASK = """
import sbnet as sb
from sbnet.datasets import load_digits

net = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5}, bias={"rain": -1.0, "wet": -2.0})
below, truth = sb.infer(net, {"wet": 1}).bound, sb.log_likelihood(net, {"wet": 1})
assert truth - 0.1 < below <= truth, (below, truth)
assert load_digits().train.shape == (7000, 64)
print(f"sbnet {sb.__version__} from {sb.__file__}: ln P = {truth:.3f} >= {below:.3f}")
"""

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXTRAS = re.search(r'^pip install "\.(\[[\w,]+\])"', README, flags=re.MULTILINE)[1]
BLOCKS = "\n".join(re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE))
COMMANDS = [line.split() for line in re.findall(r"^\$ sbnet (.*)$", README, flags=re.MULTILINE)]


def try_out(archive: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder, "Scripts" if sys.platform == "win32" else "bin")
        run = [str(programs / "python"), "-I"]
        subprocess.run(
            [*run, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{archive}{EXTRAS}"], check=True
        )
        print(archive.name, flush=True)
        for code in (ASK, BLOCKS):
            subprocess.run([*run, "-c", code], check=True, cwd=folder)
        for words in (["--version"], *COMMANDS):
            subprocess.run([programs / "sbnet", *words], check=True, cwd=folder)


def main(folder: str) -> None:
    archives = sorted(Path(folder).resolve().iterdir())
    if {archive.suffix for archive in archives} != {".whl", ".gz"}:
        sys.exit(f"{folder} should hold a wheel and a source archive; it holds {[a.name for a in archives]}")
    for archive in archives:
        try_out(archive)


if __name__ == "__main__":
    main(*sys.argv[1:])
