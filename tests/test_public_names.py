"""Every public name says what it is, and completion shows public names only."""

import importlib
import inspect
import pkgutil
import types

import pytest

import lamina

# Programs and empty shells of what this build lacks.
SKIPPED = ("lamina.demo", "lamina.utils._", "lamina._", "lamina.testing._", "lamina.utils.data._")


def modules():
    yield "lamina"
    for found in pkgutil.walk_packages(lamina.__path__, "lamina."):
        parts = found.name.split(".")
        if not any(p.startswith("_") for p in parts) and not found.name.startswith(SKIPPED):
            yield found.name


def public(module):
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    for name in names:
        value = getattr(module, name)
        owner = getattr(value, "__module__", None) or "lamina"
        if not isinstance(value, types.ModuleType) and owner.split(".")[0] in ("lamina", "torch"):
            yield name, value


def members(kind):
    for name, value in vars(kind).items():
        plain = inspect.isfunction(value) or isinstance(
            value, (property, classmethod, staticmethod)
        )
        if plain and not name.startswith("_"):
            yield name


@pytest.mark.parametrize("name", sorted(modules()))
def test_names_are_documented(name):
    module = importlib.import_module(name)
    silent = [] if (module.__doc__ or "").strip() else [name]
    for short, value in public(module):
        if not (isinstance(value, type) or callable(value)):
            continue
        if not inspect.getdoc(value):
            silent.append(short)
        if isinstance(value, type) and value.__module__.startswith("lamina"):
            silent += [
                f"{short}.{m}" for m in members(value) if not inspect.getdoc(getattr(value, m))
            ]
    assert silent == []


def test_tensor_methods_are_documented():
    silent = []
    for name in dir(lamina.Tensor):
        if not name.startswith("_"):
            value = inspect.getattr_static(lamina.Tensor, name)
            if not inspect.getdoc(value):
                silent.append(name)
    assert silent == []


def test_completion_shows_public_names_only():
    shown = [n for n in dir(lamina) if not n.startswith("_")]
    for name in shown:
        value = getattr(lamina, name)
        if isinstance(value, types.ModuleType):
            assert value.__name__.startswith("lamina.") or value is lamina.torch, name
    assert not {"sys", "os", "math", "annotations"} & set(shown)
    for module in ("nn", "nn.functional", "optim", "utils.data", "autograd", "linalg"):
        names = dir(importlib.import_module("lamina." + module))
        assert not {"annotations", "import_module"} & {n for n in names if not n.startswith("_")}


def test_help_is_a_page():
    import pydoc

    text = pydoc.plain(pydoc.render_doc(lamina.add))
    assert "add(Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)" in text
    assert "broadcast" in text and "Gradient of self: grad" in text and "Element: self +" in text
    # A function whose module has not run is documented as well.
    assert str(inspect.signature(lamina.tensordot)) == "(a, b, dims=2, out=None)"
    assert "products" in inspect.getdoc(lamina.tensordot)
