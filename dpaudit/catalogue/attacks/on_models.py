"""Attacks on logistic regression: who joined, what stands in a record, and whether it was used.

At the optimum the gradients of all records and the regulariser cancel. A record's gradient points against its
label * features, and is longer the worse it fits: with a 1 for the first feature it gives the whole record away.
"""

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.catalogue.attacks.attack import Attack, Guess
from dpaudit.catalogue.entry import Source
from dpaudit.catalogue.optimum import LOGISTIC, signed
from dpaudit.catalogue.releases.models import Records, fit, noisy_models, population
from dpaudit.data import AdjacentPair


def last_pull(models: Reals, others: Records, weight: float) -> Reals:
    """From optima (run, feature) and all records but one: its label * features, times how badly it fits.

    >>> people = population(9, 2, 0)
    >>> (last_pull(fit(people, 1.0)[None], people[:-1], 1.0) / signed(people)[-1]).round(3)
    array([[0.451, 0.451, 0.451]])
    """
    towards = signed(others)
    return np.asarray((len(others) + 1) * weight * models + LOGISTIC.slope(models @ towards.T) @ towards)


def joined_pull(models: Reals, people: int, weight: float, public: Records) -> Reals:
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
