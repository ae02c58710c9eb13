// x[...] and x[...] = v: ints, slices, None, Ellipsis, bools become views; tensors, lists and masks
// become one call of index or index_put_.
#include <string>
#include <vector>

#include "lamina/border/construct.h"
#include "lamina/border/override.h"
#include "lamina/border/tensor_object.h"
#include "lamina/kernels/result.h"
#include "lamina/ops/alias.h"
#include "lamina/ops/copy.h"
#include "lamina/ops/fill.h"
#include "lamina/ops/select.h"
#include "lamina/ops/slice.h"
#include "lamina/ops/squeeze.h"
#include "lamina/ops/unsqueeze.h"
#include "lamina/transforms/batched.h"
#if __has_include("lamina/ops/index.h")
#include "lamina/ops/index.h"
#endif
#if __has_include("lamina/ops/index_put.h")
#include "lamina/ops/index_put.h"
#endif
#if __has_include("lamina/ops/nonzero.h")
#include "lamina/ops/nonzero.h"
#endif

namespace lamina::border {

namespace {

bool is_index_int(PyObject* o) {
  return (PyLong_Check(o) && !PyBool_Check(o)) || (!is_tensor(o) && is_int(o));
}

bool is_mask(const Tensor& t) {
  return t.dtype() == ScalarType::Bool || t.dtype() == ScalarType::UInt8;
}

Tensor select(const Tensor& t, int64_t dim, int64_t i, int64_t real_dim) {
  if (t.dim() == 0)
    raise_index(
        "invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor to a "
        "number");
  const int64_t n = t.sizes()[dim];
  if (i < -n || i >= n)
    raise_index("index " + std::to_string(i) + " is out of bounds for dimension " +
                std::to_string(real_dim) + " with size " + std::to_string(n));
  return ops::select(t, dim, i);
}

// A bound of a slice: absent, or an int cut to what 64 bits hold.
std::optional<int64_t> bound(PyObject* o) {
  if (o == Py_None) return std::nullopt;
  if (PyLong_CheckExact(o)) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    return overflow > 0 ? INT64_MAX : overflow < 0 ? INT64_MIN : v;
  }
  if (!PyIndex_Check(o))
    raise_type("slice indices must be integers or None or have an __index__ method");
  Ref index = owned(PyNumber_Index(o));
  return bound(index.get());
}

Tensor slice(const Tensor& t, int64_t dim, PyObject* o) {
  if (t.dim() == 0) raise_index("slice() cannot be applied to a 0-dim tensor.");
  auto* s = reinterpret_cast<PySliceObject*>(o);
  const int64_t step = bound(s->step).value_or(1);
  if (step == 0) raise_value("slice step cannot be zero");
  const auto start = bound(s->start);
  const auto stop = bound(s->stop);
  if (!start && !stop && step == 1) return ops::slice(t, dim, std::nullopt, std::nullopt, 1);
  return ops::slice(t, dim, start, stop, step);
}

// Items of an index, and what they say.
struct Plan {
  Tensor view;                  // after the items that are views
  std::vector<Tensor> indices;  // by dimension of `view`; undefined: the whole dimension
};

// What stands for True or False as an index: a row that is taken once or never.
Tensor bool_index(bool v) {
  Tensor t = empty_contiguous(Sizes{v ? 1 : 0}, ScalarType::Int64, kCpu);
  if (v) *t.data_as<int64_t>() = 0;
  return t;
}

[[noreturn]] void raise_bad_index(PyObject* o) {
  raise_index(std::string("only integers, slices (`:`), ellipsis (`...`), None and long or byte "
                          "Variables are valid indices (got ") +
              Py_TYPE(o)->tp_name + ")");
}

// A list or an array as an index tensor.
Tensor index_tensor(PyObject* o) {
  if (is_tensor(o)) return unwrap(o);
  if (PyUnicode_Check(o)) raise_type("index: a str is no index; expected ints, slices, tensors");
  if (PyBytes_Check(o) || PyFloat_Check(o) || PyComplex_Check(o) || PyDict_Check(o))
    raise_bad_index(o);
  if (!PySequence_Check(o) && !PyObject_CheckBuffer(o)) raise_bad_index(o);
  Tensor t = tensor_from_data(o, std::nullopt, std::nullopt);
  if (t.numel() == 0 && is_floating(t.dtype()))
    t = empty_contiguous(t.sizes(), ScalarType::Int64, kCpu);
  if (!is_integral(t.dtype(), true))
    raise_index("tensors used as indices must be long, int, byte or bool tensors");
  return t;
}

// How many dimensions of the tensor an item uses up.
int64_t dims_used(PyObject* o) {
  if (o == Py_None || o == Py_Ellipsis || PyBool_Check(o)) return 0;
  if (is_tensor(o) && is_mask(unwrap(o))) return unwrap(o).dim();
  if (!is_tensor(o) && !PyLong_Check(o) && !PySlice_Check(o) && PyObject_CheckBuffer(o) &&
      !PyBytes_Check(o) && !is_numpy_scalar(o) && array_dtype(o) == ScalarType::Bool)
    return static_cast<int64_t>(array_sizes(o).size());
  return 1;
}

void record(Plan& plan, int64_t dim, Tensor index) {
  if (static_cast<int64_t>(plan.indices.size()) <= dim)
    plan.indices.resize(static_cast<size_t>(dim) + 1);
  plan.indices[static_cast<size_t>(dim)] = std::move(index);
}

void check_mask(const Tensor& view, const Tensor& mask, int64_t dim) {
  if (dim + mask.dim() > view.dim())
    raise_index("too many indices for tensor of dimension " + std::to_string(view.dim()));
  for (int64_t i = 0; i < mask.dim(); ++i)
    if (mask.sizes()[i] != view.sizes()[dim + i])
      raise_index(
          "The shape of the mask " + str(std::span<const int64_t>(mask.sizes())) + " at index " +
          std::to_string(i) + " does not match the shape of the indexed tensor " +
          str(std::span<const int64_t>(view.sizes())) + " at index " + std::to_string(dim + i));
}

Plan make_plan(const Tensor& self, PyObject* const* items, Py_ssize_t n) {
  Plan plan{self, {}};
  int64_t used = 0;
  int ellipses = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    used += dims_used(items[i]);
    ellipses += items[i] == Py_Ellipsis;
  }
  if (used > self.dim())
    raise_index("too many indices for tensor of dimension " + std::to_string(self.dim()));
  if (ellipses > 1) raise_index("an index can only have a single ellipsis ('...')");
  int64_t dim = 0, real_dim = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = items[i];
    Tensor& view = plan.view;
    if (is_index_int(o)) {
      view = select(view, dim, to_int(o), real_dim++);
    } else if (PySlice_Check(o)) {
      view = slice(view, dim++, o);
      ++real_dim;
    } else if (o == Py_Ellipsis) {
      dim += self.dim() - used;
      real_dim += self.dim() - used;
    } else if (o == Py_None) {
      view = ops::unsqueeze(view, dim++);
    } else if (PyBool_Check(o)) {
      view = ops::unsqueeze(view, dim);
      record(plan, dim++, bool_index(o == Py_True));
    } else {
      Tensor index = index_tensor(o);
      if (index.dim() == 0 && !is_mask(index) && !transforms::is_batched(index)) {
        if (!is_integral(index.dtype()))
          raise_index("tensors used as indices must be long, int, byte or bool tensors");
        view = select(view, dim, item_of(index).to_int(), real_dim++);
      } else if (index.dim() == 0 && is_mask(index)) {
        view = ops::unsqueeze(view, dim);
        record(plan, dim++, bool_index(item_of(index).to_bool()));
      } else if (is_mask(index)) {
        check_mask(view, index, dim);
        real_dim += index.dim();
#if __has_include("lamina/ops/nonzero.h")
        if (index.dim() > 1 && n > 1) {
          // As one index a dimension, so that what follows counts dimensions of the tensor.
          const Tensor where = ops::nonzero(index);
          for (int64_t k = 0; k < index.dim(); ++k) record(plan, dim++, ops::select(where, 1, k));
          continue;
        }
#endif
        record(plan, dim++, std::move(index));
      } else {
        record(plan, dim++, std::move(index));
        ++real_dim;
      }
    }
  }
  return plan;
}

Plan make_plan(const Tensor& self, PyObject* index) {
  if (PyTuple_Check(index))
    return make_plan(self, &PyTuple_GET_ITEM(index, 0), PyTuple_GET_SIZE(index));
  return make_plan(self, &index, 1);
}

Tensor apply_indices(const Plan& plan) {
#if __has_include("lamina/ops/index.h")
  ReleaseGil released(plan.view.numel());
  return ops::index(plan.view, plan.indices);
#else
  (void)plan;
  LAMINA_CHECK_IMPLEMENTED(false, "indexing with tensors is not part of this build of Lamina");
  return {};
#endif
}

void put(const Plan& plan, const Tensor& value) {
#if __has_include("lamina/ops/index_put.h")
  ReleaseGil released(plan.view.numel());
  ops::index_put_(plan.view, plan.indices, value, false);
#else
  (void)plan;
  (void)value;
  LAMINA_CHECK_IMPLEMENTED(false,
                           "assigning through index tensors is not part of this build of Lamina");
#endif
}

}  // namespace

namespace {
// Something that may take the call over: neither a plain Tensor nor a type that indices usually
// are.
bool is_foreign(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  if (t == &PyLong_Type || t == &PySlice_Type || t == tensor_type || t == &PyFloat_Type)
    return false;
  if (t == &PyTuple_Type) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i)
      if (is_foreign(PyTuple_GET_ITEM(o, i))) return true;
    return false;
  }
  return has_override(o);
}
}  // namespace

PyObject* tensor_subscript(PyObject* self, PyObject* index) {
  LAMINA_BORDER_BEGIN
  if (maybe_overridden(self) || is_foreign(index)) [[unlikely]] {
    const Override o = offer_method("__getitem__", {self, index});
    if (o.taken) return o.result;
  }
  const Tensor& t = unwrap(self);
  if (PyLong_CheckExact(index)) return wrap(select(t, 0, to_int(index), 0));
  if (PySlice_Check(index)) return wrap(slice(t, 0, index));
  if (is_exact_tensor(index) && t.dim() > 0) {
    // One tensor of indices: nothing to plan.
    const Tensor& i = unwrap(index);
    if (i.dtype() == ScalarType::Int64 && i.dim() > 0)
      return wrap(without_gil(t.numel(), [&] { return ops::index(t, TensorList(&i, 1)); }));
  }
  Plan plan = make_plan(t, index);
  if (plan.indices.empty()) {
    // x[...] is a tensor of its own.
    if (plan.view.is_same(t)) return wrap(ops::alias(t));
    return wrap(std::move(plan.view));
  }
  return wrap(apply_indices(plan));
  LAMINA_BORDER_END
}

int tensor_assign_subscript(PyObject* self, PyObject* index, PyObject* value) {
  LAMINA_BORDER_BEGIN
  if (!value) raise_type("Tensor does not support deleting items");
  if (maybe_overridden(self) || is_foreign(index) || is_foreign(value)) [[unlikely]] {
    const Override o = offer_method("__setitem__", {self, index, value});
    if (o.taken) {
      Py_XDECREF(o.result);
      return o.result ? 0 : -1;
    }
  }
  const Tensor& t = unwrap(self);
  const bool number = !is_tensor(value);
  if (number && !is_number(value))
    raise_type(std::string("can't assign a ") + Py_TYPE(value)->tp_name + " to a tensor of " +
               std::string(name(t.dtype())));
  const Plan plan =
      PyLong_CheckExact(index) ? Plan{select(t, 0, to_int(index), 0), {}} : make_plan(t, index);
  if (plan.indices.empty()) {
    if (number) {
      ops::fill_(plan.view, to_scalar(value));
      return 0;
    }
    Tensor source = unwrap(value);
    // Leading ones of the value need no counterpart.
    while (source.dim() > plan.view.dim() && source.sizes()[0] == 1)
      source = ops::squeeze(source, 0);
    ReleaseGil released(plan.view.numel());
    ops::copy_(plan.view, source, false);
    return 0;
  }
  put(plan, number ? make_scalar_tensor(to_scalar(value), t.dtype()) : unwrap(value));
  return 0;
  LAMINA_BORDER_END_WITH(-1)
}

namespace {

constexpr Param kNonzero[] = {{"input", P::Tensor},
                              {"as_tuple", P::Bool, kDefault | kKeyword},
                              {"out", P::Tensor, kDefault | kNone | kKeyword}};
constexpr Signature kNonzeroSignatures[] = {
    make_signature(kNonzero, "Tensor input, *, bool as_tuple = False, Tensor out = None")};
constinit Parser nonzero_parser("nonzero", kNonzeroSignatures);

// The places of what is not zero: one row each, or with as_tuple one tensor for each dimension.
PyObject* nonzero(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  const ParsedArgs r(nonzero_parser, self && is_tensor(self) ? self : nullptr, args, nargs, names);
  Tensor t = r.tensor(0);
  const bool as_tuple = r.boolean_or(1, false);
  if (r.has(2)) {
    if (as_tuple) raise_type("nonzero does not support the out kwarg when as_tuple is True");
    return wrap(without_gil(r.work(), [&] { return ops::nonzero_out(r.tensor(2), t); }));
  }
  if (as_tuple && t.dim() == 0) t = ops::unsqueeze(t, 0);
  const Tensor places = without_gil(r.work(), [&] { return ops::nonzero(t); });
  if (!as_tuple) return wrap(places);
  Ref columns = owned(PyTuple_New(t.dim()));
  for (int64_t d = 0; d < t.dim(); ++d)
    PyTuple_SET_ITEM(columns.get(), d, wrap(ops::select(places, 1, d)));
  return columns.leak();
  LAMINA_BORDER_END
}

}  // namespace

PyMethodDef index_functions[] = {
    {"nonzero", fast(nonzero), METH_FASTCALL | METH_KEYWORDS, "Where the elements are not zero."},
    {}};

}  // namespace lamina::border
