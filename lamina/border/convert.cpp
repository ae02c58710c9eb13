#include "lamina/border/convert.h"

#include <cstring>
#include <string>

#include "lamina/core/float_types.h"
#include "lamina/transforms/batched.h"

namespace lamina::border {

namespace {

bool has_index_slot(PyObject* object) {
  const PyNumberMethods* n = Py_TYPE(object)->tp_as_number;
  return n && n->nb_index;
}

// A tensor that may stand for a number: one element, no dimension, no gradient.
bool is_number_tensor(PyObject* object) {
  if (!is_tensor(object)) return false;
  const Tensor& t = unwrap(object);
  return t.dim() == 0 && !t.requires_grad() && !transforms::is_batched(t);
}

[[noreturn]] void raise_expected(const char* what, PyObject* object) {
  raise_type(std::string("expected ") + what + ", not " + Py_TYPE(object)->tp_name);
}

// The elements of a tensor are where its bytes are; a meta tensor has none.
void check_readable(const Tensor& t) {
  LAMINA_CHECK(!t.is_meta(),
               "item: a tensor on the meta device has no value; expected a tensor with memory");
  if (transforms::is_batched(t)) transforms::raise_item("calling .item() on a Tensor");
  LAMINA_CHECK(t.data() != nullptr, "item: the tensor has no memory");
}

}  // namespace

bool is_numpy_scalar(PyObject* object) {
  // Without importing NumPy: its scalar types are called numpy.float64 and so on and give a dtype.
  const char* n = Py_TYPE(object)->tp_name;
  return std::strncmp(n, "numpy.", 6) == 0 && std::strcmp(n, "numpy.ndarray") != 0 &&
         std::strncmp(n, "numpy.str", 9) != 0 && std::strncmp(n, "numpy.bytes", 11) != 0 &&
         std::strncmp(n, "numpy.void", 10) != 0 && std::strncmp(n, "numpy.dtype", 11) != 0 &&
         std::strncmp(n, "numpy.datetime", 14) != 0 &&
         std::strncmp(n, "numpy.timedelta", 15) != 0 && Py_TYPE(object)->tp_as_number &&
         Py_TYPE(object)->tp_as_number->nb_bool;
}

bool is_int(PyObject* object) {
  if (PyLong_CheckExact(object)) return true;
  if (PyBool_Check(object)) return false;
  if (PyLong_Check(object)) return true;
  if (is_tensor(object)) return is_number_tensor(object) && is_integral(unwrap(object).dtype());
  if (is_numpy_scalar(object))
    return has_index_slot(object) && !std::strstr(Py_TYPE(object)->tp_name, "bool");
  return false;
}

bool is_real(PyObject* object) {
  if (PyFloat_Check(object)) return true;
  if (PyLong_Check(object)) return !PyBool_Check(object);
  if (is_tensor(object)) return is_number_tensor(object);
  return is_numpy_scalar(object) && !std::strstr(Py_TYPE(object)->tp_name, "complex");
}

bool is_number(PyObject* object) {
  return PyFloat_CheckExact(object) || PyLong_Check(object) || PyFloat_Check(object) ||
         PyComplex_Check(object) || is_numpy_scalar(object);
}

int64_t to_int(PyObject* object) {
  if (!PyLong_Check(object)) {
    if (is_tensor(object)) {
      const Scalar v = item_of(unwrap(object));
      if (!v.is_integral() && !v.is_bool())
        raise_type("only integer tensors of one element can be converted to an index");
      return v.to_int();
    }
    if (!has_index_slot(object)) raise_expected("an int", object);
    Ref index = owned(PyNumber_Index(object));
    return to_int(index.get());
  }
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow != 0) raise_python(PyExc_OverflowError, "the int does not fit in 64 bits");
  if (v == -1 && PyErr_Occurred()) throw PythonError{};
  return v;
}

Sizes to_sizes(PyObject* object) {
  Sizes out;
  Ref list = owned(PySequence_Fast(object, "expected a sequence of ints"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i)
    out.push_back(to_int(PySequence_Fast_GET_ITEM(list.get(), i)));
  return out;
}

double to_double(PyObject* object) {
  if (PyFloat_CheckExact(object)) return PyFloat_AS_DOUBLE(object);
  if (is_tensor(object)) {
    const Scalar v = item_of(unwrap(object));
    if (v.is_complex()) raise_type("a complex number cannot be converted to a float");
    return v.to_double();
  }
  const double v = PyFloat_AsDouble(object);
  if (v == -1.0 && PyErr_Occurred()) throw PythonError{};
  return v;
}

bool to_bool(PyObject* object) {
  if (object == Py_True) return true;
  if (object == Py_False) return false;
  if (is_tensor(object)) return item_of(unwrap(object)).to_bool();
  const int v = PyObject_IsTrue(object);
  checked(v);
  return v != 0;
}

Scalar to_scalar(PyObject* object) {
  if (PyFloat_CheckExact(object)) return PyFloat_AS_DOUBLE(object);
  if (PyBool_Check(object)) return object == Py_True;
  if (PyLong_Check(object)) {
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) {
      if (v == -1 && PyErr_Occurred()) throw PythonError{};
      return static_cast<int64_t>(v);
    }
    if (overflow > 0) {
      const unsigned long long u = PyLong_AsUnsignedLongLong(object);
      if (!(u == static_cast<unsigned long long>(-1) && PyErr_Occurred()))
        return static_cast<uint64_t>(u);
      PyErr_Clear();
    }
    raise_python(PyExc_OverflowError, "the int does not fit in 64 bits");
  }
  if (PyFloat_Check(object)) return PyFloat_AS_DOUBLE(object);
  if (PyComplex_Check(object)) {
    const Py_complex c = PyComplex_AsCComplex(object);
    return std::complex<double>(c.real, c.imag);
  }
  if (is_tensor(object)) return item_of(unwrap(object));
  if (is_numpy_scalar(object)) {
    // numpy.bool, numpy.int32, numpy.float32, numpy.complex64: .item() is a Python number.
    Ref plain = owned(PyObject_CallMethod(object, "item", nullptr));
    if (Py_TYPE(plain.get()) == Py_TYPE(object)) return to_double(object);  // longdouble
    return to_scalar(plain.get());
  }
  raise_expected("a number", object);
}

std::string_view to_string_view(PyObject* object) {
  if (!PyUnicode_Check(object)) raise_expected("a str", object);
  Py_ssize_t n;
  const char* s = PyUnicode_AsUTF8AndSize(object, &n);
  if (!s) throw PythonError{};
  return {s, static_cast<size_t>(n)};
}

Scalar load_element(const void* p, ScalarType t) {
  return visit(t, [p](auto tag) -> Scalar {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      return *static_cast<const uint8_t*>(p) != 0;
    } else {
      T v;
      std::memcpy(&v, p, sizeof(T));
      if constexpr (is_complex_type<T>)
        return std::complex<double>(v);
      else if constexpr (std::is_integral_v<T>)
        return v;
      else
        return static_cast<double>(
            static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(v));
    }
  });
}

Scalar item_of(const Tensor& t) {
  if (t.numel() != 1)
    LAMINA_CHECK(false, "a Tensor with ", t.numel(), " elements cannot be converted to Scalar");
  check_readable(t);
  const Scalar v = load_element(t.data(), t.dtype());
  if (t.keys().has(DispatchKey::Conjugate)) return std::conj(v.to_complex());
  if (t.keys().has(DispatchKey::Negative))
    return v.is_complex() ? Scalar(-v.to_complex()) : Scalar(-v.to_double());
  return v;
}

PyObject* wrap(Scalar v) {
  switch (v.kind()) {
    case Scalar::Kind::Bool:
      return PyBool_FromLong(v.to_bool());
    case Scalar::Kind::Int:
      return PyLong_FromLongLong(v.to_int());
    case Scalar::Kind::UInt:
      return PyLong_FromUnsignedLongLong(static_cast<uint64_t>(v.to_int()));
    case Scalar::Kind::Float:
      return PyFloat_FromDouble(v.to_double());
    default: {
      const std::complex<double> c = v.to_complex();
      return PyComplex_FromDoubles(c.real(), c.imag());
    }
  }
}

}  // namespace lamina::border
