"""autograd.Function inside vmap: by its own rule, or by running its methods on batched tensors."""

from lamina import _C
from lamina.func import _vmap

__all__ = ["apply"]


def apply(cls, args):
    """What ``cls.apply(*args)`` gives where some arguments are batched."""
    from lamina.autograd import function

    base = function.Function
    has_rule = cls.vmap is not base.vmap
    if cls.generate_vmap_rule and has_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            "ambiguity."
        )
    if has_rule:
        return _vmap.call_rule(cls.vmap, f"{cls.__name__}.vmap", args)
    if not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement "
            "the vmap staticmethod or set generate_vmap_rule=True."
        )
    return _generated(cls, args)


class _Context:
    """The ctx that methods of a program see: its tensors are batched, those that are really saved are values."""

    def __init__(self, outer, call):
        self.__dict__["_outer"] = outer
        self.__dict__["_call"] = call

    def save_for_backward(self, *tensors):
        values, dims = self._call.unwrap(tensors)
        self.__dict__["_saved_dims"] = dims
        self._outer.save_for_backward(*values)

    def save_for_forward(self, *tensors):
        values, dims = self._call.unwrap(tensors)
        self.__dict__["_forward_dims"] = dims
        self._outer.save_for_forward(*values)

    def mark_dirty(self, *tensors):
        raise RuntimeError(
            f"{self._call.name}: an input that is written in place (mark_dirty) cannot be vmapped with "
            "generate_vmap_rule=True; override the vmap staticmethod"
        )

    def mark_non_differentiable(self, *tensors):
        self._call.without_gradient.extend(tensors)

    def set_materialize_grads(self, value):
        self._outer.set_materialize_grads(value)

    @property
    def saved_tensors(self):
        saved = self._outer.saved_tensors
        dims = self.__dict__.get("_saved_dims")
        if len(saved) != len(dims or ()):
            dims = self.__dict__.get("_forward_dims")
        return self._call.wrap(saved, dims or (None,) * len(saved))

    @property
    def needs_input_grad(self):
        return self._outer.needs_input_grad

    def __getattr__(self, name):
        try:
            return self.__dict__["_kept"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self.__dict__.setdefault("_kept", {})[name] = value


class _Call:
    """One application at one level."""

    def __init__(self, cls, level, samples, randomness, in_dims):
        self.cls, self.name = cls, cls.__name__
        self.level, self.samples, self.randomness = level, samples, randomness
        self.in_dims = in_dims
        self.out_dims = None
        self.shapes = ()
        self.single = True
        self.without_gradient = []

    def wrap(self, values, dims):
        return tuple(
            v if d is None or v is None else _C._add_batch_dim(v, d, self.level)
            for v, d in zip(values, dims, strict=True)
        )

    def unwrap(self, tensors):
        values, dims = [], []
        for t in tensors:
            batch = _C._batch_of(t) if isinstance(t, _C.Tensor) else None
            here = batch is not None and batch[2] == self.level
            values.append(batch[0] if here else t)
            dims.append(batch[1] if here else None)
        return tuple(values), tuple(dims)

    def in_front(self, t):
        """The value with samples first, for a tensor that may have none."""
        return _C._remove_batch_dim(t, self.level, self.samples, 0)


def _generated(cls, args):
    from lamina.autograd import function

    level = _vmap.top_level(args)
    values, in_dims, samples = _vmap.unwrap_at(tuple(args), level)
    randomness = _vmap.info_of(level, samples).randomness
    call = _Call(cls, level, samples, randomness, in_dims)
    separate = cls.setup_context is not function.Function.setup_context

    def mark(ctx, values, seen):
        marked = [
            v
            for v, s in zip(values, seen, strict=True)
            if any(s is t for t in call.without_gradient)
        ]
        if marked:
            ctx.mark_non_differentiable(*marked)

    class Generated(function.Function):
        """The function on values; inside, its methods see one sample."""

        generate_vmap_rule = True  # for levels outside

        @staticmethod
        def forward(*values):
            if not separate:
                ctx, *values = values
                ctx._inner = _Context(ctx, call)
            given = call.wrap(values, call.in_dims)
            call.shapes = [t.shape if isinstance(t, _C.Tensor) else None for t in given]
            outputs = cls.forward(*given) if separate else cls.forward(ctx._inner, *given)
            call.single = not isinstance(outputs, tuple)
            outputs = (outputs,) if call.single else outputs
            # Results that do not depend on the samples are repeated, so that each has a gradient of its own.
            found = tuple(call.in_front(t) if isinstance(t, _C.Tensor) else t for t in outputs)
            call.out_dims = tuple(0 if isinstance(t, _C.Tensor) else None for t in outputs)
            if not separate:
                mark(ctx, found, outputs)
            return found[0] if call.single else found

        def _setup_context(ctx, inputs, output):
            ctx._inner = inner = _Context(ctx, call)
            given = call.wrap(inputs, call.in_dims)
            outputs = call.wrap(output if isinstance(output, tuple) else (output,), call.out_dims)
            cls.setup_context(inner, given, outputs[0] if call.single else outputs)
            mark(ctx, output if isinstance(output, tuple) else (output,), outputs)

        if separate:
            setup_context = staticmethod(_setup_context)

        @staticmethod
        def backward(ctx, *grads):
            given = call.wrap(grads, [None if g is None else 0 for g in grads])
            method = cls.backward if cls.backward is not function.Function.backward else cls.vjp
            found = method(ctx._inner, *given)
            found = found if isinstance(found, tuple) else (found,)
            results = []
            for g, dim, shape in zip(found, call.in_dims, call.shapes, strict=False):
                if g is None:
                    results.append(None)
                    continue
                if shape is not None and g.shape != shape:
                    g = g.sum_to_size(shape)  # what broadcasting of a sample has stretched
                if dim is None:
                    # All samples share the argument: its gradient is the sum of theirs.
                    batch = _C._batch_of(g)
                    shared = batch is None or batch[2] != call.level
                    results.append(g * call.samples if shared else call.in_front(g).sum(0))
                else:
                    results.append(call.in_front(g).movedim(0, dim))
            return tuple(results)

        @staticmethod
        def jvp(ctx, *tangents):
            given = call.wrap(
                tangents,
                [None if t is None else d for t, d in zip(tangents, call.in_dims, strict=True)],
            )
            found = cls.jvp(ctx._inner, *given)
            found = found if isinstance(found, tuple) else (found,)
            results = tuple(None if t is None else call.in_front(t) for t in found)
            return results[0] if call.single else results

    Generated.__name__ = Generated.__qualname__ = cls.__name__
    outputs = Generated.apply(*values)
    outputs = (outputs,) if call.single else outputs
    outputs = call.wrap(outputs, call.out_dims)
    return outputs[0] if call.single else outputs
