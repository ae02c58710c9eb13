"""Random programs of views, writes in place and reads, against a model that copies everything.

The model knows no views: a base is a flat tensor without aliases, a view is an array of positions in
it, and a write makes a new base. Values, gradients, and whether backward has to refuse because a
saved tensor was written must agree. LAMINA_NIGHTLY=1 runs ten times as many programs.
"""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lamina

PROGRAMS = 2000 if os.environ.get("LAMINA_NIGHTLY") else 200


class Base:
    """A family of views: its elements as a tensor without aliases, and how often it was written."""

    def __init__(self, flat):
        self.flat = flat
        self.writes = 0


class View:
    """One real tensor, and where its elements lie in the model's base."""

    def __init__(self, real, base, places, detached=False):
        self.real, self.base, self.places, self.detached = real, base, places, detached

    def value(self):
        """The model's elements, in this view's shape."""
        positions = lamina.tensor(self.places.reshape(-1).copy())
        value = self.base.flat.index_select(0, positions).reshape(self.places.shape)
        return value.detach() if self.detached else value


class Machine:
    """Runs a program on both sides."""

    def __init__(self, draw):
        self.draw = draw
        self.real_leaf = lamina.linspace(0.3, 1.7, 24, dtype=lamina.float64).requires_grad_()
        self.model_leaf = self.real_leaf.detach().clone().requires_grad_()
        self.views = []
        self.saved = []  # (base, writes when it was saved) of what backward needs
        self.real_loss = self.real_leaf.sum()
        self.model_loss = self.model_leaf.sum()
        for _ in range(2):
            self.new_base()

    def new_base(self):
        recorded = not self.views or self.draw(st.booleans())
        if recorded:
            real = (self.real_leaf * 1.5).reshape(4, 6).clone()
            flat = (self.model_leaf * 1.5).reshape(-1)
        else:
            real = lamina.full((4, 6), 0.5, dtype=lamina.float64)
            flat = lamina.full((24,), 0.5, dtype=lamina.float64)
        self.views.append(View(real, Base(flat), np.arange(24).reshape(4, 6)))

    def pick(self):
        return self.views[self.draw(st.integers(0, len(self.views) - 1))]

    def look(self):
        """Another view of something there is."""
        v = self.pick()
        kinds = [
            "slice",
            "select",
            "transpose",
            "unsqueeze",
            "flatten",
            "diagonal",
            "step",
            "detach",
        ]
        kind = self.draw(st.sampled_from(kinds))
        real, places, detached = v.real, v.places, v.detached
        if kind == "detach":
            real, detached = real.detach(), True
        elif kind == "unsqueeze":
            real, places = real.unsqueeze(0), places[None]
        elif places.ndim == 0 or places.size == 0:
            return
        elif kind == "slice":
            a = self.draw(st.integers(0, places.shape[0]))
            b = self.draw(st.integers(a, places.shape[0]))
            real, places = real[a:b], places[a:b]
        elif kind == "step":
            real, places = real[..., ::2], places[..., ::2]
        elif kind == "select":
            i = self.draw(st.integers(0, places.shape[-1] - 1))
            real, places = real.select(-1, i), places[..., i]
        elif kind == "transpose":
            real, places = real.transpose(0, -1), places.swapaxes(0, -1)
        elif kind == "flatten":
            if not real.is_contiguous():
                return
            real, places = real.view(-1), places.reshape(-1)
        elif kind == "diagonal":
            if places.ndim < 2:
                return
            real, places = real.diagonal(), np.diagonal(places)
        self.views.append(View(real, v.base, places, detached))

    def write(self):
        """A write in place through some view."""
        v = self.pick()
        if v.places.size == 0:
            return
        kind = self.draw(
            st.sampled_from(["mul", "add", "fill", "sin", "tanh", "copy", "mulview", "set"])
        )
        old = v.value()
        other = None
        if kind in ("copy", "mulview"):
            other = self.pick()
            if other.places.shape != v.places.shape:
                return
            shares = other.base is v.base and np.intersect1d(other.places, v.places).size
            if shares and not (
                other.places.shape == v.places.shape and (other.places == v.places).all()
            ):
                return  # partial overlap is refused
        recorded = self.draw(st.integers(0, 4)) > 0 and not v.detached
        new, real = self.write_both(kind, v, other, old, recorded)
        if real is None:
            return
        self.put(v, new, recorded)

    def write_both(self, kind, v, other, old, recorded):
        r = v.real
        if kind == "mul":
            new = old * 1.25

            def write():
                r.mul_(1.25)
        elif kind == "add":
            new = old + 0.5

            def write():
                r.add_(0.5)
        elif kind == "fill":
            new = lamina.full_like(old, 0.75).detach()

            def write():
                r.fill_(0.75)
        elif kind == "sin":
            new = old.sin()

            def write():
                r.sin_()
        elif kind == "tanh":
            new = old.tanh()

            def write():
                r.tanh_()
        elif kind == "set":
            new = lamina.full_like(old, -0.25).detach()

            def write():
                r[...] = -0.25
        elif kind == "copy":
            new = other.value()

            def write():
                r.copy_(other.real)
        else:
            new = old * other.value()

            def write():
                r.mul_(other.real)

        needs = recorded and r.requires_grad
        if kind == "mulview" and needs and other.real is not r:
            self.saved.append((other.base, other.base.writes))
        with lamina.set_grad_enabled(recorded):
            write()
        if kind == "tanh" and needs:  # what it keeps is its result
            self.saved.append((v.base, v.base.writes + 1))
        return new, r

    def put(self, v, new, recorded):
        """The model's write: a new base with other elements at the view's places."""
        positions = lamina.tensor(v.places.reshape(-1).copy())
        flat = v.base.flat
        if recorded:
            flat = flat.index_copy(0, positions, new.reshape(-1).to(lamina.float64))
        else:
            # The values change, the history does not.
            changed = flat.detach().index_copy(0, positions, new.detach().reshape(-1))
            flat = flat + (changed - flat.detach())
        v.base.flat = flat
        v.base.writes += 1

    def read(self):
        """Something of a view enters the loss."""
        v = self.pick()
        squares = self.draw(st.booleans())
        if squares:
            if v.real.requires_grad:
                self.saved.append((v.base, v.base.writes))
            self.real_loss = self.real_loss + v.real.sin().sum()
            self.model_loss = self.model_loss + v.value().sin().sum()
        else:
            self.real_loss = self.real_loss + (v.real * 3).sum()
            self.model_loss = self.model_loss + (v.value() * 3).sum()

    def finish(self):
        for v in self.views:
            assert np.allclose(v.real.detach().numpy(), v.value().detach().numpy(), rtol=1e-12)
        for v in self.views:
            self.real_loss = self.real_loss + (v.real * 0.5).sum()
            self.model_loss = self.model_loss + (v.value() * 0.5).sum()
        assert np.isclose(self.real_loss.item(), self.model_loss.item(), rtol=1e-12)
        (expected,) = lamina.autograd.grad(self.model_loss, self.model_leaf)
        if any(base.writes != writes for base, writes in self.saved):
            with pytest.raises(RuntimeError, match="modified by an inplace"):
                self.real_loss.backward()
            return
        self.real_loss.backward()
        assert np.allclose(self.real_leaf.grad.numpy(), expected.numpy(), rtol=1e-9, atol=1e-12)


@settings(
    max_examples=PROGRAMS,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_programs_agree_with_the_model_that_copies(data):
    machine = Machine(data.draw)
    for _ in range(data.draw(st.integers(8, 24))):
        data.draw(st.sampled_from([machine.write, machine.look, machine.look, machine.read]))()
    machine.finish()
