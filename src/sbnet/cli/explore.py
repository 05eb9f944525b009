"""Open a page to click, in a browser on this machine; or write it as one file to forward."""

from __future__ import annotations

import argparse
import json
import sys

from sbnet.cli import commands
from sbnet.cli.evidence import pattern
from sbnet.cli.models import check_out, read_model
from sbnet.errors import in_line
from sbnet.files.atomic import write_atomically

EXAMPLES = """
  sbnet explore clinic.toml                        until Ctrl-C
  sbnet explore clinic.toml fever=yes --port 8000 --no-browser
  sbnet explore clinic.toml --html clinic.html     needs no server and no sbnet to open"""


def options(one: argparse.ArgumentParser) -> None:
    commands.model(one)
    commands.evidence(one)
    one.add_argument("--html", metavar="OUT", help="write the page there instead; - is standard output")
    one.add_argument("--title", help="the heading of the page")
    one.add_argument("--port", type=int, default=0, help="on this machine (default: one that is free)")
    one.add_argument("--no-browser", action="store_true", help="say the address, and open nothing")


def run(chosen: argparse.Namespace) -> int:
    from sbnet import explore

    if chosen.html is not None:
        check_out(chosen.html, chosen)
    network = read_model(chosen)
    found = pattern(network, chosen.evidence)
    if chosen.html is None:

        def announce(text: str) -> None:
            if not chosen.quiet:
                print(text, file=sys.stderr, flush=True)

        shown = {"title": chosen.title, "evidence": found}
        explore.serve(network, port=chosen.port, open_browser=not chosen.no_browser, announce=announce, **shown)
        return 0
    page = explore.html(network, title=chosen.title, evidence=found)
    if chosen.html == "-":
        sys.stdout.write(page)
        return 0
    write_atomically(chosen.html, page.encode())
    if chosen.json:
        print(json.dumps({"out": chosen.html, "bytes": len(page.encode())}))
    elif not chosen.quiet:
        print(f"wrote {in_line(chosen.html)}; open it in any browser", file=sys.stderr)
    return 0
