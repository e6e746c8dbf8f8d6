"""Errors and warnings, one class for each reason; messages name the variables concerned.

Errors are ``CoralError`` and, as a rule, ``ValueError``:

>>> from skcoral import decorrelate, threshold
>>> from skcoral.exceptions import CoralError, NotCertifiedWarning
>>> try:
...     decorrelate([[1.0, 0.8], [0.8, 1.0]], rho_min=1.5)
... except CoralError as error:
...     print(f"{type(error).__name__}: {error}")
InvalidArgumentError: A fidelity floor is a correlation between 0 and 1; got 1.5 for every variable.

Warnings come with an answer and are filtered as usual. To treat an answer without a proof as an
error:

>>> import warnings
>>> warnings.simplefilter("error", NotCertifiedWarning)
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence


class CoralError(Exception):
    """Base of every error raised on purpose by this package."""


class InvalidCorrelationError(CoralError, ValueError):
    """The matrix is not a usable correlation matrix: its shape, symmetry, diagonal or entries."""


class SingularCorrelationError(InvalidCorrelationError):
    """Some variables are linear combinations of others, so no exact decorrelator exists.

    Attributes
    ----------
    relations : list of str
        One linear relation per null direction, such as ``"total = a + b"``.
    redundant : list of str
        Variables that the others determine, one per relation: without them nothing is dependent.
    """

    def __init__(
        self, message: str, relations: Sequence[str] = (), redundant: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.relations, self.redundant = list(relations), list(redundant)


class InvalidArgumentError(CoralError, ValueError):
    """An argument that is no matrix or table cannot be used: floors, a budget, a support."""


class InfeasibleError(CoralError, ValueError):
    """No transformation satisfies what was asked; the message says why."""


class CertificateError(CoralError, ValueError):
    """A certificate does not fit the matrix or the result it is meant to prove."""


class InvalidTableError(CoralError, ValueError):
    """A data table cannot be used: constant columns, missing values, text, too few rows."""


class TooLargeError(InvalidTableError):
    """An input needs more room or time than a limit allows; see :mod:`skcoral.core.limits`."""


class ModelFileError(CoralError, ValueError):
    """A model or moments file is truncated, altered or of an unknown version."""


class RoundingWarning(UserWarning):
    """Rounding makes rows differ from what is proved for their matrix; the message has figures."""


class NotCertifiedWarning(UserWarning):
    """The answer is feasible but its optimality is not proved; the message quotes the open gap."""


class SingularCorrelationWarning(UserWarning):
    """The rank is below the number of variables, so that some residual correlation must remain."""


class LeastNormWarning(UserWarning):
    """Outputs do not determine the rows: the rows of least norm with these outputs are returned."""


class SkippedWindowsWarning(UserWarning):
    """Some windows or groups have no model; the message says how many, and why."""


class ConfidenceWarning(UserWarning):
    """The rows are too few for a promise about the population with the confidence asked for."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the caller's own code: the first one outside this package."""
    package = __name__.partition(".")[0]
    level, frame = 1, sys._getframe(1)
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] == package
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)
