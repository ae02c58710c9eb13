// Gradients as Python sees them: attributes of tensors, backward, grad.
#include "lamina/border/autograd.h"

#include <algorithm>
#include <string>

#include "lamina/autograd/accumulate_grad.h"
#include "lamina/autograd/engine.h"
#include "lamina/autograd/view.h"
#include "lamina/border/convert.h"
#include "lamina/border/hooks.h"
#include "lamina/kernels/result.h"
#include "lamina/ops/select.h"
#include "lamina/ops/stack.h"
#include "lamina/transforms/grad_level.h"

namespace lamina::border {

namespace {

// ---- attributes ---------------------------------------------------------------------------------

void check_not_batched(const Tensor& t, const char* what) {
  LAMINA_CHECK(
      !transforms::is_batched(t), "You are attempting to call Tensor.", what,
      "() (or perhaps using torch.autograd.functional.* APIs) inside of a function being "
      "transformed by vmap. This is unsupported; use torch.func.grad, vjp or jvp inside of "
      "vmap, or call it on tensors outside");
}

PyObject* get_requires_grad(PyObject* self, void*) {
  return wrap(transforms::requires_grad(unwrap(self)));
}
int set_requires_grad(PyObject* self, PyObject* value, void*) {
  LAMINA_BORDER_BEGIN
  if (!value || !PyBool_Check(value)) raise_runtime("requires_grad must be a bool");
  check_not_batched(unwrap(self), "requires_grad_");
  autograd::set_requires_grad(unwrap(self), value == Py_True);
  return 0;
  LAMINA_BORDER_END_WITH(-1)
}
PyObject* get_grad(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  return wrap(autograd::grad(unwrap(self)));
  LAMINA_BORDER_END
}
int set_grad(PyObject* self, PyObject* value, void*) {
  LAMINA_BORDER_BEGIN
  const Tensor& t = unwrap(self);
  if (!value || value == Py_None) {
    if (autograd::meta(t)) autograd::set_grad(t, Tensor());
    return 0;
  }
  if (!is_tensor(value))
    raise_type(std::string("assigned grad expected to be a Tensor or None but got grad of type ") +
               Py_TYPE(value)->tp_name);
  const Tensor& grad = unwrap(value);
  if (value == self) raise_runtime("can't assign Variable as its own grad");
  LAMINA_CHECK(grad.dtype() == t.dtype(), "assigned grad has data of a different type; got ",
               grad.dtype(), "; expected ", t.dtype());
  LAMINA_CHECK(grad.device() == t.device(), "assigned grad has data located on a different device");
  LAMINA_CHECK(grad.sizes() == t.sizes(), "assigned grad has data of a different size; got ",
               std::span<const int64_t>(grad.sizes()), "; expected ",
               std::span<const int64_t>(t.sizes()));
  autograd::set_grad(t, grad);
  return 0;
  LAMINA_BORDER_END_WITH(-1)
}
PyObject* get_grad_fn(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  return wrap_node(autograd::grad_fn(transforms::innermost(unwrap(self))));
  LAMINA_BORDER_END
}
PyObject* get_is_leaf(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  return wrap(autograd::is_leaf(transforms::innermost(unwrap(self))));
  LAMINA_BORDER_END
}
PyObject* get_output_nr(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  const Tensor& t = unwrap(self);
  if (!autograd::grad_fn(t)) return PyLong_FromLong(0);
  return PyLong_FromUnsignedLong(autograd::meta(t)->output_nr);
  LAMINA_BORDER_END
}
PyObject* get_retains_grad(PyObject* self, void*) {
  return wrap(autograd::retains_grad(unwrap(self)));
}
PyObject* get_base(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  if (transforms::is_batched(unwrap(self))) Py_RETURN_NONE;
  TensorImpl* base = unwrap(self).impl()->base();
  return wrap(Tensor::share(base));
  LAMINA_BORDER_END
}

PyObject* is_view(PyObject* self, PyObject*) {
  return wrap(unwrap(self).impl()->base() != nullptr && !transforms::is_batched(unwrap(self)));
}

// ---- hooks --------------------------------------------------------------------------------------

PyObject* hooks_of(const std::shared_ptr<autograd::Attachment>& kept) {
  return Py_NewRef(kept ? static_cast<PyObject*>(kept->python_object()) : Py_None);
}
PyObject* get_backward_hooks(PyObject* self, void*) {
  const autograd::Meta* m = autograd::meta(unwrap(self));
  return hooks_of(m ? m->python_hooks : nullptr);
}
// A dict of hooks takes the place of the one there is; None removes all.
int set_backward_hooks(PyObject* self, PyObject* value, void*) {
  LAMINA_BORDER_BEGIN
  const Tensor& t = unwrap(self);
  if (!value || value == Py_None) {
    if (autograd::Meta* m = autograd::meta(t)) {
      m->python_hooks = nullptr;
      autograd::clear_leaf_hooks(t);
    }
    return 0;
  }
  auto hook = std::make_shared<DictTensorHook>(value, true);
  autograd::register_hook(t, hook);
  autograd::require_meta(t).python_hooks = std::move(hook);
  return 0;
  LAMINA_BORDER_END_WITH(-1)
}
PyObject* register_hook(PyObject* self, PyObject* function) {
  LAMINA_BORDER_BEGIN
  const Tensor& t = unwrap(self);
  check_not_batched(t, "register_hook");
  if (!t.requires_grad())
    raise_runtime("cannot register a hook on a tensor that doesn't require gradient");
  autograd::grad_fn(t);  // brings a view's history up to date
  autograd::Meta& m = autograd::require_meta(t);
  if (!m.python_hooks) {
    auto hook = std::make_shared<DictTensorHook>(new_hook_dict().get(), true);
    autograd::register_hook(t, hook);
    m.python_hooks = std::move(hook);
  }
  return add_hook(static_cast<PyObject*>(m.python_hooks->python_object()), function);
  LAMINA_BORDER_END
}
PyObject* get_post_accumulate(PyObject* self, void*) {
  const autograd::Meta* m = autograd::meta(unwrap(self));
  return hooks_of(m ? m->post_accumulate : nullptr);
}
int set_post_accumulate(PyObject* self, PyObject* value, void*) {
  LAMINA_BORDER_BEGIN
  const Tensor& t = unwrap(self);
  if (!value || value == Py_None) {
    if (autograd::Meta* m = autograd::meta(t)) m->post_accumulate = nullptr;
    return 0;
  }
  autograd::register_post_accumulate_hook(t, std::make_shared<DictTensorHook>(value, false));
  return 0;
  LAMINA_BORDER_END_WITH(-1)
}
PyObject* register_post_accumulate(PyObject* self, PyObject* function) {
  LAMINA_BORDER_BEGIN
  const Tensor& t = unwrap(self);
  const autograd::Meta* m = autograd::meta(t);
  if (!m || !m->post_accumulate)
    autograd::register_post_accumulate_hook(
        t, std::make_shared<DictTensorHook>(new_hook_dict().get(), false));
  return add_hook(static_cast<PyObject*>(autograd::meta(t)->post_accumulate->python_object()),
                  function);
  LAMINA_BORDER_END
}
PyObject* retain_grad(PyObject* self, PyObject*) {
  LAMINA_BORDER_BEGIN
  check_not_batched(unwrap(self), "retain_grad");
  if (!unwrap(self).requires_grad())
    raise_runtime("can't retain_grad on Tensor that has requires_grad=False");
  autograd::retain_grad(unwrap(self));
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}

// ---- methods and functions ----------------------------------------------------------------------

constexpr Param kRequiresGrad[] = {{"input", P::Tensor}, {"requires_grad", P::Bool, kDefault}};
constexpr Signature kRequiresGradSignatures[] = {
    make_signature(kRequiresGrad, "Tensor input, bool requires_grad = True")};
constinit Parser requires_grad_parser("requires_grad_", kRequiresGradSignatures);

PyObject* requires_grad_(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  const ParsedArgs r(requires_grad_parser, self, args, nargs, names);
  check_not_batched(unwrap(self), "requires_grad_");
  autograd::set_requires_grad(unwrap(self), r.boolean_or(1, true));
  return Py_NewRef(self);
  LAMINA_BORDER_END
}

// A tensor that stands for an edge of the graph (autograd.graph.GradientEdge): it has the size and
// type of the result the edge belongs to, and its gradient arrives there.
bool is_edge(PyObject* o) {
  return PyTuple_Check(o) && PyTuple_GET_SIZE(o) == 2 && PyObject_HasAttrString(o, "output_nr");
}
Tensor tensor_of_edge(PyObject* o) {
  autograd::Node& node = node_from(PyTuple_GET_ITEM(o, 0));
  const auto number = static_cast<uint32_t>(to_int(PyTuple_GET_ITEM(o, 1)));
  if (const auto* leaf = dynamic_cast<const autograd::AccumulateGrad*>(&node))
    return leaf->variable();
  LAMINA_CHECK(number < node.num_outputs(), "GradientEdge: ", node.name(), " has ",
               node.num_outputs(), " results; got number ", number);
  const ResultMeta& meta = node.output(number);
  Tensor t = empty_contiguous({1}, meta.dtype, meta.device);
  t.impl()->set_window(meta.sizes, Sizes(meta.sizes.size(), 0), 0);
  autograd::set_gradient_edge(t, IntrusivePtr<autograd::Node>::share(&node), number);
  return t;
}

// One tensor or a sequence of them; items may be None where `none` says so, or edges.
std::vector<Tensor> tensors_of(PyObject* o, const char* what, bool none) {
  std::vector<Tensor> out;
  if (!o || o == Py_None) return out;
  if (is_tensor(o)) {
    out.push_back(unwrap(o));
    return out;
  }
  if (is_edge(o)) {
    out.push_back(tensor_of_edge(o));
    return out;
  }
  Ref items = owned(PySequence_Fast(
      o, (std::string(what) + " must be a Tensor or a sequence of Tensors").c_str()));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (item == Py_None && none) {
      out.emplace_back();
    } else if (is_tensor(item)) {
      out.push_back(unwrap(item));
    } else if (is_edge(item)) {
      out.push_back(tensor_of_edge(item));
    } else {
      raise_type(std::string(what) + " can be either Tensors or None, but got " +
                 Py_TYPE(item)->tp_name);
    }
  }
  return out;
}

void check_gradients(const std::vector<Tensor>& roots, std::vector<Tensor>& gradients) {
  if (gradients.empty()) gradients.resize(roots.size());
  LAMINA_CHECK(gradients.size() == roots.size(), "got ", roots.size(), " tensors and ",
               gradients.size(), " gradients");
  for (size_t i = 0; i < roots.size(); ++i) {
    if (gradients[i].defined()) {
      LAMINA_CHECK(gradients[i].sizes() == roots[i].sizes(), "Mismatch in shape: grad_output[", i,
                   "] has a shape of ", std::span<const int64_t>(gradients[i].sizes()),
                   " and output[", i, "] has a shape of ",
                   std::span<const int64_t>(roots[i].sizes()), ".");
    } else if (transforms::requires_grad(roots[i])) {
      LAMINA_CHECK(roots[i].numel() == 1, "grad can be implicitly created only for scalar outputs");
      LAMINA_CHECK(!roots[i].is_complex(),
                   "grad can be implicitly created only for real scalar outputs but got ",
                   roots[i].dtype());
    }
  }
}

constexpr Param kBackward[] = {{"input", P::Object},
                               {"gradient", P::Object, kDefault | kNone},
                               {"retain_graph", P::Bool, kDefault | kNone},
                               {"create_graph", P::Bool, kDefault | kNone},
                               {"inputs", P::Object, kDefault | kNone}};
constexpr Signature kBackwardSignatures[] = {make_signature(
    kBackward,
    "Tensor input, Tensor gradient = None, bool retain_graph = None, bool create_graph = False, "
    "tuple of Tensors inputs = None")};
constinit Parser backward_parser("backward", kBackwardSignatures);

void run_backward(const ParsedArgs& r) {
  std::vector<Tensor> roots = tensors_of(r.object(0), "tensors", false);
  std::vector<Tensor> gradients = tensors_of(r.object(1), "gradients", true);
  const std::vector<Tensor> inputs = tensors_of(r.object(4), "inputs", false);
  if (r.object(4) && r.object(4) != Py_None && inputs.empty())
    raise_runtime("`inputs` argument to `backward()` cannot be empty.");
  for (const std::vector<Tensor>* list : {&roots, &gradients})
    for (const Tensor& t : *list)
      if (t.defined()) check_not_batched(t, "backward");
  check_gradients(roots, gradients);
  const bool create = r.boolean_or(3, false);
  const bool retain = r.has(2) && r.object(2) != Py_None ? r.boolean(2) : create;
  ReleaseGil released(true);
  autograd::backward(roots, gradients, retain, create, inputs);
}

PyObject* backward_method(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                          PyObject* names) {
  LAMINA_BORDER_BEGIN
  run_backward(ParsedArgs(backward_parser, self, args, nargs, names));
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
PyObject* backward_function(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  run_backward(ParsedArgs(backward_parser, nullptr, args, nargs, names));
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}

constexpr Param kGrad[] = {{"outputs", P::Object},
                           {"inputs", P::Object},
                           {"grad_outputs", P::Object, kDefault | kNone},
                           {"retain_graph", P::Bool, kDefault | kNone},
                           {"create_graph", P::Bool, kDefault | kNone},
                           {"allow_unused", P::Bool, kDefault | kNone},
                           {"is_grads_batched", P::Bool, kDefault | kNone},
                           {"materialize_grads", P::Bool, kDefault | kNone},
                           {"only_inputs", P::Bool, kDefault | kNone}};
constexpr Signature kGradSignatures[] = {make_signature(
    kGrad,
    "tuple of Tensors outputs, tuple of Tensors inputs, tuple of Tensors grad_outputs = None, bool "
    "retain_graph = None, bool create_graph = False, bool allow_unused = None, bool "
    "is_grads_batched "
    "= False, bool materialize_grads = False")};
constinit Parser grad_parser("grad", kGradSignatures);

std::vector<Tensor> grad_any(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& gradients, bool retain, bool create,
                             bool unused) {
  for (const std::vector<Tensor>* list : {&outputs, &inputs, &gradients})
    for (const Tensor& t : *list)
      if (t.defined() && transforms::is_batched(t))
        return transforms::grad(outputs, inputs, gradients, retain, create, unused);
  return autograd::grad(outputs, inputs, gradients, retain, create, unused);
}

// Every gradient has a leading dimension: one pass for each of its items, and results that are
// stacked the same way.
std::vector<Tensor> grad_batched(const std::vector<Tensor>& outputs,
                                 const std::vector<Tensor>& inputs,
                                 const std::vector<Tensor>& gradients, bool retain, bool create,
                                 bool unused) {
  LAMINA_CHECK(gradients.size() == outputs.size(), "grad: got ", outputs.size(), " tensors and ",
               gradients.size(), " gradients; is_grads_batched needs one for each");
  int64_t batch = -1;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& g = gradients[i];
    if (!g.defined()) continue;
    LAMINA_CHECK(
        g.dim() == outputs[i].dim() + 1 && (batch < 0 || g.size(0) == batch) &&
            std::equal(outputs[i].sizes().begin(), outputs[i].sizes().end(), g.sizes().begin() + 1),
        "grad: If `is_grads_batched=True`, we interpret the first dimension of each "
        "grad_output as the batch dimension. Mismatch in shape: grad_output[",
        i, "] has a shape of ", g.sizes(), " and output[", i, "] has a shape of ",
        outputs[i].sizes(), ".");
    batch = g.size(0);
  }
  LAMINA_CHECK(batch > 0, "grad: is_grads_batched needs a batch of at least one; got ",
               std::max<int64_t>(batch, 0));
  // The pass once for all items; where something in it cannot do that, one pass for each.
  try {
    struct Vmap {
      explicit Vmap(int64_t n) : level(transforms::enter_vmap(n, transforms::Randomness::Error)) {}
      ~Vmap() { transforms::leave_vmap(); }
      Vmap(const Vmap&) = delete;
      Vmap& operator=(const Vmap&) = delete;
      const int64_t level;
    };
    std::vector<Tensor> found;
    int64_t level;
    {
      const Vmap vmap(batch);
      level = vmap.level;
      std::vector<Tensor> given;
      for (const Tensor& g : gradients)
        given.push_back(g.defined() ? transforms::put_under(g, 0, level) : g);
      found = transforms::grad(outputs, inputs, given, retain, create, unused);
    }
    for (Tensor& t : found)
      if (t.defined()) t = transforms::unbatched(t, 0, level, batch);
    return found;
  } catch (const transforms::BatchingError&) {
  }
  std::vector<std::vector<Tensor>> rows(inputs.size());
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<Tensor> given;
    for (const Tensor& g : gradients) given.push_back(g.defined() ? ops::select(g, 0, b) : g);
    std::vector<Tensor> row =
        grad_any(outputs, inputs, given, retain || b + 1 < batch, create, unused);
    for (size_t i = 0; i < row.size(); ++i)
      if (row[i].defined()) rows[i].push_back(std::move(row[i]));
  }
  const autograd::GradModeGuard recorded(create);
  std::vector<Tensor> results;
  for (const std::vector<Tensor>& items : rows)
    results.push_back(items.empty() ? Tensor() : ops::stack(items, 0));
  return results;
}

PyObject* grad_function(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  const ParsedArgs r(grad_parser, nullptr, args, nargs, names);
  std::vector<Tensor> outputs = tensors_of(r.object(0), "outputs", false);
  std::vector<Tensor> inputs = tensors_of(r.object(1), "inputs", false);
  std::vector<Tensor> gradients = tensors_of(r.object(2), "grad_outputs", true);
  if (inputs.empty()) raise_runtime("`inputs` argument to `grad()` cannot be empty.");
  const bool batched = r.boolean_or(6, false);
  if (!batched) check_gradients(outputs, gradients);
  const bool create = r.boolean_or(4, false);
  const bool retain = r.has(3) ? r.boolean(3) : create;
  const bool materialize = r.boolean_or(7, false);
  if (materialize && r.has(5) && !r.boolean(5))
    raise_value(
        "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
        "allow_unused=False.");
  const bool unused = r.boolean_or(5, materialize);
  std::vector<Tensor> results;
  {
    ReleaseGil released(true);
    results = batched ? grad_batched(outputs, inputs, gradients, retain, create, unused)
                      : grad_any(outputs, inputs, gradients, retain, create, unused);
  }
  Ref tuple = owned(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
  for (size_t i = 0; i < results.size(); ++i) {
    PyObject* item;
    if (!results[i].defined() && materialize) {
      Ref like = owned(wrap(inputs[i]));
      Ref zeros = call_method(generated_method("mul"),
                              owned(PyObject_CallMethod(like.get(), "detach", nullptr)).get(),
                              Ref::steal(PyLong_FromLong(0)).get());
      item = zeros.leak();
    } else {
      item = wrap(std::move(results[i]));
    }
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), item);
  }
  return tuple.leak();
  LAMINA_BORDER_END
}

PyObject* detach_(PyObject* self, PyObject*) {
  LAMINA_BORDER_BEGIN
  autograd::detach_inplace(unwrap(self));
  return Py_NewRef(self);
  LAMINA_BORDER_END
}

// ---- edges, for what is built on the engine -----------------------------------------------------

// (node, number of its result) where the gradient of a tensor arrives.
PyObject* gradient_edge(PyObject*, PyObject* tensor) {
  LAMINA_BORDER_BEGIN
  if (!is_tensor(tensor)) raise_type("get_gradient_edge expects a Tensor");
  const Tensor& t = unwrap(tensor);
  if (!t.requires_grad())
    raise_runtime(
        "It is not possible to get the gradient edge for a Tensor that does not require gradients");
  autograd::Edge edge = autograd::gradient_edge(t);
  Ref node = owned(wrap_node(edge.node));
  return Py_BuildValue("(OI)", node.get(), static_cast<unsigned>(edge.output_nr));
  LAMINA_BORDER_END
}
PyObject* current_pass(PyObject*, PyObject*) { return wrap(autograd::running_pass()); }
PyObject* will_execute(PyObject*, PyObject* node) {
  LAMINA_BORDER_BEGIN
  return wrap(autograd::pass_executes(node_from(node)));
  LAMINA_BORDER_END
}
PyObject* current_node(PyObject*, PyObject*) {
  LAMINA_BORDER_BEGIN
  autograd::Node* node = autograd::running_node();
  return wrap_node(node ? IntrusivePtr<autograd::Node>::share(node) : nullptr);
  LAMINA_BORDER_END
}
PyObject* is_checkpoint_valid(PyObject*, PyObject*) { return wrap(autograd::pass_reaches_all()); }
// The name of the operator that is being recorded, for hooks on what it saves.
PyObject* saving_node_name(PyObject*, PyObject*) {
  const autograd::Node* node = autograd::saving_node();
  return PyUnicode_FromString(node ? node->name() : "an operator");
}
PyObject* queue_callback(PyObject*, PyObject* function) {
  LAMINA_BORDER_BEGIN
  auto kept = std::make_shared<SharedObject>(function);
  autograd::at_end_of_pass([kept] {
    const HoldGil gil;
    if (PyObject* result = PyObject_CallNoArgs(kept->get()))
      Py_DECREF(result);
    else
      throw_carried_error();
  });
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
}  // namespace

PyGetSetDef tensor_autograd_attributes[] = {
    {"requires_grad", get_requires_grad, set_requires_grad, "Are operators on it recorded?",
     nullptr},
    {"grad", get_grad, set_grad, "The gradient that backward has accumulated.", nullptr},
    {"grad_fn", get_grad_fn, nullptr, "The node of the operator that made it.", nullptr},
    {"is_leaf", get_is_leaf, nullptr, "Made by the user, or without gradient.", nullptr},
    {"output_nr", get_output_nr, nullptr, "Which result of its grad_fn it is.", nullptr},
    {"retains_grad", get_retains_grad, nullptr, "Does backward fill .grad of this tensor, no leaf?",
     nullptr},
    {"_base", get_base, nullptr, "The tensor that a view looks at, or None.", nullptr},
    {"_backward_hooks", get_backward_hooks, set_backward_hooks, nullptr, nullptr},
    {"_post_accumulate_grad_hooks", get_post_accumulate, set_post_accumulate, nullptr, nullptr},
    {}};

PyMethodDef tensor_autograd_methods[] = {
    {"requires_grad_", fast(requires_grad_), METH_FASTCALL | METH_KEYWORDS, "Sets requires_grad."},
    {"backward", fast(backward_method), METH_FASTCALL | METH_KEYWORDS,
     "Adds gradients to the leaves."},
    {"_is_view", is_view, METH_NOARGS, "Does it look at the bytes of its ._base?"},
    {"detach_", detach_, METH_NOARGS, "Forgets the history."},
    {"retain_grad", retain_grad, METH_NOARGS, "Lets backward fill .grad of a tensor, no leaf."},
    {"register_hook", register_hook, METH_O,
     "Calls function(grad) when the gradient is known; what it returns takes its place."},
    {"register_post_accumulate_grad_hook", register_post_accumulate, METH_O,
     "Calls function(leaf) after the leaf's .grad has been added to."},
    {}};

PyMethodDef autograd_functions[] = {
    {"_autograd_backward", fast(backward_function), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"_autograd_grad", fast(grad_function), METH_FASTCALL | METH_KEYWORDS,
     "grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False,\n"
     "     only_inputs=True, allow_unused=None, is_grads_batched=False, "
     "materialize_grads=False)\n\n"
     "Gradients of the sum of outputs with respect to inputs: a tuple of tensors, one for each "
     "input.\n\n"
     "grad_outputs are the gradients of the outputs, 1 where they are None. Raises RuntimeError "
     "where an output\nrequires no gradient, or an input does not take part in it and allow_unused "
     "is not True."},
    {"_gradient_edge", gradient_edge, METH_O, nullptr},
    {"_current_graph_task_id", current_pass, METH_NOARGS, nullptr},
    {"_current_autograd_node", current_node, METH_NOARGS, nullptr},
    {"_will_engine_execute_node", will_execute, METH_O, nullptr},
    {"_is_checkpoint_valid", is_checkpoint_valid, METH_NOARGS, nullptr},
    {"_saving_node_name", saving_node_name, METH_NOARGS, nullptr},
    {"_queue_callback", queue_callback, METH_O, nullptr},
    {}};

}  // namespace lamina::border
