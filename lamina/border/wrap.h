// Between tensors and their Python objects, and results to Python.
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "lamina/border/python.h"
#include "lamina/core/scalar.h"
#include "lamina/core/tensor.h"

namespace lamina::border {

// The Python object of a tensor. It holds `value`, except while `value`'s impl owns the object.
struct TensorObject {
  PyObject_HEAD Tensor value;
  PyObject* dict;
  PyObject* weakrefs;
  PyObject* shape;  // the Size last asked for, or null; made anew where the sizes have changed
};

extern PyTypeObject* tensor_type;  // lamina.Tensor

inline bool is_tensor(PyObject* object) {
  return Py_TYPE(object) == tensor_type || PyType_IsSubtype(Py_TYPE(object), tensor_type);
}
inline bool is_exact_tensor(PyObject* object) { return Py_TYPE(object) == tensor_type; }
// `object` must be a tensor.
inline const Tensor& unwrap(PyObject* object) {
  return reinterpret_cast<TensorObject*>(object)->value;
}
inline const Tensor& undefined_tensor() {
  static constinit Tensor none;
  return none;
}

// A new reference to the one Python object of this tensor; None for an undefined tensor.
PyObject* wrap(Tensor t);
// A new object of a given subtype of Tensor. The tensor must have no object yet.
PyObject* wrap_as(PyTypeObject* type, Tensor t);

PyObject* wrap(Scalar v);
PyObject* wrap(ScalarType v);
PyObject* wrap(Device v);
PyObject* wrap(Layout v);
PyObject* wrap(MemoryFormat v);
PyObject* wrap(const std::vector<Tensor>& v);  // a tuple
inline PyObject* wrap(bool v) { return PyBool_FromLong(v); }
inline PyObject* wrap(int64_t v) { return PyLong_FromLongLong(v); }
inline PyObject* wrap(double v) { return PyFloat_FromDouble(v); }
PyObject* wrap(const std::string& v);
PyObject* wrap_size(IntList v);  // lamina.Size
PyObject* wrap_ints(IntList v);  // a tuple

namespace detail {
// Steals the items.
PyObject* make_tuple(PyObject** items, size_t n);
PyObject* make_named_tuple(const char* name, const char* const* fields, PyObject** items, size_t n);
}  // namespace detail

template <class... Ts>
PyObject* wrap(std::tuple<Ts...> v) {
  return std::apply(
      [](auto&... items) {
        PyObject* objects[] = {wrap(std::move(items))...};
        return detail::make_tuple(objects, sizeof...(Ts));
      },
      v);
}

// A named tuple lamina.return_types.NAME; e.g. wrap_named("max", {"values", "indices"}, result).
template <class... Ts>
PyObject* wrap_named(const char* name, const char* const (&fields)[sizeof...(Ts)],
                     std::tuple<Ts...> v) {
  return std::apply(
      [&](auto&... items) {
        PyObject* objects[] = {wrap(std::move(items))...};
        return detail::make_named_tuple(name, fields, objects, sizeof...(Ts));
      },
      v);
}

}  // namespace lamina::border
