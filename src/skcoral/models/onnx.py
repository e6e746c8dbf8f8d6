"""Models for other runtimes: ONNX, through skl2onnx (the ``onnx`` extra)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skcoral.core.lowrank import LowRankTransform
from skcoral.estimator import CORAL
from skcoral.exceptions import InvalidArgumentError


def to_onnx(model: Any, *, dtype: Any = np.float64) -> Any:
    """Convert a fitted CORAL, or a pipeline that contains one, to an ONNX model.

    Parameters
    ----------
    model : CORAL or Pipeline
        Fitted.
    dtype : {float64, float32}, default=float64
        Type of the numbers going in and out. Columns far from zero in units of their own spread
        lose digits in float32, as they would in any program.

    Returns
    -------
    onnx.ModelProto
        With one input ``X`` of shape (rows, columns).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skcoral import CORAL
    >>> from skcoral.models import to_onnx
    >>> graph = to_onnx(CORAL(rho_min=0.8).fit(load_wine().data))
    >>> [node.name for node in graph.graph.input]
    ['X']
    """
    from skl2onnx import to_onnx as convert
    from skl2onnx import update_registered_converter
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    kinds = {np.dtype(np.float64): DoubleTensorType, np.dtype(np.float32): FloatTensorType}
    kind = kinds.get(np.dtype(dtype))
    if kind is None:
        raise InvalidArgumentError(f"dtype must be float64 or float32; got {np.dtype(dtype)}.")
    check_is_fitted(model)
    update_registered_converter(CORAL, "SkcoralCORAL", _infer_shape, _convert)
    return convert(model, initial_types=[("X", kind([None, model.n_features_in_]))])


def _infer_shape(operator: Any) -> None:
    rows = operator.inputs[0].type.shape[0]
    outputs = len(operator.raw_operator.result_.names)
    operator.outputs[0].type = type(operator.inputs[0].type)([rows, outputs])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    from onnx import TensorProto
    from skl2onnx.common.data_types import DoubleTensorType

    model: CORAL = operator.raw_operator
    is_double = isinstance(operator.inputs[0].type, DoubleTensorType)
    kind = TensorProto.DOUBLE if is_double else TensorProto.FLOAT

    def constant(label: str, values: Any) -> str:
        name: str = scope.get_unique_variable_name(label)
        container.add_initializer(name, kind, list(values.shape), values.ravel().tolist())
        return name

    def step(operation: str, left: str, right: str, result: str | None = None) -> str:
        name = result or scope.get_unique_variable_name(operation.lower())
        label = scope.get_unique_operator_name(operation)
        container.add_node(operation, [left, right], [name], name=label)
        return name

    source, target = operator.inputs[0].full_name, operator.outputs[0].full_name
    # centred before anything else, as in transform: digits are lost the other way round
    made = step("Sub", source, constant("mean", model.mean_))
    if isinstance(model.T_, LowRankTransform):
        units = step("Div", made, constant("scale", model.scale_))
        inside = step("MatMul", units, constant("left", model.T_.left))
        made = step("Add", units, step("MatMul", inside, constant("right", model.T_.right)))
        if model.output_scale_ == "original":
            made = step("Mul", made, constant("scale_out", model.moments_.scale))
    else:
        made = step("MatMul", made, constant("components", model.components_.T))
    step("Add", made, constant("mean_out", model.output_mean_), target)
