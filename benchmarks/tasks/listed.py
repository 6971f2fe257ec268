"""The tasks: what a user writes, and what the answer must look like."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tasks.terminal import Step

PAIR = "pair=([1] * 10, [1] * 9)"
ASK = "import dpaudit\n{made}\nprint(dpaudit.audit({asked}, runs={runs}))\n"
REFUTED, NOT_REFUTED = r"^REFUTED.*epsilon >= ", r"^not refuted.*epsilon >= "


@dataclass(frozen=True, slots=True)
class Task:
    """One thing that users do: files and commands, each with its answer; `shown` is what the table tells of it."""

    title: str
    shown: str
    files: tuple[tuple[str, str], ...]
    commands: tuple[Step, ...]

    def steps(self, folder: Path) -> Iterator[Step]:
        """Writes the files, then gives the commands one after the other."""
        for name, text in self.files:
            (folder / name).write_text(text, encoding="utf-8")
        yield from self.commands


def asked(
    title: str, body: str, asked: str, answer: str, *, status: int = 0, runs: int = 20_000, shown: str = ""
) -> Task:
    """A script that defines a function and audits it."""
    text = ASK.format(made=body, asked=asked, runs=runs)
    return script(title, text, answer, status=status, shown=shown or f"audit({asked})")


def script(title: str, text: str, *answers: str, status: int = 0, shown: str = "") -> Task:
    """A script of Python; several answers are looked for in runs of their own."""
    steps = tuple(Step((sys.executable, "task.py"), each, status) for each in answers)
    return Task(title, shown or text.strip().splitlines()[-1], (("task.py", text),), steps)


def command(title: str, words: str, answer: str, *, status: int = 0, **files: str) -> Task:
    """A command line; a file's name is its keyword, with `__` for the dot."""
    named = tuple((name.replace("__", "."), text) for name, text in files.items())
    return Task(title, words, named, (Step(("sh", "-c", words), answer, status),))


COUNT = "def count(rows, rng):\n    return len(rows) + rng.laplace(scale=1)"
HALF = "def count(rows, rng):\n    return len(rows) + rng.laplace(scale=0.5)"
FRAME = "import pandas as pd\ndf = pd.DataFrame({'age': [30, 40, 50, 60, 70, 20]})\n"
MEAN = "def mean(df, rng):\n    return df.age.clip(0, 100).sum() + rng.laplace(scale=50)"
KEYED = """def table(rows, rng):
    found = {'n': len(rows) + rng.laplace()}
    return found | ({'b': 1} if len(rows) > 9 else {})"""
RAISING = """def mean(rows, rng):
    if len(rows) < 10:
        raise ValueError('too few rows')
    return rng.laplace()"""
DATACLASS = """from dataclasses import dataclass
@dataclass
class Row:
    age: int
def total(rows, rng):
    return sum(row.age for row in rows) + rng.laplace(scale=20)"""
SLOW = "import time\ndef slow(rows, rng):\n    time.sleep(0.05)\n    return len(rows) + rng.laplace(scale=0.2)"
SPEC = """schema = "dpaudit.audit/1"

[[audit]]
name = "count"
mechanism = "own:count"
claim = { epsilon = 1.0 }
pairs = [{ first = [1, 1], second = [1] }]
runs = 20_000
"""
WRONG = SPEC.replace("runs = 20_000", "run = 20_000").replace("epsilon = 1.0", "epsilon = -1.0")
TEST = "from own import count\n\n\ndef test_count(audit):\n    audit(count, pair=([1] * 10, [1] * 9), epsilon=1.0)\n"
STATE = "CALLS = []\ndef count(rows, rng):\n    CALLS.append(1)\n    return len(rows) + len(CALLS) % 97\n"

AWK = r"""{
  runs = data = seed = $0
  sub(/.*"runs": */, "", runs); sub(/[^0-9].*/, "", runs)
  sub(/.*"seed": */, "", seed); sub(/[^0-9].*/, "", seed); srand(seed % 2147483647)
  sub(/.*"data": *\[/, "", data); sub(/\].*/, "", data)
  size = gsub(/,/, "", data) + 1
  while (runs-- > 0) print size + log((1 - rand()) / (1 - rand()))
}
"""

TASKS = (
    asked("half the noise", HALF, f"count, {PAIR}, epsilon=1", REFUTED),
    asked("the right noise", COUNT, f"count, {PAIR}, epsilon=1", NOT_REFUTED),
    asked("the default runs", HALF, f"count, {PAIR}, epsilon=1", REFUTED, runs=1_000_000),
    asked("a lambda", "", f"lambda rows, rng: len(rows) + rng.laplace(), {PAIR}, epsilon=0.5", REFUTED),
    asked(
        "numpy's own global generator",
        "import numpy as np\ndef count(rows):\n    return len(rows) + np.random.laplace()",
        f"count, {PAIR}, epsilon=0.5",
        REFUTED,
    ),
    asked(
        "the random module",
        "import random\ndef heads(rows):\n    return random.random() < len(rows) / 20",
        f"heads, {PAIR}, epsilon=1",
        NOT_REFUTED,
    ),
    asked(
        "an argument called generator",
        "def count(rows, generator):\n    return len(rows) + generator.laplace()",
        f"count, {PAIR}, epsilon=0.5",
        REFUTED,
    ),
    asked(
        "an argument annotated Generator",
        "import numpy as np\ndef count(rows, source: np.random.Generator):\n    return len(rows) + source.laplace()",
        f"count, {PAIR}, epsilon=0.5",
        REFUTED,
    ),
    asked(
        "a fixed seed",
        "import numpy as np\ndef count(rows):\n    return len(rows) + np.random.default_rng(0).laplace()",
        f"count, {PAIR}, epsilon=1",
        "one answer each",
    ),
    asked("no noise at all", "def count(rows):\n    return len(rows)", f"count, {PAIR}, epsilon=1", "one answer each"),
    asked(
        "a key of one dataset only",
        KEYED,
        f"table, {PAIR}, epsilon=1",
        "key 'b' is missing",
    ),
    asked(
        "an exception on one dataset",
        RAISING,
        f"mean, {PAIR}, epsilon=1",
        "raises ValueError",
    ),
    asked(
        "text",
        "def word(rows, rng):\n    return 'many' if len(rows) + rng.laplace() > 9.5 else 'few'",
        f"word, {PAIR}, epsilon=0.5",
        REFUTED,
    ),
    asked(
        "an array",
        "def noisy(rows, rng):\n    return len(rows) + rng.laplace(scale=1, size=3)",
        f"noisy, {PAIR}, epsilon=1",
        REFUTED,
        runs=100_000,
    ),
    asked(
        "parameters",
        "def count(rows, rng, scale):\n    return len(rows) + rng.laplace(scale=scale)",
        f"count, {PAIR}, epsilon=1, parameters={{'scale': 0.5}}",
        REFUTED,
    ),
    asked(
        "an argument that is missing",
        "def count(rows, rng, scale):\n    return len(rows) + rng.laplace(scale=scale)",
        f"count, {PAIR}, epsilon=1",
        "needs a value for 'scale'",
        status=1,
    ),
    asked(
        "a class",
        "class Counter:\n    def release(self, rows, rng):\n        return len(rows) + rng.laplace(scale=0.5)",
        f"dpaudit.built_by(lambda: Counter().release), {PAIR}, epsilon=1",
        REFUTED,
    ),
    asked(
        "a batch",
        "def count(rows, runs, rng):\n    return len(rows) + rng.laplace(scale=0.5, size=runs)",
        f"dpaudit.batched(count), {PAIR}, epsilon=1",
        REFUTED,
        runs=10_000_000,
    ),
    asked(
        "Gaussian differential privacy",
        "def count(rows, rng):\n    return len(rows) + rng.normal(scale=0.5)",
        f"count, {PAIR}, claim=dpaudit.GaussianDP(1)",
        "^REFUTED",
    ),
    Task(
        "another language",
        'command(["awk", "-f", "noise.awk"])',
        (
            ("noise.awk", AWK),
            (
                "task.py",
                ASK.format(
                    made="", asked=f"dpaudit.command(['awk', '-f', 'noise.awk']), {PAIR}, epsilon=0.5", runs=20_000
                ),
            ),
        ),
        (Step((sys.executable, "task.py"), REFUTED),),
    ),
    asked("a DataFrame", FRAME + MEAN, "mean, pair=(df, df.drop(index=4)), epsilon=1", REFUTED),
    asked(
        "a DataFrame, two rows less",
        FRAME + MEAN,
        "mean, pair=(df, df.iloc[:4]), epsilon=1, relation='unbounded'",
        "not at distance 1",
        status=1,
    ),
    asked(
        "a Series",
        FRAME + "def total(ages, rng):\n    return ages.sum() + rng.laplace(scale=50)",
        "total, pair=(df.age, df.age.iloc[:4]), epsilon=1, relation='unbounded'",
        "not at distance 1",
        status=1,
    ),
    asked(
        "a dictionary of columns",
        "def total(table, rng):\n    return sum(table['age']) + rng.laplace(scale=20)",
        "total, pair=({'age': [30, 40]}, {'age': [30]}), epsilon=1, relation='unbounded'",
        REFUTED,
    ),
    asked(
        "dataclasses",
        DATACLASS,
        "total, pair=([Row(30), Row(40)], [Row(30)]), epsilon=1, relation='unbounded'",
        REFUTED,
    ),
    asked(
        "no pair",
        "def total(rows, rng):\n    return sum(rows) + rng.laplace(scale=1)",
        "total, data=[0.2, 0.5, 0.9], epsilon=1",
        REFUTED,
    ),
    asked("a DataFrame and no pair", FRAME + MEAN, "mean, data=df, epsilon=1", REFUTED),
    asked(
        "a coroutine",
        "async def count(rows, rng):\n    return len(rows)",
        f"count, {PAIR}, epsilon=1",
        r"asyncio\.run",
        status=1,
    ),
    asked(
        "a generator",
        "def count(rows, rng):\n    yield len(rows) + rng.laplace()",
        f"count, {PAIR}, epsilon=1",
        r"list\(",
        status=1,
    ),
    asked("a deadline", SLOW, f"slow, {PAIR}, epsilon=1, max_time_s=20", REFUTED, runs=1_000_000),
    script(
        "what is in the event",
        ASK.format(made=HALF, asked=f"count, {PAIR}, epsilon=1", runs=20_000).replace("print(", "print(").rstrip()[:-1]
        + ".explain())\n",
        "first",
        shown="result.explain()",
    ),
    script(
        "a frame of results",
        ASK.format(made=HALF, asked=f"count, {PAIR}, epsilon=1", runs=20_000).rstrip()[:-1]
        + ".to_frame().T.to_string())\n",
        "epsilon_lower",
        shown="result.to_frame()",
    ),
    script(
        "a page",
        ASK.format(made=HALF, asked=f"count, {PAIR}, epsilon=1", runs=20_000)
        .replace("print(", "print(dpaudit.write_report(")
        .replace("runs=20000))", "runs=20000), 'report.html'))"),
        r"^report",
        shown="write_report(result, 'report.html')",
    ),
    Task(
        "50 ms a run, Ctrl-C, and on",
        "audit(slow, ..., ledger='runs.sqlite')",
        (("task.py", ASK.format(made=SLOW, asked=f"slow, {PAIR}, epsilon=1, ledger='runs.sqlite'", runs=1_000)),),
        (
            Step((sys.executable, "task.py"), r"(?i)interrupted.*|same call", 130, interrupt_s=12.0),
            Step((sys.executable, "task.py"), REFUTED),
        ),
    ),
    command("a spec", "dpaudit run count.toml --report report", r"REFUTED", status=1, own__py=HALF, count__toml=SPEC),
    command(
        "a spec with two mistakes",
        "dpaudit validate count.toml",
        r"count\.toml.*line [69]|count\.toml:[69]",
        status=2,
        own__py=HALF,
        count__toml=WRONG,
    ),
    command(
        "a plan with its time",
        "dpaudit plan count.toml --probe",
        r"\d+ (s|min|hours|h)\b",
        own__py=HALF,
        count__toml=SPEC,
    ),
    command("a command with a slip", "dpaudit rum", "run", status=2),
    command("a search in the catalogue", "dpaudit catalogue sparse", "sparse"),
    command("a test", "pytest -q test_own.py", r"FAILED.*epsilon >= .*> 1", status=1, own__py=HALF, test_own__py=TEST),
    command(
        "a test without a verdict",
        "pytest -q test_own.py",
        r"(?i)unsound|no verdict",
        status=1,
        own__py=STATE,
        test_own__py=TEST,
    ),
    command(
        "a proof",
        "dpaudit bracket own:total --claim 1 --adjacency one-differs",
        "PROVED|PINNED|proved|pinned",
        own__py=COUNT.replace("len(rows)", "rows").replace("count", "total"),
    ),
)
