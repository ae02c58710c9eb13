#include "lamina/border/hooks.h"

#include "lamina/autograd/anomaly.h"
#include "lamina/autograd/engine.h"
#include "lamina/border/autograd.h"
#include "lamina/border/convert.h"

namespace lamina::border {

namespace {
std::atomic<int64_t> objects_held{0};
}

bool autograd_holds_python() { return objects_held.load(std::memory_order_relaxed) != 0; }

SharedObject::SharedObject(PyObject* o) : object_(Py_NewRef(o)) {
  objects_held.fetch_add(1, std::memory_order_relaxed);
}

SharedObject::~SharedObject() {
  if (!object_) return;
  objects_held.fetch_sub(1, std::memory_order_relaxed);
  if (!Py_IsInitialized()) return;
  const HoldGil gil;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Py_DECREF(object_);
  PyErr_Restore(type, value, trace);
}

namespace {

// The functions now in a dict of hooks; a running hook may change the dict.
Ref functions_of(PyObject* dict) { return owned(PyMapping_Values(dict)); }

Tensor tensor_from_hook(PyObject* o) {
  if (!is_tensor(o))
    raise_type(std::string("expected Variable, but hook returned '") + Py_TYPE(o)->tp_name + "'");
  return unwrap(o);
}

Ref gradients_as_tuple(const std::vector<Tensor>& grads) { return owned(wrap(grads)); }

// Puts the tensors (or None) of a tuple that a hook returned into `grads`.
void take_gradients(PyObject* returned, std::vector<Tensor>& grads) {
  Ref items = Ref::share(returned);
  if (!PyTuple_Check(returned)) items = owned(PyTuple_Pack(1, returned));
  if (PyTuple_GET_SIZE(items.get()) != static_cast<Py_ssize_t>(grads.size()))
    raise_runtime("hook has returned an incorrect number of values (got " +
                  std::to_string(PyTuple_GET_SIZE(items.get())) + ", but expected " +
                  std::to_string(grads.size()) + ")");
  for (size_t i = 0; i < grads.size(); ++i) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i));
    grads[i] = item == Py_None ? Tensor() : tensor_from_hook(item);
  }
}

// Runs `body` with the GIL; a Python error travels on as a C++ exception that may cross the places
// where autograd lets go of the GIL.
template <class F>
auto with_python(F&& body) {
  const HoldGil gil;
  try {
    return body();
  } catch (const PythonError&) {
    throw_carried_error();
  }
}

}  // namespace

void DictTensorHook::run(Tensor& grad) {
  with_python([&] {
    Ref functions = functions_of(dict_.get());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(functions.get()); ++i) {
      Ref argument = owned(wrap(grad));
      Ref result = owned(PyObject_CallOneArg(PyList_GET_ITEM(functions.get(), i), argument.get()));
      if (result.get() == Py_None) continue;
      if (!replaces_) raise_runtime("post accumulate grad hooks should return None.");
      Tensor made = tensor_from_hook(result.get());
      argument = Ref();
      grad = std::move(made);
    }
  });
}

void DictPreHook::run(std::vector<Tensor>& grads) {
  with_python([&] {
    Ref functions = functions_of(dict_.get());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(functions.get()); ++i) {
      Ref argument = gradients_as_tuple(grads);
      Ref result = owned(PyObject_CallOneArg(PyList_GET_ITEM(functions.get(), i), argument.get()));
      if (result.get() != Py_None) take_gradients(result.get(), grads);
    }
  });
}

void DictPostHook::run(std::vector<Tensor>& results, const std::vector<Tensor>& grads) {
  with_python([&] {
    Ref functions = functions_of(dict_.get());
    Ref outputs = gradients_as_tuple(grads);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(functions.get()); ++i) {
      Ref inputs = gradients_as_tuple(results);
      Ref result = owned(PyObject_CallFunctionObjArgs(PyList_GET_ITEM(functions.get(), i),
                                                      inputs.get(), outputs.get(), nullptr));
      if (result.get() != Py_None) take_gradients(result.get(), results);
    }
  });
}

Ref new_hook_dict() {
  Ref collections = owned(PyImport_ImportModule("collections"));
  return owned(PyObject_CallMethod(collections.get(), "OrderedDict", nullptr));
}

PyObject* add_hook(PyObject* dict, PyObject* function) {
  Ref hooks = owned(PyImport_ImportModule("lamina.utils.hooks"));
  return checked(PyObject_CallMethod(hooks.get(), "add_hook", "OO", dict, function));
}

// ---- pack and unpack ----------------------------------------------------------------------------

Tensor PackedObject::unpack() {
  return with_python([&] {
    Ref result = owned(PyObject_CallOneArg(unpack_.get(), value_.get()));
    if (!is_tensor(result.get()))
      raise_type(std::string("Output of saved tensor unpack_hook expected to be a Tensor but got "
                             "result of type ") +
                 Py_TYPE(result.get())->tp_name);
    return unwrap(result.get());
  });
}

std::unique_ptr<autograd::Packed> PythonPacker::pack(const Tensor& t) {
  return with_python([&]() -> std::unique_ptr<autograd::Packed> {
    // The hook may leave the block that keeps it.
    Ref function = Ref::share(pack_.get());
    Ref unpack = Ref::share(unpack_.get());
    // What the hook computes is not packed in turn by itself.
    autograd::Packer* const before = std::exchange(autograd::t_packer, nullptr);
    const uint32_t version = t.impl()->version();
    PyObject* argument = nullptr;
    PyObject* value = nullptr;
    try {
      argument = wrap(t);
      value = PyObject_CallOneArg(function.get(), argument);
    } catch (...) {
      Py_XDECREF(argument);
      autograd::t_packer = before;
      throw;
    }
    Py_XDECREF(argument);
    autograd::t_packer = before;
    Ref packed = owned(value);
    if (t.impl()->version() != version)
      raise_runtime(
          "A saved tensor pack hook is modifying its input in place. Tensors provided as input to "
          "pack hook can not be modified by in-place operations as this can lead to unexpected "
          "side-effects. Please open an issue if you need to perform in-place operations on the "
          "input to a pack hook.");
    return std::make_unique<PackedObject>(packed.get(), unpack.get());
  });
}

namespace {

// The hooks of saved_tensors_hooks blocks of this thread, innermost last.
thread_local std::vector<std::unique_ptr<PythonPacker>>* t_packers = nullptr;
// Why no such block may be entered; null while it may.
thread_local std::string* t_packers_disabled = nullptr;

void use_innermost() {
  autograd::t_packer = t_packers && !t_packers->empty() ? t_packers->back().get() : nullptr;
}

PyObject* push_packer(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  PyObject *pack, *unpack;
  if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) return nullptr;
  if (t_packers_disabled) raise_runtime(*t_packers_disabled);
  if (!t_packers) t_packers = new std::vector<std::unique_ptr<PythonPacker>>;
  t_packers->push_back(std::make_unique<PythonPacker>(pack, unpack));
  use_innermost();
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
PyObject* pop_packer(PyObject*, PyObject*) {
  LAMINA_BORDER_BEGIN
  if (!t_packers || t_packers->empty()) raise_runtime("saved_tensors_hooks: no block to leave");
  t_packers->pop_back();
  use_innermost();
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
PyObject* disable_packers(PyObject*, PyObject* message) {
  LAMINA_BORDER_BEGIN
  Ref before = t_packers_disabled ? owned(wrap(*t_packers_disabled)) : Ref::share(Py_None);
  if (message != Py_None && t_packers && !t_packers->empty())
    raise_runtime(std::string(to_string_view(message)));
  delete t_packers_disabled;
  t_packers_disabled = message == Py_None ? nullptr : new std::string(to_string_view(message));
  return before.leak();
  LAMINA_BORDER_END
}

// ---- anomaly mode -------------------------------------------------------------------------------

// The lines that run, as lamina.autograd.anomaly_mode formats them.
std::shared_ptr<autograd::Attachment> note_line(autograd::Node* running) {
  return with_python([&]() -> std::shared_ptr<autograd::Attachment> {
    Ref module = owned(PyImport_ImportModule("lamina.autograd.anomaly_mode"));
    Ref parent = running ? owned(wrap_node(IntrusivePtr<autograd::Node>::share(running)))
                         : Ref::share(Py_None);
    Ref noted = owned(PyObject_CallMethod(module.get(), "_note", "O", parent.get()));
    return std::make_shared<ObjectAttachment>(noted.get());
  });
}
std::string describe_line(const autograd::Attachment& noted) {
  return with_python([&] {
    Ref module = owned(PyImport_ImportModule("lamina.autograd.anomaly_mode"));
    Ref text = owned(PyObject_CallMethod(module.get(), "_describe", "O",
                                         static_cast<PyObject*>(noted.python_object())));
    return std::string(to_string_view(text.get()));
  });
}
void warn_about(const autograd::Node& failed) {
  const HoldGil gil;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  try {
    const autograd::NodeHooks* hooks = failed.hooks_if_any();
    PyObject* noted = hooks && hooks->metadata
                          ? static_cast<PyObject*>(hooks->metadata->python_object())
                          : Py_None;
    Ref module = owned(PyImport_ImportModule("lamina.autograd.anomaly_mode"));
    owned(PyObject_CallMethod(module.get(), "_warn", "sO", failed.name(), noted));
  } catch (...) {
    PyErr_Clear();  // the failure itself is on its way
  }
  PyErr_Restore(type, value, trace);
}

PyObject* set_anomaly(PyObject*, PyObject* args) {
  int enabled = 0;
  int check_nan = 1;
  if (!PyArg_ParseTuple(args, "p|p", &enabled, &check_nan)) return nullptr;
  autograd::set_anomaly(enabled, check_nan);
  Py_RETURN_NONE;
}
PyObject* get_anomaly(PyObject*, PyObject*) { return wrap(autograd::anomaly_enabled()); }
PyObject* get_anomaly_nan(PyObject*, PyObject*) { return wrap(autograd::anomaly_checks_nan()); }

}  // namespace

void connect_anomaly_mode() {
  autograd::set_anomaly_source({note_line, describe_line, warn_about});
}

PyMethodDef hook_functions[] = {
    {"_push_saved_tensors_hooks", push_packer, METH_VARARGS, nullptr},
    {"_pop_saved_tensors_hooks", pop_packer, METH_NOARGS, nullptr},
    {"_disable_saved_tensors_hooks", disable_packers, METH_O, nullptr},
    {"set_anomaly_enabled", set_anomaly, METH_VARARGS,
     "Switch the detection of anomalies on or off; see lamina.autograd.detect_anomaly."},
    {"is_anomaly_enabled", get_anomaly, METH_NOARGS, "Is anomaly mode on?"},
    {"is_anomaly_check_nan_enabled", get_anomaly_nan, METH_NOARGS,
     "Whether the detection of anomalies looks for NaN."},
    {}};

}  // namespace lamina::border
