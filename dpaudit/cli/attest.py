"""`dpaudit attest`: stored results signed by the holder of a key, and such signatures checked."""

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpaudit.base.quoting import clean
from dpaudit.cli.options import say, writing
from dpaudit.errors import InvalidSpec, NotAttested

if TYPE_CHECKING:
    from dpaudit.results.attesting import Head, StoredFile

PASSWORD = "DPAUDIT_KEY_PASSWORD"


@click.command("attest")
@click.argument("results", nargs=-1, required=True, metavar="RESULT...")
@click.option(
    "--key",
    required=True,
    metavar="FILE",
    help="A key in PEM (Ed25519, ECDSA, RSA): the private one that signs; with --verify the public one.",
)
@click.option("--verify", "attestation", metavar="FILE", help="Sign nothing: check whether this attestation holds.")
@click.option("--output", metavar="FILE", help="Where the attestation goes; RESULT.intoto.jsonl if not given.")
@click.option(
    "--ledger", metavar="FILE", help="Bind the head of this ledger's chain too, or ask if it still leads there."
)
def command(results: tuple[str, ...], key: str, attestation: str | None, output: str | None, ledger: str | None) -> int:
    """Sign RESULT..., result files, a suite.json or a folder of a report, or check such a signature with --verify.

    An attestation is an in-toto statement in a DSSE envelope: the digest of each file, and its question, witness,
    counts, certificate, verdict, health, environment and source digest. It shows that the holder of the key says so.
    One more is added to a file that holds some. The password of an encrypted key is asked for, or taken from
    DPAUDIT_KEY_PASSWORD. Exit codes: 0 signed, or it holds; 1 it does not hold; 2 a file is not what it should be, or
    contradicts its own counts.
    """
    from dpaudit.base.files import FOLDER, found_at, write_text
    from dpaudit.results.attesting import attest, attestation_path, envelopes, verified

    files = [file for given in results for file in (_files(given) if found_at(given) == FOLDER else [given])]
    if attestation is not None:
        if output is not None:
            raise click.UsageError("--output is for signing: --verify writes nothing")
        followed: set[Head] = set()  # of the chain, each once
        for path, (file, head) in zip(
            files, verified(attestation, files, key, whole=tuple(files) != results), strict=True
        ):
            if ledger is not None:
                if head is None:
                    raise NotAttested(f"{clean(attestation, 200)}: no head of a ledger was attested in it")
                if head not in followed:
                    followed.add(head)
                    _chain(ledger, head)
            click.echo(attested_line(path, file))
        return 0
    if len(results) > 1 and output is None:
        raise InvalidSpec("several results need --output, the file of their attestation")
    _warn_of_readers(key)
    line = attest(files, key, password=_password, ledger=None if ledger is None else _chain(ledger))
    target = attestation_path(results[0]) if output is None else Path(output)
    before = envelopes(target) if found_at(target) else []
    with writing("--output", str(target)):
        write_text(target, "\n".join([*before, line, ""]))
    click.echo(str(target))
    return 0


def attested_line(path: str, file: "StoredFile") -> str:
    """That an attestation holds, and what it is of."""
    from dpaudit.account.statements import headline
    from dpaudit.results.suite import SuiteResult

    if isinstance(file.held, SuiteResult):
        what = f"{len(file.held.entries)} audits, exit code {file.held.exit_code}"
    else:
        what = headline(file.held)
    as_named = "" if Path(path).name == file.name else f", as {clean(file.name, 200)}"
    return f"{clean(path, 200)}: attested with this key{as_named}: {what}"


def _chain(path: str, head: "Head | None" = None) -> "Head":
    """The head of a ledger. Raises `NotAttested` where its chain does not hold, or does not lead to the given head."""
    from dpaudit.ledger.results import Ledger

    with Ledger(path, read_only=True) as opened:
        chain = opened.chain(head)
    if chain.wrong is not None:
        raise NotAttested(f"ledger {clean(path, 200)}: {chain.text}")
    return chain.rows, chain.head


def _files(folder: str) -> list[str]:
    """The results and the suite of a folder. Raises `InvalidSpec` where there is none."""
    from dpaudit.results.stored import stored_files

    stored_files(Path(folder))
    return sorted(str(path) for path in Path(folder).glob("*.json") if not path.name.startswith("."))


def _warn_of_readers(key: str) -> None:
    try:
        others = os.stat(key).st_mode & (stat.S_IRGRP | stat.S_IROTH)
    except (OSError, ValueError):  # told where it is read
        return
    if others:
        say(f"note: {key} can be read by others on this machine: chmod 600 {key}")


def _password() -> bytes:
    given = os.environ.get(PASSWORD)
    if given is None and sys.stdin is not None and sys.stdin.isatty():
        given = click.prompt("password of the key", hide_input=True, err=True)
    if given is None:
        raise InvalidSpec(f"--key: the private key is encrypted; give its password in {PASSWORD}")
    return os.fsencode(given)
