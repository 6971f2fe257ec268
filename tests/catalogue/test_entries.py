"""What every entry of the catalogue owes: its words, its claim, its name in workers, and clear refusals."""

from __future__ import annotations

import functools
import inspect
import math
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

from dpaudit import catalogue
from dpaudit.catalogue import Entry, entries, find, rooms
from dpaudit.catalogue.entry import edited, written
from dpaudit.claims import ApproximateDP, Claim, GaussianDP, PureDP, Relation
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms import wrap
from dpaudit.mechanisms.importing import import_reference
from dpaudit.verify.replay import replay
from tests.cases import NIGHTLY, for_each

SHOWN = 0.3  # of its claim: what the pair of an entry that keeps it shows at the least
LOOSE = 0.2  # the same where the noise of the literature is more than the claim needs
RAPPOR = {"f": 0.75, "q": 0.55, "p": 0.45, "bits": 20, "hashes": 4}
# whose loss is turned round by night alone
SLOW = ("dp_sgd", "objective_perturbation", "private_training", "sparse", "gap_sparse", "thresholdout", "noisy_stats")
BY_NIGHT = ("dp_sgd_iterates.no_clipping", "dp_sgd_fixed_batches.last")  # whose losses other tests look at by day
WITHOUT_DP = "gradient_descent"  # an algorithm of the notes that nobody claims to be private
ALL = [each for entry in entries() for each in (entry, *entry.twins.values())]
TWINS = [(entry, twin) for entry in entries() for twin in entry.twins.values()]


def named(entry: Entry) -> str:
    return entry.name


def test_the_size_of_the_catalogue() -> None:
    """At least 45 mechanisms that keep their claim, and 80 mistakes that break it."""
    assert len(entries()) >= 45
    assert sum(twin.broken for _, twin in TWINS) >= 80


def test_no_room_is_forgotten() -> None:
    modules = Path(catalogue.__file__).parent.glob("*/__init__.py")
    assert len(rooms()) == sum("\nENTRIES" in module.read_text(encoding="utf-8") for module in modules)


def test_the_top_of_every_entry_keeps_its_claim_and_the_broken_ones_are_its_twins() -> None:
    assert [entry.name for entry in entries() if entry.broken] == [WITHOUT_DP]


def parts(value: object) -> object:
    """What code is made of, names and places aside: code objects, and all that is bound to them."""
    if isinstance(value, functools.partial):
        return parts(value.func), parts(value.args), parts(tuple(sorted(value.keywords.items())))
    if isinstance(value, tuple | list):
        return type(value).__name__, *map(parts, value)
    if inspect.isfunction(value):
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        return value.__code__.co_code, *map(constant, value.__code__.co_consts), value.__code__.co_names, parts(held)
    return repr(value)


def constant(value: object) -> object:
    return (value.co_code, *map(constant, value.co_consts)) if inspect.iscode(value) else repr(value)


def made_of(entry: Entry) -> tuple[object, ...]:
    return parts(entry.program), parts(entry.sampler), str(entry.claim()), repr(entry.default_pair)


def test_no_entry_is_a_renamed_copy_of_another() -> None:
    seen: dict[tuple[object, ...], str] = {}
    assert made_of(find("laplace")) == made_of(replace(find("laplace"), name="another"))
    for entry in ALL:
        other = seen.setdefault(made_of(entry), entry.name)
        assert other == entry.name, f"{entry.name} is {other} by another name"


def test_names_are_unique_and_found() -> None:
    assert len({each.name for each in ALL}) == len(ALL)
    assert all(find(each.name) is each for each in ALL)


def test_an_unknown_name_is_refused_with_a_hint() -> None:
    with pytest.raises(InvalidSpec, match=r"no entry 'laplace\.half'; did you mean 'laplace\.half_noise'"):
        find("laplace.half")


def test_words_are_there() -> None:
    for entry in ALL:
        assert all((entry.title, entry.formula, entry.neighbours, entry.source.paper)), entry.name
        assert all(parameter.unit and parameter.meaning for parameter in entry.parameters), entry.name
        assert (entry.reason is None) == ("." not in entry.name and entry.name != WITHOUT_DP), entry.name
        assert entry.expect == ("refuted" if entry.broken else "not-refuted")


def test_the_reference_leads_back() -> None:
    for entry in ALL:
        assert import_reference(entry.reference) is entry
        assert wrap(entry.reference).open().per_run is False
        assert wrap(entry) is entry


@pytest.mark.parametrize("library", [pickle, cloudpickle], ids=["pickle", "cloudpickle"])
def test_an_entry_travels_as_its_name(library: object) -> None:
    for entry in ALL:
        given = entry.with_parameters({entry.parameters[0].name: entry.parameters[0].default})
        for each in (entry, given):
            sent = library.dumps(each)  # type: ignore[attr-defined]
            assert len(sent) < 250
            assert pickle.loads(sent) == each
            assert pickle.loads(sent).values() == each.values()
        assert given != entry, entry.name


def test_the_description_names_the_program() -> None:
    for entry in ALL:
        description = entry.describe()
        assert (description.name, description.reference) == (entry.name, entry.reference)
        assert description.takes_rng, entry.name
        assert description.parameters == entry.values()
        assert description.file is not None
        assert description.line is not None
        program = written(entry.program)
        assert f"def {program.__name__}(" in description.excerpt[0]
        with open(description.file, encoding="utf-8") as file:  # where an edited program has that which is edited
            place = file.read().splitlines()[description.line - 1]
        assert f"def {getattr(program, 'edit_of', program).__name__}(" in place


def test_unknown_parameters_and_bad_values_are_refused() -> None:
    for entry in ALL:
        known = ", ".join(parameter.name for parameter in entry.parameters)
        with pytest.raises(InvalidSpec, match=f"has no parameter 'sigma'; it has: {known}"):
            entry.with_parameters({"sigma": 1.0})
        refusals = [message for parameter in entry.parameters if (message := refusal(entry, parameter.name, -1.0))]
        assert refusals, f"{entry.name}: every entry has a scale or a probability"
        assert all(re.match(rf"{re.escape(entry.name)}: \w+ must", message) for message in refusals)


def refusal(entry: Entry, name: str, value: object) -> str | None:
    try:
        entry.with_parameters({name: value})
    except InvalidSpec as error:
        return str(error)
    return None


def test_a_twin_is_an_attribute_and_keeps_the_parameters_given_to_its_parent() -> None:
    laplace = find("laplace")
    assert laplace.half_noise is laplace.twins["half_noise"]
    assert laplace.with_parameters({"epsilon": 2.0}).half_noise.values() == {"epsilon": 2.0, "sensitivity": 1.0}
    with pytest.raises(AttributeError, match="no twin 'quarter_noise'; its twins: half_noise, uniform_noise"):
        laplace.quarter_noise  # noqa: B018


def test_no_twin_hides_behind_a_field() -> None:
    for entry, twin in TWINS:
        assert getattr(entry, twin.name.rpartition(".")[2]) is twin


REPLACED, JOINED = Relation.REPLACE_ONE, Relation.ADD_OR_REMOVE_ONE
CLAIMS: list[tuple[str, dict[str, Any], Claim]] = [
    ("laplace", {"epsilon": 0.3}, PureDP(0.3)),
    ("laplace.half_noise", {}, PureDP(1.0)),
    ("sparse", {"epsilon": 2.0, "c": 5}, PureDP(2.0)),
    ("sparse_twice", {}, PureDP(2.0)),
    ("gaussian", {"delta": 1e-5}, ApproximateDP(0.5, 1e-5)),
    ("snapping", {"epsilon": 1.0, "bound": 2.0**39}, PureDP(1.0 + 2.0**-10)),  # it pays for the rounding of floats
    # that of its k, and not the epsilon that k was made from
    ("truncated_geometric", {"epsilon": 0.1}, PureDP(math.log(1.125))),
    ("truncated_geometric.claimed_as_epsilon", {"epsilon": 0.1}, PureDP(0.1)),
    ("report_noisy_max_general", {"epsilon": 0.3, "sensitivity": 7.0}, PureDP(0.3)),
    ("most_common", {}, PureDP(1.0, JOINED)),
    ("private_median", {}, PureDP(1.0, JOINED)),
    ("exponential_mechanism_learning", {}, PureDP(1.0, REPLACED)),
    ("select_subsets", {}, PureDP(find("select_subsets").claim().promised(0.0), REPLACED)),
    ("replaced_histogram", {}, PureDP(1.0, REPLACED)),
    ("group_count", {}, PureDP(1.0, JOINED)),
    ("randomised_response", {"keep": 0.9}, PureDP(math.log(9.0), Relation.LOCAL)),
    ("rappor_one_time", {"f": 0.95}, PureDP(8 * math.log(1.05 / 0.95), Relation.LOCAL)),
    ("rappor", RAPPOR | {"reports": 1}, PureDP(8 * math.log(0.5125 / 0.4875), Relation.LOCAL)),
    ("rappor", RAPPOR | {"reports": 2}, PureDP(8 * math.log(1.25 / 0.75), Relation.LOCAL)),  # of the permanent step
    ("rappor", RAPPOR | {"reports": 1, "q": 1.0, "p": 0.0}, PureDP(8 * math.log(1.25 / 0.75), Relation.LOCAL)),
    ("repeated_response", {}, PureDP(2.5, Relation.LOCAL)),
    ("repeated_response.delta_forgotten", {}, PureDP(1.73088, Relation.LOCAL)),
    ("repeated_response", {"bound": "sharper"}, ApproximateDP(1.73088, 0.2, Relation.LOCAL)),
    ("dp_gradient_descent", {}, GaussianDP(1.0, JOINED)),
    ("dp_gradient_descent", {"steps": 9, "noise_multiplier": 6.0}, GaussianDP(0.5, JOINED)),
]


@for_each(("name", "given", "claim"), CLAIMS)
def test_claims_follow_the_parameters(name: str, given: dict[str, Any], claim: Claim) -> None:
    found = find(name).claim(given)
    assert (type(found), found.relation, found.delta) == (type(claim), claim.relation, claim.delta)
    assert found.promised(found.delta) == pytest.approx(claim.promised(claim.delta), rel=1e-5)


@for_each("entry", ALL, ids=named)
def test_the_default_pair_shows_the_verdict(entry: Entry) -> None:
    """Exact, no chance involved: a broken entry exceeds its claim there, a sound one keeps it."""
    pair, claim = entry.pair, entry.claim()
    pair.check(claim.relation)
    if entry.name in BY_NIGHT and not NIGHTLY:
        return
    loss = entry.true_loss(pair.first, pair.second)
    assert loss is not None
    promised = claim.promised(claim.delta)
    least = LOOSE if entry.name.startswith("sparse_approximate") else SHOWN
    assert loss > 1.3 * promised if entry.broken else least * promised < loss <= promised * (1 + 1e-12)
    if NIGHTLY or not entry.name.startswith(SLOW):
        assert loss == pytest.approx(entry.true_loss(pair.second, pair.first))
        assert entry.true_loss(pair.first, pair.first) == pytest.approx(0.0, abs=1e-12)


def test_an_epsilon_is_only_known_of_a_claim_on_one() -> None:
    assert find("gaussian_zcdp").true_loss(10, 9) == pytest.approx(1.0)
    assert find("gaussian_zcdp").true_epsilon(10, 9) is None


@for_each("entry", ALL, ids=named)
def test_the_sampler_gives_any_number_of_runs_and_leaves_the_data_alone(entry: Entry) -> None:
    data = entry.default_pair[0]
    before = repr(data)
    call = entry.open().call
    for bits, sizes in ((np.random.SFC64, (1, 2, 777)), (np.random.PCG64, (9,)), (np.random.MT19937, (9,))):
        for runs in sizes:
            outputs = call(data, runs, np.random.Generator(bits(1)))
            assert len(outputs) == runs
            again = call(data, runs, np.random.Generator(bits(1)))
            np.testing.assert_array_equal(np.ma.getdata(outputs), np.ma.getdata(again))  # a NaN is one
            assert np.array_equal(np.ma.getmaskarray(outputs), np.ma.getmaskarray(again))
    assert repr(data) == before


def test_importing_the_catalogue_stays_light() -> None:
    code = (
        "import sys, dpaudit.catalogue as c; c.entries(); print([m for m in ('scipy', 'joblib') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_twin_made_of_its_parent_is_replayed_at_its_own_parameters() -> None:
    for name in ("exponential_mechanism.cut_off", "randomised_response.flipped", "k_randomised_response.binary_keep"):
        entry = find(name)
        assert written(entry.program) is not entry.program, name
        found = replay(entry.program, list(entry.default_pair), "all", parameters=entry.values()).upper_bound()
        assert found.epsilon_upper == pytest.approx(entry.true_loss(*entry.default_pair)), name


def test_an_edited_program_is_what_its_parent_is_but_for_the_edit() -> None:
    sparse = find("sparse")
    parent, kept, halts = (each.describe().excerpt for each in (sparse, sparse.threshold_kept, sparse.printed_halt))
    again = [place for place, line in enumerate(parent) if line.startswith("            noisy_threshold =")]
    assert kept[1:] == tuple(line for place, line in enumerate(parent) if place not in (0, *again))
    assert halts[1:] == tuple(line.replace("count >= c", "count > c") for line in parent[1:])
    assert halts[0] == parent[0].replace("_sparse", "_printed_halt")
    assert len(again) == 1
    assert halts != parent
    with pytest.raises(ValueError, match=r"_sparse does not have all of .*'count < c'"):
        edited(sparse.program, "_other", {"count >= c": "count > c", "count < c": "count <= c"})


def test_every_edited_program_has_a_source_of_its_own() -> None:
    """`inspect` finds it by the name of its file, which no other may have; it is what runs."""
    programs = {program for each in ALL if hasattr(program := written(each.program), "edit_of")}
    assert len({program.__code__.co_filename for program in programs}) == len(programs) >= 55
    for program in programs:
        in_file = getattr(sys.modules[program.__module__], program.edit_of.__name__)
        assert in_file is program.edit_of
        assert inspect.getsource(program.__code__).startswith(f"def {program.__name__}(")
        assert inspect.getsource(program.__code__) != inspect.getsource(in_file)
