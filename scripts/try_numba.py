"""Try the kernels on the oldest numba that pyproject.toml declares and on the newest that the index has.

Each gets a virtual environment below .cache, and runs the small contract of all solvers.
"""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ("tests/test_contract.py", "tests/test_terms.py", "tests/test_compile.py")


def main() -> int:
    oldest = re.search(r'"numba>=([0-9.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert oldest is not None
    failed = []
    for name, wanted in (("oldest", f"numba=={oldest[1]}.*"), ("newest", "numba")):
        place = ROOT / ".cache" / f"numba-{name}"
        venv.create(place, with_pip=True)
        python = str(place / "bin" / "python")
        needs = [wanted, ".[dev]"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--upgrade", *needs], cwd=ROOT, check=True)
        print(
            subprocess.run([python, "-m", "numba", "--version"], capture_output=True, text=True).stdout.strip() or name
        )
        done = subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS], cwd=ROOT)
        failed += [name] * (done.returncode != 0)
    print("failed: " + ", ".join(failed) if failed else "both pass")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
