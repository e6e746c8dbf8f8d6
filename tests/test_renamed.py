"""What earlier versions called otherwise is refused with what to write instead."""

from __future__ import annotations

import importlib
import inspect

import pytest

import skcoral
from skcoral import panels, paper, stability
from skcoral.exceptions import RenamedError
from skcoral.renamed import NAMES, PARAMETERS, refuse_name, refusing_former_parameters
from skcoral.show import report


def owner(name):
    return next(
        getattr(m, name) for m in (skcoral, stability, panels, paper, report) if hasattr(m, name)
    )


@pytest.mark.parametrize(
    ("name", "parameter"), [(n, p) for n, of in PARAMETERS.items() for p in of]
)
def test_former_parameters_are_refused_with_advice(name, parameter):
    function = owner(name)
    assert parameter not in inspect.signature(function).parameters
    with pytest.raises(RenamedError, match=f"{name} no longer takes {parameter}=: ") as error:
        function(**{parameter: None})
    assert PARAMETERS[name][parameter] in str(error.value)


def test_former_parameters_of_the_estimator_are_refused_when_set():
    for parameter in PARAMETERS.get("CORAL", ()):
        with pytest.raises(RenamedError, match=f"no longer takes {parameter}="):
            skcoral.CORAL().set_params(**{parameter: None})
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        skcoral.CORAL().set_params(nonsense=1)


def test_the_signature_is_that_of_the_function_itself(monkeypatch):
    def answer(question, *, now=1):
        """Say it."""
        return question * now

    monkeypatch.setitem(PARAMETERS, answer.__qualname__.partition(".")[0], {"then": "write now=."})
    checked = refusing_former_parameters(answer)
    assert inspect.signature(checked) == inspect.signature(answer)
    assert checked("a", now=2) == "aa"
    with pytest.raises(RenamedError, match=r"no longer takes then=: write now=\."):
        checked("a", then=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        checked("a", other=2)


@pytest.mark.parametrize("name", NAMES)
def test_former_names_are_refused_with_advice(name):
    module, _, attribute = name.rpartition(".")
    with pytest.raises(ImportError) as error:
        getattr(importlib.import_module(module), attribute)
    assert NAMES[name] in str(error.value)


def test_a_name_that_never_was_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'skcoral' has no attribute 'nonsense'"):
        refuse_name("skcoral", "nonsense")
    assert not hasattr(skcoral, "nonsense")
