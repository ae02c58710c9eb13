#include <cstring>
#include <string>

#include "lamina/border/types.h"
#include "lamina/border/wrap.h"

namespace lamina::border {

namespace {

PyObject* objects[kNumScalarTypeSlots];

ScalarType value_of(PyObject* self) { return reinterpret_cast<DtypeObject*>(self)->value; }

// The prefix is the peer's, so that printed tensors and saved texts are equal.
PyObject* repr(PyObject* self) { return wrap("torch." + std::string(name(value_of(self)))); }

PyObject* reduce(PyObject* self, PyObject*) {
  const std::string_view n = name(value_of(self));
  return PyUnicode_FromStringAndSize(n.data(), static_cast<Py_ssize_t>(n.size()));
}
PyObject* get_is_floating(PyObject* self, void*) {
  return PyBool_FromLong(is_floating(value_of(self)));
}
PyObject* get_is_complex(PyObject* self, void*) {
  return PyBool_FromLong(is_complex(value_of(self)));
}
PyObject* get_is_signed(PyObject* self, void*) {
  const ScalarType t = value_of(self);
  return PyBool_FromLong(!is_bool(t) && !is_unsigned(t));
}
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromSize_t(item_size(value_of(self)));
}
// Where pickle looks the constant up.
PyObject* get_module(PyObject*, void*) { return PyUnicode_FromString(public_module()); }
PyObject* method_to_real(PyObject* self, PyObject*) { return wrap(to_real(value_of(self))); }
PyObject* method_to_complex(PyObject* self, PyObject*) {
  const ScalarType t = value_of(self);
  LAMINA_BORDER_BEGIN
  if (is_complex(t)) return wrap(t);
  if (!is_floating(t) || is_float8(t))
    raise_runtime("to_complex: no complex type of " + std::string(name(t)));
  return wrap(to_complex(t));
  LAMINA_BORDER_END
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr},
                         {"to_real", method_to_real, METH_NOARGS, nullptr},
                         {"to_complex", method_to_complex, METH_NOARGS, nullptr},
                         {}};
PyGetSetDef getset[] = {{"is_floating_point", get_is_floating, nullptr, nullptr, nullptr},
                        {"is_complex", get_is_complex, nullptr, nullptr, nullptr},
                        {"is_signed", get_is_signed, nullptr, nullptr, nullptr},
                        {"itemsize", get_itemsize, nullptr, nullptr, nullptr},
                        {"__module__", get_module, nullptr, nullptr, nullptr},
                        {}};

void add_alias(PyObject* module, const char* alias, ScalarType t) {
  checked(PyModule_AddObjectRef(module, alias, objects[index_of(t)]));
}

}  // namespace

PyTypeObject dtype_type = [] {
  PyTypeObject t = blank_type();
  t.tp_name = "lamina.dtype";
  t.tp_basicsize = sizeof(DtypeObject);
  t.tp_repr = repr;
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_methods = methods;
  t.tp_getset = getset;
  t.tp_doc = "The type of a tensor's elements.";
  return t;
}();

void add_dtypes(PyObject* module) {
  checked(PyType_Ready(&dtype_type));
  checked(PyModule_AddObjectRef(module, "dtype", reinterpret_cast<PyObject*>(&dtype_type)));
  for (const ScalarType t : kAllScalarTypes) {
    auto* o = PyObject_New(DtypeObject, &dtype_type);
    checked(reinterpret_cast<PyObject*>(o));
    o->value = t;
    objects[index_of(t)] = reinterpret_cast<PyObject*>(o);
    add_alias(module, std::string(name(t)).c_str(), t);
  }
  add_alias(module, "half", ScalarType::Float16);
  add_alias(module, "float", ScalarType::Float32);
  add_alias(module, "double", ScalarType::Float64);
  add_alias(module, "cfloat", ScalarType::Complex64);
  add_alias(module, "cdouble", ScalarType::Complex128);
  add_alias(module, "short", ScalarType::Int16);
  add_alias(module, "int", ScalarType::Int32);
  add_alias(module, "long", ScalarType::Int64);
}

PyObject* dtype_object(ScalarType t) { return objects[index_of(t)]; }

PyObject* wrap(ScalarType t) { return Py_NewRef(objects[index_of(t)]); }

bool is_dtype(PyObject* object) {
  return Py_TYPE(object) == &dtype_type || object == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
         object == reinterpret_cast<PyObject*>(&PyLong_Type) ||
         object == reinterpret_cast<PyObject*>(&PyBool_Type) ||
         object == reinterpret_cast<PyObject*>(&PyComplex_Type);
}

ScalarType to_dtype(PyObject* object) {
  if (Py_TYPE(object) == &dtype_type) return value_of(object);
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return default_dtype();
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return ScalarType::Int64;
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return ScalarType::Bool;
  if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) return to_complex(default_dtype());
  raise_type(std::string("expected a dtype, not ") + Py_TYPE(object)->tp_name);
}

}  // namespace lamina::border
