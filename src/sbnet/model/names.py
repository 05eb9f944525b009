"""Names as people and systems write them: "ü" may be one character or two, and is one letter all the same."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any


def normal(name: str) -> str:
    """A name in the form in which names are compared, normal form C."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def spelled(name: str, names: Iterable[str]) -> str:
    """A name as it is spelled among others, to the letter or else in normal form; as it is, if it is not among them."""
    known = list(names)
    if name in known:
        return name
    return next((one for one in known if normal(one) == normal(name)), name)


class Index(dict[str, int]):
    """The numbers of names; one that is not there to the letter is looked for in normal form."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__((name, i) for i, name in enumerate(names))
        self._normal: dict[str, int] = {}
        for name, i in self.items():
            if not name.isascii():
                self._normal.setdefault(normal(name), i)

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and normal(name) in self._normal)

    def __missing__(self, name: str) -> int:
        return self._normal[normal(name)]

    def get(self, name: str, default: Any = None) -> Any:
        i = super().get(name)
        return self._normal.get(normal(name), default) if i is None else i
