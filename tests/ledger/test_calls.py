"""A call goes on where it was stopped only if the code is the same, wherever what has changed stands."""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.execution.journal import StoredShard
from dpaudit.ledger.database import LedgerError
from dpaudit.ledger.results import Ledger
from dpaudit.ledger.runs import LedgerJournal, Run, start
from tests.cases import for_each

MECH = """
SCALE, FILE = 1.0, None
def noisy(data, rng):
    return data + rng.laplace(scale=SCALE)
def open_it():
    return open(__file__)
def held(data, rng):
    return data + rng.laplace(scale=1.0 if FILE is None else 1.5)
"""


@pytest.fixture
def mech(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mech.py").write_text(MECH)
    yield importlib.import_module("mech")
    sys.modules.pop("mech", None)


def call(mechanism: Any, **more: Any) -> dpaudit.AuditResult:
    asked = {"pair": (1, 0), "epsilon": 1.0, "runs": 1_200, "n_jobs": 1, "ledger": "l.sqlite", "name": "it", **more}
    return dpaudit.audit(mechanism, **asked)


def interrupted(mechanism: Any, monkeypatch: pytest.MonkeyPatch, **more: Any) -> None:
    """The same call, stopped once three tasks are stored."""
    keep, left = LedgerJournal.keep, [3]

    def counted(store: LedgerJournal, shards: Sequence[StoredShard]) -> None:
        keep(store, shards)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LedgerJournal, "keep", counted)
        with pytest.raises(KeyboardInterrupt):
            call(mechanism, **more)


def told(result: dpaudit.AuditResult) -> dict[str, Any]:
    return {key: value for key, value in result.to_dict().items() if key != "provenance"}


@for_each(
    "name, change, said",
    [
        ("noisy", lambda mech: setattr(mech, "noisy", lambda data, rng: data), "function mech.noisy is gone"),
        ("mech:noisy", lambda mech: setattr(mech, "SCALE", 0.5), "mech.SCALE is not what it was"),
        ("held", lambda mech: setattr(mech, "FILE", mech.open_it()), "mech.FILE cannot be shown to be what"),
    ],
    ids=lambda case: str(case)[:60],
)
def test_a_call_begins_anew_where_its_mechanism_is_another(
    mech: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[ModuleType], object], said: str
) -> None:
    """And says what, at the line of the user's, with no word of a command line. Every kind: tests/running."""
    Path("l.sqlite").unlink(missing_ok=True)
    importlib.reload(mech)
    interrupted(name if ":" in name else getattr(mech, name), monkeypatch, isolation="none")
    change(mech)
    with pytest.warns(UserWarning, match="another call of it, which begins anew") as heard:
        result = call(name if ":" in name else getattr(mech, name), isolation="none")
    ((message, file),) = [(str(each.message), each.filename) for each in heard if "begins anew" in str(each.message)]
    assert said in message
    assert "--resume" not in message
    assert file == __file__
    assert result.provenance["interruptions"] == 0


def test_the_same_call_goes_on_and_ends_as_if_nothing_had_been(
    mech: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = told(call(mech.noisy, ledger=None))
    interrupted(mech.noisy, monkeypatch)
    Path("unread.py").write_text("nothing = 1\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = call(mech.noisy)
    assert result.provenance["interruptions"] == 1
    assert told(result) == whole


def test_an_older_call_that_was_killed_goes_on_while_a_newer_one_runs(
    mech: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(mech.noisy, monkeypatch)
    with Ledger("l.sqlite") as ledger:
        ((state,),) = [tuple(row) for row in ledger.rows("SELECT suite FROM runs")]
        newer = start(ledger, ["it"], json.loads(state)["asked"])
        try:
            assert call(mech.noisy).provenance["interruptions"] == 1
            assert call(mech.noisy).provenance["interruptions"] == 0  # a third call, beside the newer one
        finally:
            newer.close()


def own_noise(data: float) -> float:
    return data + float(np.random.default_rng().laplace())


def test_a_call_that_is_killed_after_its_result_was_recorded_gives_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(run: Run) -> None:
        raise LedgerError("the process ends here")

    asked: dict[str, Any] = {"pair": (0.0, 1.0), "epsilon": 1.5, "runs": 2_000, "n_jobs": 1, "ledger": tmp_path / "it"}
    with monkeypatch.context() as patch:
        patch.setattr(Run, "finish", lost)
        with pytest.raises(LedgerError, match="ends here"):
            dpaudit.audit(own_noise, **asked)
    again = dpaudit.audit(own_noise, **asked)
    with Ledger(tmp_path / "it") as ledger:
        (record,) = ledger.results()
        assert ledger.load(record).evidence == again.evidence
        assert ledger.rows("SELECT * FROM shards") == []
