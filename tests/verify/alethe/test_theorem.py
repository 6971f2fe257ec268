"""The theorem that a certificate instantiates is proved in a file that Coq accepts, where there is a Coq."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[3] / "docs" / "statistics" / "alignment.v"
REALS = {  # what the real numbers of the standard library rest on
    "ClassicalDedekindReals.sig_forall_dec",
    "ClassicalDedekindReals.sig_not_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}


def test_nothing_in_the_file_is_left_out() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert not re.search(r"\b(Admitted|admit|Axiom|Parameter|Conjecture)\b", text)
    theorems = set(re.findall(r"^ *Theorem (\w+)", text, re.MULTILINE))
    named = {"class_bounded", "loss_bounded", "potential_bounds", "la_generic", "la_mult_pos"}
    assert {*named, "contradictory_unmet", "laplace_shifted", "exponential_shifted"} <= theorems
    page = FILE.with_suffix(".md").read_text(encoding="utf-8")
    assert all(f"`{each}`" in page for each in theorems)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("coqc") is None, reason="there is no Coq here")
def test_coq_accepts_the_file(tmp_path: Path) -> None:
    shutil.copy(FILE, tmp_path)
    done = subprocess.run(["coqc", FILE.name], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assumed = set(re.findall(r"^([A-Z]\w*\.\w+) *(?::|$)", done.stdout, re.MULTILINE))
    assert assumed
    assert assumed <= REALS
