"""Validation of matrices: correlations, composites and weights of pairs, and its messages."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import null_space
from scipy.sparse import csr_array

from skcoral import decorrelate, maximize_fidelity
from skcoral.core import problem as m
from skcoral.core.composites import check_anchors
from skcoral.core.deficiency import linear_relations
from skcoral.core.linalg import correlation_of_covariance
from skcoral.exceptions import (
    InvalidArgumentError,
    InvalidCorrelationError,
    SingularCorrelationError,
    SingularCorrelationWarning,
)

NAMES = ("height", "weight", "age", "income")


def assert_relations_hold(relations, columns):
    """Each variable is the combination of the others that its relation says."""
    for relation in relations:
        combined = sum(c * columns[:, int(name[1:])] for c, name in relation.terms)
        variable = columns[:, int(relation.variable[1:])]
        assert np.abs(variable - combined).max() < 1e-5 * np.abs(variable).max()


def table(n=60, p=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) @ rng.normal(size=(p, p)) * 10.0 ** rng.uniform(-3, 3, p) + 50


def good(p=4, seed=0):
    return np.corrcoef(table(20 * p, p, seed).T)


def with_condition(p, condition, seed):
    """Correlation matrix with a condition number of roughly the one asked for."""
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(p, p)))[0]
    return correlation_of_covariance((Q * np.geomspace(1.0, 1.0 / condition, p)) @ Q.T)


class TestCorrelation:
    def test_a_good_matrix_comes_back_unchanged_and_apart(self):
        R = good()
        R = 0.5 * (R + R.T)
        np.fill_diagonal(R, 1.0)
        out = m.check_semidefinite(R, NAMES).regular()
        assert out.dtype == np.float64
        assert np.array_equal(out, R)
        assert not np.shares_memory(out, R)

    @pytest.mark.parametrize("place", [(0, 1), (2, 2)])
    def test_rounding_is_averaged_out_and_more_is_refused(self, place):
        R = good()
        R[place] += 0.5e-8
        out = m.check_correlation(R)
        assert np.array_equal(out, out.T)
        assert np.array_equal(np.diag(out), np.ones(4))
        assert np.abs(out - R).max() <= 0.6e-8
        R[place] += 4.5e-8
        with pytest.raises(InvalidCorrelationError):
            m.check_correlation(R)

    @pytest.mark.parametrize(("step", "beyond"), [(5e-8, True), (0.2e-8, False)])
    def test_correlations_beyond_one(self, step, beyond):
        """A little beyond, two variables are the same."""
        with pytest.raises(InvalidCorrelationError) as caught:
            m.check_correlation([[1.0, 1 + step], [1 + step, 1.0]])
        assert ("lie in" in str(caught.value)) == beyond

    def test_single_precision_is_accepted_with_its_own_rounding(self):
        R = good().astype(np.float32)
        R[1, 1] = np.float32(1) - np.finfo(np.float32).eps
        assert np.abs(m.check_correlation(R) - R).max() < 2e-7

    def test_single_precision_singularity_is_seen_through_its_rounding(self):
        X = table().astype(np.float32)
        X = np.column_stack([X, X[:, 2]])
        with pytest.raises(SingularCorrelationError, match=r"`x4` = `x2`"):
            m.check_correlation(np.corrcoef(X.T).astype(np.float32))

    def test_covariance_is_refused_with_the_way_to_convert(self):
        C = np.cov(table().T)
        with pytest.raises(InvalidCorrelationError, match="covariance") as caught:
            m.check_semidefinite(C, NAMES).regular()
        assert "R = C / numpy.outer(sd, sd)" in str(caught.value)
        assert any(f"`{name}`" in str(caught.value) for name in NAMES)
        sd = np.sqrt(np.diag(C))
        m.check_semidefinite(C / np.outer(sd, sd), NAMES).regular()

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (np.ones((3, 2)), r"square.*\(3, 2\)"),
            (np.ones(3), r"square.*\(3,\)"),
            (np.ones((0, 0)), r"square.*\(0, 0\)"),
            (3.0, r"square.*got 3\.0"),
            ([[1.0, 0.2], [0.2]], "ragged"),
            ([[1.0, "high"], ["high", 1.0]], r"numbers; entry \(0, 1\) is the text 'high'"),
            ([["1", "0.5"], ["0.5", "1"]], r"entry \(0, 0\) is the text '1'"),
            (np.array([[1, [0.5]], [[0.5], 1]], dtype=object), r"entry \(0, 1\) is \[0\.5\]"),
            (np.eye(2).astype("M8[D]"), r"entry \(0, 0\) is datetime"),
            (np.eye(2).astype("m8[s]"), r"entry \(0, 0\) is datetime"),
            ({"a": 1}, "numbers; got {'a': 1}"),
            (np.eye(2) * 1j, "complex"),
            (None, "square.*got None"),
        ],
    )
    def test_not_a_matrix(self, value, message):
        with pytest.raises(InvalidCorrelationError, match=message):
            m.check_correlation(value)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({(2, 2): np.nan}, "1 of its entries is not, the first that of `age` itself"),
            *(({(1, 3): hole}, "2 of its.*`weight` and `income`") for hole in (np.nan, np.inf)),
            (
                dict.fromkeys([(2, 0), (2, 1), (2, 2), (2, 3)], np.nan),
                "`age` is: is it a constant column",
            ),
            (dict.fromkeys([(2, 2)], 0.0), "`age` is 0: variances"),
            (dict.fromkeys([(2, 2)], -1.0), "`age` is -1: variances"),
            ({(0, 2): -1.2}, r"`height` and `age` is -1\.2"),
            ({(0, 1): 0.9, (0, 2): -0.9, (1, 2): 0.9}, r"is -0\.8.*(`(height|weight|age)`\W+){3}C"),
        ],
    )
    def test_what_no_table_has_is_refused_by_name(self, change, message):
        R = np.eye(4)
        for (i, j), value in change.items():
            R[i, j] = R[j, i] = value
        with pytest.raises(InvalidCorrelationError, match=message) as caught:
            m.check_semidefinite(R, NAMES).regular()
        assert not isinstance(caught.value, SingularCorrelationError)

    def test_not_symmetric_names_the_worst_pair(self):
        R = good()
        R[0, 1] += 1e-6
        R[3, 2] += 1e-3
        with pytest.raises(InvalidCorrelationError, match=r"symmetric.*`age` and `income`"):
            m.check_semidefinite(R, NAMES).regular()

    @pytest.mark.parametrize("p", [2, 10, 40])
    @pytest.mark.parametrize("condition", [1e2, 1e8])
    def test_no_eigenvalues_are_computed_when_all_is_well(self, p, condition, monkeypatch):
        R = with_condition(p, condition, seed=p)
        for name in ("eigh", "eigvalsh", "svd"):
            monkeypatch.setattr(np.linalg, name, None)
        m.check_correlation(R)


class TestSingular:
    def test_duplicates_and_mirrored_columns_are_distinguished(self):
        X = table()
        X = np.column_stack([X, 3 * X[:, 0] - 5, -X[:, 1], X[:, 2] + X[:, 3]])
        R, names = np.corrcoef(X.T), np.array(list("abcdefg"))
        deficiency = m.check_semidefinite(R, names, scale=X.std(axis=0)).deficiency
        relations = [str(relation) for relation in deficiency.relations]
        assert deficiency.rank == 4
        assert len(relations) == 3
        assert "`e` = 3 `a`" in relations
        assert "`f` = -`b`" in relations
        assert any(all(f"`{name}`" in one for name in "cdg") for one in relations)
        with pytest.raises(SingularCorrelationError) as caught:
            m.check_semidefinite(R, names).regular()
        left = ~np.isin(names, caught.value.redundant)  # are the ones that can stay
        assert left.sum() == 4
        m.check_semidefinite(R[np.ix_(left, left)], names[left]).regular()

    def test_fewer_rows_than_variables(self):
        X = np.random.default_rng(3).normal(size=(10, 25))
        with pytest.raises(SingularCorrelationError, match="rank 9 of 25") as caught:
            m.check_correlation(np.corrcoef(X.T))
        assert len(caught.value.relations) == 16
        assert "and 11 more" in str(caught.value)
        assert len(str(caught.value)) < 2000

    @settings(deadline=None, max_examples=40)
    @given(p=st.integers(2, 12), condition=st.floats(10.0, 13.5), seed=st.integers(0, 2**32 - 1))
    def test_the_verdict_is_that_of_the_eigenvalues(self, p, condition, seed):
        R = with_condition(p, 10**condition, seed)
        eigenvalues = np.linalg.eigvalsh(R)
        ratio = eigenvalues[0] / eigenvalues[-1]
        if ratio > 1.01e-12:
            m.check_correlation(R)
        elif ratio < 0.99e-12:
            with pytest.raises(InvalidCorrelationError):
                m.check_correlation(R)

    @settings(deadline=None, max_examples=40)
    @given(
        p=st.integers(3, 12), k=st.integers(1, 5), n=st.integers(30, 60), seed=st.integers(0, 9999)
    )
    def test_relations_hold_in_the_table(self, p, k, n, seed):
        rng = np.random.default_rng(seed)
        free = rng.normal(size=(n, p))
        X = np.column_stack([free, free @ rng.normal(size=(p, k))])[:, rng.permutation(p + k)]
        deficiency = m.check_semidefinite(np.corrcoef(X.T)).deficiency
        assert deficiency.rank == p
        assert len(deficiency.relations) == k
        assert_relations_hold(deficiency.relations, (X - X.mean(axis=0)) / X.std(axis=0))

    def test_overlapping_sums_are_given_as_sums_that_hold(self):
        rng = np.random.default_rng(5)
        for _ in range(20):
            X = rng.normal(size=(60, 5)) * rng.uniform(0.1, 50, 5)
            sums = [X[:, :3].sum(axis=1), X[:, 2:].sum(axis=1), X.sum(axis=1)]
            X = np.column_stack([X, *sums])[:, rng.permutation(8)]
            scale = X.std(axis=0)
            relations = m.check_semidefinite(np.corrcoef(X.T), scale=scale).deficiency.relations
            assert len(relations) == 3
            assert_relations_hold(relations, X - X.mean(axis=0))
            texts = [str(relation).partition(" = ")[2] for relation in relations]
            assert any("-" not in text and " 0." not in text for text in texts)

    def test_copies_are_of_a_column_that_is_independent(self):
        X = np.random.default_rng(3).normal(size=(4, 15)) * [[1.0], [0.7], [0.5], [1e-5]]
        X[:, [9, 12]] = X[:, [2, 2]]
        A = X / np.linalg.norm(X, axis=0)
        deficiency = m.check_semidefinite(A.T @ A, list("abcdefghijklmno")).deficiency
        assert deficiency.rank == 4
        np.testing.assert_allclose(deficiency.factor.T @ deficiency.factor, A.T @ A, atol=1e-13)
        texts = [str(relation) for relation in deficiency.relations]
        assert {"j", "m"} < set(deficiency.redundant)
        assert ("`j` = `c`" in texts) == ("`m` = `c`" in texts) == ("c" not in deficiency.redundant)

    @pytest.mark.parametrize(("least", "refused"), [(-3e-12, True), (-0.3e-12, False)])
    def test_an_eigenvalue_below_zero_by_rounding(self, least, refused):
        values, vectors = np.linalg.eigh(np.full((3, 3), 0.2) + 0.8 * np.eye(3))
        values[0] = least * values[-1]
        R = correlation_of_covariance((vectors * values) @ vectors.T)
        if refused:
            with pytest.raises(InvalidCorrelationError, match="not positive definite"):
                m.check_semidefinite(R)
        else:
            assert m.check_semidefinite(R).deficiency.rank == 2

    @pytest.mark.parametrize(("share", "named"), [(3e-6, True), (0.3e-6, False)])
    def test_a_coefficient_that_is_named_in_a_dependency(self, share, named):
        null = null_space(np.array([[1.0, -1.0, share, 0.0]]))
        (relation,) = linear_relations(null.T, ["a", "b", "c", "d"])
        assert ("c" in relation.names) == named
        assert "d" not in relation.names

    def test_an_indefinite_matrix_of_ones_is_no_copy(self):
        """Its elimination ends after one step, as for a matrix of rank one."""
        R = np.where(np.eye(6) > 0, 1.0, np.where(np.indices((6, 6)).sum(0) % 2, 1.0, -1.0))
        with pytest.raises(InvalidCorrelationError, match="not positive definite"):
            m.check_correlation(R)


class TestContainers:
    @pytest.mark.parametrize("dtype", [float, object])
    def test_masked_entries_are_missing_and_not_what_lies_under_the_mask(self, dtype):
        R = np.ma.masked_array(good().astype(dtype), mask=False)
        assert np.array_equal(m.check_correlation(R), m.check_correlation(good()))
        R[1, 2] = np.ma.masked
        with pytest.raises(InvalidCorrelationError, match="between `weight` and `age`"):
            m.check_semidefinite(R, NAMES).regular()

    def test_numbers_of_other_kinds(self):
        half = Fraction(1, 2)
        for R in ([[1, half], [half, 1]], [[1, Decimal("0.5")], [Decimal("0.5"), 1]]):
            assert np.array_equal(m.check_correlation(R), [[1.0, 0.5], [0.5, 1.0]])

    def test_a_frame_brings_its_names(self):
        R = pd.DataFrame(good(), NAMES, NAMES)
        assert m.check_semidefinite(R).names == NAMES
        with pytest.raises(InvalidCorrelationError, match=r"R\.loc\[R\.columns\]"):
            m.check_correlation(R.iloc[::-1])
        message = r"row 0 of column `index` .*index_col=0\)\) is the text 'height'"
        with pytest.raises(InvalidCorrelationError, match=message):
            m.check_correlation(R.reset_index())  # a file read without its index
        R.iloc[1, 3] = np.nan
        for holes in (R, R.astype("Float64")):  # and pandas.NA
            with pytest.raises(InvalidCorrelationError, match="between `weight` and `income`"):
                m.check_correlation(holes)

    @pytest.mark.parametrize(
        ("value", "message"),
        [(csr_array(good()), r"R\.toarray\(\)"), (table(), r"numpy\.corrcoef")],
    )
    def test_what_is_easily_made_a_matrix(self, value, message):
        with pytest.raises(InvalidCorrelationError, match=message):
            m.check_correlation(value)


class TestOtherMatrices:
    def test_anchors(self):
        B = [[1, 0], [1, 0], [0, 1e-5], [0, 0]]
        assert np.array_equal(check_anchors(B, NAMES), np.array(B, dtype=float))

    @pytest.mark.parametrize(
        ("anchors", "message"),
        [
            (np.ones(4), r"4 rows.*\(4,\)"),
            (np.ones((3, 1)), r"\(3, 1\)"),
            (np.ones((4, 0)), r"\(4, 0\)"),
            (np.ones((4, 5)), r"\(4, 5\)"),
            ([[1], [np.nan], [0], [0]], "`weight` in composite 0"),
            ([[1, 0], [1, 0], [0, 0], [0, 0]], "Composite 1 has no coefficient"),
            ([[1, 3], [2, 6], [0, 0], [0, 0]], "`anchor1` = `anchor0`"),
            ([[1, 0, 1], [0, 1, 1], [0, 0, 0], [0, 0, 0]], "`anchor1` = -`anchor0`"),
        ],
    )
    def test_anchors_refused(self, anchors, message):
        with pytest.raises(InvalidArgumentError, match=message):
            decorrelate(pd.DataFrame(good(), NAMES, NAMES), 0.5, anchors=anchors)

    @pytest.mark.parametrize(("ratio", "refused"), [(3e-12, False), (0.3e-12, True)])
    def test_anchors_that_count_as_dependent(self, ratio, refused):
        """Of two composites one next to the other, by the ratio of the eigenvalues."""
        R = good()
        B = np.ones((4, 2))
        B[0, 1] += 1e-3
        Y = np.linalg.cholesky(R).T @ B
        Y /= np.linalg.norm(Y, axis=0)
        # 1 - r is half of the ratio, and proportional to the square of the step
        B[0, 1] = 1 + 1e-3 * np.sqrt(2 * ratio / (1.0 - Y[:, 0] @ Y[:, 1]))
        if refused:
            with pytest.raises(InvalidArgumentError, match="`anchor1` = `anchor0`"):
                m.Problem.of(R, anchors=B)
        else:
            m.Problem.of(R, anchors=B)

    def test_pair_weights_ignore_the_diagonal_and_rounding(self):
        W = np.full((4, 4), 2.0)
        np.fill_diagonal(W, np.nan)
        W[0, 1] += 0.5e-8
        out = m.check_pair_weights(W, NAMES)
        assert out == pytest.approx(2.0 * (1 - np.eye(4)), abs=1e-8)
        assert np.isnan(W[0, 0])
        W[0, 1] += 4.5e-8
        with pytest.raises(InvalidArgumentError, match="symmetric"):
            m.check_pair_weights(W, NAMES)

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (-np.ones((4, 4)), "negative.*`height` and `weight`"),
            (np.where(np.eye(4, k=1) > 0, np.nan, 1.0), "finite.*`height` and `weight`"),
            (np.diag([1.0, 1.0, 5.0], k=1) + 1, "symmetric.*`age` and `income`"),
            (np.ones((3, 3)), r"4 by 4.*\(3, 3\)"),
        ],
    )
    def test_pair_weights_refused(self, weights, message):
        with pytest.raises(InvalidArgumentError, match=message):
            m.check_pair_weights(weights, NAMES)


def test_a_refused_rank_is_stated_once():
    warned = pytest.warns(SingularCorrelationWarning, match="rank 1 of 2")
    with warned, pytest.raises(SingularCorrelationError) as caught:
        maximize_fidelity(np.ones((2, 2)), 2.0, criterion="vif")
    assert str(caught.value).count("rank 1 of 2") == 1
