"""``python -m sbnet`` is ``sbnet``."""

from __future__ import annotations

import sys

from sbnet.cli import main

sys.exit(main())
