#include "lamina/border/function.h"

#include <structmember.h>

#include <cstddef>
#include <string>

#include "lamina/autograd/forward.h"
#include "lamina/autograd/function.h"
#include "lamina/border/autograd.h"
#include "lamina/border/hooks.h"
#include "lamina/ops/zeros_like.h"

namespace lamina::border {

namespace {

namespace forward = autograd::forward;

class PythonNode;

// The context that forward and backward share. It is the Python face of its node, which owns it.
struct ContextObject {
  PyObject_HEAD PythonNode* node;  // null before the call and after the node's death
  PyObject* dict;
  PyObject* weakrefs;
  PyObject* needs_input_grad;
  PyObject* to_save;
  PyObject* saved_for_forward;
  PyObject* dirty;
  PyObject* without_gradient;
  bool materialize_grads;
  bool in_jvp;
};
PyTypeObject* context_type = nullptr;
ContextObject* as_context(PyObject* o) { return reinterpret_cast<ContextObject*>(o); }

class PythonNode final : public autograd::Node {
 public:
  explicit PythonNode(PyObject* context) : context_(context), name_(Py_TYPE(context)->tp_name) {
    if (const size_t dot = name_.rfind('.'); dot != std::string::npos) name_.erase(0, dot + 1);
  }
  ~PythonNode() override {
    if (!Py_IsInitialized()) return;
    const HoldGil gil;
    as_context(context_.get())->node = nullptr;
  }
  const char* name() const override { return name_.c_str(); }
  bool is_user_defined() const override { return true; }
  void* python_object() const override { return context_.get(); }
  void apply(std::span<Tensor> grads, std::span<Tensor> results) override;
  void release_saved() override {
    mark_released();
    for (autograd::SavedTensor& s : saved.items()) s.reset(*this);
  }
  void read_saved(autograd::SavedReader& reader) const override {
    reader.tensors("tensors", const_cast<autograd::SavedTensorList&>(saved));
  }

  autograd::SavedTensorList saved;
  std::vector<bool> tensor_inputs;   // of all arguments of forward: which are tensors
  std::vector<bool> tensor_outputs;  // of all results

 private:
  SharedObject context_;
  std::string name_;
};

void PythonNode::apply(std::span<Tensor> grads, std::span<Tensor> results) {
  const HoldGil gil;
  try {
    PyObject* context = context_.get();
    Ref arguments = owned(PyTuple_New(static_cast<Py_ssize_t>(grads.size()) + 1));
    PyTuple_SET_ITEM(arguments.get(), 0, Py_NewRef(context));
    for (size_t i = 0; i < grads.size(); ++i) {
      Tensor grad = std::move(grads[i]);
      if (!grad.defined() && as_context(context)->materialize_grads && i < tensor_outputs.size() &&
          tensor_outputs[i])
        grad = zeros_like_output(static_cast<uint32_t>(i));
      PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i) + 1,
                       checked(wrap(std::move(grad))));
    }
    Ref backward = owned(PyObject_GetAttrString(context, "_backward_function"));
    Ref made = owned(PyObject_Call(backward.get(), arguments.get(), nullptr));
    if (!PyTuple_Check(made.get())) made = owned(PyTuple_Pack(1, made.get()));
    Py_ssize_t count = PyTuple_GET_SIZE(made.get());
    const auto wanted = static_cast<Py_ssize_t>(tensor_inputs.size());
    // Superfluous Nones at the end do no harm.
    while (count > wanted && PyTuple_GET_ITEM(made.get(), count - 1) == Py_None) --count;
    if (count != wanted)
      autograd::raise_gradient_count(name(), static_cast<size_t>(PyTuple_GET_SIZE(made.get())),
                                     tensor_inputs.size());
    size_t edge = 0;
    for (Py_ssize_t i = 0; i < wanted; ++i) {
      PyObject* item = PyTuple_GET_ITEM(made.get(), i);
      if (!tensor_inputs[static_cast<size_t>(i)]) {
        if (item != Py_None)
          raise_runtime(std::string("function ") + name() +
                        " returned a gradient different from None at position " +
                        std::to_string(i + 1) +
                        ", but the corresponding forward input was not a Variable");
        continue;
      }
      if (item != Py_None) {
        if (!is_tensor(item))
          raise_type(std::string("expected Variable or None (got ") + Py_TYPE(item)->tp_name + ")");
        if (edge < results.size() && edges()[edge].node) results[edge] = unwrap(item);
      }
      ++edge;
    }
  } catch (const PythonError&) {
    throw_carried_error();
  }
}

// ---- the context object -------------------------------------------------------------------------

PyObject* context_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* o = type->tp_alloc(type, 0);
  if (o) as_context(o)->materialize_grads = true;
  return o;
}
int context_clear(PyObject* self) {
  ContextObject* o = as_context(self);
  Py_CLEAR(o->dict);
  Py_CLEAR(o->needs_input_grad);
  Py_CLEAR(o->to_save);
  Py_CLEAR(o->saved_for_forward);
  Py_CLEAR(o->dirty);
  Py_CLEAR(o->without_gradient);
  return 0;
}
int context_traverse(PyObject* self, visitproc visit, void* arg) {
  ContextObject* o = as_context(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(o->dict);
  Py_VISIT(o->needs_input_grad);
  Py_VISIT(o->to_save);
  Py_VISIT(o->saved_for_forward);
  Py_VISIT(o->dirty);
  Py_VISIT(o->without_gradient);
  return 0;
}
void context_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (as_context(self)->weakrefs) PyObject_ClearWeakRefs(self);
  context_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PythonNode& node_in(PyObject* self) {
  PythonNode* node = as_context(self)->node;
  if (!node)
    raise_runtime(
        "Attribute is invalid: this context has no node. It was never run by apply(), nothing was "
        "recorded, or the graph it belongs to is gone.");
  return *node;
}

PyObject* keep(PyObject** slot, PyObject* args) {
  Py_XSETREF(*slot, Py_NewRef(args));
  Py_RETURN_NONE;
}
PyObject* save_for_backward(PyObject* self, PyObject* args) {
  return keep(&as_context(self)->to_save, args);
}
PyObject* save_for_forward(PyObject* self, PyObject* args) {
  LAMINA_BORDER_BEGIN
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* item = PyTuple_GET_ITEM(args, i);
    if (item != Py_None && !is_tensor(item))
      raise_type(std::string("save_for_forward expects all arguments to be tensors; got ") +
                 Py_TYPE(item)->tp_name + "; other objects are kept as attributes of ctx");
  }
  return keep(&as_context(self)->saved_for_forward, args);
  LAMINA_BORDER_END
}
PyObject* mark_dirty(PyObject* self, PyObject* args) {
  return keep(&as_context(self)->dirty, args);
}
PyObject* mark_non_differentiable(PyObject* self, PyObject* args) {
  return keep(&as_context(self)->without_gradient, args);
}
PyObject* set_materialize_grads(PyObject* self, PyObject* value) {
  LAMINA_BORDER_BEGIN
  if (!PyBool_Check(value)) raise_type("set_materialize_grads expects a bool");
  as_context(self)->materialize_grads = value == Py_True;
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}

PyObject* saved_list(PyObject* self, bool raw) {
  ContextObject* o = as_context(self);
  if (o->in_jvp && o->saved_for_forward) return Py_NewRef(o->saved_for_forward);
  if (!o->node) {
    // Before backward has a node (inside jvp): what forward saved for it.
    if (PyObject* kept = o->saved_for_forward ? o->saved_for_forward : o->to_save)
      return Py_NewRef(kept);
    return PyTuple_New(0);
  }
  PythonNode& node = *o->node;
  if (o->to_save && node.saved.items().empty()) return Py_NewRef(o->to_save);
  node.check_not_released();
  auto& items = node.saved.items();
  Ref tuple = owned(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  for (size_t i = 0; i < items.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                     checked(raw ? wrap_saved(node, items[i]) : wrap(items[i].unpack(&node))));
  return tuple.leak();
}
PyObject* get_saved_tensors(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  return saved_list(self, false);
  LAMINA_BORDER_END
}
PyObject* get_raw_saved_tensors(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  return saved_list(self, true);
  LAMINA_BORDER_END
}
PyObject* get_needs_input_grad(PyObject* self, void*) {
  PyObject* o = as_context(self)->needs_input_grad;
  return o ? Py_NewRef(o) : PyTuple_New(0);
}
int set_needs_input_grad(PyObject* self, PyObject* value, void*) {
  Py_XSETREF(as_context(self)->needs_input_grad, Py_XNewRef(value));
  return 0;
}
PyObject* get_saved_for_forward(PyObject* self, void*) {
  PyObject* o = as_context(self)->saved_for_forward;
  return o ? Py_NewRef(o) : Py_NewRef(Py_None);
}
PyObject* get_materialize(PyObject* self, void*) {
  return PyBool_FromLong(as_context(self)->materialize_grads);
}
int set_materialize(PyObject* self, PyObject* value, void*) {
  as_context(self)->materialize_grads = value == Py_True;
  return 0;
}

// ---- apply --------------------------------------------------------------------------------------

std::vector<Tensor> tensors_in(PyObject* tuple) {
  std::vector<Tensor> out;
  if (!tuple) return out;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (PyObject* item = PyTuple_GET_ITEM(tuple, i); is_tensor(item)) out.push_back(unwrap(item));
  return out;
}

Ref run_with_tangents(int level, PyObject* cls, bool separate, PyObject* args, Ref& context);

// Runs forward and records it; `context` becomes the ctx of the call.
Ref run(PyObject* cls, bool separate, PyObject* args, Ref& context) {
  if (forward::t_visible) [[unlikely]] {
    const std::vector<Tensor> given = tensors_in(args);
    if (const int level = forward::highest_level(given); level >= 0)
      return run_with_tangents(level, cls, separate, args, context);
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  Ref backward_cls = owned(PyObject_GetAttrString(cls, "_backward_cls"));
  context = owned(PyObject_CallNoArgs(backward_cls.get()));
  if (!PyObject_TypeCheck(context.get(), context_type))
    raise_type("apply(): the function's context is no FunctionCtx");
  auto node = IntrusivePtr<PythonNode>::make(context.get());

  std::vector<Tensor> inputs;
  Ref needs = owned(PyTuple_New(n));
  bool record = false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(args, i);
    const bool tensor = is_tensor(item);
    node->tensor_inputs.push_back(tensor);
    const bool wants = tensor && unwrap(item).requires_grad();
    if (tensor) inputs.push_back(unwrap(item));
    record |= wants;
    PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(wants));
  }
  record &= autograd::grad_enabled();
  ContextObject* o = as_context(context.get());
  o->needs_input_grad = needs.leak();
  if (record)
    for (const Tensor& t : inputs) node->add_edge(autograd::gradient_edge(t));

  Ref result;
  {
    const autograd::NoGrad guard;
    Ref forward = owned(PyObject_GetAttrString(cls, "forward"));
    if (separate) {
      result = owned(PyObject_Call(forward.get(), args, nullptr));
      Ref setup = owned(PyObject_GetAttrString(cls, "setup_context"));
      owned(PyObject_CallFunctionObjArgs(setup.get(), context.get(), args, result.get(), nullptr));
    } else {
      Ref all = owned(PyTuple_New(n + 1));
      PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(context.get()));
      for (Py_ssize_t i = 0; i < n; ++i)
        PyTuple_SET_ITEM(all.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
      result = owned(PyObject_Call(forward.get(), all.get(), nullptr));
    }
  }

  const bool single = !PyTuple_Check(result.get());
  if (single) result = owned(PyTuple_Pack(1, result.get()));
  std::vector<Tensor> outputs;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(result.get(), i);
    node->tensor_outputs.push_back(is_tensor(item));
    outputs.push_back(is_tensor(item) ? unwrap(item) : Tensor());
  }
  if (record) o->node = node.get();
  const std::vector<Tensor> finished = autograd::finish_custom_forward(
      inputs, outputs, tensors_in(o->dirty), tensors_in(o->without_gradient),
      record ? IntrusivePtr<autograd::Node>(node) : nullptr, node->name());
  if (record && o->to_save) {
    node->set_newest();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o->to_save); ++i) {
      PyObject* item = PyTuple_GET_ITEM(o->to_save, i);
      if (item != Py_None && !is_tensor(item))
        raise_type(std::string("save_for_backward can only save variables, but argument ") +
                   std::to_string(i) + " is of type " + Py_TYPE(item)->tp_name);
      Tensor t = item == Py_None ? Tensor() : unwrap(item);
      // What forward gave back may have been handed out as another tensor.
      for (size_t k = 0; k < outputs.size(); ++k)
        if (t.defined() && outputs[k].is_same(t)) t = finished[k];
      node->saved.items().push_back(autograd::save_for_node(t, finished));
    }
    Py_CLEAR(o->to_save);
  }
  Py_CLEAR(o->dirty);
  Py_CLEAR(o->without_gradient);

  Ref tuple = owned(PyTuple_New(static_cast<Py_ssize_t>(finished.size())));
  for (size_t i = 0; i < finished.size(); ++i) {
    PyObject* given = PyTuple_GET_ITEM(result.get(), static_cast<Py_ssize_t>(i));
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                     finished[i].defined() ? checked(wrap(finished[i])) : Py_NewRef(given));
  }
  return single ? Ref::share(PyTuple_GET_ITEM(tuple.get(), 0)) : std::move(tuple);
}

// An item of a call's arguments or results as a tensor; undefined for anything else.
Tensor tensor_in(PyObject* item) { return is_tensor(item) ? unwrap(item) : Tensor(); }

// The call with the tangents of `level` hidden; then jvp turns those of the arguments into those
// of the results.
Ref run_with_tangents(int level, PyObject* cls, bool separate, PyObject* args, Ref& context) {
  const forward::Hide hide(level);
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  std::vector<Tensor> tangents;
  for (Py_ssize_t i = 0; i < n; ++i)
    tangents.push_back(forward::tangent_before_write(level, tensor_in(PyTuple_GET_ITEM(args, i))));
  Ref result = run(cls, separate, args, context);

  ContextObject* const o = as_context(context.get());
  Ref all = owned(PyTuple_New(n + 1));
  PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(context.get()));
  for (Py_ssize_t i = 0; i < n; ++i) {
    const Tensor t = tensor_in(PyTuple_GET_ITEM(args, i));
    Tensor& tangent = tangents[static_cast<size_t>(i)];
    if (!tangent.defined() && t.defined() && o->materialize_grads && is_differentiable(t.dtype()))
      tangent = ops::zeros_like(t);
    PyTuple_SET_ITEM(all.get(), i + 1, checked(wrap(std::move(tangent))));
  }
  Ref jvp = owned(PyObject_GetAttrString(cls, "jvp"));
  o->in_jvp = true;
  Ref made = Ref::steal(PyObject_Call(jvp.get(), all.get(), nullptr));
  o->in_jvp = false;
  if (!made) throw PythonError{};

  Ref results =
      PyTuple_Check(result.get()) ? Ref::share(result.get()) : owned(PyTuple_Pack(1, result.get()));
  if (!PyTuple_Check(made.get())) made = owned(PyTuple_Pack(1, made.get()));
  std::vector<Tensor> outputs, values;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(results.get()); ++i)
    outputs.push_back(tensor_in(PyTuple_GET_ITEM(results.get(), i)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(made.get()); ++i) {
    PyObject* const item = PyTuple_GET_ITEM(made.get(), i);
    if (item != Py_None && !is_tensor(item))
      raise_type(str("jvp: a tangent is a Tensor or None; got ", Py_TYPE(item)->tp_name));
    values.push_back(tensor_in(item));
  }
  forward::set_custom_tangents(level, tensors_in(args), outputs, values);
  return result;
}

// _apply(cls, has_setup_context, args)
PyObject* apply(PyObject*, PyObject* const* argv, Py_ssize_t argc) {
  LAMINA_BORDER_BEGIN
  if (argc != 3 || !PyTuple_Check(argv[2])) raise_type("_apply(cls, has_setup_context, args)");
  Ref context;
  return run(argv[0], argv[1] == Py_True, argv[2], context).leak();
  LAMINA_BORDER_END
}

PyMethodDef context_methods[] = {
    {"save_for_backward", save_for_backward, METH_VARARGS, "Keeps tensors for backward."},
    {"save_for_forward", save_for_forward, METH_VARARGS, "Keeps tensors for jvp."},
    {"mark_dirty", mark_dirty, METH_VARARGS, "Names the inputs that forward wrote in place."},
    {"mark_non_differentiable", mark_non_differentiable, METH_VARARGS,
     "Names the results that have no gradient."},
    {"set_materialize_grads", set_materialize_grads, METH_O,
     "Whether missing gradients come as zeros."},
    {}};
PyGetSetDef context_attributes[] = {
    {"saved_tensors", get_saved_tensors, nullptr, "What save_for_backward kept.", nullptr},
    {"saved_variables", get_saved_tensors, nullptr, nullptr, nullptr},
    {"_raw_saved_tensors", get_raw_saved_tensors, nullptr, nullptr, nullptr},
    {"saved_for_forward", get_saved_for_forward, nullptr, nullptr, nullptr},
    {"needs_input_grad", get_needs_input_grad, set_needs_input_grad,
     "For each argument of forward: does it want a gradient?", nullptr},
    {"materialize_grads", get_materialize, set_materialize, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};
PyMemberDef context_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(ContextObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ContextObject, weakrefs), READONLY, nullptr},
    {}};
PyMethodDef apply_method = {"_function_apply", fast(apply), METH_FASTCALL, nullptr};

}  // namespace

autograd::Node& node_of_context(PyObject* object) {
  if (!PyObject_TypeCheck(object, context_type))
    raise_type(std::string("expected a node of the recorded graph, got ") +
               Py_TYPE(object)->tp_name);
  return node_in(object);
}

void add_function_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(context_new)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(context_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(context_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(context_clear)},
                         {Py_tp_methods, context_methods},
                         {Py_tp_getset, context_attributes},
                         {Py_tp_members, context_members},
                         {0, nullptr}};
  PyType_Spec spec = {"lamina._C._FunctionBase", sizeof(ContextObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  context_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  add_descriptors(context_type, node_methods, node_attributes);
  checked(
      PyModule_AddObjectRef(module, "_FunctionBase", reinterpret_cast<PyObject*>(context_type)));
  checked(PyModule_AddObjectRef(module, "_function_apply",
                                owned(PyCFunction_New(&apply_method, nullptr)).get()));
}

}  // namespace lamina::border
