"""`dpaudit recheck` and `attest`: stored results checked again, signed by the holder of a key, signatures checked."""

import os
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpaudit.account import templates
from dpaudit.account.audit import evidence_lines
from dpaudit.account.statements import headline
from dpaudit.base import validate
from dpaudit.base.files import FOLDER, found_at, write_text, writing
from dpaudit.base.quoting import clean
from dpaudit.cli.commands import AttestCommand, RecheckCommand
from dpaudit.cli.options import one_line, say, show
from dpaudit.errors import DpAuditError, InvalidSpec, NotAttested
from dpaudit.ledger.database import LedgerError
from dpaudit.ledger.results import Ledger, digest
from dpaudit.mechanisms import Imported
from dpaudit.mechanisms.importing import is_own
from dpaudit.results.attesting import (
    Head,
    StoredFile,
    attest,
    attestation_path,
    envelopes,
    verified,
    verify_attestation,
)
from dpaudit.results.result import AuditResult
from dpaudit.results.stored import load, stored_files
from dpaudit.results.suite import SuiteResult

if TYPE_CHECKING:
    from dpaudit.spec.questions import SpecQuestion

PASSWORD = "DPAUDIT_KEY_PASSWORD"


def recheck_command(call: RecheckCommand) -> int:
    if call.ledger is not None:
        for each in call.results or (None,):
            show(_chain(call, call.ledger, each))
    elif call.head is not None or not call.results:
        raise click.UsageError("give a RESULT.json, or --ledger (which --head belongs to)")
    if not call.results and (call.fresh or call.seed is not None or call.key is not None):
        raise click.UsageError("--fresh, --seed and --key are for a RESULT.json: give one")
    if len(call.results) < 2:
        return max((_recheck(call, each) for each in call.results), default=0)
    codes = []
    for each in call.results:
        show(clean(each, 200))
        try:
            codes.append(_recheck(call, each))
        except DpAuditError as error:  # the others are checked all the same
            say(f"error: {one_line(error)}")
            codes.append(error.exit_code)
    return next((code for code in (2, 1, 3) if code in codes), max(codes))


def _chain(call: RecheckCommand, path: str, file: str | None) -> str:
    """What the chain of a ledger says; raises `LedgerError` where it does not hold, or has no such result."""
    rows, _, link = ("" if call.head is None else call.head).partition(":")
    if call.head is not None and not (rows.isascii() and rows.isdigit() and len(rows) < 19 and link):
        raise click.UsageError(
            f"--head must be ROWS:HASH as dpaudit recheck --ledger prints it, got {clean(call.head)!r}"
        )
    place = f"ledger {clean(path, 200)}"
    with Ledger(path, read_only=True) as opened:
        chain = opened.chain(None if call.head is None else (int(rows), link))
        if chain.wrong is not None:
            raise LedgerError(f"{place}: {chain.text}; restore the ledger from a copy")
        content = None if file is None else digest(load(file).to_json())
        if content is not None and not opened.rows("SELECT id FROM results WHERE digest = ?", (content,)):
            raise LedgerError(f"{place}: it has no such result as {clean(file, 200)}; name the ledger that recorded it")
    return f"{place}: {chain.text}"


def _recheck(call: RecheckCommand, result: str) -> int:

    stored = load(result)  # refuses a file that its counts contradict
    attestation = attestation_path(result)
    if call.key is not None:
        verify_attestation(attestation, result, call.key)
        show(f"{attestation}: attested with this key")
    elif attestation.exists():
        say(f"note: {attestation} was not looked at; --key PUBLIC says whether it holds")
    if not call.fresh:
        if call.seed is not None:
            raise click.UsageError("--seed is for --fresh: stored counts have no randomness left")
        show(templates.RECHECKED.format(headline=headline(stored)))
        return 0
    again = fresh_result(stored, result, call.seed, call.jobs, silent=call.no_progress)
    show(f"stored  {headline(stored)}")
    show(f"fresh   {headline(again)}")
    for line in evidence_lines(again):
        show(f"        {line}")
    show(f"        seed {again.spec['seed']}")
    return 0 if again.verdict is stored.verdict else 1


def fresh_result(stored: AuditResult, path: str, seed: int | None, jobs: int, *, silent: bool) -> AuditResult:
    """The result that the same witness has on fresh runs of what its spec file names today."""
    from dpaudit.api.existing import respecified
    from dpaudit.auditing import Runner
    from dpaudit.auditing.watching import watching
    from dpaudit.execution.engine import Engine

    seed = stored.spec["seed"] + 1 if seed is None else validate.whole("--seed", seed, least=0)
    if seed == stored.spec["seed"]:  # the stored result may be one of a recheck itself
        raise InvalidSpec(f"--seed {seed} is that of the stored result; give another")
    of_spec = str(stored.provenance.get("source") or "").endswith(".toml")
    question = _question(stored, path) if of_spec else respecified(stored, _named(stored, path))
    with Engine(jobs, supervised=True) as engine:
        planned = Runner(engine).plan(replace(question, seed=seed))
        now = planned.to_dict()
        if not of_spec:
            mechanism = {**planned.description.to_dict(), "name": stored.spec["mechanism"]["name"]}
            now = {**stored.spec, "mechanism": mechanism}
        _compare(stored, now, path)
        witness = stored.witness if of_spec else replace(stored.witness, pair=0)
        with watching(1, stored.name, shown=not silent) as watcher:
            return Runner(engine, progress=watcher).repeat(stored, witness, planned)


def _named(stored: AuditResult, path: str) -> Imported:
    """The function that a result of a Python call names, of a module here: a file must not choose other code to run."""
    entry, here = stored.spec["mechanism"], Path.cwd()
    reference = str(entry["reference"] or "")
    top = reference.partition(":")[0].partition(".")[0]
    ours = bool(reference) and is_own(reference)
    if not ours and (
        top in ("", *sys.stdlib_module_names) or not ((here / f"{top}.py").is_file() or (here / top).is_dir())
    ):
        raise InvalidSpec(
            f"{path}: made without a spec file, and {clean(reference or entry['name'])!r} is no function of a module "
            "in this folder; use dpaudit.recheck(result, mechanism, fresh=True) in Python"
        )
    return Imported(reference, dict(entry["parameters"]), None if ours else str(here), entry["kind"])


def _question(stored: AuditResult, path: str) -> "SpecQuestion":
    """The audit of this name in the spec file that the result came from, at its runs and confidence."""
    from dpaudit.spec.questions import read_spec

    source = stored.provenance["source"]
    if not Path(source).exists():
        raise InvalidSpec(f"{path}: its spec {source} is not here; run this where the audit was run")
    questions = [question for question in read_spec(source) if question.name == stored.name]
    if not questions:
        raise InvalidSpec(f"{path}: {source} has no audit {stored.name!r} any more; restore it, or audit again")
    return replace(questions[0], runs=stored.spec["runs"], confidence=stored.spec["confidence"])


def _compare(stored: AuditResult, now: dict[str, object], path: str) -> None:
    """Fresh runs answer the stored question only where claim, mechanism and pairs are still the same."""
    for key, are in (("claim", "is not what it was"), ("pairs", "are not what they were")):
        if now[key] != stored.spec[key]:
            raise InvalidSpec(f"{path}: the {key} of its spec {are}; audit again instead")
    if now["mechanism"] != stored.spec["mechanism"]:
        say("note: the mechanism is not what it was; the fresh runs are of the mechanism of today")


# --- attestations -------------------------------------------------------------------------------------------


def attest_command(call: AttestCommand) -> int:
    files = [file for given in call.results for file in (_files_of(given) if found_at(given) == FOLDER else [given])]
    if call.attestation is not None:
        if call.output is not None:
            raise click.UsageError("--output is for signing: --verify writes nothing")
        followed: set[Head] = set()  # of the chain, each once
        for path, (file, head) in zip(
            files, verified(call.attestation, files, call.key, whole=tuple(files) != call.results), strict=True
        ):
            if call.ledger is not None:
                if head is None:
                    raise NotAttested(f"{clean(call.attestation, 200)}: no head of a ledger was attested in it")
                if head not in followed:
                    followed.add(head)
                    _head(call.ledger, head)
            click.echo(attested_line(path, file))
        return 0
    if len(call.results) > 1 and call.output is None:
        raise InvalidSpec("several results need --output, the file of their attestation")
    _warn_of_readers(call.key)
    line = attest(files, call.key, password=password, ledger=None if call.ledger is None else _head(call.ledger))
    target = attestation_path(call.results[0]) if call.output is None else Path(call.output)
    before = envelopes(target) if found_at(target) else []
    with writing("--output", str(target)):
        write_text(target, "\n".join([*before, line, ""]))
    click.echo(str(target))
    return 0


def attested_line(path: str, file: StoredFile) -> str:
    """That an attestation holds, and what it is of."""
    if isinstance(file.held, SuiteResult):
        what = f"{len(file.held.entries)} audits, exit code {file.held.exit_code}"
    else:
        what = headline(file.held)
    as_named = "" if Path(path).name == file.name else f", as {clean(file.name, 200)}"
    return f"{clean(path, 200)}: attested with this key{as_named}: {what}"


def _head(path: str, head: Head | None = None) -> Head:
    """The head of a ledger. Raises `NotAttested` where its chain does not hold, or does not lead to the given head."""
    with Ledger(path, read_only=True) as opened:
        chain = opened.chain(head)
    if chain.wrong is not None:
        raise NotAttested(f"ledger {clean(path, 200)}: {chain.text}")
    return chain.rows, chain.head


def _files_of(folder: str) -> list[str]:
    """The results and the suite of a folder. Raises `InvalidSpec` where there is none."""
    stored_files(Path(folder))
    return sorted(str(path) for path in Path(folder).glob("*.json") if not path.name.startswith("."))


def _warn_of_readers(key: str) -> None:
    try:
        others = os.stat(key).st_mode & (stat.S_IRGRP | stat.S_IROTH)
    except (OSError, ValueError):  # reading it raises the error
        return
    if others:
        say(f"note: {key} can be read by others on this machine: chmod 600 {key}")


def password() -> bytes:
    """The password of a private key, from the environment or asked for. Raises `InvalidSpec` where there is none."""
    given = os.environ.get(PASSWORD)
    if given is None and sys.stdin is not None and sys.stdin.isatty():
        given = click.prompt("password of the key", hide_input=True, err=True)
    if given is None:
        raise InvalidSpec(f"--key: the private key is encrypted; give its password in {PASSWORD}")
    return os.fsencode(given)
