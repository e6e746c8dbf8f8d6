"""Models and moments as files: JSON that anyone can read, nothing that can run.

A file carries its format, its version and a checksum of its content. The checksum finds
truncation and accidental changes; it is no signature against deliberate ones.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import platform
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from skcoral._version import __version__
from skcoral.certificates.json_values import no_constant
from skcoral.core.display import printable
from skcoral.core.files import replacing
from skcoral.core.limits import current, read_file
from skcoral.core.results import Decorrelation, Threshold
from skcoral.data.correlation import CorrelationEstimate
from skcoral.data.moments import Moments
from skcoral.data.wide import RowMoments
from skcoral.estimator import CORAL
from skcoral.exceptions import ModelFileError, TooLargeError
from skcoral.models.decoding import ARRAY_KINDS, RECORDS, check_agreement, decoded
from skcoral.tables.sources import DAMAGED

FORMAT_VERSION = 3
_MODEL, _MOMENTS = "scikit-coral model", "scikit-coral moments"


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
        "settings": {name: _coded(v, name) for name, v in model.get_params(deep=False).items()},
        "has_names": hasattr(model, "feature_names_in_"),
        "estimate": _coded(estimate, "estimate"),
        "result": _coded(model.result_, "result"),
        # of a singular table, only if it was asked for
        "threshold": _coded(model.__dict__.get("threshold_"), "threshold"),
        "moments": _coded(model.moments_.state(), "moments"),
    }
    return _enveloped(_MODEL, content)


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
    label = printable(str(path))
    content = _read_json(_MODEL, label, _bytes_of(path))
    try:
        settings = {name: decoded(value) for name, value in content["settings"].items()}
        estimate = decoded(content["estimate"], CorrelationEstimate)
        result = decoded(content["result"], Decorrelation)
        threshold = decoded(content["threshold"], Threshold | None)
        state = decoded(content["moments"], dict)
        moments = (RowMoments if "deviations" in state else Moments).from_state(state)
        check_agreement(estimate, result, threshold, moments)
        return CORAL(**settings)._restore(
            estimate=estimate,
            result=result,
            threshold=threshold,
            moments=moments,
            has_names=content["has_names"] is True,
        )
    except ModelFileError as error:
        if str(error).startswith(label):
            raise
        raise ModelFileError(f"{label}: {error} Get the file again from where it came.") from error
    except (*DAMAGED, MemoryError) as error:
        raise _unusable(label, error) from error


def save_moments(moments: Moments, path: str | os.PathLike[str]) -> None:
    """Write moments to a ``.json`` or ``.npz`` file, to be merged elsewhere.

    Sums over rows leave the site; rows do not. An existing file is replaced.

    Parameters
    ----------
    moments : Moments
        Of the rows at this site.
    path : path
        Where to write; its ending says how.

    Examples
    --------
    >>> import tempfile
    >>> from skcoral.datasets import load_wine
    >>> from skcoral.models import load_moments, save_moments
    >>> from skcoral.data.moments import Moments, merge_all
    >>> wine, folder = load_wine(), tempfile.mkdtemp()
    >>> save_moments(Moments.from_rows(wine.data[:80], names=wine.names), f"{folder}/one.json")
    >>> save_moments(Moments.from_rows(wine.data[80:], names=wine.names), f"{folder}/two.npz")
    >>> files = [f"{folder}/one.json", f"{folder}/two.npz"]
    >>> merge_all(load_moments(path) for path in files).n_rows
    178
    """
    path = Path(path)
    if path.suffix not in (".json", ".npz"):
        label = printable(str(path))
        raise ModelFileError(f"{label}: moments are written to a .json or a .npz file.")
    state = moments.state()
    with replacing(path) as stream:
        if path.suffix == ".npz":
            np.savez(stream, format=f"{_MOMENTS} {FORMAT_VERSION}", **state)
        else:
            content = {"versions": _versions(), "moments": _coded(state, "moments")}
            stream.write(_enveloped(_MOMENTS, content).encode())


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
    path, label = Path(path), printable(str(path))
    data = _bytes_of(path)  # an error of the disk is told as such, one of the content is not
    try:
        if path.suffix == ".json":
            content = _read_json(_MOMENTS, label, data)
            return Moments.from_state(decoded(content["moments"]))
        _refuse_large_arrays(label, data)
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            if str(arrays["format"]) != f"{_MOMENTS} {FORMAT_VERSION}":
                raise ModelFileError(
                    f"{label}: expected {_MOMENTS} of version {FORMAT_VERSION}, found "
                    f"{str(arrays['format'])!r}."
                )
            return Moments.from_state({**arrays, "names": arrays["names"].tolist()})
    except ModelFileError:
        raise
    except (*DAMAGED, MemoryError) as error:
        raise _unusable(label, error) from error


def _enveloped(kind: str, content: dict[str, Any]) -> str:
    envelope = {"format": kind, "version": FORMAT_VERSION, "checksum": "", "content": content}
    envelope["checksum"] = _checksum(json.dumps(envelope, allow_nan=False))
    return json.dumps(envelope, allow_nan=False) + "\n"


def _bytes_of(path: str | os.PathLike[str]) -> bytes:
    """The content of a file that is not larger than a model can be."""
    try:
        return read_file(path, printable(str(path)))
    except TooLargeError as error:
        raise ModelFileError(str(error)) from error


def _refuse_large_arrays(label: str, data: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    if size > current().model_bytes:
        raise ModelFileError(
            f"{label}: the arrays unpack to {size:,} bytes. {current().remedy('model_bytes')}"
        )


def _read_json(kind: str, label: str, data: bytes) -> dict[str, Any]:
    try:
        text = data.decode("utf-8")
        envelope = json.loads(text, parse_constant=no_constant, parse_int=_whole)
        found = _checksum(text) if isinstance(envelope, dict) and "content" in envelope else ""
    except (*DAMAGED, MemoryError) as error:
        raise _unusable(label, error) from error
    if not isinstance(envelope, dict) or envelope.get("format") != kind:
        came = envelope.get("format") if isinstance(envelope, dict) else type(envelope).__name__
        raise ModelFileError(f"{label}: not a {kind} file (its format is {str(came)[:60]!r}).")
    if type(envelope.get("version")) is not int or envelope["version"] != FORMAT_VERSION:
        raise ModelFileError(
            f"{label}: format version {str(envelope.get('version'))[:60]}; this release reads "
            f"version {FORMAT_VERSION}. Fit and save again, or use the release that wrote it."
        )
    content = envelope.get("content")
    if not isinstance(content, dict) or envelope.get("checksum") != found:
        raise ModelFileError(
            f"{label}: the content does not fit its checksum, so the file was altered after it was "
            "written. Get it again from where it came."
        )
    return content


def _checksum(text: str) -> str:
    """Digest of the content as written, digit by digit; white space does not matter."""
    content = json.loads(text, parse_float=str, parse_int=str)["content"]
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def _unusable(label: str, error: Exception) -> ModelFileError:
    return ModelFileError(
        f"{label}: the file is truncated or not what its name says "
        f"({type(error).__name__}: {str(error)[:300]}). Get it again from where it came."
    )


def _whole(text: str) -> int:
    """Whole numbers are counts and seeds; longer ones only take time and memory."""
    if len(text) > 40:
        raise ValueError(f"{text[:20]}… is a whole number of {len(text)} digits")
    return int(text)


def _versions() -> dict[str, str]:
    return {
        "scikit-coral": __version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
    }


def _coded(value: Any, where: str) -> Any:
    """Plain JSON for a value; what is not plain becomes an object with one ``$`` key.

    Python writes the shortest decimal that reads back as the same float, so no bit is lost.
    """
    if value is None or isinstance(value, bool | int | float | str):
        if isinstance(value, float) and not np.isfinite(value):
            return {"$float": repr(value)}
        return value
    if isinstance(value, np.generic):
        return _coded(value.item(), where)
    if isinstance(value, np.ndarray) and value.dtype.kind in ARRAY_KINDS:
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            return {"$array": [v.hex() for v in value.ravel().tolist()], "shape": value.shape}
        return {"$array": value.tolist(), "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, Mapping):
        items = [[_coded(k, where), _coded(v, where)] for k, v in value.items()]
        return {"$map": items}
    if isinstance(value, tuple):
        return {"$tuple": [_coded(v, where) for v in value]}
    if isinstance(value, list):
        return [_coded(v, where) for v in value]
    if type(value).__name__ in RECORDS:
        fields = dataclasses.fields(value)
        record = {f.name: _coded(getattr(value, f.name), where) for f in fields}
        return {"$record": type(value).__name__, "fields": record}
    if hasattr(value, "columns") and hasattr(value, "to_numpy"):
        columns = [str(name) for name in value.columns]
        rows = list(map(str, value.index)) if hasattr(value, "index") else None
        cells = value.to_numpy()
        cells = cells.tolist() if cells.dtype == object else cells  # text beside numbers: rows
        return {"$frame": _coded(cells, where), "columns": columns, "index": rows}
    if hasattr(value, "index") and hasattr(value, "to_dict"):
        return {"$series": [_coded(v, where) for v in value], "index": list(map(str, value.index))}
    raise ModelFileError(
        f"{where} holds a {type(value).__name__}, which has no place in a model file; use numbers, "
        "text, lists, dicts or arrays of numbers."
    )
