"""scikit-learn's own checks of what an estimator is."""

import warnings

import sklearn
from sklearn.covariance import ShrunkCovariance
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from skcoral import CORAL
from skcoral.exceptions import SingularCorrelationWarning


@parametrize_with_checks(
    [
        CORAL(covariance="LedoitWolf"),
        CORAL(0.5, covariance=ShrunkCovariance(shrinkage=0.3), output_scale="original"),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_scikit_learns_checks_without_shrinkage():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.SkipTestWarning)
        # one check fits 27 rows of 30 columns
        warnings.simplefilter("ignore", SingularCorrelationWarning)
        outcomes = check_estimator(CORAL(), on_fail=None)
    failed = {o["check_name"]: o["exception"] for o in outcomes if o["status"] == "failed"}
    assert not failed
    assert len(outcomes) > 40
