// nn.Module is written in Python. What its calls and attributes do nearly always, they do here: a
// call without hooks is a call of forward, a parameter is looked up in the module's dicts.
// Everything else goes to the Python methods.
//
// Each class gets the two slots when it is made, as long as the methods behind them are nn.Module's
// own. The interpreter puts its general slots back where somebody assigns one of these methods to a
// class later. There is none for setting: object.__setattr__(module, ...), which programs use to
// leave registration out, refuses types with a slot of their own.
#include <array>

#include "lamina/border/python.h"
#include "lamina/border/tensor_object.h"

namespace lamina::border {

namespace {

PyTypeObject* module_type = nullptr;  // nn.Module, once it is loaded
// Hooks of all modules: dicts.
std::array<PyObject*, 4> all_hooks = {};

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

struct Names {
  std::array<PyObject*, 3> members = {interned("_parameters"), interned("_buffers"),
                                      interned("_modules")};
  std::array<PyObject*, 4> hooks = {interned("_forward_hooks"), interned("_forward_pre_hooks"),
                                    interned("_backward_hooks"), interned("_backward_pre_hooks")};
  PyObject* forward = interned("forward");
  PyObject* compiled = interned("_compiled_call_impl");
  PyObject* getattr = interned("__getattr__");
  PyObject* getattribute = interned("__getattribute__");
  std::array<PyObject*, 4> call = {interned("__call__"), interned("_wrapped_call_impl"),
                                   interned("_call_impl"), interned("_slow_forward")};
};
const Names& names() {
  static const Names all;
  return all;
}

PyObject* dict_of(PyObject* self) {
  PyObject** dict = _PyObject_GetDictPtr(self);
  return dict ? *dict : nullptr;
}

// Borrowed; null without an error where there is none. Names are strings, whose comparison cannot
// fail.
PyObject* item(PyObject* dict, PyObject* name) {
  return dict && PyDict_Check(dict) ? PyDict_GetItemWithError(dict, name) : nullptr;
}

bool is_plain_call(PyObject* dict) {
  if (!dict) return false;
  for (PyObject* hooks : all_hooks)
    if (PyDict_GET_SIZE(hooks)) return false;
  for (PyObject* name : names().hooks) {
    PyObject* hooks = item(dict, name);
    if (!hooks || !PyDict_Check(hooks) || PyDict_GET_SIZE(hooks)) return false;
  }
  PyObject* compiled = item(dict, names().compiled);
  return !compiled || compiled == Py_None;
}

PyObject* call_method_of(PyObject* self, PyObject* name, PyObject* args, PyObject* kwargs) {
  const Ref method = Ref::steal(PyObject_GetAttr(self, name));
  return method ? PyObject_Call(method.get(), args, kwargs) : nullptr;
}

constexpr Py_ssize_t kMaxOnStack = 8;

PyObject* module_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* dict = dict_of(self);
  if (!is_plain_call(dict))
    return PyErr_Occurred() ? nullptr : call_method_of(self, names().call[1], args, kwargs);
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyObject* function = _PyType_Lookup(Py_TYPE(self), names().forward);
  if (!function || !PyFunction_Check(function) || n > kMaxOnStack || item(dict, names().forward))
    return call_method_of(self, names().forward, args, kwargs);
  const Ref held = Ref::share(function);
  std::array<PyObject*, kMaxOnStack + 2> stack;
  stack[1] = self;
  for (Py_ssize_t i = 0; i < n; ++i) stack[static_cast<size_t>(i) + 2] = PyTuple_GET_ITEM(args, i);
  return PyObject_VectorcallDict(function, stack.data() + 1,
                                 static_cast<size_t>(n + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                 kwargs);
}

// A dict whose items are what its memory says; a class derived from one may look up in its own way.
bool is_plain_dict(PyObject* o) { return o && (PyDict_CheckExact(o) || PyODict_CheckExact(o)); }

PyObject* module_getattro(PyObject* self, PyObject* name) {
  if (PyObject* found = _PyObject_GenericGetAttrWithDict(self, name, nullptr, 1)) return found;
  if (PyErr_Occurred()) return nullptr;
  PyObject* dict = dict_of(self);
  for (PyObject* kind : names().members) {
    PyObject* members = item(dict, kind);
    if (!is_plain_dict(members)) break;
    if (PyObject* found = item(members, name)) return Py_NewRef(found);
  }
  if (PyErr_Occurred()) return nullptr;
  PyObject* general = _PyType_Lookup(Py_TYPE(self), names().getattr);
  if (!general) return PyObject_GenericGetAttr(self, name);
  return PyObject_CallFunctionObjArgs(general, self, name, nullptr);
}

bool is_own(PyTypeObject* type, PyObject* name) {
  return _PyType_Lookup(type, name) == _PyType_Lookup(module_type, name);
}

void give_slots(PyTypeObject* type) {
  const Names& n = names();
  if (is_own(type, n.getattr) &&
      _PyType_Lookup(type, n.getattribute) == _PyType_Lookup(&PyBaseObject_Type, n.getattribute))
    type->tp_getattro = module_getattro;
  bool calls = true;
  for (PyObject* name : n.call) calls = calls && is_own(type, name);
  if (calls) type->tp_call = module_call;
  PyType_Modified(type);
}

// _set_module_type(Module, dicts of hooks)
PyObject* set_module_type(PyObject*, PyObject* args) {
  PyObject *type, *a, *b, *c, *d;
  if (!PyArg_ParseTuple(args, "O!O!O!O!O!:_set_module_type", &PyType_Type, &type, &PyDict_Type, &a,
                        &PyDict_Type, &b, &PyDict_Type, &c, &PyDict_Type, &d))
    return nullptr;
  // Kept for good, as the type is.
  all_hooks = {Py_NewRef(a), Py_NewRef(b), Py_NewRef(c), Py_NewRef(d)};
  module_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
  give_slots(module_type);
  Py_RETURN_NONE;
}

// _give_module_slots(class derived from Module)
PyObject* give_module_slots(PyObject*, PyObject* type) {
  if (module_type && PyType_Check(type) &&
      PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), module_type))
    give_slots(reinterpret_cast<PyTypeObject*>(type));
  Py_RETURN_NONE;
}

}  // namespace

PyMethodDef module_slot_functions[] = {
    {"_set_module_type", set_module_type, METH_VARARGS, nullptr},
    {"_give_module_slots", give_module_slots, METH_O, nullptr},
    {},
};

}  // namespace lamina::border
