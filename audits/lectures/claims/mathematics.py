"""Texts with formulas as HTML: TeX between dollar signs becomes MathML, and plain formulas get their signs.

No script and no font is needed to read them. What the converter does not know stands as code, never as half a formula.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import cache
from html import unescape

from markupsafe import Markup, escape

BESIDE = re.compile(r"(?<=</math>)(?=[,.;:!?)\]”-])|(?<=[(\[“])(?=<math>)")
EQUATION = re.compile(r"(?<=</i>|sub>) = (?=\d)")
TAGS = {
    *("math", "mrow", "mi", "mo", "mn", "mtext", "mspace", "msup", "msub", "msubsup", "mover", "munder", "munderover"),
    *("mfrac", "msqrt", "mroot", "mtable", "mtr", "mtd", "mstyle", "mpadded", "mphantom"),
}
ATTRIBUTES = {"stretchy", "fence", "minsize", "maxsize", "movablelimits", "displaystyle", "accent", "width", "lspace"}
LETTERS = {"normal", "sans-serif", "monospace"}  # upright, which the browsers know for one letter
BREAKS = set("=≤≥<>≈≜→⟶∈∝")  # a long formula may go on in the next line before one of these
OPENS, CLOSES = set("([{"), set(")]}")

LETTER_NAMES = "alpha beta gamma delta epsilon eta theta kappa lambda mu rho sigma tau phi omega pi Delta"
GREEK = {name: unescape(f"&{name};") for name in LETTER_NAMES.split()} | {"oo": "∞"}
MINUS = "\N{MINUS SIGN}"
SIGNS = {"<<": "≪", "<=": "≤", ">=": "≥", "!=": "≠", "+-": "±", "->": "→", "*": "·", "-": MINUS}
NAMES = "|".join(sorted(GREEK, key=len, reverse=True))
TOKENS = re.compile(
    r"(?P<code>`[^`]+`)"
    r"|(?P<kept>\b[\w./-]*(?:/[\w-]+)+\.\w+|\b\w+\.(?:py|toml|json|html|md)\b|\b(?:i\.i\.d\.|i\.e\.|e\.g\.))"
    r"|(?P<name>\b[A-Za-z]\w+_\w*[a-z]{2}\w*)"
    r"|(?P<power>(?<![\w.])\d+(?:\.\d+)?e[+-]?\d+\b)"
    r"|(?P<root>\bsqrt\b ?)"
    rf"|(?P<greek>(?<![\w`])(?:{NAMES})(?![A-Za-z]))"
    r"|(?P<up>\^)"
    r"|(?P<down>(?<=[A-Za-z'])_(?=\w))"
    r"|(?P<sign><<|<=|>=|!=|\+-|->|(?<= )\*(?= ))"
    r"|(?P<minus>(?<=[ (=\[|])-(?=[\d |(]|[A-Za-z]\b|ln\b|log\b))"
    r"|(?P<letter>(?<![\w'.])(?<![A-Za-z]-)(?:[b-zB-HJ-Z]|a(?= [=<>/+-] |\)))(?=_|\b)(?!['.]\w|\. ?\w\.))"
)
HIGHER = re.compile(r"-?\d+(?:\.\d+)?(?:/\d+)?|-?[A-Za-z]+(?![A-Za-z])(?:_\w+)?'*")
LOWER = re.compile(r"\d+|max\b|min\b|oo\b|[A-Za-z](?![A-Za-z])")
BASE = re.compile(r"\d+|[a-z]\b")  # of a root without brackets


def written(text: str) -> Markup:
    """A text of ours: TeX between dollar signs, code between backticks, and plain formulas such as e^-32 or sqrt(k)."""
    return Markup("").join(formula(part) if tex else plain(part) for part, tex in parts(text))


def joined(html: str) -> str:
    """A page whose lines break neither between a formula and the sign beside it, nor within `c = 2`.

    >>> ascii(joined("(<math></math>), <i>c</i> = 2"))
    "'(\\\\u2060<math></math>\\\\u2060), <i>c</i>\\\\xa0=\\\\xa02'"
    """
    return EQUATION.sub("\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}", BESIDE.sub("\N{WORD JOINER}", html))


def quoted(text: str) -> Markup:
    """The words of the notes: TeX between dollar signs as mathematics, *emphasis* as such, all else as it stands."""
    return Markup("").join(formula(part) if tex else _emphasised(part) for part, tex in parts(text))


def _emphasised(text: str) -> Markup:
    bold = re.sub(r"\*\*(\w.*?)\*\*", r"<b>\1</b>", str(escape(text)))
    return Markup(re.sub(r"\*(\w.*?)\*", r"<i>\1</i>", bold))


def parts(text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a text in order, and whether each is TeX; a dollar sign without its fellow is a letter."""
    split = re.split(r"\$+", text)
    if len(split) % 2 == 0:
        split[-2:] = ["$".join(split[-2:])]
    return ((part, bool(number % 2)) for number, part in enumerate(split) if part)


def degraded(text: str) -> list[str]:
    """The formulas of a text that cannot be had as MathML."""
    return [part for part, tex in parts(text) if tex and not _pieces(part)]


def formula(tex: str) -> Markup:
    """TeX as MathML, in pieces between which a line may break; as code where the converter does not know it."""
    pieces = _pieces(tex)
    if not pieces:
        return Markup("<code>{}</code>").format(tex.strip())
    return Markup("<wbr>").join(Markup(piece) for piece in pieces)


@cache
def _pieces(tex: str) -> tuple[str, ...]:
    from latex2mathml.converter import convert

    known = re.sub(r"\\begin\{aligned\}|\\begin\{split\}", r"\\begin{align*}", tex.strip())
    known = re.sub(r"\\end\{aligned\}|\\end\{split\}", r"\\end{align*}", known)
    known = known.replace("||", r"\|")  # a divergence of two laws: one sign, as it is set
    known = known.replace(r"\,", " ")  # thin spaces, which trip it in a table
    known = re.sub(r"\\(?:big|Big|bigg|Bigg)[lrm]?(?=\\[{}|])", "", known)
    try:
        root = ET.fromstring(convert(known))
    except Exception:  # whatever a converter or a parser makes of a slip of the pen
        return ()
    for each in root.iter():
        each.tag = each.tag.rpartition("}")[2]
    if any(each.tag not in TAGS or "\\" in (each.text or "") for each in root.iter()):
        return ()
    for each in root.iter():
        _tidied(each)
    (row,) = root
    return tuple(_math(piece) for piece in _broken(list(row)))


def _tidied(each: ET.Element) -> None:
    """Letters of one word as one word, and no attribute but those that do no harm."""
    kind = each.attrib.get("mathvariant", "")
    each.attrib = {key: value for key, value in each.attrib.items() if key in ATTRIBUTES}
    if each.tag == "mi" and kind in LETTERS and len(each.text or "") == 1:
        each.attrib["mathvariant"] = "normal"
    if each.tag == "mi" and kind.startswith("bold"):
        each.attrib["class"] = "bold"
    letters = [one for one in each if one.tag == "mi" and one.attrib.get("mathvariant") in LETTERS]
    if each.tag == "mrow" and len(letters) == len(each) > 1:
        word = ET.Element("mi")
        word.text = "".join(one.text or "" for one in letters)
        each[:] = [word]


def _broken(row: list[ET.Element]) -> Iterator[list[ET.Element]]:
    """A row cut before its relations, and after commas, but within no brackets."""
    piece: list[ET.Element] = []
    depth = 0
    for each in row:
        sign = (each.text or "").strip() if each.tag == "mo" else ""
        if piece and not depth and sign in BREAKS:
            yield piece
            piece = []
        depth += (sign in OPENS) - (sign in CLOSES)
        piece.append(each)
    yield piece


def _math(piece: list[ET.Element]) -> str:
    made = ET.Element("math")
    made.extend(piece)
    return ET.tostring(made, encoding="unicode", short_empty_elements=False)


def plain(text: str) -> Markup:
    """A sentence whose plain formulas get their signs: Greek letters, powers, indices, roots; code stays as it is.

    >>> print(plain("sqrt(2 k) e^2 of epsilon_1, see `sigma_2`"))
    √<span class="root">2 <i>k</i></span> <i>e</i><sup>2</sup> of <i>ε</i><sub>1</sub>, see <code>sigma_2</code>
    """
    made, at = Markup(""), 0
    while found := TOKENS.search(text, at):
        made += escape(text[at : found.start()])
        one, at = _sign(text, found)
        made += one
    return made + escape(text[at:])


def _sign(text: str, found: re.Match[str]) -> tuple[Markup, int]:
    """What a token becomes, and where the text goes on."""
    kind, token, end = found.lastgroup, found.group(), found.end()
    inner: tuple[str, int] | None = None
    if kind == "code":
        return Markup("<code>{}</code>").format(token[1:-1]), end
    if kind == "name":
        return Markup("<code>{}</code>").format(token), end
    if kind in ("greek", "letter"):
        return Markup("<i>{}</i>").format(GREEK.get(token, token)), end
    if kind == "sign" or kind == "minus":
        return Markup(SIGNS[token]), end
    if kind == "power":
        return _scientific(token), end
    if kind == "root" and (inner := _bracketed(text, end) or _word(BASE, text, end)):
        return Markup('√<span class="root">{}</span>').format(plain(inner[0])), inner[1]
    if kind == "up" and (inner := _bracketed(text, end) or _word(HIGHER, text, end)):
        raised = re.sub("^-", MINUS, inner[0])
        return Markup("<sup>{}</sup>").format(plain(raised)), inner[1]
    if kind == "down" and (inner := _word(LOWER, text, end)):
        lowered = Markup("<i>{}</i>").format(inner[0]) if len(inner[0]) == 1 and inner[0].isalpha() else plain(inner[0])
        return Markup("<sub>{}</sub>").format(lowered), inner[1]
    return escape(token), end


def _scientific(token: str) -> Markup:
    """1e-05 as a power of ten; 0e+00 as 0."""
    digits, _, power = token.partition("e")
    if float(digits) == 0.0:
        return Markup("0")
    raised = Markup("10<sup>{}</sup>").format(str(int(power)).replace("-", MINUS))
    return (
        raised if float(digits) == 1.0 else Markup("{}\N{NO-BREAK SPACE}·\N{NO-BREAK SPACE}{}").format(digits, raised)
    )


def _bracketed(text: str, at: int) -> tuple[str, int] | None:
    """What stands between the round bracket at this place and its fellow, and the place behind it."""
    if text[at : at + 1] != "(":
        return None
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if not depth:
            return text[at + 1 : place], place + 1
    return None


def _word(pattern: re.Pattern[str], text: str, at: int) -> tuple[str, int] | None:
    found = pattern.match(text, at)
    return (found.group(), found.end()) if found else None
