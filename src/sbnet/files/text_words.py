"""Words of networks in TOML: keys and texts, and what is said of a text that is no network, or no TOML."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from sbnet.files.plain import at

OWN = {
    "sigmoid": ("prior", "bias", "weights"),
    "noisy-or": ("leak", "leak_theta", "causes", "theta", "is_a"),
    "table": ("parents", "table"),
}
"""The keys of the numbers of a unit, by its gate."""
_BARE = re.compile("[A-Za-z0-9_-]+")
_PLACE = re.compile(r" \(at (?:(line \d+, column \d+)|(end of document))\)$")
_MAPPING = re.compile(r"\{('[^']*': [^{}]*)\}")
"""A mapping in Python's form, which a file has in another one."""


def key_of(name: str) -> str:
    """A name as TOML has it: bare, or in quotes."""
    return name if _BARE.fullmatch(name) else quoted(name)


def quoted(text: str) -> str:
    """A text in quotes: JSON escapes all that TOML wants escaped, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def parsed(name: str, text: str) -> dict[str, Any]:
    """TOML as it is, or an error that says where it ends."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _PLACE.search(str(error))
        where = (found[1] or f"line {text.count(chr(10)) + 1}, at the end") if found else "somewhere"
        line = re.search(r"line (\d+)", where)
        hint = ""
        if line:
            typed = text.split("\n")[int(line[1]) - 1][:_LONGEST_LINE]
            hint = next((f"; {way_out}" for pattern, way_out in _HINTS if pattern.search(typed)), "")
        raise at(where, f"this is not TOML: {_PLACE.sub('', str(error))}{hint}", name) from None


_LONGEST_LINE = 1_000
"""Characters of a line in which a typing error is looked for."""
_HINTS = [  # the typing errors that people make most, by the line where reading ended
    (re.compile(pattern), way_out)
    for pattern, way_out in (
        ("[\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb]", 'texts stand in straight quotes, "influenza"'),
        ("=\\s*[\u2212\u2013]", "write a minus as -, the sign of the keyboard"),
        (r"\d\s*%", "write 85 % as 0.85"),
        (r"=\s*\d+,\d", "write 0,85 with a point, 0.85"),
        (r"[=,{\[]\s*[+-]?\.\d", "write .05 with a zero before the point, 0.05"),
        (r"[=,{\[]\s*[+-]?\d+\.(?!\d)", "write 5. with a digit behind the point, 5.0"),
        (r"""^\s*[\w"'.-]+\s*:""", "a value stands behind =, not behind a colon: prior = 0.05"),
        (r"[{,]\s*[\w.-]+\s*:", "a value stands behind =, not behind a colon: { flu = 0.9 }"),
        (r"\{[^}]*,\s*\}", "no comma stands before the closing brace"),
        (r"""\{[^}]*=[^,}=]*[\d"']\s+[\w"'.-]+\s*=""", "a comma stands between two of them: { flu = 0.9, cold = 0.2 }"),
        (r"""[{,]\s*\w[\w-]*(?: +[\w-]+)+\s*=""", 'names with spaces stand in quotes, { "chest pain" = 0.9 }'),
        (r"""\[[^\]]*["']\s+["']""", 'a comma stands between two of them: ["no", "yes"]'),
        (r"""=\s*(?:[\d.]+|"[^"]*")\s+[\w-]+\s*=""", "each key stands in a line of its own"),
        (r"^\s*[\w-]+\s*=\s*(?:True|False|TRUE|FALSE)\b", "write true and false in small letters"),
        (r"^\s*[\w-]+\s*=\s*[^\W\d][\w -]*$", 'texts stand in quotes, gate = "noisy-or"'),
        (r"""^\s*\[units\.[^"'\]]*\s""", 'names with spaces or dots stand in quotes, [units."chest pain"]'),
        (r"""^\s*\[units\.[^"'\]]*[^\x00-\x7f]""", 'names with other letters stand in quotes, [units."fièvre"]'),
        (r"^\s*\[", "a variable is declared once, and its name stands in quotes if it has spaces or dots"),
        (r"\{[^}]*$", "what stands in braces stays on one line, or becomes a table of its own, [units.fever.causes]"),
        (r"^\s*[^=]*[^\x00-\x7f][^=]*=", 'names with other letters stand in quotes, "fièvre" = 0.9'),
    )
]


def in_toml(message: str) -> str:
    """A message with mappings as a file has them."""

    def pairs(mapping: re.Match[str]) -> str:
        inside = re.sub("'([^']*)': ", lambda state: f"{key_of(state[1])} = ", mapping[1])
        return f"{{ {inside} }}"

    return _MAPPING.sub(pairs, message)


def misplaced(unit: str, key: str, gate: str) -> str:
    """A key of one gate at a unit of the other, and what was meant."""
    if gate == "table":
        kind = "noisy-OR" if key in OWN["noisy-or"] else "sigmoid"
        return f"{key!r} is for {kind} variables, and {unit!r} has a table; write parents and table, which say all"
    if key in OWN["table"]:
        return f"{key!r} is for variables with a table, and {unit!r} has the gate {gate!r}; leave one of them out"
    if gate == "sigmoid":
        meant = 'add gate = "noisy-or", or write bias and weights'
        return f"{key!r} is for noisy-OR variables, and {unit!r} is a sigmoid variable; {meant}"
    leak = "leak = 0.01"
    instead = {"prior": f"{leak}, its probability without causes", "bias": leak, "weights": "causes = { flu = 0.9 }"}
    return f"{key!r} is for sigmoid variables, and {unit!r} is a noisy-OR variable; write {instead[key]}"
