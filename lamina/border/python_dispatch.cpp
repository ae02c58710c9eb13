// __torch_dispatch__: the dispatcher's key Python, served by tensor subclasses and modes; and
// kernels that are functions of Python.
//
// A tensor whose class defines __torch_dispatch__ carries the key Python, below autograd and above
// the backends: autograd records, and what is left of the call comes here, boxed.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lamina/border/operators.h"
#include "lamina/border/tensor_object.h"
#include "lamina/dispatch/library.h"
#include "lamina/kernels/result.h"

namespace lamina::border {

namespace {

using dispatch::Operator;
using dispatch::Stack;
using dispatch::Value;

thread_local std::vector<PyObject*> t_modes;  // owned; the innermost last

class Gil {
 public:
  Gil() : state_(PyGILState_Ensure()) {}
  Gil(const Gil&) = delete;
  ~Gil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

void include_python(bool on) {
  KeySet& included = dispatch::t_local.included;
  included = on ? included | DispatchKey::Python : included - DispatchKey::Python;
}

PyObject* dispatch_name() {
  static PyObject* name = PyUnicode_InternFromString("__torch_dispatch__");
  return name;
}
PyObject* disabled_dispatch(PyObject*, PyObject*) { Py_RETURN_NOTIMPLEMENTED; }
PyMethodDef disabled_definition = {"_disabled_torch_dispatch_impl", disabled_dispatch, METH_VARARGS,
                                   "As __torch_dispatch__: calls are not taken over."};
PyObject* disabled_object() {
  static PyObject* object = PyCFunction_New(&disabled_definition, nullptr);
  return object;
}

void collect(const Tensor& t, std::vector<Ref>& owners) {
  if (!t.defined() || !t.keys().has(DispatchKey::Python)) return;
  Ref object = owned(wrap(t));
  if (!has_torch_dispatch(Py_TYPE(object.get()))) return;
  size_t at = owners.size();
  for (size_t i = 0; i < owners.size(); ++i) {
    if (Py_TYPE(owners[i].get()) == Py_TYPE(object.get())) return;
    if (at == owners.size() && PyType_IsSubtype(Py_TYPE(object.get()), Py_TYPE(owners[i].get())))
      at = i;
  }
  owners.insert(owners.begin() + static_cast<std::ptrdiff_t>(at), std::move(object));
}

std::vector<Ref> owners_of(const Stack& stack) {
  std::vector<Ref> owners;
  for (const Value& v : stack) {
    if (const auto* t = std::get_if<Tensor>(&v)) collect(*t, owners);
    if (const auto* list = std::get_if<std::vector<Tensor>>(&v))
      for (const Tensor& t : *list) collect(t, owners);
  }
  return owners;
}

// The innermost mode, out of the way while it handles a call.
class TakenMode {
 public:
  TakenMode() : mode_(t_modes.back()) {
    t_modes.pop_back();
    include_python(!t_modes.empty());
  }
  TakenMode(const TakenMode&) = delete;
  ~TakenMode() {
    t_modes.push_back(mode_);
    include_python(true);
  }
  PyObject* get() const { return mode_; }

 private:
  PyObject* mode_;
};

// What layers above have done is not done again inside.
constexpr KeySet kDone = kAutogradKeys | KeySet(DispatchKey::ADInplaceOrView);

// Rules of one operator for one class, {overload: {class: function}}: they come before the class's
// own handler.
PyObject* torch_dispatch_rules() {
  static PyObject* rules = checked(PyDict_New());
  return rules;
}
Ref rule_of(PyObject* type, PyObject* overload) {
  PyObject* rules = torch_dispatch_rules();
  if (PyDict_GET_SIZE(rules) == 0) return {};
  PyObject* of_operator = PyDict_GetItemWithError(rules, overload);
  PyObject* rule = of_operator ? PyDict_GetItemWithError(of_operator, type) : nullptr;
  if (PyErr_Occurred()) throw PythonError{};
  return rule ? Ref::share(rule) : Ref();
}

bool call_handler(PyObject* owner, PyObject* overload, PyObject* types, const CallArguments& a,
                  const Operator& op, Stack& stack) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(owner));
  const Ref rule = rule_of(type, overload);
  Ref result;
  if (rule) {
    result =
        owned(PyObject_CallFunctionObjArgs(rule.get(), is_tensor(owner) ? type : owner, overload,
                                           types, a.args.get(), a.kwargs.get(), nullptr));
  } else {
    Ref handler = owned(PyObject_GetAttr(owner, dispatch_name()));
    result = owned(PyObject_CallFunctionObjArgs(handler.get(), overload, types, a.args.get(),
                                                a.kwargs.get(), nullptr));
  }
  if (result.get() == Py_NotImplemented) return false;
  set_results(op, result.get(), stack);
  return true;
}

void python_fallback(const Operator& op, KeySet keys, Stack& stack) {
  const Gil gil;
  std::vector<Ref> owners = owners_of(stack);
  if (t_modes.empty() && owners.empty()) return op.call_boxed(keys - DispatchKey::Python, stack);
  const dispatch::ExcludeGuard below(kDone);
  Ref overload = owned(overload_object(op));
  const CallArguments arguments = arguments_of(op, stack);
  Ref types = owned(PyTuple_New(static_cast<Py_ssize_t>(owners.size())));
  for (size_t i = 0; i < owners.size(); ++i)
    PyTuple_SET_ITEM(types.get(), static_cast<Py_ssize_t>(i),
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(owners[i].get()))));
  if (!t_modes.empty()) {
    const TakenMode mode;
    if (call_handler(mode.get(), overload.get(), types.get(), arguments, op, stack)) return;
  }
  for (const Ref& owner : owners)
    if (call_handler(owner.get(), overload.get(), types.get(), arguments, op, stack)) return;
  std::string names;
  for (const Ref& o : owners)
    names += (names.empty() ? "" : ", ") + std::string(Py_TYPE(o.get())->tp_name);
  raise_type("no implementation found for '" + op.full_name() +
             "' on types that implement __torch_dispatch__: [" + names + "]");
}

PyObject* push_mode(PyObject*, PyObject* mode) {
  LAMINA_BORDER_BEGIN
  serve_python_key();
  t_modes.push_back(Py_NewRef(mode));
  include_python(true);
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
PyObject* pop_mode(PyObject*, PyObject*) {
  LAMINA_BORDER_BEGIN
  if (t_modes.empty()) raise_runtime("no TorchDispatchMode is entered on this thread");
  PyObject* mode = t_modes.back();
  t_modes.pop_back();
  include_python(!t_modes.empty());
  return mode;
  LAMINA_BORDER_END
}
PyObject* count_modes(PyObject*, PyObject*) { return PyLong_FromSize_t(t_modes.size()); }
PyObject* get_mode(PyObject*, PyObject* number) {
  LAMINA_BORDER_BEGIN
  const int64_t i = to_int(number);
  if (i < 0 || static_cast<size_t>(i) >= t_modes.size()) raise_index("no such mode");
  return Py_NewRef(t_modes[static_cast<size_t>(i)]);
  LAMINA_BORDER_END
}

// _make_wrapper_subclass(cls, size, *, strides, storage_offset, memory_format, dtype, layout,
// device, pin_memory, requires_grad, ...): a tensor of that shape without memory, for classes that
// hold their data elsewhere.
PyObject* make_wrapper(PyObject*, PyObject* args, PyObject* kwargs) {
  LAMINA_BORDER_BEGIN
  static const char* names[] = {"cls",
                                "size",
                                "strides",
                                "storage_offset",
                                "memory_format",
                                "dtype",
                                "layout",
                                "device",
                                "pin_memory",
                                "requires_grad",
                                "dispatch_sizes_strides_policy",
                                "dispatch_device",
                                "dispatch_layout",
                                "_extra_dispatch_keys",
                                "storage_size",
                                nullptr};
  PyObject *cls, *size, *strides = Py_None, *offset = Py_None, *format = Py_None, *dtype = Py_None,
                        *layout = Py_None, *device = Py_None, *ignored = Py_None;
  int pin = 0, requires_grad = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|OOOOOOppOOOOO:_make_wrapper_subclass",
                                   const_cast<char**>(names), &PyType_Type, &cls, &size, &strides,
                                   &offset, &format, &dtype, &layout, &device, &pin, &requires_grad,
                                   &ignored, &ignored, &ignored, &ignored, &ignored))
    return nullptr;
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  if (!PyType_IsSubtype(type, tensor_type))
    raise_type("_make_wrapper_subclass: cls must be a subclass of Tensor");
  if (!has_torch_dispatch(type))
    raise_runtime("_make_wrapper_subclass: cls must define __torch_dispatch__");
  const Device place = device == Py_None ? kCpu : to_device(device);
  const ScalarType element = dtype == Py_None ? default_dtype() : to_dtype(dtype);
  const Sizes sizes = to_sizes(size);
  for (const int64_t s : sizes)
    LAMINA_CHECK(s >= 0, "_make_wrapper_subclass: a negative size; got ", IntList(sizes));
  Tensor t =
      Tensor::adopt(TensorImpl::make(element, place, strided_keys(place.type) | DispatchKey::Python,
                                     Storage::make(nullptr, 0, place, nullptr, nullptr)));
  t.impl()->set_contiguous_window(sizes);
  if (strides != Py_None) {
    const Sizes steps = to_sizes(strides);
    LAMINA_CHECK(steps.size() == sizes.size(),
                 "_make_wrapper_subclass: strides must be as many as sizes; got ", IntList(steps));
    t.impl()->set_window(sizes, steps, offset == Py_None ? 0 : to_int(offset));
  } else if (offset != Py_None) {
    t.impl()->set_offset(to_int(offset));
  }
  Ref self = owned(wrap_as(type, t));
  if (requires_grad) owned(PyObject_CallMethod(self.get(), "requires_grad_", nullptr));
  return self.leak();
  LAMINA_BORDER_END
}

// ---- kernels of Python ------------------------------------------------------------------------

// A registration: its library takes the kernel out again. Kernels are told apart by the place that
// they say they come from.
struct PythonKernel {
  std::unique_ptr<dispatch::Library> library;
  PyObject* function = nullptr;  // owned
  bool with_keyset = false;
};
std::map<std::string, PythonKernel>& kernels() {
  static auto* table = new std::map<std::string, PythonKernel>;
  return *table;
}

void run_kernel(const Operator& op, KeySet keys, Stack& stack) {
  const Gil gil;
  const auto found = kernels().find(op.resolution(keys.highest()).kernel.where);
  LAMINA_CHECK(found != kernels().end(), op.full_name(), ": the kernel of Python is gone");
  Ref function = Ref::share(found->second.function);
  const CallArguments arguments = arguments_of(op, stack);
  Ref result = owned(PyObject_Call(function.get(), arguments.args.get(), arguments.kwargs.get()));
  set_results(op, result.get(), stack);
}

// One of all operators: the function gets the operator first.
void run_fallback(const Operator& op, KeySet keys, Stack& stack) {
  const Gil gil;
  const auto found = kernels().find(op.resolution(keys.highest()).kernel.where);
  LAMINA_CHECK(found != kernels().end(), op.full_name(), ": the fallback of Python is gone");
  Ref function = Ref::share(found->second.function);
  const CallArguments arguments = arguments_of(op, stack);
  Ref first = owned(PyTuple_Pack(1, owned(overload_object(op)).get()));
  Ref all = owned(PySequence_Concat(first.get(), arguments.args.get()));
  Ref result = owned(PyObject_Call(function.get(), all.get(), arguments.kwargs.get()));
  set_results(op, result.get(), stack);
}

// _library_impl(namespace, name, key, function or None) -> handle; None lets the key through. An
// empty name means every operator that has nothing better at the key.
PyObject* library_impl(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  const char *ns, *name, *key;
  PyObject* function;
  if (!PyArg_ParseTuple(args, "sssO", &ns, &name, &key, &function)) return nullptr;
  static int64_t number = 0;
  const std::string where = "Python kernel " + std::to_string(++number);
  PythonKernel kernel;
  kernel.library = std::make_unique<dispatch::Library>(ns, where);
  const DispatchKey k = parse_dispatch_key(key);
  const bool every = *name == '\0', through = function == Py_None;
  if (every && through)
    kernel.library->fallthrough(k);
  else if (every)
    kernel.library->fallback(k, run_fallback);
  else if (through)
    kernel.library->fallthrough(name, k);
  else
    kernel.library->implement(name, k, run_kernel);
  kernel.function = Py_NewRef(function);
  kernels()[where] = std::move(kernel);
  return wrap(where);
  LAMINA_BORDER_END
}

// _library_define(namespace, schema) -> handle
PyObject* library_define(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  const char *ns, *schema;
  if (!PyArg_ParseTuple(args, "ss", &ns, &schema)) return nullptr;
  static int64_t number = 0;
  const std::string where = "Python library " + std::to_string(++number);
  PythonKernel kernel;
  kernel.library = std::make_unique<dispatch::Library>(ns, where);
  kernel.library->define(schema);
  kernels()[where] = std::move(kernel);
  return wrap(where);
  LAMINA_BORDER_END
}

PyObject* library_remove(PyObject*, PyObject* handle) {
  LAMINA_BORDER_BEGIN
  const auto found = kernels().find(std::string(to_string_view(handle)));
  if (found == kernels().end()) Py_RETURN_FALSE;
  PythonKernel kernel = std::move(found->second);
  kernels().erase(found);
  kernel.library.reset();
  Py_XDECREF(kernel.function);
  Py_RETURN_TRUE;
  LAMINA_BORDER_END
}

// A block below autograd, as a kernel of Python for an Autograd key calls on.
PyObject* exclude_keys(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  unsigned long long bits;
  if (!PyArg_ParseTuple(args, "K", &bits)) return nullptr;
  const uint64_t before = dispatch::t_local.excluded.bits();
  // A batched tensor has no bytes: its layer cannot be left out.
  dispatch::t_local.excluded = KeySet(static_cast<uint64_t>(bits)) - DispatchKey::FuncTorchBatched;
  return PyLong_FromUnsignedLongLong(before);
  LAMINA_BORDER_END
}
PyObject* autograd_keys(PyObject*, PyObject*) { return PyLong_FromUnsignedLongLong(kDone.bits()); }
PyObject* key_bits(PyObject*, PyObject* name) {
  LAMINA_BORDER_BEGIN
  return PyLong_FromUnsignedLongLong(KeySet(parse_dispatch_key(to_string_view(name))).bits());
  LAMINA_BORDER_END
}
PyObject* schema_parts(PyObject*, PyObject* text) {
  LAMINA_BORDER_BEGIN
  const ParsedSchema schema = parse_schema(to_string_view(text));
  const auto list = [](const std::vector<SchemaParam>& items) {
    Ref out = owned(PyList_New(0));
    for (const SchemaParam& p : items) {
      Ref row = owned(Py_BuildValue("(sssOOs)", p.name.c_str(), p.type.c_str(), p.alias.c_str(),
                                    p.has_preset ? Py_True : Py_False,
                                    p.keyword_only ? Py_True : Py_False, p.preset.c_str()));
      checked(PyList_Append(out.get(), row.get()));
    }
    return out;
  };
  Ref params = list(schema.params), returns = list(schema.returns);
  return PyTuple_Pack(2, params.get(), returns.get());
  LAMINA_BORDER_END
}
PyObject* preset(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  SchemaParam p;
  const char *type, *text;
  if (!PyArg_ParseTuple(args, "ss", &type, &text)) return nullptr;
  p.type = type;
  p.preset = text;
  return wrap_value(preset_of(p));
  LAMINA_BORDER_END
}

}  // namespace

bool has_torch_dispatch(PyTypeObject* type) {
  if (type == tensor_type) return false;
  PyObject* found = _PyType_Lookup(type, dispatch_name());
  return found && found != disabled_object();
}

void serve_python_key() {
  static dispatch::Library* library = nullptr;
  if (library) return;
  library = new dispatch::Library("_", "border/python_dispatch.cpp");  // for good
  library->fallback(DispatchKey::Python, python_fallback);
}

PyMethodDef python_dispatch_functions[] = {
    {"_push_on_torch_dispatch_stack", push_mode, METH_O, nullptr},
    {"_pop_torch_dispatch_stack", pop_mode, METH_VARARGS, nullptr},
    {"_len_torch_dispatch_stack", count_modes, METH_NOARGS, nullptr},
    {"_get_dispatch_stack_at", get_mode, METH_O, nullptr},
    {"_library_impl", library_impl, METH_VARARGS, nullptr},
    {"_library_define", library_define, METH_VARARGS, nullptr},
    {"_library_remove", library_remove, METH_O, nullptr},
    {"_set_excluded_keys", exclude_keys, METH_VARARGS, "Returns what was excluded before."},
    {"_autograd_key_bits", autograd_keys, METH_NOARGS, nullptr},
    {"_key_bits", key_bits, METH_O, nullptr},
    {"_schema_parts", schema_parts, METH_O, nullptr},
    {"_schema_preset", preset, METH_VARARGS, nullptr},
    {}};

PyMethodDef tensor_dispatch_methods[] = {
    {"_make_wrapper_subclass", fast(make_wrapper), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "A tensor without memory, of a subclass."},
    {}};

void add_python_dispatch(PyObject* module) {
  checked(PyModule_AddObjectRef(module, "_disabled_torch_dispatch_impl", disabled_object()));
  checked(PyModule_AddObjectRef(module, "_torch_dispatch_rules", torch_dispatch_rules()));
}

}  // namespace lamina::border
