"""The statements: what their checks find is what is known, their quotations and items are those of the notes.

Numbers are closed forms, sums by hand or published digits; a bound that is measured may miss by chance with less than
1e-8.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from matplotlib.figure import Figure as Canvas

from audits.lectures.claims import collect, items, page, quotations, sparse, sparse_composed
from audits.lectures.claims.composition_advanced import judged
from audits.lectures.claims.definitions import normal_tail
from audits.lectures.claims.items import NOTES
from audits.lectures.claims.quotations import digest, found, plain, said
from audits.lectures.claims.statement import CAUSES, Statement, Truth
from audits.lectures.claims.tightness import ENOUGH, TIGHT
from dpaudit.catalogue import entries, find
from dpaudit.catalogue.additive.normal import classic_sigma
from dpaudit.catalogue.attacks import ATTACKS
from dpaudit.claims import GaussianDP
from dpaudit.spec.reading import find_specs
from tests.audits.lectures.statements import STATEMENTS, TOPICS, truth
from tests.audits.test_specs import ALL
from tests.cases import NIGHTLY, for_each

AUDITS = Path(__file__).parents[3] / "audits"
FIGURES = {each.name: each.figure for each in STATEMENTS.values() if each.figure}
ENDLESS = ("secure-computation", "worst-case-not-average", "laplace-average")  # losses without end are told by these
SLOW = {  # whose checks or figures take most of the time of all: they are looked at by night
    *("dp-sgd-fixed-size-batches", "dp-sgd-as-drawn", "dp-sgd-batch-size", "The halting line of Sparse, as printed"),
    *("example-revisited", "cannot-be-sure", "chosen-queries-not-close", "adaptive-sparse", "films", "reconstruction"),
    *("Thresholdout is (2 B / (sigma n))-DP", "the sample of the private PAC learner", "model-reconstruction"),
    *("the accuracy of private learning", "what statistical queries cannot learn", "sparse-savings", "linkage"),
    *("second derivatives in objective perturbation", "classifier-membership", "norm-mechanism-l1"),
    *(
        "Privacy degrades only with the number of tops",
        "c runs of AboveThreshold are c epsilon-DP",
        "example-not-close",
    ),
    *("The noisy values above the threshold may be released", "adaptive-laplace-answers", "exponential-mechanism"),
}
COUNTS = {"composition": 16, "adaptive": 36, "selection": 8}  # so that none of a list is lost


def by_day(statements: Iterable[Statement]) -> list[Statement]:
    """Those without the slow ones; by night all."""
    return [each for each in statements if NIGHTLY or each.name not in SLOW]


def test_the_slow_statements_are_some_and_of_today() -> None:
    assert set(STATEMENTS) >= SLOW
    assert all(by_day(statements) for statements in TOPICS.values())


@pytest.mark.parametrize("topic", TOPICS)
def test_the_checks_of_a_topic_find_what_is_known(topic: str) -> None:
    assert TOPICS[topic]
    for statement in by_day(TOPICS[topic]):
        found = truth(statement.name)
        assert found.verdict == statement.verdict, statement.name
        assert found.text.endswith("."), statement.name
        assert not re.search(r"\bnan\b", found.text), statement.name
        assert not any(map(math.isnan, found.numbers.values())), statement.name
        assert all(map(math.isfinite, found.numbers.values())) is (statement.name not in ENDLESS), statement.name
        assert not found.numbers or re.search(r"\d", found.text), statement.name


def test_statements_have_names_of_their_own_every_part_and_audits_that_are_there() -> None:
    assert len(STATEMENTS) == sum(map(len, TOPICS.values())) > 50
    audits = {
        table["name"] for path in find_specs([AUDITS]) for table in tomllib.loads(path.read_text("utf-8"))["audit"]
    }
    for each in STATEMENTS.values():
        assert set(each.audits) <= audits, each.name
        assert len(each.says) <= 240, each.name
        assert set(each.how) <= {"derived", "computed", "audited"}, each.name
        assert each.verdict in page.VERDICTS, each.name
        assert all(words for words, _ in each.quotations), each.name
        assert each.quotations, f"{each.name}: what are the words of the notes?"
        assert not each.cause or each.cause in CAUSES, each.name
        assert any(notes in each.place for notes in NOTES), each.name
        assert ("audited" in each.how) <= bool(each.audits), each.name


@for_each("name", [name for name in FIGURES if name not in SLOW], nightly=[name for name in FIGURES if name in SLOW])
def test_a_figure_has_data_and_says_what_they_are(name: str) -> None:
    axes = Canvas().subplots()
    FIGURES[name].draw(axes)
    assert axes.has_data()
    assert axes.get_legend() is not None
    assert axes.get_ylabel()
    assert axes.get_xlabel() or axes.patches


Numbers = list[tuple[str, float, dict[str, float]]]
NUMBERS: Numbers = [  # closed forms, sums by hand, published digits; and how far each may be off
    # additive noise
    # delta 1 at epsilon 1, by its closed form
    ("gaussian-version-1", 5e-7, {"worst share": 0.319159}),
    ("gaussian-version-1", 8e-10, {"delta at (1, 1e-5)": 4.1e-8}),
    ("gaussian-version-1", 0.01, {"ends at 0.01": 6.77, "ends at 1e-05": 8.42, "ends at 1e-10": 9.85}),
    ("gaussian-version-2", 2e-3, {"printed": 0.926, "halved": 0.931}),
    ("gaussian-version-2", 5e-4, {"printed_sigma": 6.442}),
    ("uniform-noise-on-a-count", 1e-4, {"at epsilon 2": 0.2}),
    ("uniform-noise-on-a-mean", 1e-6, {"value moves by L": 50 / 101, "value moves by 2 L": 100 / 101}),
    ("distortion-advanced", 5e-4, {"advanced": 1.109}),
    # composition
    ("advanced-composition", 6e-4, {"10,000 of 1/800": 1.0156, "10 of 0.1": 1.7674, "10 of 0.1, optimal": 0.9994}),
    ("advanced-composition-sharper", 6e-4, {"10,000 of 1/800": 1.0078, "optimal": 0.8916, "10 of 0.1": 1.7123}),
    ("replace-one", 6e-4, {"histogram": 2.0, "single count": 1.0, "delta, times": 1.0 + math.e}),
    ("one-in-10000", 6e-4, {"loss": 1.0}),
    ("one-in-800", 0.05, {"notes 001": 812.3, "notes 004": 806.2, "optimal": 715.5}),
    ("total-privacy-loss", 6e-4, {"at delta 1e-6": 4.775}),
    ("short-rule", 0.01, {"saved up to": 6.27}),
    ("short-rule", 0.05, {"at 8 and 0.01": 2.3}),
    ("short-rule", 0.6, {"at 20 and 1e-6": 187}),
    # definitions
    ("points-or-sets", 1e-4, {"delta by sets": 1.0}),
    ("epsilon-zero", 1e-4, {"advantage at 0.1": math.tanh(0.05)}),
    ("log-odds", 1e-4, {"from 0.5": 1.0 / (1.0 + math.exp(-1.0)), "from 0.9": 9.0 * math.e / (9.0 * math.e + 1.0)}),
    (
        "approximate-dp-as-a-tail",
        1e-4,
        {"least sigma": 3.7306, "response, tail": 0.75, "response, delta": 0.75 - math.e / 4.0, "merged": 0.4},
    ),
    # selection
    ("noisy-max-counts", 5.1e-5, {"two counts": 0.9765, "three counts": 1.0000}),
    ("noisy-max-any-queries", 5.1e-5, {"three answers": 2.0000, "with twice the noise": 1.0000}),
    ("noisy-max-against-all-counts", 5.1e-5, {"loss of all counts": 10.0}),
    ("laplace-as-exponential-mechanism", 5.1e-5, {"loss": 0.5, "scale": 2.0}),
    ("exponential-mechanism-learning", 5.1e-5, {"three hypotheses": 0.9345}),
    ("exponential-mechanism-learning-as-printed", 5.1e-5, {"five records": 4.9997}),
    ("exponential-mechanism-grid", 5.1e-5, {"2^10": 1024.0}),
    # utility, conversions, examples, knowledge
    ("exponential-mechanism-utility", 5.1e-5, {"ten": 0.9 / (1.0 + 0.9 * math.exp(-5.0))}),
    ("accuracy-and-noise", 5.1e-5, {"number at 1": 1.0 - math.exp(-3.0)}),
    ("concentration-at-zero", 5.1e-5, {"error": 1.0 / math.sinh(1.0)}),
    ("two-prices", 5.1e-5, {"moved up": 1.0 + math.log(2.5), "lower price": 1.9676}),
    ("scale-and-shift", 5.1e-5, {"loss": 1000.0}),
    ("zcdp-conversions", 5.1e-5, {"rho at 1": math.tanh(0.5), "simple": 5.2985}),
    ("zcdp-decay", 5.1e-5, {"xi of the way back": math.sqrt(math.pi / 2.0)}),
    ("smoker", 5.1e-5, {"most": 0.2 * math.e / (0.2 * math.e + 0.8)}),
    ("mean-on-a-grid", 5.1e-5, {"mean": 400.0 / 108.0, "common": 6.0}),
    ("two-interpretations", 5.1e-5, {"four databases": 4.0}),
    ("binoculars", 5.1e-5, {"highest": 1.0 / (1.0 + math.exp(-1.0))}),
    ("benign-facts", 5.1e-5, {"one": 0.015 / (0.015 + 0.99)}),
    ("side-information", 5.1e-5, {"largest": 1.0}),
    ("groups-preclude-learning", 5.1e-5, {"at least": 1.0 / (1.0 + math.e)}),
    # releases and attacks
    ("zero-mean-noise", 1e-6, {"delta of whole noise": 1 / 5, "delta of random rounding": 1 / 3}),
    # a noisy count of 20 or more is e times as unlikely without her
    ("all-attended", 3e-6, {"odds at 20": math.e, "largest odds": math.e}),
    # the last, alone the largest
    ("query-auditing", 1e-7, {"refused": sum((v - 1) ** 3 for v in range(1, 11)) / 10**4}),
    ("query-auditing", 0.0, {"told": 1.0}),
    ("drop-out", 0.0, {"sets of 2 that fit": sum(a <= 13 - a <= 10 for a in range(11)), "sets of 1 that fit": 1}),
    # of 20,000 Laplace errors: six deviations
    ("collusion", 6 * 10 / 141, {"median error": 10 * math.log(2)}),
    ("differencing", 6 * 40 / 141, {"median error": 40 * math.log(2)}),
    ("averaging", 0.12 * 10 * math.sqrt(2 / 4), {"error at 4": 10 * math.sqrt(2 / 4)}),
    ("averaging", 0.12 * 10 * math.sqrt(2 / 400), {"error at 400": 10 * math.sqrt(2 / 400)}),
]


BY_NIGHT: Numbers = [  # losses of dense outputs, rounded to a grid and added up, and the bracket at a width of 3e-4
    ("dp-sgd-as-drawn", 2.2e-4, {"reached": 0.71782}),
    ("dp-sgd-as-drawn", 2.6e-5, {"holds": 0.768025}),
    ("dp-sgd-fixed-size-batches", 3.5e-4, {"Poisson, replaced": 1.15275}),
    ("dp-sgd-fixed-size-batches", 5.7e-3, {"batches of B, reached": 8.6957}),
]


@for_each(("name", "off", "numbers"), NUMBERS, nightly=BY_NIGHT)
def test_the_numbers(name: str, off: float, numbers: dict[str, float]) -> None:
    found = truth(name).numbers
    assert {number: found[number] for number in numbers} == pytest.approx(numbers, rel=0.0, abs=off)


# --- what no single number says -------------------------------------------------------------------------------


def test_no_statement_of_a_list_is_lost() -> None:
    counts = dict(zip(collect.TOPICS, map(len, TOPICS.values()), strict=True))
    assert {topic: counts[topic] for topic in COUNTS} == COUNTS
    assert counts["releases"] + counts["attacks"] + counts["adversary"] >= 30


def test_the_gaussian_leaves_its_claim_at_large_epsilon() -> None:
    sigma = classic_sigma(6.8, 0.01, 1.0)
    assert GaussianDP(1.0 / sigma).delta_at(6.8) > 0.01 > GaussianDP(1.0 / classic_sigma(6.7, 0.01, 1.0)).delta_at(6.7)
    found = truth("gaussian-vector").numbers  # claim 5.5
    assert found["share at 1"] < 0.32
    assert 2.3 <= found["share at 10"] <= 4.1 + 0.05


def test_the_clipped_noise_has_the_delta_of_its_last_step_and_of_its_other_end() -> None:
    """At epsilon = 1 and a shift of 1: Pr(noise > k - 1), beyond the neighbour's end, and the heap on the own end."""
    found = truth("noise-needs-infinite-support").numbers
    for reach in (1, 5, 30):
        last, heap = math.exp(1.0 - reach) / 2.0, math.exp(-reach) / 2.0
        assert found[f"delta at {reach}"] == pytest.approx(last + heap, rel=1e-3, abs=0.0)


def test_what_composes_better_than_the_notes_say() -> None:
    found = truth("distortion-advanced").numbers
    assert found["optimal at 1"] < 1.0
    assert found["optimal at 8"] > 8.0
    axes = Canvas().subplots()
    FIGURES["advanced-composition"].draw(axes)
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    assert len(lines) == 4
    optimal = lines["optimal (exact)"]
    for line in lines.values():
        assert all(best <= bound * (1 + 1e-9) for best, bound in zip(optimal, line, strict=True))


def test_the_tail_of_the_loss_is_no_delta() -> None:
    found = truth("approximate-dp-as-a-tail").numbers
    assert found["tail at the least sigma"] > 10.0 * 1e-5
    assert found["apart"] < found["merged"]
    assert normal_tail(1.0, 1.0) == pytest.approx(0.308538, abs=1e-6)


def test_verdicts_follow_from_ratios() -> None:
    assert (judged([0.5, 1.01]), judged([0.5, 0.999]), judged([0.5])) == ("wrong", "right and tight", "right and loose")
    of_bound = [sparse.of_bound(loss, 1.0) for loss in (1.01, 0.999, 0.5)]
    assert of_bound == ["wrong", "right and tight", "right and loose"]


def test_what_composed_epochs_of_sparse_cost() -> None:
    advanced = [sparse_composed.advanced(epsilon, 1_000, delta) for epsilon, delta in ((1.0, 1e-2), (5.0, 1e-6))]
    assert advanced == pytest.approx([1.109, 5.919], rel=0.0, abs=5e-4)
    saved = [sparse_composed.largest_saved(1_000, delta) for delta in (1e-2, 1e-4, 1e-6, 1e-9)]
    assert saved == pytest.approx([6.27, 7.59, 8.47, 9.47], rel=0.0, abs=0.01)
    excess = [sparse_composed.excess(epsilon, 1_000, delta) for epsilon, delta in ((8.0, 1e-2), (20.0, 1e-6))]
    assert excess == pytest.approx([2.27, 186.6], rel=0.01)


def test_the_epochs_of_the_printed_line_add_up() -> None:
    exact = find("sparse.printed_halt").true_epsilon(*sparse.repeated(3, 3), {"c": 2})
    assert sparse.halting_as_printed(3, 2) == pytest.approx(exact)


# --- quotations ------------------------------------------------------------------------------------------------------


EVERY = list(STATEMENTS.values())
TABLE = json.loads(quotations.FILE.read_text(encoding="utf-8"))


def test_every_quotation_has_one_place_and_keeps_the_order_of_the_notes() -> None:
    """The file was written from the notes, which are not here: a word that changes asks for a new look at them."""
    wrong = []
    for name, words, place in said(EVERY):
        entry = TABLE.get(digest(words), {"notes": "nowhere", "at": []})
        named = [notes for notes in NOTES if notes in place]
        rising = all(one < other for one, other in pairwise(entry["at"]))
        if entry["notes"] not in named or not rising or not entry["at"]:
            wrong.append(name)
    assert not wrong
    assert {digest(words) for _, words, _ in said(EVERY)} == set(TABLE)


def test_a_quotation_of_two_lecturers_is_two() -> None:
    for each in EVERY:
        lecturers = [[notes for notes in NOTES if notes in place] for _, place in each.quotations]
        if isinstance(each.quote, tuple):
            assert all(len(notes) == 1 for notes in lecturers), each.name
            assert len({notes[0] for notes in lecturers}) == len(lecturers), each.name


@pytest.mark.parametrize(
    ("words", "where"),
    [
        ("one thing ... another", ("000", [0, 11])),
        ("another ... one thing", None),  # the order reversed
        ("one thing ... elsewhere", None),  # of two lecturers
        (r"$\varepsilon \leq \delta$", ("001", [9])),
    ],
)
def test_the_search_keeps_to_one_text_and_its_order(words: str, where: object) -> None:
    texts = {"000": plain("One thing, and another."), "001": plain("Elsewhere ε≤ δ")}
    assert found(words, "notes 000 and 001", texts) == where


def test_tight_is_said_where_a_number_shows_it_and_nowhere_else() -> None:
    assert {each.name for each in EVERY if each.verdict == "right and tight"} == set(TIGHT)

    def made(name: str, verdict: str, numbers: dict[str, float]) -> collect.Checked:
        statement = Statement(name, "notes 000", "says", verdict, ("computed",), lambda: Truth(verdict, "."))  # type: ignore[arg-type]
        return collect.Checked(statement, Truth(verdict, ".", numbers), (), (), "file", 1)  # type: ignore[arg-type]

    assert made("replace-one", "right and tight", {"histogram": 2.0}).as_known
    assert not made("replace-one", "right and tight", {"histogram": 2.0 * ENOUGH - 1e-6}).as_known
    assert not made("larger-variance", "right and tight", {}).as_known
    assert made("larger-variance", "right", {}).as_known
    assert not made("replace-one", "right and loose", {"histogram": 2.0}).as_known


def test_a_charge_that_hangs_on_one_sign_says_so() -> None:
    hanging = {each.name for each in EVERY if each.hangs_on}
    assert hanging == {"The halting line of Sparse, as printed", "renyi-divergence-display", "root-of-k"}
    assert all(each.verdict == "wrong" for each in EVERY if each.hangs_on)


# --- items -----------------------------------------------------------------------------------------------------------


ONE = '[[item]]\nnotes = "000"\nplace = "definition 2.1"\nkind = "definition"\nitem = "An item"\n'


def test_an_item_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "items.toml"
    path.write_text(f'{ONE}entries = ["laplace"]\n', encoding="utf-8")
    assert items.read(path) == (items.Item("000", "definition 2.1", "definition", "An item", entries=("laplace",)),)
    assert items.missing(items.read(path)) == []
    path.write_text(f"{ONE}entries = []\n", encoding="utf-8")
    assert items.missing(items.read(path)) == ["An item"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{ONE}files = []\n", "unknown keys: files"),
        (f'{ONE}entries = "laplace"\n', "'entries' must be a list of names"),
        (ONE.replace('"000"', '"005"'), "notes are 000"),
        (ONE.replace('"definition"', '"thing"'), "a kind is one of"),
        (ONE.replace("item =", "name ="), "unknown keys: name"),
        (ONE.replace('item = "An item"', 'item = ""'), "needs a text 'item'"),
    ],
)
def test_an_item_that_is_not_whole_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "items.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        items.read(tmp_path / "items.toml")


def test_what_is_astray_is_named() -> None:
    item = items.Item("000", "here", "example", "An item", ("a",), ("laplace.half", "b"), ("c",), ("dpaudit:no",))
    entries = {"laplace": False, "laplace.half": False, "gaussian": True}
    assert items.astray([item], ("a", "d"), entries, ("e",)) == [
        "An item: there is no 'b' among the entries",
        "An item: there is no 'c' among the attacks",
        "An item: 'dpaudit:no' cannot be imported",
        "no item names 'd' of the statements",
        "no item names 'gaussian' of the entries",
        "no item names 'e' of the attacks",
    ]


def test_nothing_of_the_notes_is_missing() -> None:
    assert items.missing(items.read()) == []


def test_every_name_leads_somewhere_and_everything_here_belongs_to_the_notes() -> None:
    held = items.read()
    known = {each.name: each for entry in entries() for each in (entry, *entry.twins.values())}
    needed = {name: "." not in name and each.source.lecture is not None for name, each in known.items()}
    assert not items.astray(held, list(STATEMENTS), needed, [each.name for each in ATTACKS])
    audited = {table["mechanism"] for path, table in ALL if path.parent == collect.SPECS}
    assert all(known[name].reference in audited for each in held for name in each.entries)
    assert {each.notes for each in held} == set(items.NOTES)
