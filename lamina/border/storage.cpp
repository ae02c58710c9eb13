// UntypedStorage: the bytes behind a family of views, as far as Python may look at them.
#include "lamina/border/tensor_object.h"

namespace lamina::border {

namespace {

struct StorageObject {
  PyObject_HEAD IntrusivePtr<Storage> value;
};
extern PyTypeObject storage_type;

const IntrusivePtr<Storage>& value_of(PyObject* self) {
  return reinterpret_cast<StorageObject*>(self)->value;
}
void dealloc(PyObject* self) {
  reinterpret_cast<StorageObject*>(self)->value.~IntrusivePtr<Storage>();
  Py_TYPE(self)->tp_free(self);
}
Py_ssize_t length(PyObject* self) {
  return value_of(self) ? static_cast<Py_ssize_t>(value_of(self)->nbytes()) : 0;
}
PyObject* data_ptr(PyObject* self, PyObject*) {
  return PyLong_FromVoidPtr(length(self) > 0 ? value_of(self)->data() : nullptr);
}
PyObject* nbytes(PyObject* self, PyObject*) { return PyLong_FromSsize_t(length(self)); }
PyObject* element_size(PyObject*, PyObject*) { return PyLong_FromLong(1); }
PyObject* get_device(PyObject* self, void*) {
  return wrap(value_of(self) ? value_of(self)->device() : kMeta);
}
PyObject* get_cdata(PyObject* self, void*) { return PyLong_FromVoidPtr(value_of(self).get()); }
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((value_of(a) == value_of(b)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* self) { return _Py_HashPointer(value_of(self).get()); }
PyObject* item(PyObject* self, Py_ssize_t i) {
  if (i < 0 || i >= length(self) || !value_of(self)->data()) {
    PyErr_SetString(PyExc_IndexError, "storage: index out of range");
    return nullptr;
  }
  return PyLong_FromLong(static_cast<const uint8_t*>(value_of(self)->data())[i]);
}

PySequenceMethods as_sequence = [] {
  PySequenceMethods m{};
  m.sq_length = length;
  m.sq_item = item;
  return m;
}();
PyMethodDef methods[] = {{"data_ptr", data_ptr, METH_NOARGS, "Address of the first byte."},
                         {"nbytes", nbytes, METH_NOARGS, "Number of bytes."},
                         {"size", nbytes, METH_NOARGS, "Number of bytes."},
                         {"element_size", element_size, METH_NOARGS, nullptr},
                         {}};
PyGetSetDef getset[] = {{"device", get_device, nullptr, nullptr, nullptr},
                        {"_cdata", get_cdata, nullptr, nullptr, nullptr},
                        {}};

PyTypeObject storage_type = [] {
  PyTypeObject t = blank_type();
  t.tp_name = "lamina.UntypedStorage";
  t.tp_basicsize = sizeof(StorageObject);
  t.tp_dealloc = dealloc;
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_richcompare = compare;
  t.tp_hash = hash;
  t.tp_as_sequence = &as_sequence;
  t.tp_methods = methods;
  t.tp_getset = getset;
  t.tp_doc = "The bytes that views of a tensor share.";
  return t;
}();

}  // namespace

void add_storage_type(PyObject* module) {
  checked(PyType_Ready(&storage_type));
  checked(
      PyModule_AddObjectRef(module, "UntypedStorage", reinterpret_cast<PyObject*>(&storage_type)));
}

PyObject* wrap_storage(IntrusivePtr<Storage> storage) {
  PyObject* o = checked(storage_type.tp_alloc(&storage_type, 0));
  new (&reinterpret_cast<StorageObject*>(o)->value) IntrusivePtr<Storage>(std::move(storage));
  return o;
}

}  // namespace lamina::border
