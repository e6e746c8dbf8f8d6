"""scikit-learn's own checks of what an estimator is."""

import warnings

import sklearn
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from skcoral import CORAL
from skcoral.exceptions import (
    InvalidTableError,
)


@parametrize_with_checks(
    [
        CORAL(shrinkage="auto"),
        CORAL(shrinkage=0.1),
        CORAL(0.5, shrinkage=0.3, output_scale="original"),
        CORAL(margins="ranks", shrinkage="auto"),
        CORAL(margins="normal", shrinkage=0.2, output_scale="original"),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_scikit_learns_checks_without_shrinkage():
    # One check fits 27 rows of 30 columns. That is singular and must be refused unless shrinkage
    # is asked for, so it is the one that cannot pass here; it does in the test above.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.SkipTestWarning)
        outcomes = check_estimator(CORAL(), on_fail=None)
    failed = {o["check_name"]: o["exception"] for o in outcomes if o["status"] == "failed"}
    assert set(failed) == {"check_sample_weight_equivalence_on_dense_data"}
    (refusal,) = failed.values()
    assert isinstance(refusal, InvalidTableError)
    assert "27 rows cannot determine the correlations of 30 columns" in str(refusal)
    assert len(outcomes) > 40
