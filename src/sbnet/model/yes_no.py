"""The words for yes and no, and for true and false, in the larger languages; nothing else in sbnet knows any.

A word is known *by itself* where every language that has it means the same by it. Others are known *in pairs*, where
both are in one column: "e" is yes beside the Turkish "h" only, and "ne", which is no in Czech and sounds like yes in
Greek and Korean, is no beside "ano" or "da".
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_BY_THEMSELVES = """
    0 | 1
    false | true
    no | yes
    n | y
    f | t
    off | on
    absent | present
    negative | positive
    nein | ja
    nee neen | ja
    nej | ja
    nei | ja já
    non | oui
    no | sí si sì
    não nao | sim
    non | sí si
    nie | tak
    nie | áno ano
    не | да
    нет | да
    ні | так
    не | так
    nu | da
    nē | jā
    ei | jah
    ei | kyllä kylla
    nem | igen
    όχι οχι | ναι ναί
    hayır hayir | evet
    ez | bai
    hapana | ndiyo ndio
    لا | نعم
    نه خیر خير | بله بلی
    نہیں | ہاں
    לא | כן
    नहीं नही | हाँ हां
    না | হ্যাঁ
    இல்லை | ஆம்
    ไม่ ไม่ใช่ | ใช่
    否 不是 不 | 是
    无 無 没有 沒有 | 有
    いいえ | はい
    なし | あり
    아니요 아니오 | 예 네
    tidak | ya
    không khong | có
    falsch | wahr
    faux | vrai
    falso | vero
    falso | verdadero
    falso | verdadeiro
    onwaar | waar
    fałsz falsz | prawda
    nepravda | pravda
    hamis | igaz
    epätosi | tosi
    ложь | истина
    yanlış yanlis | doğru dogru
    ψευδές ψευδες ψευδής ψευδης | αληθές αληθες αληθής αληθης
    fals | adevărat adevarat
"""
_IN_PAIRS = """
    n | j
    n | o
    n | s
    n | t
    n | i
    h | e
    f | v
    f | w
    н | д
    ne | ano
    ne | da
    ne | taip
    jo | po
    không khong | có co
    hindi | oo
    falskt | sant
    falsk | sand
    usann | sann
"""


def folded(word: str) -> str:
    """A word in any case and any normal form; a capital I may be the one of the Turks."""
    return unicodedata.normalize("NFC", word.casefold()).replace("i̇", "i")


def _parsed(text: str) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    lines = [line.split("|") for line in text.strip().splitlines()]
    return [(tuple(map(folded, zeros.split())), tuple(map(folded, ones.split()))) for zeros, ones in lines]


_ALONE = _parsed(_BY_THEMSELVES)
PAIRS = (*_ALONE, *_parsed(_IN_PAIRS))
"""Words for 0 and for 1 that belong together, by language; the first of each is how we write it."""
_PLACES: dict[str, dict[int, int]] = {}
for _k, _pair in enumerate(PAIRS):
    for _bit in (0, 1):
        for _word in _pair[_bit]:
            _PLACES.setdefault(_word, {})[_k] = _bit


def in_common(words: Iterable[str]) -> dict[int, tuple[int, ...]]:
    """The pairs that all of these words belong to, by number, and what each word means there.

    A pair that is one only together needs both of its sides.
    """
    places = [_PLACES.get(folded(word), {}) for word in words]
    shared = sorted(set(places[0]).intersection(*places[1:])) if places else []
    found = {k: tuple(place[k] for place in places) for k in shared}
    return {k: bits for k, bits in found.items() if k < len(_ALONE) or {0, 1} <= set(bits)}


def bits(words: Iterable[str]) -> tuple[int, ...] | None:
    """What words of one language mean, 0 or 1 each; None where they are of several, or languages differ."""
    found = set(in_common(words).values())
    return found.pop() if len(found) == 1 else None
