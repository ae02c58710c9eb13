// no_grad, enable_grad, set_grad_enabled, inference_mode: context managers that are decorators too.
#include <string>

#include "lamina/autograd/mode.h"
#include "lamina/border/autograd.h"

namespace lamina::border {

namespace {

enum class What : uint8_t { NoGrad, EnableGrad, SetGrad, Inference };

struct ModeObject {
  PyObject_HEAD Mode inside;
  Mode before;
  What what;
  bool active;  // `before` is to be put back at the end of the block
};
ModeObject* as_mode(PyObject* self) { return reinterpret_cast<ModeObject*>(self); }

// lamina._decorators.decorate(make_context, function)
PyObject* decorate(PyObject* context, PyObject* function) {
  Ref module = owned(PyImport_ImportModule("lamina._decorators"));
  return PyObject_CallMethod(module.get(), "decorate", "OO", context, function);
}

bool flag(PyObject* args, PyObject* kwargs, bool absent, bool* given) {
  PyObject* o = nullptr;
  if (PyTuple_GET_SIZE(args) > 0)
    o = PyTuple_GET_ITEM(args, 0);
  else if (kwargs && PyDict_GET_SIZE(kwargs) > 0)
    o = PyDict_GetItemString(kwargs, "mode");
  *given = o != nullptr;
  if (!o) return absent;
  if (!PyBool_Check(o))
    raise_type(std::string("enabled must be a bool (got ") + Py_TYPE(o)->tp_name + ")");
  return o == Py_True;
}

template <What what>
PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  LAMINA_BORDER_BEGIN
  const Py_ssize_t n = PyTuple_GET_SIZE(args) + (kwargs ? PyDict_GET_SIZE(kwargs) : 0);
  if (n > 1) raise_type(std::string(type->tp_name) + "() takes at most one argument");
  PyObject* first = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : nullptr;
  if (first && !PyBool_Check(first) && PyCallable_Check(first) && what != What::SetGrad) {
    // @no_grad without parentheses.
    Ref context = owned(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(type)));
    return decorate(context.get(), first);
  }
  auto* o = as_mode(checked(type->tp_alloc(type, 0)));
  Ref self = Ref::steal(reinterpret_cast<PyObject*>(o));
  o->what = what;
  o->active = false;
  o->inside = t_mode;
  bool given;
  switch (what) {
    case What::NoGrad:
    case What::EnableGrad:
      if (n != 0) raise_type(std::string(type->tp_name) + "() takes no arguments");
      o->inside.grad = what == What::EnableGrad;
      break;
    case What::SetGrad:
      o->before = t_mode;
      o->inside.grad = flag(args, kwargs, true, &given);
      if (!given) raise_type("set_grad_enabled() missing 1 required positional argument: 'mode'");
      // Takes effect at once; as a block it ends with the block.
      t_mode.grad = o->inside.grad;
      o->active = true;
      break;
    case What::Inference:
      o->inside.inference = flag(args, kwargs, true, &given);
      o->inside.grad = !o->inside.inference && t_mode.grad;
      break;
  }
  return self.leak();
  LAMINA_BORDER_END
}

PyObject* enter(PyObject* self, PyObject*) {
  ModeObject* o = as_mode(self);
  if (o->what == What::SetGrad) {
    if (!o->active) o->before = t_mode;
    o->active = true;
    t_mode.grad = o->inside.grad;
    Py_RETURN_NONE;
  }
  o->before = t_mode;
  o->active = true;
  switch (o->what) {
    case What::NoGrad:
      t_mode.grad = false;
      break;
    case What::EnableGrad:
      t_mode.grad = true;
      break;
    default:
      t_mode.inference = o->inside.inference;
      if (o->inside.inference) t_mode.grad = false;
  }
  Py_RETURN_NONE;
}

PyObject* leave(PyObject* self, PyObject* const*, Py_ssize_t) {
  ModeObject* o = as_mode(self);
  if (o->active) {
    if (o->what == What::Inference) {
      t_mode = o->before;
    } else {
      t_mode.grad = o->before.grad;
    }
    o->active = false;
  }
  Py_RETURN_NONE;
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  LAMINA_BORDER_BEGIN
  PyObject* function = nullptr;
  if (!PyArg_ParseTuple(args, "O", &function) || (kwargs && PyDict_GET_SIZE(kwargs) > 0)) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_TypeError, "a grad mode is called with the function to decorate");
    return nullptr;
  }
  // As a decorator, set_grad_enabled changes the mode inside the function only.
  if (as_mode(self)->what == What::SetGrad) leave(self, nullptr, 0);
  return decorate(self, function);
  LAMINA_BORDER_END
}

// A fresh context of the same kind: decorated functions may call themselves.
PyObject* clone(PyObject* self, PyObject*) {
  PyObject* o = Py_TYPE(self)->tp_alloc(Py_TYPE(self), 0);
  if (!o) return nullptr;
  as_mode(o)->inside = as_mode(self)->inside;
  as_mode(o)->what = as_mode(self)->what;
  as_mode(o)->active = false;
  return o;
}

PyObject* get_mode(PyObject* self, void*) {
  const ModeObject* o = as_mode(self);
  return wrap(o->what == What::Inference ? o->inside.inference : o->inside.grad);
}

PyMethodDef methods[] = {{"__enter__", enter, METH_NOARGS, nullptr},
                         {"__exit__", fast(leave), METH_FASTCALL, nullptr},
                         {"clone", clone, METH_NOARGS, "A new context of this kind."},
                         {}};
PyGetSetDef getset[] = {{"mode", get_mode, nullptr, nullptr, nullptr}, {}};

template <What what>
PyTypeObject make_type(const char* name, const char* doc) {
  PyTypeObject t = blank_type();
  t.tp_name = name;
  t.tp_doc = doc;
  t.tp_basicsize = sizeof(ModeObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
  t.tp_new = make<what>;
  t.tp_call = call;
  t.tp_methods = methods;
  t.tp_getset = getset;
  return t;
}

PyTypeObject no_grad_type =
    make_type<What::NoGrad>("lamina.no_grad", "Nothing is recorded inside.");
PyTypeObject enable_grad_type =
    make_type<What::EnableGrad>("lamina.enable_grad", "Operators are recorded inside.");
PyTypeObject set_grad_type =
    make_type<What::SetGrad>("lamina.set_grad_enabled", "Turns recording on or off.");
PyTypeObject inference_type = make_type<What::Inference>(
    "lamina.inference_mode", "Nothing is recorded, versions are not counted.");

PyObject* is_grad_enabled(PyObject*, PyObject*) { return wrap(t_mode.grad); }
PyObject* is_inference_enabled(PyObject*, PyObject*) { return wrap(t_mode.inference); }
PyObject* set_grad_mode(PyObject*, PyObject* value) {
  LAMINA_BORDER_BEGIN
  t_mode.grad = to_bool(value);
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}

}  // namespace

PyMethodDef grad_mode_functions[] = {
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, "Are operators recorded?"},
    {"is_inference_mode_enabled", is_inference_enabled, METH_NOARGS,
     "Whether inference mode is on in this thread."},
    {"_set_grad_enabled", set_grad_mode, METH_O, nullptr},
    {}};

void add_grad_modes(PyObject* module) {
  const std::pair<const char*, PyTypeObject*> types[] = {{"no_grad", &no_grad_type},
                                                         {"enable_grad", &enable_grad_type},
                                                         {"set_grad_enabled", &set_grad_type},
                                                         {"inference_mode", &inference_type}};
  for (const auto& [name, type] : types) {
    checked(PyType_Ready(type));
    checked(PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(type)));
  }
}

}  // namespace lamina::border
