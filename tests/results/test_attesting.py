"""Attestations: what is signed is what the files say, and nothing else holds. Signatures are also checked by hand."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import dpaudit
from dpaudit.base.strict import content_digest
from dpaudit.cli.group import exit_code
from dpaudit.cli.recheck import attested_line
from dpaudit.errors import InvalidSpec, MissingRequirement, NotAttested
from dpaudit.ledger.results import Ledger
from dpaudit.results.attesting import PAYLOAD, STATEMENT, opened, public_key, signed, signer, stored_file
from tests.cases import for_each
from tests.golden import example, rewrite
from tests.results.test_stored import UNCOUNTED, Change

KINDS: dict[str, Callable[[], Any]] = {
    "ed25519": ed25519.Ed25519PrivateKey.generate,
    "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
}
CHECKED: dict[str, tuple[Any, ...]] = {  # how the library of each kind checks a signature by itself
    "ed25519": (),
    "ecdsa": (ec.ECDSA(hashes.SHA256()),),
    "rsa": (padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.AUTO), hashes.SHA256()),
}


def _keys(folder: Path, made: Any, name: str = "key", password: bytes | None = None) -> tuple[Path, Path]:
    """The files of a new key, private and public."""
    locked = NoEncryption() if password is None else BestAvailableEncryption(password)
    (folder / name).write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked))
    (folder / name).chmod(0o600)
    public = made.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.pub").write_bytes(public)
    return folder / name, folder / f"{name}.pub"


def _written(folder: Path, whole: Any, name: str = "result.json") -> Path:
    (folder / name).write_text(whole if isinstance(whole, str) else json.dumps(whole), encoding="utf-8")
    return folder / name


def _signed_bytes(payload: bytes) -> bytes:
    """What DSSE signs, from its definition."""
    return b" ".join([b"DSSEv1", b"%d" % len(PAYLOAD), PAYLOAD.encode(), b"%d" % len(payload), payload])


@for_each("kind", KINDS)
def test_what_is_signed_names_the_files_and_what_they_say(tmp_path: Path, kind: str) -> None:
    made = KINDS[kind]()
    key, public = _keys(tmp_path, made)
    result, suite = example.result().save(tmp_path / "result.json"), tmp_path / "suite.json"
    suite.write_bytes((rewrite.FOLDER / "suite.json").read_bytes())
    line = dpaudit.attest([result, suite], key)
    envelope = json.loads(line)
    (signature,) = envelope["signatures"]
    payload = base64.b64decode(envelope["payload"], validate=True)
    made.public_key().verify(base64.b64decode(signature["sig"], validate=True), _signed_bytes(payload), *CHECKED[kind])
    assert "\n" not in line
    stated = json.loads(payload)
    assert set(stated) == {"_type", "subject", "predicateType", "predicate"}
    assert stated["_type"] == STATEMENT
    digests = {each["name"]: each["digest"].get("sha256") for each in stated["subject"]}
    assert digests["result.json"] == hashlib.sha256(result.read_bytes()).hexdigest()
    assert digests["suite.json"] == hashlib.sha256(suite.read_bytes()).hexdigest()
    source = example.result().spec["mechanism"]
    assert {"name": source["reference"], "digest": {"dpaudit_source_v1": source["digest"]}} in stated["subject"]
    raw, said = json.loads(result.read_text()), stated["predicate"]["files"][digests["result.json"]]
    assert all(said[part] == raw[part] for part in ("verdict", "evidence", "certificate", "health", "unseen"))
    assert said["question"]["hash"] == raw["spec"]["hash"]
    assert said["environment"]["numpy"] == raw["provenance"]["numpy"]
    assert said["digests"]["histogram"] == content_digest(raw["histogram"])
    assert str(raw["spec"]["pairs"][0]["first"]["value"]) not in json.dumps(said)  # digests of data, and no data
    attestation = _written(tmp_path, line, "both.intoto.jsonl")
    for path in (result, suite):
        assert dpaudit.verify_attestation(attestation, path, public)[0].raw == json.loads(path.read_text())


def _attested(folder: Path) -> tuple[Path, Path, Path, Path]:
    """A result with its attestation, and the private and the public key."""
    key, public = _keys(folder, KINDS["ed25519"]())
    result = example.result().save(folder / "result.json")
    return result, _written(folder, dpaudit.attest([result], key), "it.intoto.jsonl"), key, public


def _forged(change: Change) -> dict[str, Any]:
    """A changed result, its own digest made anew, as one does who means it."""
    whole = json.loads(example.result().to_json())
    change(whole)
    whole["provenance"].pop("digest", None)
    whole["provenance"]["digest"] = content_digest(whole)
    return whole


@for_each("change", [*UNCOUNTED, lambda whole: whole["provenance"].clear()], ids=range(len(UNCOUNTED) + 1))
def test_what_no_count_gives_cannot_be_changed_under_a_signature(tmp_path: Path, change: Change) -> None:
    result, attestation, _, public = _attested(tmp_path)
    _written(tmp_path, _forged(change))
    dpaudit.load(result)  # it contradicts nothing
    with pytest.raises(NotAttested, match="the file is not the one that was signed"):
        dpaudit.verify_attestation(attestation, result, public)
    example.result().save(result)
    dpaudit.verify_attestation(attestation, result, public)


def _only(stated: dict[str, Any]) -> dict[str, Any]:
    (said,) = stated["predicate"]["files"].values()
    return said  # type: ignore[no-any-return]


@for_each(
    ("change", "reason"),
    [
        (lambda s: _only(s).update(verdict="NOT_REFUTED"), "the signed statement says something else"),
        (lambda s: _only(s)["evidence"].update(hits_p=1), "the signed statement says something else"),
        (lambda s: _only(s).pop("health"), "the signed statement says something else"),
        (lambda s: _only(s).update(more=1), "the signed statement says something else"),
        (lambda s: s["predicate"]["files"].clear(), "the file is not the one"),
        (lambda s: s.update(subject=s["subject"][1:]), "the file is not the one"),
        (lambda s: s.update(subject=7), "no statement of this version"),
        (lambda s: s.update(predicate=[]), "no statement of this version"),
        (lambda s: s.update(predicateType="https://slsa.dev/provenance/v1"), "no statement of this version"),
        (lambda s: s.update(_type="https://in-toto.io/Statement/v0.1"), "no statement of this version"),
        (dict.clear, "no statement of this version"),
    ],
    ids=range(11),
)
def test_a_signature_under_something_else_does_not_hold(tmp_path: Path, change: Change, reason: str) -> None:
    result, attestation, key, public = _attested(tmp_path)
    stated = opened(attestation.read_text(encoding="utf-8"), public_key(public))
    change(stated)
    _written(tmp_path, signed(stated, signer(key, bytes)), attestation.name)
    with pytest.raises(NotAttested, match=reason):
        dpaudit.verify_attestation(attestation, result, public)


def _other(text: str) -> str:
    return ("B" if text[0] == "A" else "A") + text[1:]


@for_each(
    ("change", "error"),
    [
        (lambda e: e["signatures"][0].update(keyid="another name"), None),
        (lambda e: e["signatures"].insert(0, {"keyid": "else", "sig": "AAAA"}), None),
        (lambda e: e["signatures"][0].update(sig=_other(e["signatures"][0]["sig"])), NotAttested),
        (lambda e: e["signatures"].clear(), NotAttested),
        (lambda e: e.update(payload=base64.b64encode(base64.b64decode(e["payload"]) + b" ").decode()), NotAttested),
        (lambda e: e.update(payload="e30="), NotAttested),
        (lambda e: e.update(payloadType="application/json"), NotAttested),
        (lambda e: e.update(payload=7), NotAttested),
        (lambda e: e.update(signatures=None), NotAttested),
        (lambda e: e.pop("payload"), NotAttested),
        (lambda e: e["signatures"].append(dict(e["signatures"][0])), NotAttested),
        (dict.clear, InvalidSpec),
    ],
    ids=range(12),
)
def test_of_a_changed_envelope_only_the_names_of_keys_may_differ(
    tmp_path: Path, change: Change, error: type[Exception] | None
) -> None:
    result, attestation, _, public = _attested(tmp_path)
    envelope = json.loads(attestation.read_text(encoding="utf-8"))
    change(envelope)
    _written(tmp_path, envelope, attestation.name)
    with nullcontext() if error is None else pytest.raises(error):
        dpaudit.verify_attestation(attestation, result, public)


def test_a_result_that_its_counts_contradict_is_not_attested(tmp_path: Path) -> None:
    key, _ = _keys(tmp_path, KINDS["ed25519"]())
    result = _written(tmp_path, _forged(lambda whole: whole.update(verdict="NOT_REFUTED")))
    with pytest.raises(InvalidSpec, match="verdict is 'NOT_REFUTED', but at p-value"):
        dpaudit.attest([result], key)
    assert stored_file(example.result().save(result)).held == example.result()


def test_a_suite_as_large_as_suites_are_read_is_attested(tmp_path: Path) -> None:
    key, public = _keys(tmp_path, KINDS["ed25519"]())
    suite = _written(tmp_path, (rewrite.FOLDER / "suite.json").read_text() + " " * 2**24, "suite.json")
    attestation = _written(tmp_path, dpaudit.attest([suite], key), "it")
    assert dpaudit.verify_attestation(attestation, suite, public)[0].name == "suite.json"


@for_each("content", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", b"\xff" * 99])
def test_what_is_no_key_is_refused_in_a_line(tmp_path: Path, content: bytes) -> None:
    result = example.result().save(tmp_path / "result.json")
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(InvalidSpec, match="not a private key that can sign; give"):
        dpaudit.attest([result], tmp_path / "key")
    with pytest.raises(InvalidSpec, match="not a public key that signatures are checked with; give"):
        dpaudit.verify_attestation(tmp_path / "it", result, tmp_path / "key")


# the command


def test_the_command_signs_and_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    example.result().save("result.json")
    _keys(tmp_path, KINDS["ed25519"](), "one")
    _keys(tmp_path, KINDS["ed25519"](), "two", b"secret")
    _keys(tmp_path, KINDS["ed25519"](), "three")
    assert exit_code(["attest", "result.json", "--key", "one"]) == 0
    assert capsys.readouterr() == ("result.json.intoto.jsonl\n", "")
    monkeypatch.setenv("DPAUDIT_KEY_PASSWORD", "wrong")
    assert exit_code(["attest", "result.json", "--key", "two"]) == 2
    assert "the password is not that of a key" in capsys.readouterr().err
    monkeypatch.setenv("DPAUDIT_KEY_PASSWORD", "secret")
    (tmp_path / "two").chmod(0o644)
    assert exit_code(["attest", "result.json", "--key", "two"]) == 0
    assert capsys.readouterr().err == "note: two can be read by others on this machine: chmod 600 two\n"
    monkeypatch.delenv("DPAUDIT_KEY_PASSWORD")
    monkeypatch.setattr(sys, "stdin", None)
    assert exit_code(["attest", "result.json", "--key", "two"]) == 2
    assert "give its password in DPAUDIT_KEY_PASSWORD" in capsys.readouterr().err
    assert len((tmp_path / "result.json.intoto.jsonl").read_text().splitlines()) == 2
    assert exit_code(["attest", "result.json", "--key", "one", "--output", "result.json"]) == 2  # which it would spoil
    assert "result.json: not a DSSE envelope" in capsys.readouterr().err
    codes = {"one.pub": 0, "two.pub": 0, "three.pub": 1, "one": 2, "result.json": 2}
    for public, code in codes.items():
        check = ["attest", "--verify", "result.json.intoto.jsonl", "result.json", "--key", public]
        assert exit_code(check) == exit_code(["recheck", "result.json", "--key", public]) == code
        said = capsys.readouterr()
        assert ("attested with this key" in said.out) == (code == 0)
        assert len(said.err.splitlines()) == (2 if code else 0)


def test_a_folder_is_attested_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    example.result().save("reports/result.json")
    (tmp_path / "reports" / "suite.json").write_bytes((rewrite.FOLDER / "suite.json").read_bytes())
    _keys(tmp_path, KINDS["ed25519"]())
    assert exit_code(["attest", "reports", "--key", "key"]) == 0
    assert capsys.readouterr().out == "reports/results.intoto.jsonl\n"
    check = ["attest", "--verify", "reports/results.intoto.jsonl", "--key", "key.pub"]
    assert exit_code([*check, "reports"]) == exit_code([*check, "reports/result.json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    taken = (tmp_path / "reports" / "result.json").rename(tmp_path / "away.json")
    assert exit_code([*check, "reports"]) == 1
    assert "result.json was attested with it, and is not here" in capsys.readouterr().err
    taken.rename(tmp_path / "reports" / "result.json")
    example.kept().save("reports/more.json")  # after the fact
    assert exit_code([*check, "reports"]) == 1
    assert exit_code(["attest", "reports/result.json", "reports/suite.json", "--key", "key"]) == 2
    assert exit_code(["recheck", "reports/result.json", "--key", "key.pub"]) == 2  # none is beside it


def test_without_the_extra_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key, _ = _keys(tmp_path, KINDS["ed25519"]())
    result = example.result().save(tmp_path / "result.json")
    monkeypatch.setitem(sys.modules, "securesystemslib.dsse", None)
    with pytest.raises(MissingRequirement, match=r"the extra \[attest\] has it: python3 -m pip install "):
        dpaudit.attest([result], key)
    assert exit_code(["attest", str(result), "--key", str(key)]) == 3
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_head_of_a_ledger_holds_what_was_recorded_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    example.result().save("result.json")
    _keys(tmp_path, KINDS["ed25519"]())
    with Ledger("audits.sqlite") as ledger:
        ledger.record(example.result())
        ledger.record(example.kept())
    assert exit_code(["attest", "result.json", "--key", "key", "--ledger", "audits.sqlite"]) == 0
    check = ["attest", "--verify", "result.json.intoto.jsonl", "result.json", "--key", "key.pub"]
    assert exit_code([*check, "--ledger", "audits.sqlite"]) == 0
    with Ledger("audits.sqlite") as ledger:
        ledger.record(example.result())  # it may grow
    assert exit_code([*check, "--ledger", "audits.sqlite"]) == exit_code(check) == 0
    with Ledger("shorter.sqlite") as ledger:
        ledger.record(example.kept())
    capsys.readouterr()
    assert exit_code([*check, "--ledger", "shorter.sqlite"]) == 1
    assert "the chain of its results does not hold" in capsys.readouterr().err
    assert exit_code(["attest", "result.json", "--key", "key", "--output", "none.intoto.jsonl"]) == 0
    check[2] = "none.intoto.jsonl"
    assert exit_code([*check, "--ledger", "audits.sqlite"]) == 1
    assert "no head of a ledger was attested in it" in capsys.readouterr().err


@for_each("together", [True, False])
def test_results_that_were_exchanged_by_name_are_not_as_attested(together: bool) -> None:
    """In one statement, or in two lines of one file; a name that nobody attested is told beside the attested one."""
    with TemporaryDirectory() as made_here:
        folder = Path(made_here)
        key, public = _keys(folder, KINDS["ed25519"]())
        one, other = example.result().save(folder / "one.json"), example.kept().save(folder / "other.json")
        asked = [[one, other]] if together else [[one], [other]]
        attestation = _written(folder, "\n".join(dpaudit.attest(each, key) for each in asked), "both.intoto.jsonl")
        for path in (one, other):
            assert dpaudit.verify_attestation(attestation, path, public)[0].name == path.name
        one.rename(folder / "between")
        other.rename(one)
        with pytest.raises(NotAttested, match=r"one.json: what stands in it was attested as other.json$"):
            dpaudit.verify_attestation(attestation, one, public)
        renamed = (folder / "between").rename(folder / "renamed.json")
        found = dpaudit.verify_attestation(attestation, renamed, public)[0]
        assert found.name == "one.json"
        assert attested_line(str(renamed), found).partition("this key")[2].startswith(", as one.json: REFUTED")
