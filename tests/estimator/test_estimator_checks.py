"""scikit-learn's own checks of what an estimator is."""

import warnings

import sklearn
from sklearn.covariance import ShrunkCovariance
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from skcoral import CORAL
from skcoral.exceptions import SingularCorrelationWarning

# Weights are aweights of numpy.cov: standard deviations are not those of repeated rows.
REPEATED = {"check_sample_weight_equivalence_on_dense_data": "weights do not count rows"}
# Estimators of covariance matrices know no weights.
REFUSED = REPEATED | {"check_sample_weights_not_overwritten": "unequal weights are refused"}


@parametrize_with_checks(
    [
        CORAL(covariance="LedoitWolf"),
        CORAL(0.5, covariance=ShrunkCovariance(shrinkage=0.3), output_scale="original"),
    ],
    expected_failed_checks=lambda estimator: REFUSED,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_scikit_learns_checks_without_covariance():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.SkipTestWarning)
        # one check fits 27 rows of 30 columns
        warnings.simplefilter("ignore", SingularCorrelationWarning)
        outcomes = check_estimator(CORAL(), expected_failed_checks=REPEATED, on_fail=None)
    failed = {o["check_name"]: o["exception"] for o in outcomes if o["status"] == "failed"}
    assert not failed
    assert {o["check_name"] for o in outcomes if o["status"] == "xfail"} == set(REPEATED)
    assert len(outcomes) > 40
