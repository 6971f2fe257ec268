"""The cases of the reference: `python cases.py FOLDER [--quick]` writes a text for each, by the dpaudit on the path.

Only public names, the shell and stored files are used, so that the same file runs with the package of any commit. A
text has all that is stored but where, when and how fast it was made.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import io
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WHEN = {"started": "2026-01-01T00:00:00+00:00", "wall_s": 1.0, "cpu_s": 1.0}
HOW = {"n_jobs", "backend", "task_runs", "commit", "platform", "source", "digest"}  # of a machine; it covers the time
HOW |= {"python", "numpy", "scipy", "joblib", "statsmodels", "interruptions"}
RESULT = '"schema": "dpaudit.result/1"'
FORMATS = "json,md,html,junit,sarif,csv,txt,summary,badge"

SPEC = """
schema = "dpaudit.audit/1"
[[audit]]
name = "right noise"
mechanism = "dpaudit.catalogue.additive:laplace"
runs = 20_000
[[audit]]
name = "half the noise"
mechanism = "dpaudit.catalogue.additive:laplace.half_noise"
runs = 20_000
expect = "{half}"
"""
OWN = """
schema = "dpaudit.audit/1"
[[audit]]
name = "own"
mechanism = "mechanisms:{mechanism}"
claim = {{ epsilon = 1.0 }}
pair = {{ first = 0.0, second = 1.0 }}
runs = 20_000
{more}
"""
SWEEP = """
schema = "dpaudit.audit/1"
[sweep]
name = "half the noise, by runs"
mechanisms = ["dpaudit.catalogue.additive:laplace", "dpaudit.catalogue.additive:laplace.half_noise"]
runs = [2_000, 5_000]
seeds = [0, 1]
"""
SPECS = {
    "good.toml": SPEC.format(half="refuted"),
    "bad.toml": SPEC.format(half="not-refuted"),
    "missed.toml": OWN.format(mechanism="noisy", more='expect = "refuted"'),
    "ends.toml": OWN.format(mechanism="ends", more=""),
    "weak.toml": OWN.format(mechanism="noisy", more="detect = { epsilon = 1.05, mass = 0.0001 }"),
    "wrong.toml": OWN.format(mechanism="noisy", more="sed = 3"),
    "alone.toml": OWN.format(mechanism="half", more='isolation = "process"\nstopping = "anytime"\nexpect = "refuted"'),
    "sweep.toml": SWEEP,
    "scores.csv": "score,member\n" + "".join(f"{k % 7 + 3 * (k % 2)},{k % 2}\n" for k in range(400)),
}
COMMANDS = {  # and the exit code of each
    "run good.toml --report out --format json,txt --jobs 2": 0,
    "run bad.toml --jobs 1": 1,
    "run missed.toml": 1,
    "run wrong.toml": 2,
    "run ends.toml": 3,
    "run weak.toml": 4,
    "run good.toml --tag nothing": 5,
    "run alone.toml --quiet": 0,
    "run good.toml --seed 7 --runs 30000 --confidence 0.99 --format csv --report out2": 0,
    "plan good.toml": 0,
    "validate good.toml wrong.toml": 2,
    "recheck out/half-the-noise-*.json": 0,
    "report out --format md": 0,
    "compare out out": 0,
    "catalogue laplace": 0,
    "verify dpaudit.catalogue.additive:laplace --claim 1 --runs 0 --save laplace.cert": 0,
    "check laplace.cert": 0,
    "sweep sweep.toml --no-ledger --jobs 1 --report swept": 0,
    "audit-scores scores.csv --epsilon 0.5": 1,
    "audit-scores scores.csv --epsilon 5 --json scores.json": 0,
    "history dpaudit.catalogue.additive:laplace": 0,
    "run --help": 0,
    "nothing": 2,
}
QUICK = re.compile(
    r"claim pure|form gaussian|output (tuple|text)|anytime broken|deadline short|scores exact|proof laplace$|"
    r"shell (plan|run wrong)"
)

OURS = re.compile(r"\b(right-noise|half-the-noise|laplace-half-noise)-[0-9a-f]{8}\b")  # with a digest of our sources

Case = Callable[[], str]


def timeless(stored: Any) -> Any:
    """What is stored, with one time and machine for all."""
    if isinstance(stored, list):
        return [timeless(each) for each in stored]
    if not isinstance(stored, dict):
        return stored
    masked = HOW if "wall_s" in stored else {"hash"} if "mechanism" in stored else set()
    if "wall_s" in stored and str(stored.get("file")).startswith("dpaudit/"):
        masked = masked | {"line"}  # of ours
    if str(stored.get("reference")).startswith("dpaudit."):  # its digest is that of whole files of ours
        masked = {"digest"}
    return {key: WHEN.get(key, timeless(value)) for key, value in stored.items() if key not in masked}


def text_of(path: str | Path) -> str:
    """The text of a stored file."""
    return json.dumps(timeless(json.loads(Path(path).read_text())), indent=1) + "\n"


def plain(text: str, folder: str) -> str:
    """A text of the shell without times, paths and dates, and without digests that cover times or sources of ours."""
    text = text.replace(folder, "FOLDER").replace(str(HERE), "HERE").replace("&#8203;", "")
    text = OURS.sub(r"\1-DIGEST", text)
    text = re.sub(r"\b[0-9a-f]{16}\b", "DIGEST", text)
    text = re.sub(r"(dpaudit[\w./]*,) (from )?line \d+", r"\1 LINE", text)
    text = re.sub(r'"startLine": \d+|(?m:^(<pre tabindex="0"><code>)?) *\d+  (?=\w| )', "LINE", text)
    text = re.sub(r"\bdp-([\w-]+)-[0-9a-f]{8}\b", r"dp-\1", text)
    text = re.sub(r"interrupted (once|\d+ times)", "interrupted", text)
    text = re.sub(r"^\[\d+/\d+\] .* TIME left\n", "", text, flags=re.MULTILINE)  # of a slow machine
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\+00:00|Z| UTC)?", "DATE", text)
    text = re.sub(r"\b[\d.,]+ (s|ms|minutes|min|seconds|CPU s|CPU seconds)\b", "TIME", text)
    text = re.sub(r'(?<= time=")[\d.]+', "TIME", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "DIGEST", text)
    return re.sub(r"\d+(\.\d+)?(e[+-]\d+)? runs (a|per) second", "SPEED", text)


def table(text: str) -> str:
    """A table of a sweep without its columns of times."""
    rows = list(csv.reader(io.StringIO(text)))
    held = [k for k, name in enumerate(rows[0]) if name not in ("time_s", "cpu_s")]
    return "".join(",".join(row[k] for k in held) + "\n" for row in rows)


def audits() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names of audits and how each result is made, one after the other."""
    import mechanisms as m
    import numpy as np

    import dpaudit as d

    def ask(mechanism: Any = m.half, **options: Any) -> Callable[[], Any]:
        asked: dict[str, Any] = {
            "pair": (0.0, 1.0),
            "runs": 20_000,
            "seed": 3,
            "n_jobs": 1,
            "progress": False,
            **options,
        }
        if not asked.keys() & {"claim", "epsilon"}:
            asked["epsilon"] = 1.0
        if asked.keys() & {"pairs", "data"}:
            del asked["pair"]
        return lambda: d.audit(mechanism, **asked)

    claims = {
        "pure": d.PureDP(1.0),
        "approximate": d.ApproximateDP(1.0, 0.01),
        "profile": d.PrivacyProfile(((0.5, 0.2), (1.0, 0.02))),
        "gaussian": d.GaussianDP(0.5),
        "renyi": d.RenyiDP(2.0, 0.25),
        "concentrated": d.ZeroConcentratedDP(0.125),
        "trade-off": d.TradeOffDP([(0.0, 0.9), (0.1, 0.5), (0.4, 0.1), (1.0, 0.0)]),
    }
    for name, claim in claims.items():
        yield f"claim {name} broken", ask(claim=claim)
        yield f"claim {name} kept", ask(d.batched(m.in_batches), claim=claim.at_distance(4), parameters={"scale": 1.0})
        yield f"form {name} anytime", ask(m.gaussian, claim=claim, stopping="anytime", runs=10_000)
    for name in ("coin-flip", "unconditional"):
        yield f"certifier {name}", ask(certifier=name)
        yield f"certifier {name} delta", ask(certifier=name, claim=d.ApproximateDP(0.8, 0.05))
    for name in ("renyi", "concentrated"):
        yield f"certifier binned {name}", ask(certifier="binned", claim=claims[name])
    yield "anytime broken", ask(stopping="anytime", sequential_share=0.5)
    yield "anytime kept", ask(m.noisy, stopping="anytime")
    yield "isolated", ask(isolation="process")
    yield "two workers", ask(n_jobs=2)
    yield "threads", ask(d.batched(m.in_batches), n_jobs=2, backend="threading")
    for name, mechanism in m.OUTPUTS.items():
        yield f"output {name}", ask(mechanism, runs=10_000)
    yield "controls", ask(m.noisy, controls=3, runs=10_000)
    yield "controls of a vector", ask(m.OUTPUTS["array"], controls=2, runs=10_000)
    yield "pairs", ask(pairs=[(0.0, 0.2), (0.0, 1.0), (1.0, 0.0)])
    yield "pairs certified", ask(pairs=[(0.0, 0.9), (0.0, 1.0)], certify_pairs=2)
    yield "pairs of patterns", ask(m.total, pairs=d.stock_pairs("one_differs", queries=3))
    yield "data", ask(m.total, data=[0.2, 0.9, 0.4], runs=10_000)
    yield "data of columns", ask(m.counting, data=np.arange(6.0), relation="replace_one", runs=10_000)
    yield "distance", ask(pair=d.AdjacentPair(0.0, 1.0, name="two steps", distance=2))
    yield "relation", ask(m.counting, pair=(["a"] * 4, ["a"] * 3), relation="add_or_remove_one")
    yield "bits", ask(m.noisy, representation=True)
    yield "detect", ask(m.noisy, detect={"epsilon": 1.3, "mass": 0.2})
    yield "batched of a size", ask(d.batched(m.in_batches, size=64))
    yield "batched of the catalogue", ask("dpaudit.catalogue.additive:laplace.half_noise")
    yield "built", ask(d.built_by(m.Released), runs=5_000)
    yield "fails", ask(m.fails)
    yield "hangs", ask(m.hangs, run_timeout_s=0.2, runs=300)
    yield "record", ask(record={"owner": "a team", "releases": 3}, name="named")
    yield "chosen runs", ask(runs=None)
    yield "upper", ask(m.noisy, upper=known_bound(d))


def known_bound(d: Any) -> Any:
    """A bound known from elsewhere."""
    from dpaudit.results.bounds import Arithmetic, Label

    return d.UpperBound(1.0, 0.0, Label.PROVED, "all numbers", Arithmetic.REALS, "the literature")


def proofs() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names of brackets without an audit, and one with an audit."""
    import mechanisms as m

    import dpaudit as d
    from dpaudit.catalogue import find

    proved = (
        "laplace laplace.half_noise laplace_vector laplace_sum laplace_average counting_queries histogram geometric "
        "clamped_geometric gaussian gaussian_zcdp above_threshold sparse report_noisy_max randomised_response "
        "k_randomised_response noisy_counts two_noisy_tables"
    )
    for name in proved.split():
        yield f"proof {name}", lambda name=name: d.bracket(find(name), runs=0, max_time_s=600.0)
    yield (
        "proof own",
        lambda: d.bracket(m.release, "1/scale", adjacency="one-differs", runs=0, parameters={"scale": 2.0}),
    )
    yield "bracket", lambda: d.bracket(m.release, 0.4, pair=(0, 1), parameters={"scale": 2.0}, runs=20_000, n_jobs=1)


def scores() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names of audits of scores and of trainings."""
    import mechanisms as m
    import numpy as np

    import dpaudit as d

    rng = np.random.default_rng(5)
    ins, outs = rng.normal(1.5, size=400), rng.normal(size=400)
    for methods in ("exact", "clopper-pearson", "all"):
        yield f"scores {methods}", lambda x=methods: d.audit_scores(ins, outs, epsilon=0.5, methods=x, seed=2)
    designs = {"many-run": "ManyRun", "one-run": "OneRun"}

    def design(name: str, **options: Any) -> dict[str, Any]:
        """Keywords of a design; before designs were values, they had names and their options were keywords."""
        kind = getattr(d, designs[name], None)
        return {"design": name, **options} if kind is None else {"design": kind(**options)}

    for name in designs:
        asked = design(name)
        yield f"scores {name}", lambda x=asked: d.audit_scores(ins, outs, epsilon=0.5, delta=1e-5, seed=2, **x)
        yield f"scores {name} flags", lambda x=asked: d.audit_scores(ins > 1, outs > 1, epsilon=0.5, **x)
    for claim in (d.GaussianDP(0.5), d.RenyiDP(2.0, 0.25), d.ZeroConcentratedDP(0.1), d.ApproximateDP(0.5, 0.01)):
        yield f"scores {type(claim).__name__}", lambda x=claim: d.audit_scores(ins, outs, claim=x)
    yield "scores threshold", lambda: d.audit_scores(ins, outs, epsilon=0.5, **design("many-run", threshold=0.7))
    yield "scores splits", lambda: d.audit_scores(ins, outs, epsilon=0.5, **design("many-run", splits=3))
    asked = {"epsilon": 0.5, "delta": 1e-5}
    yield "training one", lambda: d.audit_training(m.train, canaries=300, **asked)
    yield "training forgets", lambda: d.audit_training(m.forgets, canaries=300, **asked)
    yield "training few", lambda: d.audit_training(m.train, canaries=50, trainings=20, **asked)
    yield "training many", lambda: d.audit_training(m.train, canaries=1, trainings=400, **asked)
    yield "training steps", lambda: d.audit_training(m.train_steps, canaries=100, steps=3, claim=d.GaussianDP(0.5))


def alone(code: str, **variables: str) -> subprocess.Popen[str]:
    """A process of its own that runs this text beside the mechanisms."""
    whole = f"import sys\nsys.path.insert(0, {str(HERE)!r})\n{code}"
    return subprocess.Popen(
        [sys.executable, "-c", whole], env={**os.environ, **variables}, text=True, stdout=-1, stderr=-1
    )


FAKE = """
import time
passed = [0.0]
for name in ("monotonic", "perf_counter", "thread_time", "process_time"):
    setattr(time, name, lambda: passed[0])
import dpaudit

def f(data, rng):
    passed[0] += {each}
    return data + rng.laplace(scale={scale})

result = dpaudit.audit(f, pair=(0.0, 1.0), epsilon=1.0, max_time_s={limit}, runs={runs}, n_jobs=1, progress=False{more})
result.save({path!r})
"""
DEADLINES = {  # seconds a run, of the whole, runs, scale of the noise, further options
    "short": (0.05, 1000.0, 50_000, 0.5, ""),
    "long": (0.05, 4000.0, 50_000, 1.0, ""),
    "enough": (0.05, 9000.0, 10_000, 0.5, ""),
    "anytime": (0.05, 1000.0, 50_000, 0.5, ", stopping='anytime'"),
    "controls": (0.05, 2000.0, 20_000, 1.0, ", controls=1"),
}
SLOW = """
import dpaudit, mechanisms
result = dpaudit.audit(
    mechanisms.slow, pair=(0.0, 1.0), epsilon=1.0, runs=6_000, n_jobs={jobs}, ledger={ledger!r}, progress=False
)
result.save({path!r})
"""


def with_a_deadline(name: str, path: str) -> str:
    """An audit whose clock is moved by its runs."""
    fields = zip(("each", "limit", "runs", "scale", "more"), DEADLINES[name], strict=True)
    process = alone(FAKE.format(path=path, **dict(fields)))
    _, errors = process.communicate()
    return text_of(path) if process.returncode == 0 else errors


def killed(jobs: int, path: str) -> str:
    """An audit that is killed three times and gone on with."""
    for seconds in (1.5, 2.5, 3.5, 600.0):
        process = alone(SLOW.format(jobs=jobs, ledger=f"{path}.db", path=path))
        with contextlib.suppress(subprocess.TimeoutExpired):
            _, errors = process.communicate(timeout=seconds)
            break
        process.kill()
        process.communicate()
    return text_of(path) if process.returncode == 0 else errors


def in_shell(command: str, folder: str) -> str:
    """What a command prints on both streams, and its exit code; another one than `COMMANDS` has ends the reference."""
    paths = [sorted(glob.glob(word, root_dir=folder)) or [word] for word in command.split()]
    arguments = [sys.executable, "-m", "dpaudit", *itertools.chain.from_iterable(paths)]
    done = subprocess.run(
        arguments, cwd=folder, capture_output=True, text=True, env={**os.environ, "COLUMNS": "100", "CI": "1"}
    )
    if done.returncode != COMMANDS.get(command, 0):
        raise SystemExit(f"dpaudit {command} ended with {done.returncode}: {done.stderr}")
    return plain(f"{done.stdout}--- stderr\n{done.stderr}--- exit {done.returncode}\n", folder)


def cases(folder: str) -> Iterator[tuple[str, Case]]:
    """All cases by name; those of the shell share the folder and stand in their order."""
    numbers = itertools.count(100)

    def place() -> str:
        return os.path.join(folder, "stored", f"{next(numbers)}.json")

    def stored(make: Callable[[], Any]) -> str:
        result, path = make(), place()
        if hasattr(result, "save"):
            result.save(path)
        else:
            Path(path).write_text(json.dumps(result.to_dict(), default=str))
        return text_of(path)

    for kind in (audits, proofs, scores):
        for name, make in kind():
            yield name, partial(stored, make)
    for name in DEADLINES:
        yield f"deadline {name}", lambda name=name: with_a_deadline(name, place())
    for jobs in (1, 2):
        yield f"killed {jobs}", lambda jobs=jobs: killed(jobs, place())
    for command in COMMANDS:
        yield f"shell {command}", lambda command=command: in_shell(command, folder)


def pages(folder: str) -> Iterator[tuple[str, str]]:
    """Every stored result in every format, as `dpaudit report` writes them; and what the commands wrote."""
    paths = [str(each) for each in sorted(Path(folder, "stored").glob("*.json")) if RESULT in each.read_text()]
    yield "formats", in_shell(f"report {' '.join(paths)} --format {FORMATS} --output pages", folder)
    for name in ("pages", "out", "out2", "swept"):
        for path in sorted(each for each in Path(folder, name).rglob("*.*") if each.suffix not in (".png", ".pdf")):
            text = path.read_text()
            text = table(text) if path.name == "sweep.csv" else text
            page = text_of(path) if path.suffix == ".json" else plain(text, folder)
            yield OURS.sub(r"\1-DIGEST", f"page {path.relative_to(folder)}"), page


def main() -> None:
    """Writes the texts into the folder that is named first."""
    out, quick = Path(sys.argv[1]), "--quick" in sys.argv
    sys.path.insert(0, str(HERE))
    texts: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "stored").mkdir()
        for name, text in {**SPECS, "mechanisms.py": (HERE / "mechanisms.py").read_text()}.items():
            Path(folder, name).write_text(text)
        os.environ["DPAUDIT_LEDGER"] = os.path.join(folder, "ledger.db")
        for name, make in cases(folder):
            if quick and not QUICK.search(name):
                continue
            began = time.perf_counter()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                try:
                    texts[name] = make()
                except Exception as error:  # an error is a result, too
                    texts[name] = f"{type(error).__name__}: {plain(str(error), folder)}\n"
            print(f"{time.perf_counter() - began:6.2f} s  {name}", flush=True)
        texts |= {} if quick else dict(pages(folder))
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (out / (re.sub(r"[^\w.-]+", "_", name)[:120] + ".txt")).write_text(text)


if __name__ == "__main__":
    main()
