"""Bad input: one line that names the place, the value and the cure; never a traceback, nothing half written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.cases import for_each
from tests.doors.conftest import Outcome, document, spec, unnumbered

Run = Callable[..., Outcome]
Write = Callable[..., str]

AT = "error: spec.toml: audit 'it': "

REFUSED_ON_READING = {
    "unknown key": (spec(epsilom="1.0"), AT + "unknown key 'epsilom'; known here: name, mechanism"),
    "a key with a typo": (spec(confidance="0.9"), AT + "unknown key 'confidance'; did you mean 'confidence'?"),
    "unknown key of a claim": (
        spec(claim="{ epsilom = 1.0 }"),
        AT + "claim: unknown key 'epsilom'; did you mean 'epsilon'?",
    ),
    "unknown key of a pair": (
        spec(pair="{ first = 1, secnd = 2, second = 3 }"),
        AT + "pair: unknown key 'secnd'; did you mean 'second'?",
    ),
    "unknown key of a command": (
        spec(mechanism='{ comand = ["x"] }'),
        AT + "mechanism: unknown key 'comand'; did you mean 'command'?",
    ),
    "missing key": (spec(mechanism=None), AT + "the key 'mechanism' is missing"),
    "missing name": (spec(name=None), "error: spec.toml: audit number 1: the key 'name' is missing"),
    "missing claim": (
        spec(mechanism='{ command = ["x"] }', claim=None),
        AT + "the key 'claim' is missing: claim = { epsilon = 1.0 }",
    ),
    "missing dataset": (spec(pair="{ first = 1 }"), AT + "pair: the key 'second' is missing"),
    "no pair": (spec(pair=None), AT + "give pair = { first = ..., second = ... } or pairs = [...], one of the two"),
    "pair and pairs": (spec(pairs='["mechs:pair"]'), AT + "give pair ="),
    "no pairs": (spec(pair=None, pairs="[]"), AT + "pairs must name at least one pair, got an empty list"),
    "NaN epsilon": (spec(claim="{ epsilon = nan }"), AT + "claim: epsilon must be a number, got NaN"),
    "infinite epsilon": (spec(claim="{ epsilon = inf }"), AT + "claim: epsilon must be finite and at least 0, got inf"),
    "negative epsilon": (spec(claim="{ epsilon = -1 }"), AT + "claim: epsilon must be finite and at least 0, got -1"),
    "epsilon as text": (spec(claim='{ epsilon = "1" }'), AT + "claim.epsilon must be a number, got text '1'"),
    "epsilon as truth": (
        spec(claim="{ epsilon = true }"),
        AT + "claim.epsilon must be a number, got true or false True",
    ),
    "delta above 1": (spec(claim="{ epsilon = 1, delta = 1.5 }"), AT + "claim: delta must be in [0, 1], got 1.5"),
    "negative delta": (spec(claim="{ epsilon = 1, delta = -1e-9 }"), AT + "claim: delta must be in [0, 1], got -1e-09"),
    "NaN delta": (spec(claim="{ epsilon = 1, delta = nan }"), AT + "claim: delta must be a number, got NaN"),
    "delta alone": (
        spec(claim="{ delta = 0.1 }"),
        AT
        + "claim: its keys choose the form, one of: epsilon; epsilon, delta; mu; order, epsilon; rho, [xi]; profile; "
        "trade_off; got delta",
    ),
    "empty claim": (spec(claim="{}"), AT + "claim: its keys choose the form"),
    "equal datasets": (
        spec(pair="{ first = [1, 2], second = [1, 2] }"),
        AT + "the datasets of 'pair' must differ, got the same value twice",
    ),
    "datasets too far apart": (
        spec(pair="{ first = [1, 2], second = [3, 4] }", relation='"replace_one"'),
        AT + "the datasets of 'pair' are not at distance 1 under replace_one: 2 records leave and 2 come",
    ),
    "distance 0": (spec(pair="{ first = 1, second = 2, distance = 0 }"), AT + "distance must be at least 1, got 0"),
    "unknown relation": (
        spec(relation='"add_one"'),
        AT + "relation must be one of add_or_remove_one, replace_one, replace_special, local, add_or_remove_user, "
        "got 'add_one'",
    ),
    "unknown expectation": (
        spec(expect='"not_refuted"'),
        AT + "expect must be one of refuted, not-refuted, bits, got 'not_refuted'; did you mean 'not-refuted'?",
    ),
    "bits that are not looked at": (
        spec(expect='"bits"'),
        AT + 'expect = "bits" needs representation = true: without it bits are not looked at',
    ),
    "too few runs": (spec(runs="100"), AT + "runs must be at least 200, got 100"),
    "too few runs for the claim": (
        spec(runs="400", claim="{ epsilon = 5.0 }"),
        AT + "runs = 400 can never refute 5-DP at confidence 0.999; give at least 3,200, or a lower confidence",
    ),
    "a claim that cannot fall": (
        spec(claim="{ epsilon = 0.0, delta = 1.0 }"),
        AT + "runs = 1,000 can never refute (0, 1)-DP at confidence 0.999; no number of runs can",
    ),
    "half a run": (spec(runs="1000.5"), AT + "runs must be a whole number, got 1000.5"),
    "infinitely many runs": (spec(runs="inf"), AT + "runs must be a whole number, got inf"),
    "half a run in a time": (spec(runs="1000.5", max_time_s="10"), AT + "runs must be a whole number, got 1000.5"),
    "no time": (spec(runs=None, max_time_s="0"), AT + "max_time_s must be finite and above 0, got 0"),
    "confidence 1": (spec(confidence="1"), AT + "confidence must lie strictly between 0 and 1, got 1"),
    "hardly any confidence": (
        spec(confidence="1e-17"),
        AT + "runs = 1,000 can never refute 1-DP at confidence 1e-17; no number of runs can",
    ),
    "NaN confidence": (spec(confidence="nan"), AT + "confidence must be a number, got NaN"),
    "negative seed": (spec(seed="-3"), AT + "seed must be at least 0, got -3"),
    "endless run time": (spec(run_timeout_s="inf"), AT + "run_timeout_s must be finite and above 0, got inf"),
    "share of 1": (spec(search_share="1.0"), AT + "search_share must lie strictly between 0 and 1, got 1.0"),
    "mechanism without colon": (
        spec(mechanism='"mechs.constant"'),
        AT + "mechanism must read module:attribute, got 'mechs.constant'",
    ),
    "empty command": (spec(mechanism="{ command = [] }"), AT + "mechanism.command must name a program"),
    "parameters of a command": (
        spec(mechanism='{ command = ["x"] }', parameters="{ a = 1 }"),
        AT + "parameters are for functions",
    ),
    "infinite parameter": (spec(parameters="{ a = [1.0, inf] }"), AT + "parameters.a must be finite, got inf"),
    "unknown entry": (
        spec(mechanism='"dpaudit.catalogue.additive:laplase"'),
        AT + "'dpaudit.catalogue.additive:laplase': 'dpaudit.catalogue.additive' has no 'laplase'",
    ),
    "unknown parameter of an entry": (
        spec(mechanism='"dpaudit.catalogue.additive:laplace"', parameters="{ epsilom = 1.0 }"),
        AT + "laplace has no parameter 'epsilom'; it has: epsilon, sensitivity",
    ),
    "no entry": (
        spec(mechanism='"dpaudit.catalogue.additive:ENTRIES"', parameters="{ a = 1 }"),
        AT + "mechanism 'dpaudit.catalogue.additive:ENTRIES' is no entry; `dpaudit catalogue` lists them",
    ),
    "a requirement that is no module": (
        spec(requires='[""]'),
        AT + "requires must name modules as an import does, got ''",
    ),
    "two of one name": (spec() + spec(), AT + "a name may stand only once in a file; rename one of the two"),
    "empty name": (spec(name='""'), "error: spec.toml: audit number 1: name must not be empty"),
    "unknown key of the file": (
        "tags = []\n" + spec(),
        "error: spec.toml: unknown key 'tags'; known here: schema, environment, suite, audit, sweep",
    ),
    "audit as one table": (
        spec().replace("[[audit]]", "[audit]"),
        "error: spec.toml: audit must be a list, got a table",
    ),
    "a date": (spec(parameters="{ day = 2026-01-01 }"), "error: spec.toml: day: a date or time has no place here"),
    "a large number": (
        spec(seed="9223372036854775808"),
        "error: spec.toml: seed: a whole number must fit into 64 bits",
    ),
    "a number of 5,000 digits": (spec(seed="1" * 5_000), "error: spec.toml: not valid TOML: "),
    "not TOML": (spec() + "runs =\n", "error: spec.toml: not valid TOML: Invalid value (at line 8, column 7)"),
    "a control character": (
        spec(name='"a\\u001b[31mb"', runs="1"),
        "error: spec.toml: audit 'a\\x1b[31mb': runs must be",
    ),
}


@for_each("case", REFUSED_ON_READING)
def test_refused_before_anything_runs(dpaudit: Run, write: Write, case: str) -> None:
    text, message = REFUSED_ON_READING[case]
    name = write(text)
    checked = dpaudit("validate", name)
    assert unnumbered(checked.err).startswith(message)
    assert checked.err.count("\n") == 1
    assert (checked.code, checked.out) == (2, "")


@for_each(
    ("text", "message"),
    [
        (spec(), "error: spec.toml: the key 'schema' is missing"),
        (
            document(spec()).replace("/1", "/2"),
            "error: spec.toml: schema must be one of dpaudit.audit/1, got 'dpaudit.audit/2'",
        ),
        ("a" + ".a" * 100_000 + " = 1", "error: spec.toml: line 1: a name of more than 16 parts; use shorter names"),
        ('\n"a"' + " . 'a'" * 40_000 + " = 1", "error: spec.toml: line 2: a name of more than 16 parts"),
        ("a = " + "[" * 100_000 + "]" * 100_000, "error: spec.toml: nested more than 32 deep; flatten it"),
        ("a = " + "[" * 40 + "]" * 40, "error: spec.toml: nested more than 32 deep; flatten it"),
        ("#" * 300_000, "error: spec.toml: larger than 256 KB"),
        ("a" * 250_000, "error: spec.toml: not valid TOML"),
        ('"' * 250_000, "error: spec.toml: not valid TOML"),
    ],
    ids=[
        "no-schema",
        "other-schema",
        "dotted",
        "quoted-dotted",
        "nested",
        "too-deep",
        "too-large",
        "one-word",
        "quotes",
    ],
)
def test_hostile_files_are_refused_cheaply(dpaudit: Run, folder: Path, text: str, message: str) -> None:
    # each would take the bare parser from nothing to a minute; without the guard this test would hang
    (folder / "spec.toml").write_text(text)
    ended = dpaudit("validate", "spec.toml")
    assert ended.code == 2
    assert ended.err.startswith(message) or unnumbered(ended.err).startswith(message)
    assert ended.err.count("\n") == 1
    assert len(ended.err) < 300


def test_bytes_that_are_no_text(dpaudit: Run, folder: Path) -> None:
    (folder / "spec.toml").write_bytes(b"\xff\xfe\x00")
    assert dpaudit("validate", "spec.toml").err == "error: spec.toml: not UTF-8 text (byte 0); save it as UTF-8\n"


def test_a_wrong_spec_stops_the_suite_before_it_starts(dpaudit: Run, write: Write) -> None:
    write(spec(), name="right.toml")
    write(spec(epsilom="1"), name="wrong.toml")
    write(spec(runs="1"), name="wronger.toml")
    ended = dpaudit("run", ".", "--report", "out", "--format", "json,md")
    assert (ended.code, ended.out) == (2, "")
    assert [line.split(":")[1] for line in ended.err.splitlines()] == [" wrong.toml", " wronger.toml"]
    assert not os.path.exists("out")


REFUSED_IN_THE_WORKER = {
    "no module": (spec(mechanism='"no_module:f"'), 2, "there is no module 'no_module'; check the name and its folder"),
    "broken module": (spec(mechanism='"broken:f"'), 2, "'broken:f': importing failed with ZeroDivisionError"),
    "module that exits": (spec(mechanism='"exits:f"'), 2, "'exits:f': importing failed with SystemExit: 0"),
    "module that needs another": (spec(mechanism='"needs:f"'), 3, "needs the module 'not_installed_here'"),
    "unknown parameter": (spec(parameters="{ a = 1 }"), 2, "constant has no parameter 'a'; it has: none"),
    "equal datasets": (spec(pair='"mechs:equal_pair"'), 2, "must differ, got the same value twice"),
    "no pair": (spec(pair='"mechs:no_pair"'), 2, "must be two datasets (first, second), got int"),
    "pair that fails": (spec(pair='"mechs:failing_pair"'), 2, "making the pair failed with KeyError: 'nothing here'"),
    "pair too far": (
        spec(pair='"mechs:pair"', relation='"replace_one"'),
        2,
        "not at distance 1 under replace_one: 1 records leave and 0 come",
    ),
    "no such program": (spec(mechanism='{ command = ["no-such-program"] }'), 3, "is not installed here"),
}


def test_refused_where_mechanisms_run(dpaudit: Run, write: Write, folder: Path) -> None:
    (folder / "broken.py").write_text("1 / 0\n")
    (folder / "exits.py").write_text("import sys\nsys.exit(0)\n")
    (folder / "needs.py").write_text("import not_installed_here\n")
    audits = [text.replace('"it"', f'"{name}"') for name, (text, _, _) in REFUSED_IN_THE_WORKER.items()]
    ended = dpaudit("run", write(*audits), "--no-progress", "--report", "out", "--format", "md")
    assert ended.code == 2
    lines = ended.err.splitlines()
    assert len(lines) == len(REFUSED_IN_THE_WORKER)
    for line, (name, (_, _, message)) in zip(lines, REFUSED_IN_THE_WORKER.items(), strict=True):
        assert line.startswith(f"no verdict   spec.toml: audit {name!r}: ")
        assert message in line
    assert os.listdir("out") == ["report.md"]


def test_what_is_not_installed_is_no_verdict_rather_than_a_wrong_spec(dpaudit: Run, write: Write, folder: Path) -> None:
    (folder / "needs.py").write_text("import not_installed_here\n")
    assert dpaudit("run", write(REFUSED_IN_THE_WORKER["module that needs another"][0])).code == 3


def test_a_hang_on_one_dataset_is_an_output(dpaudit: Run, write: Write) -> None:
    hangs = spec(mechanism='"mechs:hangs_on_ten"', run_timeout_s="0.005", runs="400", expect='"refuted"')
    ended = dpaudit("run", write(hangs), "--confidence", "0.99")
    assert ended.code == 0, ended.out + ended.err
    assert "REFUTED" in ended.out


def test_nothing_of_the_command_line_imports_a_mechanism(dpaudit: Run, write: Write, folder: Path) -> None:
    (folder / "marks.py").write_text(
        "open('imported', 'w').close()\ndef f(data):\n    return 0\ndef p():\n    return 1, 2\n"
    )
    name = write(spec(mechanism='"marks:f"', pair='"marks:p"'))
    assert dpaudit("validate", name).code == 0
    assert dpaudit("plan", name).code == 0
    assert not os.path.exists("imported")
