"""Texts and XML as they come: with or without a mark at the start, compressed or not, and never without end."""

from __future__ import annotations

import codecs
import gzip
import zlib
from typing import Any, BinaryIO, cast
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from sbnet.errors import FileFormatError
from sbnet.files.positions import Place, place_at

MOST_BYTES = 200_000_000
"""Of a text, at most; what is larger is better kept by :func:`sbnet.save`."""

_CHUNK = 1_000_000
_PLACE, _PLACED = " place", 3
"""The attribute in which an element of XML keeps where it begins: no file has one with a blank in its name. Down to
this depth elements do, which are those of variables."""


def at(place: Place | str, message: str, name: str) -> FileFormatError:
    """An error at a place: the place first, the file last, so that neither is lost where the rest is long."""
    return FileFormatError(
        f"{place}: {message if len(message) < 200 else message[:140] + ' … ' + message[-50:]} ({name[-60:]})"
    )


def read_text(name: str) -> str:
    """The text of a file in UTF-8, with lines that end in a newline alone."""
    data = read_bytes(name)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise FileFormatError(f"{name} is written in UTF-16; save it as UTF-8")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode().replace("\r\n", "\n")
        found = f"the byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise at(place_at(before, len(before)), found, name) from None


def read_bytes(name: str) -> bytes:
    """What is in a file, unpacked if its name ends in .gz; not more than a text may have."""
    packed = name.lower().endswith(".gz")
    with open(name, "rb") as file, cast(BinaryIO, gzip.open(file)) if packed else file as plain:
        try:
            chunks, size = [], 0  # asking for all at once would take that memory first
            while size <= MOST_BYTES and (chunk := plain.read(_CHUNK)):
                chunks.append(chunk)
                size += len(chunk)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise FileFormatError(f"{name} cannot be unpacked: {error}") from None
    if size > MOST_BYTES:
        most = f"{MOST_BYTES // 10**6} MB"
        raise FileFormatError(f"{name} has more than {most} of text; keep such a network in a .sbn file")
    data = b"".join(chunks)
    if data.startswith(b"\x1f\x8b") and not packed:
        raise FileFormatError(f"{name} is compressed; let its name end in .gz")
    return data


def read_xml(name: str) -> Element:
    """The outermost element of an XML file; entities, with which a few bytes can ask for gigabytes, are refused."""
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.buffer_text = True

    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth <= _PLACED:
            attributes[_PLACE] = str(Place(parser.CurrentLineNumber, parser.CurrentColumnNumber + 1))
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = _refuse_entity
    try:
        parser.Parse(read_bytes(name), True)
        return builder.close()
    except expat.ExpatError as error:
        place = Place(error.lineno, error.offset + 1)
        raise at(place, f"this is not XML: {expat.ErrorString(error.code)}", name) from None
    except (LookupError, ValueError) as error:  # an entity, which is refused; an encoding that nobody knows
        raise FileFormatError(f"{name} cannot be read: {error}") from None
    finally:
        parser.StartElementHandler = None  # which knows the parser


def place_of(element: Element) -> str:
    """The line and the column where an element of an XML file begins."""
    return element.get(_PLACE, "")


def _refuse_entity(entity: str, *_: Any) -> None:
    raise FileFormatError(f"it declares the entity {entity[:40]!r}; write its text where it is used instead")
