"""Attacks on averages, sums and answers: subtract what is known, average what is repeated, read what is refused."""

import math

import numpy as np

from dpaudit.base.arrays import Bools, Reals
from dpaudit.catalogue.attacks.attack import Attack, Guess
from dpaudit.catalogue.entry import Source
from dpaudit.catalogue.promises import BASSI, BOOK, CHEEMA, LOGISTIC, SARKAR, signed
from dpaudit.catalogue.releases import noisy_average, noisy_count_and_average, noisy_maxima, noisy_sum
from dpaudit.catalogue.releases.counts import HOMER, noisy_mean_vector
from dpaudit.catalogue.releases.tables import Labelled, fit, noisy_models, population
from dpaudit.data import AdjacentPair

BOB = 5  # cigarettes a day
WITHOUT_BOB = sum(noisy_count_and_average.default_pair[1])  # the same two answers, from the database without him
OTHER_GRADES = sum(noisy_average.default_pair[0][1:])
SALARY = noisy_sum.default_pair[0][-1]
OTHER_SALARIES = sum(noisy_sum.default_pair[1])


def bobs_number(outputs: Reals) -> Reals:
    """What Bob smokes: count times average, less the same of the database without him.

    >>> bobs_number(np.array([[10.0, 3.4]]))
    array([5.])
    """
    return np.asarray(np.maximum(1.0, outputs[:, 0]) * outputs[:, 1] - WITHOUT_BOB)


differencing = Attack(
    name="differencing",
    title="Differencing: the same two queries with Bob and without him",
    source=Source(f"{BASSI}, 'A differencing attack'; {SARKAR}, 'Aggregate functions'", f"{BOOK}, section 1"),
    formula="count * average, less the same without Bob; one says 'with Bob' where it is nearer to 5 than to 0",
    without=noisy_count_and_average.exact,
    private=noisy_count_and_average,
    pair=AdjacentPair(*noisy_count_and_average.default_pair, name="with Bob and his five cigarettes, or without him"),
    guess=lambda outputs: bobs_number(outputs) > BOB / 2.0,
)


def the_last_grade(averages: Reals) -> Reals:
    """The grade that n - 1 students who know their own can work out: n times the average, less theirs.

    >>> round(float(the_last_grade(np.array([6.7]))[0]), 9)
    10.0
    """
    return np.asarray(len(noisy_average.default_pair[0]) * averages - OTHER_GRADES)


colluding_students = Attack(
    name="colluding_students",
    title="Collusion: n - 1 students subtract their grades",
    source=Source("Haghtalab 2020, notes 000, 'Motivating Example'", "folklore"),
    formula="n * average, less the n - 1 grades that are known; the students say 10 where it is nearer to 10 than to 2",
    without=noisy_average.exact,
    private=noisy_average,
    pair=AdjacentPair(*noisy_average.default_pair, name="the last student has 10 points, or 2"),
    guess=lambda averages: the_last_grade(averages) > 6.0,
)


def _above_the_middle(answers: Reals) -> Bools:
    mean = answers if answers.ndim == 1 else answers.mean(axis=1)
    return np.asarray(mean > OTHER_SALARIES + SALARY / 2.0)


averaging = Attack(
    name="averaging",
    title="Averaging: the same query a hundred times",
    source=Source("Bassi 2019, notes 001, 'A differencing attack' (cont.)", "folklore"),
    formula="the mean of all answers; the attacker says 'with' where it lies above the middle between the two sums",
    without=noisy_sum.asked_again.with_parameters({"times": 100}),
    private=noisy_sum,
    pair=AdjacentPair(*noisy_sum.default_pair, name="with a salary of 10, or without"),
    guess=_above_the_middle,
)


refusal = Attack(
    name="refusal",
    title="Refusal: a query that is not answered is an answer",
    source=Source(
        f"{CHEEMA}, 'Why bother?' (query auditing)", "Kenthapadi, Mishra & Nissim 2005, Simulatable auditing"
    ),
    formula=(
        "where the largest value of all but the last person is refused, the last person has the largest, which is the "
        "first answer; with noise: where the two answers are more than 1 apart"
    ),
    without=noisy_maxima.query_auditing,
    private=noisy_maxima,
    pair=AdjacentPair([3, 7, 2, 9], [3, 9, 2, 9], name="only the last has 9, or another one too"),
    guess=lambda answers: np.ma.getmaskarray(answers)[:, 1],
    guess_private=lambda answers: answers[:, 0] - answers[:, 1] > 1.0,
)


SARKAR = "Sarkar, notes 003"
PEOPLE, ATTRIBUTES = 40, 400


def people(size: int, attributes: int, rng: np.random.Generator) -> Reals:
    """Rows of fair signs: a population in which no attribute leans to one side.

    >>> people(2, 3, np.random.default_rng(0)).shape
    (2, 3)
    """
    return np.asarray(2 * rng.integers(0, 2, (size, attributes)) - 1, np.float64)


def member_score(person: Reals, averages: Reals) -> Reals:
    """The inner product test: how far the published averages lean towards the person, over what a member adds.

    With fair signs it is 1 on average for a member and 0 for a stranger, with a variance of about n / d.

    >>> member_score(np.array([1.0, -1.0]), np.array([[0.5, -0.5]])) * 2
    array([1.])
    """
    return np.asarray(averages @ person / len(person))


def homer_advantage(size: int, attributes: int) -> float:
    """The advantage of the test on exact averages, over random members and strangers, for many attributes.

    Score times n is nearly N(1, n / d) against N(0, n / d), and the threshold lies at 1/2.

    >>> round(homer_advantage(40, 400), 4)
    0.8862
    """
    return math.erf(math.sqrt(attributes / size) / 2.0 / math.sqrt(2.0))


_DRAWN = people(PEOPLE + 1, ATTRIBUTES, np.random.default_rng(2008))
_TARGET, _STRANGER, _REST = _DRAWN[:1], _DRAWN[1:2], _DRAWN[2:]


membership_in_an_average = Attack(
    name="membership_in_an_average",
    title="Membership in an average of 400 attributes: the inner product test",
    source=Source(f"{SARKAR}, 'Aggregate functions' (membership inference attacks)", HOMER),
    formula=(
        "the inner product of her attributes with the averages; the attacker says 'member' above d / (2 n), "
        "as it is about d / n for a member and about 0 for a stranger"
    ),
    without=noisy_mean_vector.exact,
    private=noisy_mean_vector,
    pair=AdjacentPair(
        np.concatenate([_TARGET, _REST]), np.concatenate([_STRANGER, _REST]), name="she is one of the 40, or a stranger"
    ),
    guess=lambda averages: member_score(_TARGET[0], averages) > 0.5 / PEOPLE,
    runs=5_000,
)


def last_pull(models: Reals, others: Labelled, weight: float) -> Reals:
    """From optima (run, feature) and all records but one: its label * features, times how badly it fits.

    >>> people = population(9, 2, 0)
    >>> (last_pull(fit(people, 1.0)[None], people[:-1], 1.0) / signed(people)[-1]).round(3)
    array([[0.451, 0.451, 0.451]])
    """
    towards = signed(others)
    return np.asarray((len(others) + 1) * weight * models + LOGISTIC.slope(models @ towards.T) @ towards)


def joined_pull(models: Reals, people: int, weight: float, public: Labelled) -> Reals:
    """About the same of who joined, from the two models (run, 2 features) and public records of the same kind.

    Of n people the last moves the optimum by -(1 / n) H^-1 (gradient of the record + weight w), up to 1 / n^2; the
    curvature H is about that of the public records.
    """
    before, after = np.hsplit(models, 2)
    towards, centre = signed(public), before.mean(axis=0)
    bends = LOGISTIC.curvature(towards @ centre)
    curvature = weight * np.eye(len(centre)) + (towards.T * bends) @ towards / len(towards)
    return np.asarray(people * (after - before) @ curvature + weight * before)


_DATA, _SOMEBODY = noisy_models.default_pair[0], population(14, 3, 11)[-1]
_OTHER = [*_DATA[:-1], _SOMEBODY]
_WEIGHT = float(noisy_models.values()["weight"])
_PUBLIC = population(500, 3, 12)
_HERS = signed(_DATA)[-1]
_APART = _HERS - signed(_OTHER)[-1]
_MIDDLE = float(np.mean([_HERS @ fit(data, _WEIGHT) for data in (_DATA, _OTHER)]))


def _attack(name: str, title: str, paper: str, formula: str, guess: Guess) -> Attack:
    return Attack(
        name=name,
        title=title,
        source=Source("Sarkar, notes 003, 'What about machine learning models?'", paper),
        formula=formula,
        without=noisy_models.exact,
        private=noisy_models,
        pair=AdjacentPair(_DATA, _OTHER, name="she joined last, or somebody else"),
        guess=guess,
    )


membership_in_a_model = _attack(
    "membership_in_a_model",
    "Membership in a model of four coefficients: the loss on her record is low",
    "Yeom, Giacomelli, Fredrikson & Jha 2018, Privacy risk in machine learning",
    "label * <w, features> of her record, which is large where the loss is low; the attacker says 'she' above the "
    "middle of the two that the models with and without her have",
    lambda outputs: np.asarray(outputs[:, len(_HERS) :] @ _HERS > _MIDDLE),
)
model_differencing = _attack(
    "model_differencing",
    "Differencing of models: the classifier before and after she joined",
    "Zanella-Béguelin et al. 2020, Analyzing information leakage of updates to natural language models",
    "n H (after - before) + weight before, with the curvature H of public records, is about label * features of who "
    "joined; the attacker says 'she' where it leans to hers",
    lambda outputs: np.asarray(joined_pull(outputs, len(_DATA), _WEIGHT, _PUBLIC) @ _APART > 0.0),
)
model_reconstruction = _attack(
    "model_reconstruction",
    "Reconstruction from a model: all records but one are known",
    "Balle, Cherubin & Hayes 2022, Reconstructing training data with informed adversaries",
    "n weight w plus the sum of all known gradients leaves label * features of the record that is not known, times how "
    "badly it fits; the attacker says 'she' where it leans to hers",
    lambda outputs: np.asarray(last_pull(outputs[:, len(_HERS) :], _DATA[:-1], _WEIGHT) @ _APART > 0.0),
)
