"""The geometry of the problem, on three real variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skcoral.core.arrays import Array, read_only
from skcoral.core.results import Decorrelation
from skcoral.core.validation import check_floors
from skcoral.exceptions import InvalidArgumentError
from skcoral.show.pictures import _style

COLOURS = (_style.BLUE, _style.ORANGE, _style.GREEN)


class Panel(NamedTuple):
    """One of the four pictures; every array has the coordinates on its last axis."""

    title: str  # what it shows, with its numbers
    symbol: str  # the letter of its coordinates
    surface: Array  # mesh of all vectors of unit variance
    caps: tuple[Array, ...]  # mesh of the part where variable j keeps its floor, centre to rim
    arrows: Array | None  # row j is the vector of variable j, or of output j


class GeometryDisplay(_style.Display):
    """Three variables in four pictures: where each output may lie, and where it was put.

    (a) every output ``t_j`` lies on the ellipsoid ``tᵀRt = 1``, in the region where its fidelity
    reaches its floor; (b) with ``w = R^{1/2} t`` the ellipsoid becomes the unit sphere and the
    regions become caps around the sources; (c) one vector is chosen in each cap, as orthogonal as
    the caps allow; (d) ``c_j = R t_j`` are the correlations of the outputs with the sources, and
    output j lies beyond the plane ``c_jj = ρ_j``.

    Parameters
    ----------
    R, T : array-like of shape (3, 3)
        Correlation matrix and transformation.
    rho_min : array-like of shape (3,)
        The floors.
    names : sequence of str
        The three variables.

    Attributes
    ----------
    sources : ndarray of shape (3, 3)
        The sources on the sphere, one column each: ``R^{1/2}``.
    outputs : ndarray of shape (3, 3)
        The outputs on the sphere, one column each: ``R^{1/2} T``.
    cosines : ndarray of shape (3, 3)
        Of the angles between the outputs, which are their correlations: ``TᵀRT``.
    loadings : ndarray of shape (3, 3)
        Correlations of sources (rows) with outputs (columns): ``R T``.
    panels : tuple of four Panel
        What is drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from skcoral import decorrelate
    >>> from skcoral.show.pictures import GeometryDisplay
    >>> R = np.array([[1.0, 0.6, 0.3], [0.6, 1.0, 0.4], [0.3, 0.4, 1.0]])
    >>> display = GeometryDisplay.from_result(decorrelate(R, 0.5), R)
    >>> bool(np.allclose(display.outputs.T @ display.outputs, np.eye(3)))
    True
    """

    _grid = (2, 2)
    _axes_settings: ClassVar = {"projection": "3d"}

    def __init__(self, R: Any, T: Any, rho_min: Any, *, names: Sequence[str]) -> None:
        self.R = read_only(R)
        self.T = read_only(T)
        if self.R.shape != (3, 3) or self.T.shape != (3, 3):
            raise InvalidArgumentError(
                f"the geometry is drawn for three variables, got matrices of shape {self.R.shape} "
                f"and {self.T.shape}: solve the problem of three of them."
            )
        self.names = tuple(names)
        self.rho_min = read_only(check_floors(rho_min, self.names))
        values, vectors = np.linalg.eigh(self.R)
        self.sources = read_only((vectors * np.sqrt(values)) @ vectors.T)
        self.inverse_root = read_only((vectors / np.sqrt(values)) @ vectors.T)
        self.outputs = read_only(self.sources @ self.T)
        self.cosines = read_only(self.outputs.T @ self.outputs)
        self.loadings = read_only(self.R @ self.T)

    @classmethod
    def from_result(cls, result: Decorrelation, R: Any) -> GeometryDisplay:
        """Gather the numbers from a result for three variables."""
        _style.check_type(result, Decorrelation)
        if result.anchors is not None:
            raise InvalidArgumentError(
                "the geometry is that of outputs anchored to variables; these are anchored to "
                "composites."
            )
        return cls(R, result.T, result.rho_min, names=result.names)

    @classmethod
    def from_estimator(cls, estimator: Any) -> GeometryDisplay:
        """Gather the numbers from a :class:`skcoral.CORAL` fitted to three columns."""
        return cls.from_result(estimator.result_, estimator.correlation_)

    def cap(self, j: int, *, n_rings: int = 12, n_steps: int = 73) -> Array:
        """Points of cap j on the sphere, from its centre to its rim: (n_rings, n_steps, 3)."""
        # An even number of steps around: matplotlib then cuts the mesh into equal polygons, and
        # does not pad unequal ones with uninitialised memory.
        centre = self.sources[:, j]
        rim = float(np.arccos(self.rho_min[j]))
        across = np.linalg.svd(centre[None, :])[2][1:]
        turn = np.linspace(0.0, 2.0 * np.pi, n_steps)
        ring = np.cos(turn)[:, None] * across[0] + np.sin(turn)[:, None] * across[1]
        angle = np.linspace(0.0, rim, n_rings)
        return np.cos(angle)[:, None, None] * centre + np.sin(angle)[:, None, None] * ring

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The four pictures as numbers, for any way to draw them."""
        # Adding zero turns the -0.000 of a rounding error into 0.000.
        shown = np.round(self.cosines[np.triu_indices(3, 1)], 3) + 0.0
        cosines = ", ".join(f"{value:.3f}" for value in shown)
        least = np.diag(self.loadings).min()
        sphere, identity = _sphere(), np.eye(3)
        described = (
            ("(a) regions on the ellipsoid tᵀRt = 1", "t", self.inverse_root, None),
            ("(b) the same as caps on the sphere, w = R^½ t", "w", identity, self.sources),
            (f"(c) one output in each cap, cosines {cosines}", "w", identity, self.outputs),
            (f"(d) correlations c = Rt, fidelity ≥ {least:.3f}", "c", self.sources, self.outputs),
        )
        return tuple(
            Panel(
                title,
                symbol,
                read_only(sphere @ M),
                tuple(read_only(self.cap(j) @ M) for j in range(3)),
                None if vectors is None else read_only(vectors.T @ M),
            )
            for title, symbol, M, vectors in described
        )

    @property
    def drops(self) -> Array:
        """From each output in panel (d) to its own axis, where its fidelity is read: (3, 2, 3)."""
        return np.stack([self.loadings.T, np.diag(np.diag(self.loadings))], axis=1)

    def _size(self) -> tuple[float, float]:
        return 9.0, 8.0

    def _draw(self, *axes: Any) -> None:
        if not all(hasattr(panel, "plot_wireframe") for panel in axes):
            raise ValueError("the geometry needs axes made with projection='3d'.")
        for k, (panel, ax3d) in enumerate(zip(self.panels, axes, strict=True)):
            ax3d.plot_wireframe(
                *np.moveaxis(panel.surface, -1, 0),
                color=_style.LIGHT, linewidth=0.4, rstride=3, cstride=3,
            )  # fmt: skip
            for j, colour in enumerate(COLOURS):
                ax3d.plot_surface(
                    *np.moveaxis(panel.caps[j], -1, 0),
                    color=colour, alpha=0.22, linewidth=0, shade=False,
                )  # fmt: skip
                ax3d.plot(*panel.caps[j][-1].T, color=colour, linewidth=1.6)
                if panel.arrows is not None:
                    end, dash = panel.arrows[j], "--" if k == 1 else "-"
                    ax3d.plot(*_from_origin(end), color=colour, linewidth=1.8, linestyle=dash)
                    ax3d.scatter(*end[:, None], color=colour, s=22, depthshade=False)
                if k == 3:
                    ax3d.plot(*self.drops[j].T, color=colour, linewidth=0.9, linestyle=":")
            _frame(ax3d, panel.surface, panel.symbol)
            ax3d.set_title(panel.title, fontsize=9)
        handles = [
            axes[0].plot([], [], color=colour, linewidth=2, label=_style.label(name))[0]
            for name, colour in zip(self.names, COLOURS, strict=True)
        ]
        axes[0].figure.legend(
            handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9
        )


def _sphere(n: int = 37) -> Array:
    turn, tilt = np.meshgrid(np.linspace(0, 2 * np.pi, n), np.linspace(0, np.pi, n))
    return np.stack([np.cos(turn) * np.sin(tilt), np.sin(turn) * np.sin(tilt), np.cos(tilt)], -1)


def _from_origin(end: Array) -> Array:
    """A segment, one row per coordinate."""
    return np.stack([np.zeros(3), end], axis=1)


def _frame(panel: Any, surface: Array, symbol: str) -> None:
    """Same scale on all axes, three arrows instead of boxes and ticks."""
    reach = 1.02 * float(np.abs(surface).max())
    panel.set(xlim=(-reach, reach), ylim=(-reach, reach), zlim=(-reach, reach))
    panel.set_box_aspect((1, 1, 1), zoom=1.3)  # without axes their margin is empty
    panel.set_axis_off()
    for j, end in enumerate(1.15 * reach * np.eye(3)):
        panel.plot(*_from_origin(end), color=_style.GREY, linewidth=0.8)
        panel.text(*(1.06 * end), f"${symbol}_{j + 1}$", fontsize=9, color=_style.GREY)
    panel.view_init(elev=22, azim=35)
