#include "lamina/border/override.h"

#include <cstring>
#include <string>
#include <vector>

#include "lamina/border/tensor_object.h"
#include "lamina/ops/alias.h"

namespace lamina::border {

int entered_function_modes = 0;

namespace {

// What a thread has switched off, and its modes, outermost first.
enum class Enabled : uint8_t { kAll, kModesOnly, kNothing };
thread_local Enabled t_enabled = Enabled::kAll;
thread_local std::vector<PyObject*> t_modes;  // owned

PyObject* torch_function_name() {
  static PyObject* name = PyUnicode_InternFromString("__torch_function__");
  return name;
}

// Stands for "this class does not take part"; nn.Parameter has it. Asked all the same, as the next
// class's by super(), it runs the function.
PyObject* disabled_function(PyObject*, PyObject* args);
PyMethodDef disabled_definition = {"_disabled_torch_function_impl", disabled_function, METH_VARARGS,
                                   "As __torch_function__: calls are not taken over."};
PyObject* disabled_object() {
  static PyObject* object = PyCFunction_New(&disabled_definition, nullptr);
  return object;
}

// What type(object).__torch_function__ is, borrowed; null where calls are not taken over.
PyObject* override_of(PyTypeObject* type) {
  if (type == tensor_type || type == &PyLong_Type || type == &PyFloat_Type ||
      type == &PyBool_Type || type == &PyUnicode_Type || type == &PyTuple_Type ||
      type == &PyList_Type || type == &PyDict_Type || type == &PySlice_Type ||
      type == Py_TYPE(Py_None))
    return nullptr;
  PyObject* found = _PyType_Lookup(type, torch_function_name());
  return found == disabled_object() ? nullptr : found;
}

bool is_sequence(PyObject* o) { return PyTuple_Check(o) || PyList_Check(o); }

// Arguments that take calls over, each type once, subclasses before bases.
void collect(PyObject* o, std::vector<PyObject*>& found, bool deep) {
  if (!o) return;
  if (override_of(Py_TYPE(o))) {
    for (PyObject* f : found)
      if (Py_TYPE(f) == Py_TYPE(o)) return;
    size_t at = found.size();
    for (size_t i = 0; i < found.size(); ++i)
      if (PyType_IsSubtype(Py_TYPE(o), Py_TYPE(found[i]))) {
        at = i;
        break;
      }
    found.insert(found.begin() + static_cast<std::ptrdiff_t>(at), o);
    return;
  }
  if (deep && is_sequence(o)) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < n; ++i) collect(PySequence_Fast_GET_ITEM(o, i), found, false);
  }
}

// The innermost mode, out of the stack for the time of its call.
class TakenMode {
 public:
  TakenMode() : mode_(t_modes.back()) {
    t_modes.pop_back();
    --entered_function_modes;
  }
  TakenMode(const TakenMode&) = delete;
  ~TakenMode() {
    t_modes.push_back(mode_);
    ++entered_function_modes;
  }
  PyObject* get() const { return mode_; }

 private:
  PyObject* mode_;
};

[[noreturn]] void raise_refused(PyObject* function, const std::vector<PyObject*>& found) {
  Ref name = Ref::steal(PyObject_GetAttrString(function, "__name__"));
  PyErr_Clear();
  Ref text = Ref::steal(PyObject_Str(name ? name.get() : function));
  std::string types;
  for (PyObject* f : found) types += (types.empty() ? "" : ", ") + std::string(Py_TYPE(f)->tp_name);
  PyErr_Clear();
  raise_type(std::string("no implementation found for '") +
             (text ? PyUnicode_AsUTF8(text.get()) : "?") +
             "' on types that implement __torch_function__: [" + types + "]");
}

PyObject* call_handler(PyObject* owner, PyObject* function, PyObject* types, PyObject* args,
                       PyObject* kwargs) {
  Ref handler = owned(PyObject_GetAttr(owner, torch_function_name()));
  return checked(PyObject_CallFunctionObjArgs(handler.get(), function, types, args,
                                              kwargs ? kwargs : nullptr, nullptr));
}

PyObject* offer(PyObject* function, const std::vector<PyObject*>& found, PyObject* args,
                PyObject* kwargs) {
  Ref types = owned(PyTuple_New(static_cast<Py_ssize_t>(found.size())));
  for (size_t i = 0; i < found.size(); ++i)
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(found[i]))));
  if (t_enabled != Enabled::kNothing && !t_modes.empty()) {
    const TakenMode mode;
    Ref result = Ref::steal(call_handler(mode.get(), function, types.get(), args, kwargs));
    if (result.get() != Py_NotImplemented) return result.leak();
  }
  if (t_enabled == Enabled::kAll)
    for (PyObject* owner : found) {
      Ref result = Ref::steal(call_handler(owner, function, types.get(), args, kwargs));
      if (result.get() != Py_NotImplemented) return result.leak();
    }
  raise_refused(function, found);
}

Ref tuple_of(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  const Py_ssize_t first = self ? 1 : 0;
  Ref tuple = owned(PyTuple_New(first + n));
  if (self) PyTuple_SET_ITEM(tuple.get(), 0, Py_NewRef(self));
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(tuple.get(), first + i, Py_NewRef(args[i]));
  return tuple;
}

}  // namespace

bool has_override(PyObject* object) {
  return t_enabled == Enabled::kAll && override_of(Py_TYPE(object)) != nullptr;
}

bool has_mode() { return t_enabled != Enabled::kNothing && !t_modes.empty(); }

Override offer_call(PyObject* function, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                    PyObject* kwnames) {
  if (t_enabled == Enabled::kNothing) return {};
  std::vector<PyObject*> found;
  const Py_ssize_t names = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  if (t_enabled == Enabled::kAll) {
    collect(self, found, false);
    for (Py_ssize_t i = 0; i < nargs + names; ++i) collect(args[i], found, true);
  }
  if ((found.empty() && !has_mode()) || !function) return {};
  try {
    Ref arguments = tuple_of(self, args, nargs);
    Ref kwargs;
    if (names > 0) {
      kwargs = owned(PyDict_New());
      for (Py_ssize_t i = 0; i < names; ++i)
        checked(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(kwnames, i), args[nargs + i]));
    }
    Ref held = Ref::share(function);
    return {true, offer(function, found, arguments.get(), kwargs.get())};
  } catch (...) {
    translate_exception();
    return {true, nullptr};
  }
}

Override offer_method(const char* name, std::initializer_list<PyObject*> args) {
  if (t_enabled == Enabled::kNothing) return {};
  bool any = has_mode();
  for (PyObject* o : args) any = any || has_override(o) || is_sequence(o);
  if (!any) return {};
  PyObject* function = PyDict_GetItemString(tensor_type->tp_dict, name);
  return offer_call(function, nullptr, args.begin(), static_cast<Py_ssize_t>(args.size()), nullptr);
}

void offer_function(const char* name, std::initializer_list<PyObject*> args) {
  if (t_enabled == Enabled::kNothing) return;
  const Override o = offer_call(module_function(name), nullptr, args.begin(),
                                static_cast<Py_ssize_t>(args.size()), nullptr);
  if (o.taken) throw TakenOver{o.result};
}

namespace {

// ---- attributes -------------------------------------------------------------------------------

PyObject* bound(const char* attribute, const char* what) {
  PyObject* descriptor = PyDict_GetItemString(tensor_type->tp_dict, attribute);
  return descriptor ? PyObject_GetAttrString(descriptor, what) : nullptr;
}

PyObject* get_attribute(PyObject* self, void* closure) {
  const auto* a = static_cast<const PyGetSetDef*>(closure);
  if (maybe_overridden(self)) [[unlikely]] {
    if (has_override(self) || has_mode()) {
      Ref function = Ref::steal(bound(a->name, "__get__"));
      if (!function) return nullptr;
      const Override o = offer_call(function.get(), nullptr, &self, 1, nullptr);
      if (o.taken) return o.result;
    }
  }
  return a->get(self, a->closure);
}

int set_attribute(PyObject* self, PyObject* value, void* closure) {
  const auto* a = static_cast<const PyGetSetDef*>(closure);
  if (value && maybe_overridden(self) && (has_override(self) || has_mode())) [[unlikely]] {
    Ref function = Ref::steal(bound(a->name, "__set__"));
    if (!function) return -1;
    PyObject* args[] = {self, value};
    const Override o = offer_call(function.get(), nullptr, args, 2, nullptr);
    if (o.taken) {
      Py_XDECREF(o.result);
      return o.result ? 0 : -1;
    }
  }
  return a->set(self, value, a->closure);
}

// ---- the default of Tensor --------------------------------------------------------------------

class EnabledGuard {
 public:
  explicit EnabledGuard(Enabled e) : before_(t_enabled) {
    if (e > t_enabled) t_enabled = e;
  }
  EnabledGuard(const EnabledGuard&) = delete;
  ~EnabledGuard() { t_enabled = before_; }

 private:
  Enabled before_;
};

PyObject* disabled_function(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  PyObject *function, *types, *arguments = nullptr, *keywords = nullptr;
  if (!PyArg_ParseTuple(args, "OO|OO:__torch_function__", &function, &types, &arguments, &keywords))
    return nullptr;
  Ref tuple = arguments ? owned(PySequence_Tuple(arguments)) : owned(PyTuple_New(0));
  const EnabledGuard guard(Enabled::kModesOnly);
  return PyObject_Call(function, tuple.get(), keywords == Py_None ? nullptr : keywords);
  LAMINA_BORDER_END
}

// A fresh plain tensor that nobody else holds becomes one of the class; others get an alias.
PyObject* as_class(PyObject* tensor, PyTypeObject* cls) {
  Tensor value = unwrap(tensor);
  TensorImpl* impl = value.impl();
  if (Py_REFCNT(tensor) == 1 && is_exact_tensor(tensor) && impl->pyobject() == tensor &&
      !reinterpret_cast<TensorObject*>(tensor)->dict) {
    impl->set_pyobject(nullptr, false);
    return wrap_as(cls, std::move(value));
  }
  return wrap_as(cls, ops::alias(value));
}

// Steals `result`.
PyObject* converted(PyObject* stolen, PyTypeObject* cls) {
  Ref result = Ref::steal(stolen);
  PyObject* r = result.get();
  if (is_tensor(r)) return PyType_IsSubtype(Py_TYPE(r), cls) ? result.leak() : as_class(r, cls);
  if (!is_sequence(r)) return result.leak();
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(r);
  bool any = false;
  for (Py_ssize_t i = 0; i < n; ++i)
    any = any || is_tensor(PySequence_Fast_GET_ITEM(r, i)) ||
          is_sequence(PySequence_Fast_GET_ITEM(r, i));
  if (!any) return result.leak();
  Ref list = owned(PyList_New(n));
  for (Py_ssize_t i = 0; i < n; ++i)
    PyList_SET_ITEM(list.get(), i,
                    checked(converted(Py_NewRef(PySequence_Fast_GET_ITEM(r, i)), cls)));
  if (PyList_CheckExact(r)) return list.leak();
  if (PyTuple_CheckExact(r)) return checked(PyList_AsTuple(list.get()));
  return checked(PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(r)), list.get()));
}

// Attributes whose value is given as it is: another tensor's property.
bool keeps_class(PyObject* function) {
  Ref descriptor = Ref::steal(PyObject_GetAttrString(function, "__self__"));
  if (!descriptor) PyErr_Clear();
  if (!descriptor || Py_TYPE(descriptor.get()) != &PyGetSetDescr_Type) return false;
  const char* name = reinterpret_cast<PyGetSetDescrObject*>(descriptor.get())->d_getset->name;
  return std::strcmp(name, "grad") == 0 || std::strcmp(name, "_grad") == 0 ||
         std::strcmp(name, "_base") == 0;
}

// Tensor.__torch_function__(func, types, args=(), kwargs=None): runs the function as if the class
// were not there, and gives tensors of the result the class.
PyObject* default_function(PyObject* cls, PyObject* args, PyObject* kwargs) {
  LAMINA_BORDER_BEGIN
  static const char* names[] = {"func", "types", "args", "kwargs", nullptr};
  PyObject *function, *types, *arguments = nullptr, *keywords = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:__torch_function__",
                                   const_cast<char**>(names), &function, &types, &arguments,
                                   &keywords))
    return nullptr;
  Ref list = owned(PySequence_Fast(types, "__torch_function__: types must be a sequence"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    const int fits = PyObject_IsSubclass(cls, PySequence_Fast_GET_ITEM(list.get(), i));
    checked(fits);
    if (!fits) Py_RETURN_NOTIMPLEMENTED;
  }
  Ref tuple = arguments ? owned(PySequence_Tuple(arguments)) : owned(PyTuple_New(0));
  if (keywords == Py_None) keywords = nullptr;
  const EnabledGuard guard(Enabled::kModesOnly);
  Ref result = owned(PyObject_Call(function, tuple.get(), keywords));
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  if (type == tensor_type || keeps_class(function)) return result.leak();
  return converted(result.leak(), type);
  LAMINA_BORDER_END
}

// ---- modes and switches -----------------------------------------------------------------------

PyObject* push_mode(PyObject*, PyObject* mode) {
  t_modes.push_back(Py_NewRef(mode));
  ++entered_function_modes;
  Py_RETURN_NONE;
}
PyObject* pop_mode(PyObject*, PyObject*) {
  if (t_modes.empty()) {
    PyErr_SetString(PyExc_RuntimeError, "no TorchFunctionMode is entered on this thread");
    return nullptr;
  }
  PyObject* mode = t_modes.back();
  t_modes.pop_back();
  --entered_function_modes;
  return mode;
}
PyObject* get_mode(PyObject*, PyObject* number) {
  LAMINA_BORDER_BEGIN
  const long i = PyLong_AsLong(number);
  if (i == -1 && PyErr_Occurred()) return nullptr;
  if (i < 0 || static_cast<size_t>(i) >= t_modes.size()) raise_index("no such mode");
  return Py_NewRef(t_modes[static_cast<size_t>(i)]);
  LAMINA_BORDER_END
}
PyObject* count_modes(PyObject*, PyObject*) { return PyLong_FromSize_t(t_modes.size()); }
PyObject* is_mode_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(t_enabled != Enabled::kNothing);
}
PyObject* is_enabled(PyObject*, PyObject*) { return PyBool_FromLong(t_enabled == Enabled::kAll); }

PyObject* has_function(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  if (has_mode()) Py_RETURN_TRUE;
  Ref list = owned(PySequence_Fast(args, "expected a sequence of arguments"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i)
    if (has_override(PySequence_Fast_GET_ITEM(list.get(), i))) Py_RETURN_TRUE;
  Py_RETURN_FALSE;
  LAMINA_BORDER_END
}
PyObject* has_function_variadic(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (has_mode()) Py_RETURN_TRUE;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (has_override(args[i])) Py_RETURN_TRUE;
  Py_RETURN_FALSE;
}

PyObject* has_function_unary(PyObject*, PyObject* o) {
  return PyBool_FromLong(has_mode() || has_override(o));
}

// _handle_torch_function(func, relevant, args, kwargs): what functions written in Python do.
PyObject* handle_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  LAMINA_BORDER_BEGIN
  if (n != 4) raise_type("_handle_torch_function: expected (func, relevant, args, kwargs)");
  std::vector<PyObject*> found;
  Ref list = owned(PySequence_Fast(args[1], "relevant arguments must be a sequence"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i)
    collect(PySequence_Fast_GET_ITEM(list.get(), i), found, false);
  return offer(args[0], found, args[2], args[3]);
  LAMINA_BORDER_END
}

struct SwitchObject {
  PyObject_HEAD Enabled before;
};
template <Enabled state>
PyObject* switch_enter(PyObject* self, PyObject*) {
  reinterpret_cast<SwitchObject*>(self)->before = t_enabled;
  if (state > t_enabled) t_enabled = state;
  return Py_NewRef(self);
}
PyObject* switch_exit(PyObject* self, PyObject*) {
  t_enabled = reinterpret_cast<SwitchObject*>(self)->before;
  Py_RETURN_NONE;
}
template <Enabled state>
PyMethodDef switch_methods[] = {{"__enter__", switch_enter<state>, METH_NOARGS, nullptr},
                                {"__exit__", switch_exit, METH_VARARGS, nullptr},
                                {}};
template <Enabled state>
PyTypeObject switch_type = blank_type();

template <Enabled state>
void add_switch(PyObject* module, const char* name, const char* doc) {
  PyTypeObject& t = switch_type<state>;
  t.tp_name = name;
  t.tp_basicsize = sizeof(SwitchObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_methods = switch_methods<state>;
  t.tp_new = PyType_GenericNew;
  t.tp_doc = doc;
  checked(PyType_Ready(&t));
  checked(
      PyModule_AddObjectRef(module, std::strrchr(name, '.') + 1, reinterpret_cast<PyObject*>(&t)));
}

}  // namespace

PyGetSetDef overridable_attribute(const PyGetSetDef& a) {
  // The original lives in a constant table, the closure of the one in front.
  return {a.name, a.get ? get_attribute : nullptr, a.set ? set_attribute : nullptr, a.doc,
          const_cast<PyGetSetDef*>(&a)};
}

PyMethodDef tensor_override_methods[] = {
    {"__torch_function__", fast(default_function), METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "Runs a function on tensors of a subclass, and gives the results its class."},
    {}};

PyMethodDef override_functions[] = {
    {"_push_on_torch_function_stack", push_mode, METH_O, nullptr},
    {"_pop_torch_function_stack", pop_mode, METH_NOARGS, nullptr},
    {"_get_function_stack_at", get_mode, METH_O, nullptr},
    {"_len_torch_function_stack", count_modes, METH_NOARGS, nullptr},
    {"_is_torch_function_mode_enabled", is_mode_enabled, METH_NOARGS, nullptr},
    {"_is_torch_function_enabled", is_enabled, METH_NOARGS, nullptr},
    {"_has_torch_function", has_function, METH_O, "Does any of these take calls over?"},
    {"_has_torch_function_unary", has_function_unary, METH_O, nullptr},
    {"_has_torch_function_variadic", fast(has_function_variadic), METH_FASTCALL,
     "Does any argument take calls over?"},
    {"_handle_torch_function", fast(handle_function), METH_FASTCALL, nullptr},
    {}};

void add_override_types(PyObject* module) {
  add_switch<Enabled::kModesOnly>(module, "lamina.DisableTorchFunctionSubclass",
                                  "A block in which subclasses do not take calls over.");
  add_switch<Enabled::kNothing>(module, "lamina.DisableTorchFunction",
                                "A block in which neither subclasses nor modes take calls over.");
  checked(PyModule_AddObjectRef(module, "_disabled_torch_function_impl", disabled_object()));
}

}  // namespace lamina::border
