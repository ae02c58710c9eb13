// Size: a tuple of ints that knows its product.
#include <string>

#include "lamina/border/convert.h"
#include "lamina/border/types.h"
#include "lamina/border/wrap.h"

namespace lamina::border {

namespace {

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  LAMINA_BORDER_BEGIN
  Ref self = owned(PyTuple_Type.tp_new(type, args, kwargs));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(self.get(), i);
    if (PyLong_CheckExact(item)) continue;
    if (!is_int(item))
      raise_type("Size() takes an iterable of 'int' (item " + std::to_string(i) + " is '" +
                 Py_TYPE(item)->tp_name + "')");
    PyTuple_SET_ITEM(self.get(), i, checked(PyLong_FromLongLong(to_int(item))));
    Py_DECREF(item);
  }
  return self.leak();
  LAMINA_BORDER_END
}

PyObject* repr(PyObject* self) {
  LAMINA_BORDER_BEGIN
  std::string out = "torch.Size([";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
    Ref item = owned(PyObject_Str(PyTuple_GET_ITEM(self, i)));
    out += (i ? ", " : "") + std::string(PyUnicode_AsUTF8(item.get()));
  }
  return wrap(out + "])");
  LAMINA_BORDER_END
}

// A plain tuple's items as a Size; anything else as it is.
PyObject* as_size(PyObject* result) {
  if (!result || Py_TYPE(result) != &PyTuple_Type) return result;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); ++i)
    if (!PyLong_Check(PyTuple_GET_ITEM(result, i))) return result;
  Ref tuple = Ref::steal(result);
  const Py_ssize_t n = PyTuple_GET_SIZE(result);
  PyObject* size = size_type.tp_alloc(&size_type, n);
  if (!size) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(size, i, Py_NewRef(PyTuple_GET_ITEM(result, i)));
  return size;
}

PyObject* concat(PyObject* a, PyObject* b) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
PyObject* add(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  return concat(a, b);
}
PyObject* repeat(PyObject* a, Py_ssize_t n) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(a, n));
}
PyObject* subscript(PyObject* a, PyObject* index) {
  return as_size(PyTuple_Type.tp_as_mapping->mp_subscript(a, index));
}
PyObject* numel(PyObject* self, PyObject*) {
  Ref product = Ref::steal(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; product && i < PyTuple_GET_SIZE(self); ++i)
    product = Ref::steal(PyNumber_Multiply(product.get(), PyTuple_GET_ITEM(self, i)));
  return product.leak();
}
PyObject* reduce(PyObject* self, PyObject*) {
  Ref plain = Ref::steal(PySequence_Tuple(self));
  Ref list = Ref::steal(PySequence_List(self));
  if (!list) return nullptr;
  Ref tuple = Ref::steal(PyList_AsTuple(list.get()));
  if (!tuple) return nullptr;
  return Py_BuildValue("O(O)", &size_type, tuple.get());
}

PySequenceMethods as_sequence = [] {
  PySequenceMethods m = {};
  m.sq_concat = concat;
  m.sq_repeat = repeat;
  return m;
}();
PyMappingMethods as_mapping = [] {
  PyMappingMethods m = {};
  m.mp_subscript = subscript;
  return m;
}();
PyNumberMethods as_number = [] {
  PyNumberMethods m = {};
  m.nb_add = add;
  return m;
}();
PyMethodDef methods[] = {{"numel", numel, METH_NOARGS, "Product of the sizes."},
                         {"__reduce__", reduce, METH_NOARGS, nullptr},
                         {}};

}  // namespace

PyTypeObject size_type = [] {
  PyTypeObject t = blank_type();
  t.tp_name = "lamina.Size";
  t.tp_base = &PyTuple_Type;
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_repr = repr;
  t.tp_as_sequence = &as_sequence;
  t.tp_as_mapping = &as_mapping;
  t.tp_as_number = &as_number;
  t.tp_methods = methods;
  t.tp_new = make;
  t.tp_doc = "The sizes of a tensor.";
  return t;
}();

void add_size(PyObject* module) {
  checked(PyType_Ready(&size_type));
  checked(PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(&size_type)));
}

PyObject* wrap_size(IntList v) {
  PyObject* size = checked(size_type.tp_alloc(&size_type, static_cast<Py_ssize_t>(v.size())));
  for (size_t i = 0; i < v.size(); ++i) {
    PyObject* item = PyLong_FromLongLong(v[i]);
    if (!item) {
      Py_DECREF(size);
      throw PythonError{};
    }
    PyTuple_SET_ITEM(size, static_cast<Py_ssize_t>(i), item);
  }
  return size;
}

PyObject* wrap_ints(IntList v) {
  PyObject* tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(v.size())));
  for (size_t i = 0; i < v.size(); ++i)
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(v[i]));
  return tuple;
}

}  // namespace lamina::border
