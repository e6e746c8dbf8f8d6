"""Models and moments as files: JSON that anyone can read, nothing that can run.

A loaded model is judged before it is used: its parts have to be about the same columns, and its
answer has to pass :func:`skcoral.certificates.check` with the correlations in the file. Of a
thousand columns that takes half of the time of loading.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import sklearn

from skcoral._version import __version__
from skcoral.certificates import check
from skcoral.certificates.codec import DAMAGED, RESULTS, Codec, sealed, unsealed
from skcoral.core.deficiency import Deficiency, Relation
from skcoral.core.display import printable
from skcoral.core.files import replacing
from skcoral.core.limits import read_file
from skcoral.core.results import Decorrelation, Threshold
from skcoral.data.correlation import CorrelationEstimate
from skcoral.data.effects import Measured
from skcoral.data.moments import SMALLEST_SPREAD, Moments
from skcoral.data.wide import RowMoments
from skcoral.estimator import CORAL
from skcoral.exceptions import ModelFileError, TooLargeError

FORMAT_VERSION = 4
_MODEL, _MOMENTS = "scikit-coral model", "scikit-coral moments"
_PARTS = {"versions", "settings", "has_names", "estimate", "result", "threshold", "moments"}
_CODEC = Codec(*RESULTS.records.values(), CorrelationEstimate, Deficiency, Measured, Relation)


def save_model(model: CORAL, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a JSON file, whole or not at all.

    The file holds the settings, the column names, means, standard deviations, the transformation,
    its certificate and the moments, so that the model read back transforms to the last bit alike
    and can go on learning with ``partial_fit``. An existing file is replaced.

    Parameters
    ----------
    model : CORAL
        Fitted.
    path : path
        Where to write.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL
    >>> from skcoral.models import load_model, save_model
    >>> X = load_wine().data
    >>> path = tempfile.mkdtemp() + "/wine.json"
    >>> save_model(CORAL(rho_min=0.8).fit(X), path)
    >>> load_model(path)
    CORAL(rho_min=0.8)
    """
    text = model_json(model)
    with replacing(path) as stream:
        stream.write(text.encode())


def model_json(model: CORAL) -> str:
    """The text that :func:`save_model` writes, for those who have no file to write to."""
    if not isinstance(model, CORAL):
        raise ModelFileError(
            f"A model file holds a fitted CORAL, got {type(model).__name__}. Of a pipeline or a "
            "search, save the CORAL in it, such as pipeline[-1]."
        )
    estimate = model.estimate_  # asks for the solution, should it be pending
    content = {
        "versions": _versions(),
        "settings": model.get_params(deep=False),
        "has_names": hasattr(model, "feature_names_in_"),
        "estimate": estimate,
        "result": model.result_,
        # of a singular table, only if it was asked for
        "threshold": model.__dict__.get("threshold_"),
        "moments": model.moments_.state(),
    }
    try:
        settings = {name: _CODEC.encode(v, name) for name, v in content.pop("settings").items()}
        return sealed(_MODEL, FORMAT_VERSION, {"settings": settings, **_CODEC.encode(content)})
    except ValueError as error:
        raise ModelFileError(f"A model that cannot be written: {error}.") from error


def load_model(path: str | os.PathLike[str]) -> CORAL:
    """Read an estimator that :func:`save_model` wrote.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    CORAL
        Fitted, as it was saved.

    Raises
    ------
    ModelFileError
        The file is no model, is truncated or altered, or was written by a later format.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL
    >>> from skcoral.models import load_model, save_model
    >>> X = load_wine().data
    >>> model, path = CORAL().fit(X), tempfile.mkdtemp() + "/wine.json"
    >>> save_model(model, path)
    >>> bool((load_model(path).transform(X) == model.transform(X)).all())
    True
    """
    with _reading(path) as data:
        content = unsealed(data, _MODEL, FORMAT_VERSION, _PARTS)
        estimate = _CODEC.decode(content["estimate"], CorrelationEstimate)
        result = _CODEC.decode(content["result"], Decorrelation)
        threshold = _CODEC.decode(content["threshold"], Threshold | None)
        state = _CODEC.decode(content["moments"], dict)
        moments = (RowMoments if "deviations" in state else Moments).from_state(state)
        _check_agreement(estimate, result, moments)
        for claimed in (result, threshold):
            problems = () if claimed is None else check(claimed, estimate.R).problems
            if problems:
                raise ValueError(f"its answer is not true of its correlations: {problems[0]}")
        return CORAL(**_CODEC.decode(content["settings"], dict))._restore(
            estimate=estimate,
            result=result,
            threshold=threshold,
            moments=moments,
            has_names=content["has_names"] is True,
        )


def save_moments(moments: Moments, path: str | os.PathLike[str]) -> None:
    """Write moments to a JSON file, to be merged elsewhere.

    Sums over rows leave the site; rows do not. An existing file is replaced.

    Parameters
    ----------
    moments : Moments
        Of the rows at this site.
    path : path
        Where to write.

    Examples
    --------
    >>> import tempfile
    >>> from skcoral.datasets import load_wine
    >>> from skcoral.models import load_moments, save_moments
    >>> from skcoral.data.moments import Moments, merge_all
    >>> wine, folder = load_wine(), tempfile.mkdtemp()
    >>> save_moments(Moments.from_rows(wine.data[:80], names=wine.names), f"{folder}/one.json")
    >>> save_moments(Moments.from_rows(wine.data[80:], names=wine.names), f"{folder}/two.json")
    >>> files = [f"{folder}/one.json", f"{folder}/two.json"]
    >>> merge_all(load_moments(path) for path in files).n_rows
    178
    """
    content = _CODEC.encode({"versions": _versions(), "moments": moments.state()})
    with replacing(path) as stream:
        stream.write(sealed(_MOMENTS, FORMAT_VERSION, content).encode())


def load_moments(path: str | os.PathLike[str]) -> Moments:
    """Read moments that :func:`save_moments` wrote.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Moments
        To be merged with others, or fitted: ``CORAL().fit_moments(moments)``.

    Raises
    ------
    ModelFileError
        The file holds no moments, is truncated or altered, or was written by a later format.

    Examples
    --------
    >>> import tempfile
    >>> from skcoral.data.moments import Moments
    >>> path = tempfile.mkdtemp() + "/site.json"
    >>> save_moments(Moments.from_rows([[1.0, 2.0], [3.0, 5.0]]), path)
    >>> load_moments(path).n_rows
    2
    """
    with _reading(path) as data:
        content = unsealed(data, _MOMENTS, FORMAT_VERSION, {"versions", "moments"})
        return Moments.from_state(_CODEC.decode(content["moments"], dict))


@contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The content of a file; what is wrong with it is told with its name and what to do."""
    label = printable(str(path))
    try:
        data = read_file(path, label)  # an error of the disk is told as such
    except TooLargeError as error:
        raise ModelFileError(str(error)) from error
    try:
        yield data
    except DAMAGED as error:
        reason = str(error)[:300].rstrip(".")
        raise ModelFileError(
            f"{label}: {reason}. Get the file again from where it came: it is truncated or altered."
        ) from error


def _versions() -> dict[str, str]:
    return {
        "scikit-coral": __version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
    }


def _check_agreement(
    estimate: CorrelationEstimate, result: Decorrelation, moments: Moments
) -> None:
    """Refuse parts that are about different columns, or that no table leads to."""
    p = moments.n_features
    if estimate.names != moments.names or estimate.R.shape != (p, p):
        raise ValueError("its parts are about different columns")
    for name, array in (("mean", estimate.mean), ("scale", estimate.scale)):
        if array.shape != (p,) or not np.isfinite(array).all():
            raise ValueError(f"the {name} must be one finite number per column")
    if not (estimate.scale >= SMALLEST_SPREAD).all():
        raise ValueError("a scale is zero, negative, or too small for any table")
    measured, k = result.on_rows, len(result.names)
    if measured is not None and (measured.names != result.names or measured.fidelity.shape != (k,)):
        raise ValueError("what was measured on its rows is about other outputs")
