#include <string>
#include <vector>

#include "lamina/border/types.h"
#include "lamina/border/wrap.h"

namespace lamina::border {

namespace {

Device default_device_ = kCpu;
// Devices to go back to at the end of `with device:` blocks.
std::vector<Device>& device_stack() {
  static std::vector<Device> stack;
  return stack;
}

Device value_of(PyObject* self) { return reinterpret_cast<DeviceObject*>(self)->value; }

std::string_view text_of(PyObject* object) {
  Py_ssize_t n;
  const char* s = PyUnicode_AsUTF8AndSize(object, &n);
  if (!s) throw PythonError{};
  return {s, static_cast<size_t>(n)};
}

PyObject* make(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  LAMINA_BORDER_BEGIN
  static const char* names[] = {"type", "index", nullptr};
  PyObject* type = nullptr;
  PyObject* index = nullptr;
  if (PyTuple_GET_SIZE(args) + (kwargs ? PyDict_GET_SIZE(kwargs) : 0) == 1 && kwargs) {
    if (PyObject* d = PyDict_GetItemString(kwargs, "device")) return wrap(to_device(d));
  }
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &type,
                                   &index))
    return nullptr;
  Device d = to_device(type);
  if (index && index != Py_None) {
    if (!PyUnicode_Check(type))
      raise_type("device(): argument 'type' must be str when an index is given");
    if (d.has_index())
      raise_runtime("device: the type must not name an index when an index is given; got " +
                    to_string(d));
    const long i = PyLong_AsLong(index);
    if (i == -1 && PyErr_Occurred()) throw PythonError{};
    if (i < 0 || i > 127)
      raise_runtime("device: the index must be in 0..127; got " + std::to_string(i));
    d.index = static_cast<int8_t>(i);
  }
  return wrap(d);
  LAMINA_BORDER_END
}

PyObject* repr(PyObject* self) {
  const Device d = value_of(self);
  const std::string type(name(d.type));
  if (!d.has_index()) return PyUnicode_FromFormat("device(type='%s')", type.c_str());
  return PyUnicode_FromFormat("device(type='%s', index=%d)", type.c_str(), int{d.index});
}
PyObject* str(PyObject* self) { return wrap(to_string(value_of(self))); }
Py_hash_t hash(PyObject* self) {
  const Device d = value_of(self);
  return (static_cast<int>(d.type) << 8) + d.index + 2;
}
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != &device_type || Py_TYPE(b) != &device_type || (op != Py_EQ && op != Py_NE))
    Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((value_of(a) == value_of(b)) == (op == Py_EQ));
}
PyObject* get_type(PyObject* self, void*) { return wrap(std::string(name(value_of(self).type))); }
PyObject* get_index(PyObject* self, void*) {
  const Device d = value_of(self);
  if (!d.has_index()) Py_RETURN_NONE;
  return PyLong_FromLong(d.index);
}
PyObject* enter(PyObject* self, PyObject*) {
  device_stack().push_back(default_device_);
  default_device_ = value_of(self);
  return Py_NewRef(self);
}
PyObject* exit(PyObject*, PyObject*) {
  if (!device_stack().empty()) {
    default_device_ = device_stack().back();
    device_stack().pop_back();
  }
  Py_RETURN_NONE;
}
PyObject* reduce(PyObject* self, PyObject*) {
  const Device d = value_of(self);
  const std::string type(name(d.type));
  if (d.has_index()) return Py_BuildValue("O(si)", &device_type, type.c_str(), int{d.index});
  return Py_BuildValue("O(s)", &device_type, type.c_str());
}

PyMethodDef methods[] = {{"__enter__", enter, METH_NOARGS, nullptr},
                         {"__exit__", exit, METH_VARARGS, nullptr},
                         {"__reduce__", reduce, METH_NOARGS, nullptr},
                         {}};
PyGetSetDef getset[] = {{"type", get_type, nullptr, nullptr, nullptr},
                        {"index", get_index, nullptr, nullptr, nullptr},
                        {}};

}  // namespace

PyTypeObject device_type = [] {
  PyTypeObject t = blank_type();
  t.tp_name = "lamina.device";
  t.tp_basicsize = sizeof(DeviceObject);
  t.tp_repr = repr;
  t.tp_str = str;
  t.tp_hash = hash;
  t.tp_richcompare = compare;
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_methods = methods;
  t.tp_getset = getset;
  t.tp_new = make;
  t.tp_doc = "Where a tensor's bytes live: device('cpu'), device('meta'), device('cuda', 0).";
  return t;
}();

void add_devices(PyObject* module) {
  checked(PyType_Ready(&device_type));
  checked(PyModule_AddObjectRef(module, "device", reinterpret_cast<PyObject*>(&device_type)));
}

PyObject* wrap(Device d) {
  // The device of nearly every call, made once.
  static PyObject* cpu = nullptr;
  if (d == kCpu && cpu) return Py_NewRef(cpu);
  auto* o = PyObject_New(DeviceObject, &device_type);
  checked(reinterpret_cast<PyObject*>(o));
  o->value = d;
  if (d == kCpu) cpu = Py_NewRef(reinterpret_cast<PyObject*>(o));
  return reinterpret_cast<PyObject*>(o);
}

bool is_device(PyObject* object) {
  return Py_TYPE(object) == &device_type || PyUnicode_Check(object) ||
         (PyLong_Check(object) && !PyBool_Check(object));
}

Device to_device(PyObject* object) {
  if (Py_TYPE(object) == &device_type) return value_of(object);
  if (PyUnicode_Check(object)) return parse_device(text_of(object));
  if (PyLong_Check(object) && !PyBool_Check(object)) {
    const long i = PyLong_AsLong(object);
    if (i == -1 && PyErr_Occurred()) throw PythonError{};
    if (i < 0 || i > 127)
      raise_runtime("device: the index must be in 0..127; got " + std::to_string(i));
    return {DeviceType::CUDA, static_cast<int8_t>(i)};
  }
  raise_type(std::string("expected a device, a string or an index, not ") +
             Py_TYPE(object)->tp_name);
}

Device default_device() { return default_device_; }
void set_default_device(Device d) { default_device_ = d; }

}  // namespace lamina::border
