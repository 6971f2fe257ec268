"""Every reader of a file on files that are nearly right: it returns, or refuses in a line, and never slowly.

Files of each kind are changed at random bytes, cut, spliced with each other and with tokens that have broken readers
before. What returns must return the same once it was written and read again, where it can be written.
"""

from __future__ import annotations

import io
import json
import os
import random
import struct
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import print_table as show
from benchmarks.tampered import Tally, results
from dpaudit.errors import InvalidSpec, UnsoundAudit
from dpaudit.ledger.baseline import read_baseline, write_baseline
from dpaudit.ledger.database import START, LedgerError
from dpaudit.ledger.results import Ledger
from dpaudit.outputs.canonical import Outputs
from dpaudit.outputs.encode import encode_objects
from dpaudit.results.stored import load, load_either, loads
from dpaudit.results.suite import SuiteResult
from dpaudit.scores import audit_scores
from dpaudit.scores.files import read_scores
from dpaudit.spec.questions import read_spec
from dpaudit.spec.settings import read_settings
from dpaudit.sweeps.spec import read_sweep_file
from dpaudit.verify import stored as proofs

SECONDS, SLOW_S, MOST_CHANGES = 120.0, 2.0, 6
TOKENS = tuple(
    token.encode("utf-8", "surrogatepass")
    for token in (
        "null", "true", "NaN", "-Infinity", "1e999", "5e-324", "-0.0", "1e308", "9223372036854775808", "1" * 4400,
        "1" * 400, "[]", "{}", '""', '"\\ud800"', "\ud800", "\x00", "\ufeff", "\u202e", "\r\n", "\uff11\uff12", "1_0",
        "[" * 70, '{"a":' * 70,
        "0x1", "1979-05-27", "a." * 20, "[[audit]]", "'''", '"""', ",", ":", "=", "inf",
        '"schema": "dpaudit.result/1",', '"in": [1],', "score,member", "\\u0000", "PK\x03\x04",
    )
)  # fmt: skip
SPEC = """schema = "dpaudit.audit/1"
[[audit]]
name = "noisy count"
mechanism = "dpaudit.catalogue.additive:laplace"
parameters = { epsilon = 1.0 }
claim = { epsilon = 1.0, delta = 1e-6 }
pair = { first = 10, second = 9 }
runs = 2_000
detect = { epsilon = 2.0, mass = 0.1 }
upper = { epsilon = 1.0, scope = "all", source = "a book" }
"""
SWEEP = """schema = "dpaudit.audit/1"
[sweep]
mechanisms = "dpaudit.catalogue.additive:laplace"
parameters = { epsilon = [0.5, 1.0] }
runs = [1000, 2000]
"""
SETTINGS = "[project]\nname = 'it'\n[tool.dpaudit]\nruns = 2000\nconfidence = 0.99\nseed = 3\nreport = 'r'\n"
ACCEPTED = """schema = "dpaudit.accepted/1"
[[finding]]
fingerprint = "0123456789abcdef"
finding = "noisy count"
reason = "known"
accepted = 2026-03-01
until = 2026-04-01
"""
CSV, JSON = "score,member\n1.5,1\n-2e3,0\n0.25,1\n0.75,0\n", '{"in": [1.5, 2, 0.1], "out": [0, -1e-3, 7]}'
COUNTS = '{"tp": 30, "fp": 10, "tn": 90, "fn": 70}'


def packed(array: Any) -> bytes:
    """The bytes of an .npy file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def zipped(members: list[tuple[str, bytes]], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The bytes of an .npz file with these members."""
    file = io.BytesIO()
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(file, "w", packing) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


def _header(text: str, body: bytes = b"", version: bytes = b"\1\0") -> bytes:
    size = struct.pack("<H" if version == b"\1\0" else "<I", len(text) + 1)
    return b"\x93NUMPY" + version + size + text.encode("latin1") + b"\n" + body


def arrays() -> dict[str, bytes]:
    """Arrays that are not what they say, by what is wrong with them: each is refused."""
    says = "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }"
    right, other = packed(np.arange(50.0)), packed(np.arange(50.0) - 3.0)
    one = zipped([("in.npy", right), ("out.npy", other)])
    at = one.index(b"PK\x01\x02")
    lies = [
        _header(says % "(1000000000000, 2)"),
        _header(says % "(-4, -2)", b"\0" * 64),
        packed(np.zeros((99, 2)))[:500],
    ]
    lies += [_header(says % "(True, 2)", b"\0" * 16), _header("(" * 9000), _header("{'descr': " + "[" * 9000)]
    lies += [
        _header(says % "(2L, 2L)", b"\0" * 32),
        _header("{'descr': '|O', 'fortran_order': False, 'shape': (1, 2), }"),
    ]
    lies += [
        b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1),
        b"",
        b"\x80\x04\x95" + b"x" * 50,
    ]
    inner = {f"npy {number}.npy": content for number, content in enumerate(lies)}
    outer = {
        "bomb": zipped([("in.npy", packed(np.zeros(20_000_000))), ("out.npy", right)]),
        "cut": one[:300],
        "empty": zipped([]),
        "twice": zipped([("in.npy", right), ("in.npy", other), ("out.npy", right)]),
        "packed in another way": zipped([("in.npy", right), ("out.npy", other)], zipfile.ZIP_LZMA),
        "a smaller size": one[: at + 24] + struct.pack("<I", 10) + one[at + 28 :],
        "a larger size": one[: at + 24] + struct.pack("<I", 2**31) + one[at + 28 :],
        "a password": one[: at + 8] + b"\1\0" + one[at + 10 :],
        "a wrong sum": one[: at + 16] + b"abcd" + one[at + 20 :],
        "beyond the end": one[: at + 42] + struct.pack("<I", 2**31) + one[at + 46 :],
        **{f"holds {name}": zipped([("in.npy", content), ("out.npy", right)]) for name, content in inner.items()},
    }
    return {**inner, **{f"npz {name}.npz": content for name, content in outer.items()}}


def _scores(path: Path) -> None:
    loaded = read_scores(path)
    audit_scores(loaded.in_scores, loaded.out_scores, counts=loaded.counts, epsilon=1.0)


def _stored(path: Path) -> None:
    read = load_either(path)
    if not isinstance(read, SuiteResult):
        again = load(read.save(path.with_name("again.json")))
        assert again == read, "it comes back as another"
        str(read)


def _proof(path: Path) -> None:
    proof = proofs.load(path)
    proofs.save(proof, path.with_name("again.json"))
    assert proofs.load(path.with_name("again.json")) == proof, "it comes back as another"


def _accepted(path: Path) -> None:
    read = read_baseline(path)
    assert read_baseline(write_baseline(path.with_name("again.toml"), read)) == read, "it comes back as another"


def recorded(stored: dict[str, Any]) -> tuple[bytes, str]:
    """The bytes of a ledger of these results, and the head of its chain."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger.sqlite")
        with Ledger(path) as ledger:
            for number, each in enumerate(stored.values()):
                ledger.record(loads(json.dumps(each)), run="r", number=number)
            _, head = ledger.head()
        return path.read_bytes(), head


def _ledger(path: Path, heads: set[str]) -> None:
    with Ledger(path, read_only=True) as ledger:
        chain, read = ledger.chain(), [ledger.load(record) for record in ledger.results()]
        assert chain.wrong or chain.head in heads, f"another chain of {len(read)} results holds"


Corpus = dict[str, tuple[str, Callable[[Path], Any], list[bytes]]]


def corpus(stored: dict[str, Any], some_proofs: list[Any]) -> Corpus:
    """By kind: the name of the file, what reads it, and right files to begin with."""
    table = packed(np.array([[1.5, 1], [0.5, 0], [2.0, 1], [-1.0, 0]]))
    sides = zipped([("in.npy", packed(np.arange(9.0))), ("out.npy", packed(np.arange(9.0) - 1))], zipfile.ZIP_STORED)
    ledger, head = recorded({key: each for key, each in stored.items() if "entries" not in each})
    return {
        "ledgers": ("x.sqlite", partial(_ledger, heads={START, head}), [ledger]),
        "results": ("x.json", _stored, [json.dumps(each).encode() for each in stored.values()]),
        "proofs": ("x.proof", _proof, [json.dumps(proofs.to_dict(each)).encode() for each in some_proofs]),
        "specs": ("x.toml", read_spec, [SPEC.encode()]),
        "sweeps": ("x.toml", read_sweep_file, [SWEEP.encode()]),
        "settings": ("pyproject.toml", lambda path: read_settings(path.parent), [SETTINGS.encode()]),
        "accepted findings": ("x.toml", _accepted, [ACCEPTED.encode()]),
        "scores, CSV": ("x.csv", _scores, [CSV.encode(), b"in,out\n1,2\n3,4\n0,1\n"]),
        "scores, JSON": ("x.json", _scores, [JSON.encode(), COUNTS.encode()]),
        "scores, NPY": ("x.npy", _scores, [table]),
        "scores, NPZ": ("x.npz", _scores, [sides]),
    }


def changed(content: bytes, others: list[bytes], random_: random.Random) -> bytes:
    """The content after some random changes."""
    for _ in range(random_.randint(1, MOST_CHANGES)):
        at, end = sorted(random_.randrange(len(content) + 1) for _ in range(2))
        end = min(end, at + random_.choice((1, 8, 64, len(content))))
        kind = random_.randrange(6)
        if kind == 0:
            content = content[:at] + random_.randbytes(1) + content[at + 1 :]
        elif kind == 1:
            content = content[:at] + content[end:]
        elif kind == 2:
            content = content[:end] + content[at:]
        elif kind == 3:
            content = content[:at] + random_.choice(TOKENS) + content[end:]
        elif kind == 4:
            content = content[:at] + random_.choice(TOKENS) + content[at:]
        else:
            other = random_.choice(others)
            content = content[:at] + other[random_.randrange(len(other) + 1) :][:200] + content[end:]
    return content


def outcome_of(read: Callable[[Path], Any], path: Path) -> str:
    """What a reader makes of a file: read, refused, or in words what went wrong."""
    began = time.process_time()
    try:
        with warnings.catch_warnings(action="error"):
            read(path)
        outcome = "read"
    except (InvalidSpec, LedgerError, UnsoundAudit) as error:
        outcome = "refused" if "\n" not in str(error).strip() else f"more than one line: {str(error)!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return outcome if time.process_time() - began < SLOW_S else f"{outcome}, too slowly"


def fuzz(kinds: Corpus, *, each: int = 0, seconds: float = 0.0, seed: int = 0) -> dict[str, Tally]:
    """What became of `each` changed files of every kind, or of as many as fit into the CPU seconds of a kind."""
    found: dict[str, Tally] = {}
    everything = [content for _, _, contents in kinds.values() for content in contents]
    with tempfile.TemporaryDirectory() as folder:
        for kind, (name, read, contents) in kinds.items():
            random_ = random.Random(f"{seed} {kind}")
            tally, path, ends = Tally(), Path(folder, name), time.process_time() + seconds
            for content in contents:
                path.write_bytes(content)
                outcome = outcome_of(read, path)
                tally.put(f"{kind} as they are", outcome, right=outcome == "read")
            while sum(tally.kinds.values()) < each or time.process_time() < ends:
                content = changed(random_.choice(contents), everything, random_)
                path.write_bytes(content)
                outcome = outcome_of(read, path)
                tally.put(f"{kind}: {content[:2000]!r}", outcome, right=outcome in ("read", "refused"))
            path.unlink()
            found[kind] = tally
    return found


def _objects(inner: list[Any]) -> Any:
    made = np.empty(len(inner), dtype=object)
    for number, each in enumerate(inner):
        made[number] = each
    return made


class _Odd(float):
    def __float__(self) -> float:
        raise RuntimeError("no number")

    def __repr__(self) -> str:
        return "\ud800"


def odd_output(random_: random.Random, depth: int = 4) -> Any:
    """An output of any kind, nested, with what has broken readers of outputs before."""
    inner = [odd_output(random_, depth - 1) for _ in range(random_.randrange(4))] if depth else []
    plain = (
        None,
        True,
        -0.0,
        5e-324,
        float("nan"),
        10**400,
        2**64,
        "\ud800",
        "\x00",
        "x" * 3000,
        b"\xff",
        1j,
        object(),
        1.5,
    )
    held = (
        inner, tuple(inner), {repr(type(each)): each for each in inner}, dict(enumerate(inner)), _Odd(1.0), range(10),
        _objects(inner), np.zeros((0, 3)), np.ma.masked, np.datetime64("NaT"), np.array("\x00"), type,
        iter(()), frozenset((1, "a")), ValueError("\ud800"), memoryview(b"ab"), slice(1), np.float16("inf"),
    )  # fmt: skip
    return random_.choice(plain if not depth or random_.random() < 0.5 else held)


def outputs(count: int, seed: int = 0) -> Tally:
    """What the canonical form makes of odd outputs: columns, or no verdict."""
    random_, tally = random.Random(seed), Tally()
    for number in range(count):
        batch = [odd_output(random_) for _ in range(random_.randint(1, 5))]
        began = time.process_time()
        try:
            outcome = "read" if isinstance(encode_objects(batch), Outputs) else "no outputs"
        except UnsoundAudit:
            outcome = "refused"
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
        right = outcome in ("read", "refused") and time.process_time() - began < SLOW_S
        tally.put(f"output {number} of seed {seed}", outcome, right=right)
    return tally


def run(quick: bool) -> None:
    """The table of readers; each run has a seed of its own, which it prints."""
    from tests.verify.checker.certificates import RIGHT

    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    kinds = corpus(results(), list(RIGHT.values()))
    found = fuzz(kinds, seconds=SECONDS / (60 if quick else 1) / len(kinds), seed=seed)
    found["outputs"] = outputs(2_000 if quick else 50_000, seed)
    rows = [
        (
            kind,
            str(sum(tally.kinds.values())),
            str(tally.kinds["read"]),
            str(tally.kinds["refused"]),
            str(len(tally.wrong)),
        )
        for kind, tally in found.items()
    ]
    show("Readers on files that are nearly right", ("files", "tried", "read", "refused", "wrong"), rows)
    for tally in found.values():
        for line in tally.wrong[:3]:
            print(f"- {line[-600:]}")
    if any(tally.wrong for tally in found.values()):
        raise SystemExit(1)
