"""What was asked of a solver besides the least residual, and what the caller adds to an answer."""

from __future__ import annotations

from dataclasses import dataclass

from skcoral.core.frozen import Frozen


@dataclass(frozen=True)
class Floors(Frozen):
    """The least residual for given floors.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> decorrelate([[1.0, 0.8], [0.8, 1.0]], 0.95).goal
    Floors()
    """


@dataclass(frozen=True)
class Budget(Frozen):
    """The highest common floor whose least residual is within a budget.

    Attributes
    ----------
    budget : float
        The residual that was allowed.
    rho_upper : float
        A common floor that no transformation within the budget exceeds.

    Examples
    --------
    >>> from skcoral import maximize_fidelity
    >>> answer = maximize_fidelity([[1.0, 0.8], [0.8, 1.0]], budget=0.3, criterion="worst")
    >>> answer.goal.budget, round(answer.goal.rho_upper, 6)
    (0.3, 0.951936)
    """

    budget: float
    rho_upper: float


@dataclass(frozen=True)
class VifLimit(Frozen):
    """The highest common floor at which no variance inflation factor exceeds a limit.

    Attributes
    ----------
    max_vif : float
        The largest VIF that was allowed.
    largest_vif : float
        The largest VIF of the outputs.
    rho_upper : float
        A common floor that no transformation within the limit exceeds.

    Examples
    --------
    >>> from skcoral import maximize_fidelity
    >>> maximize_fidelity([[1.0, 0.8], [0.8, 1.0]], 1.25, criterion="vif").goal.max_vif
    1.25
    """

    max_vif: float
    largest_vif: float
    rho_upper: float


Goal = Floors | Budget | VifLimit


@dataclass(frozen=True)
class Notes(Frozen):
    """What is known of an answer beyond its matrix: sentences by whoever made the matrix.

    Attributes
    ----------
    about : str
        What the certificate is about.
    is_about_rows : bool
        Whether that is the correlation of the rows (or the matrix) as given.
    guarantee : str
        What it says about the rows, where it is about something else.
    confidence : str
        What holds for the population the rows were drawn from.
    new_rows : str
        What rows that were left out of a refit keep.
    rounding : str
        What rounding leaves of the promise on the original scale.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> decorrelate([[1.0, 0.8], [0.8, 1.0]], 0.95).notes.about
    'the matrix given'
    """

    about: str = "the matrix given"
    is_about_rows: bool = True
    guarantee: str = ""
    confidence: str = ""
    new_rows: str = ""
    rounding: str = ""


@dataclass(frozen=True)
class SupportSearch(Frozen):
    """How an answer with restricted coefficients was found.

    Attributes
    ----------
    n_starts : int
        Starts of the search.
    n_best : int
        How many of them reached the best value.
    bound : str
        The name of the lower bound.
    stationarity : float or None
        Largest violation of stationarity, not measured where bounds on coefficients bind.
    random_state : int or None
        The seed, where it was a number.
    bounds_bind : bool
        Whether a bound on a coefficient binds.

    Examples
    --------
    >>> from skcoral import decorrelate
    >>> R = [[1.0, 0.5, 0.2], [0.5, 1.0, 0.5], [0.2, 0.5, 1.0]]
    >>> decorrelate(R, 0.9, support=0.3).search.bounds_bind
    False
    """

    n_starts: int = 0
    n_best: int = 0
    bound: str = "none"
    stationarity: float | None = 0.0
    random_state: int | None = None
    bounds_bind: bool = False
