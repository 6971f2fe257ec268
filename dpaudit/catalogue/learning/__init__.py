"""Learning: models fitted to private data."""

from dpaudit.catalogue.learning.descent import (
    dp_gradient_descent,
    dp_gradient_descent_iterates,
    dp_sgd,
    dp_sgd_fixed_batches,
    dp_sgd_iterates,
    gradient_descent,
)
from dpaudit.catalogue.learning.descent.training import private_training
from dpaudit.catalogue.learning.objective_noise import (
    gaussian_output_perturbation,
    objective_perturbation,
    output_perturbation,
)
from dpaudit.catalogue.learning.queries import sq_learner, statistical_queries
from dpaudit.catalogue.learning.regression import (
    exponential_fit,
    noisy_stats,
    regression_from_sums,
    ridge_output_perturbation,
)

ENTRIES = (
    *(statistical_queries, sq_learner, output_perturbation, gaussian_output_perturbation),
    *(ridge_output_perturbation, objective_perturbation, exponential_fit, regression_from_sums, noisy_stats),
    *(gradient_descent, dp_gradient_descent, dp_gradient_descent_iterates, dp_sgd, dp_sgd_iterates),
    *(dp_sgd_fixed_batches, private_training),
)
