"""The cases of derivative_cases.py for normalizations, embedding and attention; all real."""

import lamina

F64 = lamina.float64


def network_cases(case, shaped):
    """`case(name, function, operands)` makes one; `shaped(dtype, *sizes)` the operands."""
    call = lamina._C._call_operator

    def of(name, function, *sizes):
        return case(f"aten::{name}", function, shaped(F64, *sizes))

    def first(name, *args):
        return call(f"aten::{name}", *args)[0]

    # ---- normalizations: with weight and bias, with one of them, with neither
    eps = 1e-3
    rows = (3, 2, 2)
    yield of(
        "_layer_norm", lambda x, w, b: first("_layer_norm", x, [2], w, b, eps), rows, (2,), (2,)
    )  # fmt: skip
    yield of(
        "_layer_norm", lambda x, b: first("_layer_norm", x, [2, 2], None, b, eps), rows, (2, 2)
    )  # fmt: skip
    yield of("_layer_norm", lambda x: first("_layer_norm", x, [3, 2, 2], None, None, eps), rows)  # fmt: skip
    yield of("_fused_rms_norm", lambda x, w: first("_fused_rms_norm", x, [2, 2], w, eps), rows, (2, 2))  # fmt: skip
    yield of("_fused_rms_norm", lambda x: first("_fused_rms_norm", x, [2], None, None), rows)
    planes = (2, 4, 3)
    yield of(
        "_group_norm",
        lambda x, w, b: first("_group_norm", x, w, b, 2, 4, 3, 2, eps),
        planes,
        (4,),
        (4,),
    )
    yield of(
        "_group_norm",
        lambda x, w: first("_group_norm", x, w, None, 2, 4, 1, 1, eps),
        (2, 4),
        (4,),
    )
    yield of("_group_norm", lambda x: first("_group_norm", x, None, None, 2, 4, 3, 4, eps), planes)  # fmt: skip
    for sizes in (planes, (5, 2), (2, 2, 2, 3)):
        c = (sizes[1],)
        mean = lamina.linspace(-0.2, 0.3, c[0], dtype=F64)
        for training in (True, False):

            def batch_norm(x, w=None, b=None, mean=mean, training=training):
                # Copies: training moves the statistics.
                stats = (mean.clone(), mean.exp())
                return first("_batch_norm", x, w, b, *stats, training, 0.1, eps)

            yield of("_batch_norm", batch_norm, sizes, c, c)
            yield of("_batch_norm", batch_norm, sizes)
            yield of("_batch_norm", lambda x, b, f=batch_norm: f(x, None, b), sizes, c)
    f = lamina.nn.functional
    yield of("_tied", lambda x, y: call("aten::_tied", x, y), (2, 3), (4,))
    for i in (0, 1, 2):
        yield of(
            "native_group_norm",
            lambda x, w, b, i=i: call("aten::native_group_norm", x, w, b, 2, 4, 3, 2, eps)[i],
            planes,
            (4,),
            (4,),
        )
    yield of("instance_norm", lambda x, w, b: f.instance_norm(x, weight=w, bias=b), planes, (4,), (4,))  # fmt: skip
    yield of("_norm2", lambda x: call("aten::_norm2", x, [1]), (2, 3))
    yield of("_norm2", lambda x: call("aten::_norm2", x, None, True), (2, 3))
    yield of("normalize", lambda x: f.normalize(x), (2, 3))
    yield of("vector_norm", lambda x: lamina.linalg.vector_norm(x, 3, 1), (2, 3))
    yield of("vector_norm", lambda x: lamina.linalg.vector_norm(x, 1), (2, 3))
    yield of("vector_norm", lambda x: lamina.linalg.vector_norm(x, float("inf"), 0), (2, 3))
    # ---- rows of a table
    at = lamina.tensor([[0, 2, 2], [1, 2, 0]])
    # A row of padding has no gradient, whatever its derivative would be: only what goes back is
    # checked with one.
    yield of("embedding", lambda w: lamina.embedding(w, at), (3, 2))
    for padding in (-1, 2):
        yield of(
            "embedding_dense_backward",
            lambda g, p=padding: call("aten::embedding_dense_backward", g, at, 3, p, False),
            (2, 3, 2),
        )
    # ---- attention: forward mode goes through other operators
    attend = f.scaled_dot_product_attention
    q, k, v = (2, 1, 3, 2), (2, 1, 4, 2), (2, 1, 4, 3)
    yield of("_fused_attention", attend, q, k, v)
    yield of("_fused_attention", lambda q, k, v: attend(q, k, v, is_causal=True), q, k, v)
    yield of("_fused_attention", lambda q, k, v: attend(q, k, v, scale=-0.3), q[1:], k[1:], v[1:])
    seen = lamina.tensor(
        [[True, False, True, True], [False] * 4, [True] * 4]
    )  # the second row sees nothing
    yield of("_fused_attention", lambda q, k, v: attend(q, k, v, seen), q, k, v)
    yield of("_fused_attention", lambda q, k, v, m: attend(q, k, v, m), q, k, v, (3, 4))
    yield of("_fused_attention", lambda q, k, v: attend(q, k, v, enable_gqa=True), (1, 2, 3, 2), (1, 1, 4, 2), (1, 1, 4, 2))  # fmt: skip
    yield of("bilinear", f.bilinear, (2, 3), (2, 2), (2, 3, 2), (2,))
