"""The regression of an outcome in the report: closed forms, and the sentence beside it."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from skcoral import CORAL
from skcoral.exceptions import SingularCorrelationWarning
from skcoral.show import report
from skcoral.show.report.regression import least_squares, regressions


def collinear(n=60, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        rng.normal(size=(n, p)) + 2.0 * rng.normal(size=(n, 1)), columns=[f"x{j}" for j in range(p)]
    )
    y = X.to_numpy() @ np.arange(1.0, p + 1) + rng.normal(size=n) + 5.0
    return X, y


def test_one_regressor_has_the_t_value_of_its_correlation():
    # t = r √(n − 2) / √(1 − r²), and R² = r².
    rng = np.random.default_rng(1)
    x = rng.normal(size=40)
    y = 100.0 - 0.5 * x + rng.normal(size=40)
    r = np.corrcoef(x, y)[0, 1]
    fit = least_squares(1e6 + 1e3 * x[:, None], y)
    assert fit.r_squared == pytest.approx(r**2, abs=1e-12)
    assert fit.t[0] == pytest.approx(r * np.sqrt(38) / np.sqrt(1 - r**2), rel=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_normal_equations(seed):
    X, y = collinear(seed=seed)
    A = np.column_stack([np.ones(len(X)), X])
    inverse = np.linalg.inv(A.T @ A)
    b = inverse @ A.T @ y
    rest = y - A @ b
    error = np.sqrt(rest @ rest / (len(y) - A.shape[1]) * np.diag(inverse))
    fit = least_squares(X, y)
    np.testing.assert_allclose(fit.t, (b / error)[1:], rtol=1e-9)
    assert fit.r_squared == pytest.approx(1 - rest @ rest / ((y - y.mean()) ** 2).sum())


def test_cases_without_t_values():
    X, y = collinear()
    X = X.to_numpy()
    assert least_squares(np.column_stack([X, X.sum(axis=1)]), y) is None
    assert least_squares(X[:5], y[:5]) is None
    assert least_squares(X, X.sum(axis=1)) is None
    assert least_squares(X, np.ones(len(X))) is None
    assert least_squares(np.column_stack([X, np.ones(len(X))]), y) is None


def test_the_fit_is_the_same_on_the_outputs():
    X, y = collinear()
    both = regressions(CORAL(max_vif=2).fit(X), X, y)
    assert both.on_outputs.r_squared == pytest.approx(both.on_variables.r_squared, abs=1e-10)
    assert not np.allclose(both.on_outputs.t, both.on_variables.t, rtol=0.1)


def test_rows_without_an_outcome_are_left_out_of_the_regression():
    X, y = collinear()
    coral = CORAL(0.9).fit(X)
    some = y.copy()
    some[::7] = np.nan
    both = regressions(coral, X, some)
    known = np.isfinite(some)
    assert both.n_rows == known.sum()
    np.testing.assert_allclose(both.on_variables.t, least_squares(X[known], y[known]).t)


def test_the_page_shows_both_columns_of_t_values_and_says_what_they_are_not():
    X, y = collinear()
    coral = CORAL(max_vif=2).fit(X)
    facts = report.gather(coral, X=X, y=y, outcome="sales <b>", n_points=0, folds=0)
    page = report.render(facts)
    assert "sales &lt;b&gt;" in page
    assert "not evidence" in page
    section = page[page.index("Regression of") :]
    both = facts.regressions
    for name, before, after in zip(X, both.on_variables.t, both.on_outputs.t, strict=True):
        row = re.search(rf'title="{name}".*?</tr>', section, re.S)[0]
        assert f"<td>{before:+.1f}</td><td>{after:+.1f}</td>" in row
        assert ("↔" in row) == (before * after < 0)
    assert both.turned.sum() == section.count("<td>↔</td>")
    assert f"R² is {both.on_variables.r_squared:.4f}" in section


def test_an_effect_of_zero_has_no_sign():
    X, y = collinear()
    A = np.column_stack([np.ones(len(X)), X])
    y = X["x1"] + y - A @ np.linalg.lstsq(A, y, rcond=None)[0]  # t is ±1e-14 but for x1
    coral = CORAL(1.0).fit(X)
    facts = report.gather(coral, X=X, y=y, outcome="y", n_points=0, folds=0)
    assert not facts.regressions.turned.any()
    assert "-0.0" not in report.render(facts)


@pytest.mark.filterwarnings("ignore::skcoral.exceptions.NotCertifiedWarning")
def test_pages_without_the_table_say_why():
    X, y = collinear()
    weights = np.linspace(1, 2, len(X))
    coral = CORAL(0.9).fit(X, sample_weight=weights)
    known = {"sample_weight": weights}
    facts = report.gather(coral, X=X, y=y, known=known, outcome="sales", n_points=0, folds=0)
    assert facts.regressions is None
    assert "No regression of sales: rows are weighted." in facts.notes
    X["total"] = X.sum(axis=1)
    with pytest.warns(SingularCorrelationWarning):
        coral = CORAL(0.8).fit(X)
    facts = report.gather(coral, X=X, y=y, outcome="sales", n_points=0, folds=0)
    assert facts.regressions is None
    assert "linearly dependent" in " ".join(facts.notes)
    assert "Regression of" not in report.render(facts)
