// Tensors from nested sequences and numbers: lamina.tensor and what leads to it.
#include <string>

#include "lamina/border/construct.h"
#include "lamina/border/tensor_object.h"
#include "lamina/core/float_types.h"
#include "lamina/kernels/result.h"
#include "lamina/ops/detach.h"
#include "lamina/ops/to.h"
#include "lamina/shape/promotion.h"

namespace lamina::border {

namespace {

constexpr size_t kMaxDims = 64;

bool is_text(PyObject* o) { return PyUnicode_Check(o) || PyBytes_Check(o); }
bool has_array(PyObject* o);
bool is_nested(PyObject* o) {
  if (PyList_Check(o) || PyTuple_Check(o)) return true;
  if (is_text(o) || is_tensor(o) || PyDict_Check(o) || is_number(o)) return false;
  return PySequence_Check(o) && PyObject_HasAttrString(o, "__len__") && !has_array(o);
}
bool has_array(PyObject* o) {
  return !PyList_Check(o) && !PyTuple_Check(o) && !PyType_Check(o) && !is_number(o) &&
         (PyObject_HasAttrString(o, "__array_interface__") ||
          PyObject_HasAttrString(o, "__array__"));
}

// What a walk over the data finds out.
struct Found {
  Sizes sizes;
  bool any = false;
  ScalarType dtype = ScalarType::Bool;

  void add(ScalarType t) {
    dtype = any && dtype != t ? promote_types(dtype, t) : t;
    any = true;
  }
};

ScalarType type_of_number(PyObject* o) {
  // NumPy's float64 and complex128 derive from Python's numbers, and keep their own types.
  const bool derived = (PyFloat_Check(o) && !PyFloat_CheckExact(o)) ||
                       (PyComplex_Check(o) && !PyComplex_CheckExact(o));
  if (derived && is_numpy_scalar(o)) return array_dtype(o);
  if (PyFloat_Check(o)) return default_dtype();
  if (PyBool_Check(o)) return ScalarType::Bool;
  if (PyLong_Check(o)) return ScalarType::Int64;
  if (PyComplex_Check(o)) return to_complex(default_dtype());
  if (is_tensor(o)) return unwrap(o).dtype();
  if (is_numpy_scalar(o)) return array_dtype(o);
  if (is_text(o))
    raise_python(PyExc_TypeError,
                 std::string("new(): invalid data type '") + Py_TYPE(o)->tp_name + "'");
  if (has_array(o)) return array_dtype(o);
  if (Py_TYPE(o)->tp_as_number && Py_TYPE(o)->tp_as_number->nb_index) return ScalarType::Int64;
  if (Py_TYPE(o)->tp_as_number && Py_TYPE(o)->tp_as_number->nb_float) return default_dtype();
  raise_python(PyExc_RuntimeError, std::string("Could not infer dtype of ") + Py_TYPE(o)->tp_name);
}

// Sizes along the first items, and the common type of all.
void measure(PyObject* o, size_t depth, Found& found) {
  if (!is_nested(o)) {
    if ((is_tensor(o) && unwrap(o).dim() > 0) || (!is_tensor(o) && !is_number(o) && has_array(o))) {
      // Rows that are arrays themselves.
      const Sizes rows =
          is_tensor(o) ? Sizes{std::span<const int64_t>(unwrap(o).sizes())} : array_sizes(o);
      for (size_t i = 0; i < rows.size(); ++i)
        if (depth + i == found.sizes.size()) found.sizes.push_back(rows[i]);
      found.add(is_tensor(o) ? unwrap(o).dtype() : array_dtype(o));
      return;
    }
    // A string in a list counts as a list of strings without end.
    if (depth > 0 && !found.any && is_text(o))
      raise_value(std::string("too many dimensions '") + Py_TYPE(o)->tp_name + "'");
    found.add(type_of_number(o));
    return;
  }
  if (depth >= kMaxDims)
    raise_value(std::string("too many dimensions '") + Py_TYPE(o)->tp_name + "': at most 64");
  // A released memoryview gives an iterator of nothing; its length raises.
  if (PySequence_Size(o) < 0) throw PythonError{};
  Ref items = owned(PySequence_Fast(o, "not a sequence"));
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
  if (found.sizes.size() == depth) found.sizes.push_back(n);
  if (found.sizes[depth] != n)
    raise_value("expected sequence of length " + std::to_string(found.sizes[depth]) + " at dim " +
                std::to_string(depth) + " (got " + std::to_string(n) + ")");
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (PyFloat_CheckExact(item) && depth + 1 == found.sizes.size()) {
      found.add(default_dtype());
      continue;
    }
    Ref held = Ref::share(item);
    measure(item, depth + 1, found);
  }
}

[[noreturn]] void raise_range(ScalarType t) {
  std::string text = "value cannot be converted to type ";
  text += name(t);
  raise_runtime(text + " without overflow");
}

template <class T>
T number_as(PyObject* o) {
  constexpr ScalarType kType = scalar_type_of<T>;
  if constexpr (is_complex_type<T>) {
    if (PyComplex_Check(o) || is_tensor(o) || is_numpy_scalar(o))
      return convert_to<T>(to_scalar(o).to_complex());
    return convert_to<T>(to_double(o));
  } else if constexpr (std::is_same_v<T, bool>) {
    return to_bool(o);
  } else if constexpr (std::is_integral_v<T>) {
    if (PyFloat_Check(o)) {
      const double v = PyFloat_AS_DOUBLE(o);
      if (!(v > -9.3e18 && v < 1.85e19)) raise_range(kType);
      return convert_to<T>(v);
    }
    if (PyComplex_Check(o)) raise_type("can't convert complex to int");
    Scalar v;
    if (PyLong_Check(o) || is_tensor(o) || is_numpy_scalar(o)) {
      v = to_scalar(o);
      if (v.is_floating() || v.is_complex()) return convert_to<T>(v.to_double());
    } else {
      v = to_int(o);
    }
    if constexpr (std::is_same_v<T, uint64_t>) {
      if (v.kind() == Scalar::Kind::Int && v.to_int() < 0) return static_cast<T>(v.to_int());
      return static_cast<T>(v.to_int());
    } else {
      if (v.kind() == Scalar::Kind::UInt) raise_value("Overflow when unpacking long long");
      const int64_t n = v.to_int();
      // As in the peer, a negative number wraps in an unsigned type.
      if constexpr (sizeof(T) < 8) {
        constexpr int64_t kLow = std::is_unsigned_v<T>
                                     ? -static_cast<int64_t>(std::numeric_limits<T>::max())
                                     : static_cast<int64_t>(std::numeric_limits<T>::min());
        if (n > static_cast<int64_t>(std::numeric_limits<T>::max()) || n < kLow) raise_range(kType);
      }
      return static_cast<T>(n);
    }
  } else {
    if (PyComplex_Check(o)) raise_type("can't convert complex to float");
    return convert_to<T>(to_double(o));
  }
}

// Numbers that do not fit in 64 bits are ValueErrors here, as in the peer.
[[noreturn]] void rethrow_overflow() {
  if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
    PyErr_Clear();
    PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
  }
  throw PythonError{};
}

template <class T>
T* fill(PyObject* o, size_t depth, const Sizes& sizes, T* p) {
  if (depth == sizes.size()) {
    if (is_nested(o))
      raise_type("tensor: a sequence where a number was expected: the rows have different depths");
    *p = number_as<T>(o);
    return p + 1;
  }
  if (!is_nested(o)) {
    if (is_tensor(o) || has_array(o)) return fill_from_array<T>(o, depth, sizes, p);
    raise_type("tensor: a number where a sequence was expected: the rows have different depths");
  }
  Ref items = owned(PySequence_Fast(o, "not a sequence"));
  const Py_ssize_t n = static_cast<Py_ssize_t>(sizes[depth]);
  const bool last = depth + 1 == sizes.size();
  for (Py_ssize_t i = 0; i < n; ++i) {
    // The sequence may change under our hands: a conversion can run any code.
    if (PySequence_Fast_GET_SIZE(items.get()) != n)
      raise_value("tensor: the sequence changed its length while it was read");
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if constexpr (std::is_floating_point_v<T>) {
      if (last && PyFloat_CheckExact(item)) {
        *p++ = static_cast<T>(PyFloat_AS_DOUBLE(item));
        continue;
      }
    }
    Ref held = Ref::share(item);
    p = fill<T>(item, depth + 1, sizes, p);
  }
  return p;
}

Tensor convert(const Tensor& t, std::optional<ScalarType> dtype, std::optional<Device> device,
               bool copy) {
  ReleaseGil released(t.numel());
  return ops::to(t, dtype, std::nullopt, device, std::nullopt, false, copy, std::nullopt);
}

Tensor converted_copy(const Tensor& source, std::optional<ScalarType> dtype,
                      std::optional<Device> device) {
  return convert(ops::detach(source), dtype, device, true);
}

}  // namespace

Tensor tensor_from_data(PyObject* data, std::optional<ScalarType> dtype,
                        std::optional<Device> device) {
  if (is_tensor(data)) return converted_copy(unwrap(data), dtype, device);
  if (is_text(data))
    raise_type(std::string("new(): invalid data type '") + Py_TYPE(data)->tp_name + "'");
  if (!is_number(data) && has_array(data)) {
    return converted_copy(share_array(data, false), dtype, device);
  }
  Found found;
  measure(data, 0, found);
  const ScalarType type = dtype ? *dtype : found.any ? found.dtype : default_dtype();
  if (device && device->is_meta()) return empty_contiguous(found.sizes, type, *device);
  Tensor t = empty_contiguous(found.sizes, type, kCpu);
  if (t.numel() > 0) {
    try {
      visit(type, [&](auto tag) {
        using T = typename decltype(tag)::type;
        fill<T>(data, 0, found.sizes, static_cast<T*>(t.data()));
      });
    } catch (const PythonError&) {
      rethrow_overflow();
    }
  }
  if (device && !device->is_cpu()) return convert(t, std::nullopt, device, false);
  return t;
}

namespace {

void set_requires_grad(const Tensor& t, bool value) {
  if (!value) return;
  Ref self = owned(wrap(t));
  owned(PyObject_CallMethod(self.get(), "requires_grad_", nullptr));
}

constexpr Param kTensor[] = {{"data", P::Object},
                             {"dtype", P::ScalarType, kDefault | kNone | kKeyword},
                             {"device", P::Device, kDefault | kNone | kKeyword},
                             {"requires_grad", P::Bool, kDefault | kNone | kKeyword},
                             {"pin_memory", P::Bool, kDefault | kNone | kKeyword},
                             {"names", P::Object, kDefault | kNone | kKeyword}};
constexpr Signature kTensorSignatures[] = {make_signature(
    kTensor,
    "object data, *, torch.dtype dtype = None, torch.device device = None, bool requires_grad = "
    "False, bool pin_memory = False")};
constinit Parser tensor_parser("tensor", kTensorSignatures);

PyObject* make_tensor(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  const ParsedArgs r(tensor_parser, nullptr, args, nargs, names);
  Tensor t = tensor_from_data(r.object(0), r.optional_scalar_type(1), r.optional_device(2));
  if (r.boolean_or(3, false)) set_requires_grad(t, true);
  return wrap(std::move(t));
  LAMINA_BORDER_END
}

constexpr Param kAsTensor[] = {{"data", P::Object},
                               {"dtype", P::ScalarType, kDefault | kNone},
                               {"device", P::Device, kDefault | kNone}};
constexpr Signature kAsTensorSignatures[] = {
    make_signature(kAsTensor, "object data, torch.dtype dtype = None, torch.device device = None")};
constinit Parser as_tensor_parser("as_tensor", kAsTensorSignatures);

// The data itself where it is a tensor or an array of the right type, else a new tensor.
PyObject* share_or_copy(PyObject* data, std::optional<ScalarType> dtype,
                        std::optional<Device> device) {
  if (!is_tensor(data) && (is_number(data) || is_text(data) || !has_array(data)))
    return wrap(tensor_from_data(data, dtype, device));
  Ref result = is_tensor(data) ? Ref::share(data) : owned(wrap(share_array(data, false)));
  const Tensor& t = unwrap(result.get());
  if ((device && !(*device == t.device())) || (dtype && *dtype != t.dtype()))
    return wrap(convert(t, dtype, device, false));
  return result.leak();
}

PyObject* as_tensor(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  const ParsedArgs r(as_tensor_parser, nullptr, args, nargs, names);
  return share_or_copy(r.object(0), r.optional_scalar_type(1), r.optional_device(2));
  LAMINA_BORDER_END
}

constexpr Param kAsArray[] = {{"obj", P::Object},
                              {"dtype", P::ScalarType, kDefault | kNone | kKeyword},
                              {"device", P::Device, kDefault | kNone | kKeyword},
                              {"copy", P::Bool, kDefault | kNone | kKeyword},
                              {"requires_grad", P::Bool, kDefault | kNone | kKeyword}};
constexpr Signature kAsArraySignatures[] = {make_signature(
    kAsArray,
    "object obj, *, torch.dtype dtype = None, torch.device device = None, bool copy = None, bool "
    "requires_grad = False")};
constinit Parser asarray_parser("asarray", kAsArraySignatures);

PyObject* as_array(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  const ParsedArgs r(asarray_parser, nullptr, args, nargs, names);
  const auto dtype = r.optional_scalar_type(1);
  const auto device = r.optional_device(2);
  PyObject* data = r.object(0);
  const bool must_copy = r.boolean_or(3, false);
  const bool may_copy = !r.has(3) || must_copy;
  Ref result;
  if (must_copy) {
    result = owned(wrap(tensor_from_data(data, dtype, device)));
  } else if (is_storage(data) && PyObject_Size(data) == 0) {
    result = owned(wrap(empty_contiguous(Sizes{0}, dtype.value_or(default_dtype()), kCpu)));
  } else if (PyObject_CheckBuffer(data) && !is_tensor(data) && !has_array(data) && !is_text(data)) {
    result = owned(wrap(share_buffer(data, dtype.value_or(default_dtype()), -1, 0, "asarray")));
  } else {
    const bool shares = is_tensor(data) || (!is_number(data) && has_array(data));
    result = owned(share_or_copy(data, dtype, device));
    const bool copied = !shares || (is_tensor(data) && result.get() != data) ||
                        (!is_tensor(data) && dtype && array_dtype(data) != *dtype);
    if (copied && !may_copy)
      raise_value(
          "can't alias arbitrary sequence or convert without copying; copy=False was given");
  }
  const bool wanted = r.boolean_or(4, false);
  if (unwrap(result.get()).requires_grad() && !wanted)
    result = call_method(generated_method("detach"), result.get());
  if (wanted) set_requires_grad(unwrap(result.get()), true);
  return result.leak();
  LAMINA_BORDER_END
}

constexpr Param kScalarTensor[] = {{"s", P::Scalar},
                                   {"dtype", P::ScalarType, kDefault | kNone | kKeyword},
                                   {"layout", P::Layout, kDefault | kNone | kKeyword},
                                   {"device", P::Device, kDefault | kNone | kKeyword},
                                   {"pin_memory", P::Bool, kDefault | kNone | kKeyword},
                                   {"requires_grad", P::Bool, kDefault | kNone | kKeyword}};
constexpr Signature kScalarTensorSignatures[] = {make_signature(
    kScalarTensor,
    "Number s, *, torch.dtype dtype = None, torch.layout layout = None, torch.device device = "
    "None, bool pin_memory = False, bool requires_grad = False")};
constinit Parser scalar_tensor_parser("scalar_tensor", kScalarTensorSignatures);

PyObject* scalar_tensor(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  const ParsedArgs r(scalar_tensor_parser, nullptr, args, nargs, names);
  const Device device = r.device_or(3, default_device());
  const ScalarType dtype = r.scalar_type_or(1, default_dtype());
  Tensor t = device.is_meta() ? empty_contiguous({}, dtype, device)
                              : make_scalar_tensor(r.scalar(0), dtype);
  set_requires_grad(t, r.boolean_or(5, false));
  return wrap(std::move(t));
  LAMINA_BORDER_END
}

}  // namespace

PyMethodDef construct_functions[] = {
    {"tensor", fast(make_tensor), METH_FASTCALL | METH_KEYWORDS, "A new tensor that copies data."},
    {"as_tensor", fast(as_tensor), METH_FASTCALL | METH_KEYWORDS,
     "A tensor, sharing memory where it can."},
    {"asarray", fast(as_array), METH_FASTCALL | METH_KEYWORDS,
     "A tensor from an array, buffer or sequence."},
    {"scalar_tensor", fast(scalar_tensor), METH_FASTCALL | METH_KEYWORDS,
     "A tensor without dimensions."},
    {}};

}  // namespace lamina::border
