"""A page to click: tell it what was found, see the causes re-ranked, why, and what to ask next.

:func:`serve` shows it in a browser, answered by this process; :func:`html` makes one file of it that answers by itself
and can be sent to anyone; :func:`widget` shows that file in a notebook.
"""

from __future__ import annotations

import html as markup
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from sbnet import checks
from sbnet.errors import SBNetError
from sbnet.explore.answers import answer
from sbnet.explore.page import document
from sbnet.model import roles
from sbnet.model.network import Network
from sbnet.model.suggestions import check_network
from sbnet.questions.evidence import OnePattern

__all__ = ["Widget", "html", "serve", "widget"]

_TITLE = "Which causes, given these findings?"


def html(network: Network, *, title: str | None = None, evidence: OnePattern | None = None) -> str:
    """One HTML file with the network inside, which needs no server and asks nobody else for anything.

    The page answers by itself where an exact answer is feasible, by elimination, with the same numbers as those of
    :func:`serve`. Elsewhere it says so; a server has bounds and estimates for that.

    Parameters
    ----------
    network : Network
    title : str, optional
        The heading.
    evidence : mapping or sequence, optional
        What is known when the page opens, one pattern as in :func:`sbnet.infer`; a link with findings in it goes first.

    Returns
    -------
    str
        A whole document; save it as UTF-8.

    Examples
    --------
    >>> import sbnet as sb
    >>> net = sb.noisy_or({("flu", "fever"): 0.9, ("cold", "fever"): 0.2}, leak=0.01, prior={"flu": 0.05, "cold": 0.1})
    >>> page = sb.explore.html(net, title="Fever", evidence={"fever": 1})
    >>> page.splitlines()[0]
    '<!doctype html>'
    """
    check_network(network)
    heading = _TITLE if title is None else str(title)
    return document(network, heading, {} if evidence is None else evidence, server=False)


def serve(
    network: Network,
    *,
    port: int = 0,
    open_browser: bool = True,
    title: str | None = None,
    evidence: OnePattern | None = None,
    announce: Callable[[str], object] = print,
) -> None:
    """Show the page in a browser and answer it, until the process is interrupted (Ctrl+C); needs ``sbnet[explore]``.

    The server listens on this machine's loopback interface alone, at an address with a random token that every request
    must have; it reads no file.

    Parameters
    ----------
    network : Network
    port : int
        Where to listen; 0 takes a free port.
    open_browser : bool
        Open the page; the address is announced in any case.
    title, evidence : as in :func:`html`
    announce : callable
        What is called with the address, once the page answers.

    Examples
    --------
    >>> import sbnet as sb
    >>> sb.explore.serve(sb.datasets.example_clinic(), evidence={"fever": 1})  # doctest: +SKIP
    """
    check_network(network)
    checks.whole("port", port, 0, 65_535)
    for module in ("starlette", "uvicorn"):
        checks.extra(module, "explore.serve()", of="explore")
    from sbnet.explore.server import Served

    heading = _TITLE if title is None else str(title)
    page = document(network, heading, {} if evidence is None else evidence, server=True)
    served = Served(network, page, port)
    causes = roles.causes(network)
    for evidence_now in ({}, {str(network.n_units - 1): 1}):  # compiles what the first click needs
        with suppress(SBNetError):
            answer(network, {"evidence": evidence_now, "units": causes})
    announce(f"exploring at {served.address} (Ctrl+C ends it)")
    if open_browser:
        webbrowser.open(served.address)
    try:
        served.run()
    except KeyboardInterrupt:
        announce("ended")


@dataclass(frozen=True)
class Widget:
    """The page in a notebook: a frame of its own, with the document inside.

    Attributes
    ----------
    document : str
    height : int
        In pixels.

    Examples
    --------
    >>> import sbnet as sb
    >>> sb.explore.Widget("<!doctype html>", height=300)
    Widget(document='<!doctype html>', height=300)
    """

    document: str
    height: int = 720

    def _repr_html_(self) -> str:
        content = markup.escape(self.document)
        return (
            f'<iframe srcdoc="{content}" sandbox="allow-scripts" title="sbnet explore" '
            f'style="width:100%;height:{self.height}px;border:0"></iframe>'
        )


def widget(
    network: Network, *, title: str | None = None, evidence: OnePattern | None = None, height: int = 720
) -> Widget:
    """The page of :func:`html`, to look at in a notebook: the last line of a cell shows it.

    Parameters
    ----------
    network, title, evidence : as in :func:`html`
    height : int
        In pixels.

    Returns
    -------
    Widget

    Examples
    --------
    >>> import sbnet as sb
    >>> sb.explore.widget(sb.noisy_or({("flu", "fever"): 0.9}, prior=0.05), height=300).height
    300
    """
    checks.whole("height", height, 1)
    return Widget(html(network, title=title, evidence=evidence), int(height))
