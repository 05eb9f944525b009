"""XML files from elsewhere, read as a tree; entities, with which a few bytes can ask for gigabytes, are refused."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from sbnet.errors import FileFormatError
from sbnet.files.plain import at, read_bytes
from sbnet.files.positions import Place


def read_xml(name: str) -> Element:
    """The root of an XML file."""
    builder, parser = TreeBuilder(), expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = _refuse_entity
    try:
        parser.Parse(read_bytes(name), True)
        return builder.close()
    except expat.ExpatError as error:
        place = Place(error.lineno, error.offset + 1)
        raise at(place, f"this is not XML: {expat.ErrorString(error.code)}", name) from None
    except FileFormatError as error:
        raise FileFormatError(f"{name} cannot be read: {error}") from None
    except (LookupError, ValueError) as error:  # an encoding that nobody knows
        raise FileFormatError(f"{name} cannot be read: {error}") from None


def _refuse_entity(entity: str, *_: Any) -> None:
    raise FileFormatError(f"it declares the entity {entity[:40]!r}; write its text where it is used instead")
