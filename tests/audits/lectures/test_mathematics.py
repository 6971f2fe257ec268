"""Formulas of the page: what becomes mathematics, what stays as it is, and that no text can bring markup of its own."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from audits.lectures.claims import collect, mathematics
from audits.lectures.claims.statement import CAUSES
from tests.cases import for_each

MINUS = "\N{MINUS SIGN}"


@for_each(
    ("text", "html"),
    [
        ("epsilon and delta'", "/ε/ and /δ/'"),
        ("sqrt(2 k ln(1 / delta))", "√<root>2 /k/ ln(1 / /δ/)</root>"),
        ("e^-32 e^(-epsilon |z| / GS)", "/e/<sup>~32</sup> /e/<sup>~/ε/ |/z/| / GS</sup>"),
        ("Y_i, epsilon_0, a_max", "/Y/<sub>/i/</sub>, /ε/<sub>0</sub>, a<sub>max</sub>"),
        ("1 - delta <= x * y << w*", "1 ~ /δ/ ≤ /x/ · /y/ ≪ /w/*"),
        (
            "[-B, B] of 1e-05, 4.1e+08 and 0e+00",
            "[~/B/, /B/] of 10<sup>~5</sup>, 4.1\N{NO-BREAK SPACE}·\N{NO-BREAK SPACE}10<sup>8</sup> and 0",
        ),
        ("`epsilon_1` and noise_multiplier", "<code>epsilon_1</code> and <code>noise_multiplier</code>"),
        ("k-anonymity, l-infinity", "/k/-anonymity, /l/-infinity"),
    ],
)
def test_plain_formulas_get_their_signs(text: str, html: str) -> None:
    made = str(mathematics.plain(text)).replace("<i>", "/").replace("</i>", "/").replace(MINUS, "~")
    made = made.replace('<span class="root">', "<root>").replace("</span>", "</root>").replace("&#39;", "'")
    assert made == html


@for_each(
    "text",
    [
        "audits/lectures/claims/delta.py, sigma.toml, reports/epsilon-1.json",
        "a record, it's his, i.i.d., e.g. I",
        "epsilons, deltas, alphabet, lambdas, 2^, _x",
        "Rényi-DP, zCDP, GDP, CS 208, well-known",
        "5 of 20, from 1.5 to 2",
    ],
)
def test_all_else_stays_as_it_is(text: str) -> None:
    assert mathematics.plain(text) == mathematics.escape(text)


def test_markup_in_a_sentence_is_escaped() -> None:
    assert str(mathematics.plain("<em>1</em> & sqrt(")) == "&lt;em&gt;1&lt;/em&gt; &amp; sqrt("


def test_tex_becomes_mathml() -> None:
    html = str(mathematics.written(r"so $\mathsf{Pr}\left[ x \in S \right] \le e^{\varepsilon}$ holds"))
    assert html.startswith("so <math>")
    assert html.endswith("</math> holds")
    assert "<mi>Pr</mi>" in html, "one word, so that it stands upright"
    assert "</math><wbr><math><mo>≤</mo>" in html, "a line may break before a relation"
    for piece in html.removeprefix("so ").removesuffix(" holds").split("<wbr>"):
        assert {each.tag for each in ET.fromstring(piece).iter()} <= mathematics.TAGS


@for_each(
    "tex",
    [
        r"\operatorname{Pr}[x]",
        r"a \triangleq b",
        r"\begin{aligned} a &= b \\ &= c \end{aligned}",
        r"\big\{ x \big\}",
        r"\begin{array}{ll} x = [1, \, 2] \\ y \end{array}",
        r"\Pr\Big\{\big|\phi\big|\Big\}",
        r"{\boldsymbol S}",
    ],
)
def test_what_the_notes_print_becomes_mathml(tex: str) -> None:
    assert mathematics.degraded(f"${tex}$") == []


@for_each(
    "tex", [r"\inftyig", r"\left( x", r"\href{javascript:x}{y} \nosuch", "a & b", "</math><script>x</script>\\no"]
)
def test_what_cannot_be_read_stands_as_code(tex: str) -> None:
    html = str(mathematics.quoted(f"as ${tex}$"))
    assert mathematics.degraded(f"as ${tex}$") == [tex]
    assert html.startswith("as <code>")
    assert "<script" not in html


def test_no_tex_brings_links_or_styles() -> None:
    assert str(mathematics.formula(r"\href{javascript:alert(1)}{x} + \style{color: red}{y}")) == (
        "<math><mrow><mrow><mi>x</mi></mrow></mrow><mo>+</mo><mrow><mi>y</mi></mrow></math>"
    )


def test_the_words_of_the_notes_stay_and_a_lonely_dollar_is_one() -> None:
    assert str(mathematics.quoted("sqrt(k) <epsilon> costs 5 $")) == "sqrt(k) &lt;epsilon&gt; costs 5 $"
    assert str(mathematics.quoted("**B** in *m* of 130**, 1*")) == "<b>B</b> in <i>m</i> of 130**, 1*"
    assert list(mathematics.parts("a $$x$$ b $y$")) == [("a ", False), ("x", True), (" b ", False), ("y", True)]


def test_every_formula_of_the_statements_is_mathematics() -> None:
    every = [each for found in collect.topics().values() for each in found]
    texts = [text for each in every for text in (each.says, each.context, each.reading, each.hangs_on)]
    texts += [words for each in every for words, _ in each.quotations]
    assert [each for text in (*texts, *CAUSES.values()) for each in mathematics.degraded(text)] == []
    assert not [text for text in texts if text.replace("$$", "$").count("$") % 2], "a formula that does not end"
    assert not [text for text in texts for part, tex in mathematics.parts(text) if not tex and "\\" in part]
