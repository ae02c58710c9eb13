// Gradients as Python sees them: attributes, backward, grad, and the nodes of the recorded graph.
#include "lamina/border/autograd.h"

#include <string>
#include <unordered_map>

#include "lamina/autograd/accumulate_grad.h"
#include "lamina/autograd/engine.h"
#include "lamina/autograd/variable.h"

namespace lamina::border {

int traverse_autograd(const Tensor& t, visitproc visit, void* arg) {
  const autograd::Meta* m = autograd::meta(t);
  if (!m || !m->grad.defined()) return 0;
  const TensorImpl* grad = m->grad.impl();
  // The gradient's object belongs to this tensor only while nobody else holds the gradient.
  if (grad->owns_pyobject() && grad->use_count() == 1)
    Py_VISIT(static_cast<PyObject*>(grad->pyobject()));
  return 0;
}
void clear_autograd(const Tensor& t) {
  if (autograd::Meta* m = autograd::meta(t)) m->grad = Tensor();
}

namespace {

// ---- nodes --------------------------------------------------------------------------------------

struct NodeObject {
  PyObject_HEAD IntrusivePtr<autograd::Node> node;
};
PyTypeObject* node_type = nullptr;

const IntrusivePtr<autograd::Node>& node_of(PyObject* self) {
  return reinterpret_cast<NodeObject*>(self)->node;
}

// One type for each name, so that type(t.grad_fn).__name__ says which operator it was.
PyTypeObject* type_of_node(const char* name) {
  static std::unordered_map<std::string, PyTypeObject*> types;
  // The type's name is the key's text, which stays where it is.
  const auto entry = types.try_emplace(std::string("lamina.autograd.") + name, nullptr).first;
  PyTypeObject*& type = entry->second;
  if (!type) {
    PyType_Slot slots[] = {{0, nullptr}};
    PyType_Spec spec = {entry->first.c_str(), sizeof(NodeObject), 0, Py_TPFLAGS_DEFAULT, slots};
    Ref bases = owned(PyTuple_Pack(1, reinterpret_cast<PyObject*>(node_type)));
    type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(&spec, bases.get())));
  }
  return type;
}

PyObject* wrap_node(IntrusivePtr<autograd::Node> node) {
  if (!node) Py_RETURN_NONE;
  PyTypeObject* type = type_of_node(node->name());
  PyObject* o = checked(type->tp_alloc(type, 0));
  new (&reinterpret_cast<NodeObject*>(o)->node) IntrusivePtr<autograd::Node>(std::move(node));
  return o;
}

void node_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<NodeObject*>(self)->node.~IntrusivePtr<autograd::Node>();
  type->tp_free(self);
  Py_DECREF(type);
}
PyObject* node_name(PyObject* self, PyObject*) {
  return PyUnicode_FromString(node_of(self)->name());
}
PyObject* node_next(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  const auto& edges = node_of(self)->edges();
  Ref tuple = owned(PyTuple_New(static_cast<Py_ssize_t>(edges.size())));
  for (size_t i = 0; i < edges.size(); ++i) {
    Ref next = owned(wrap_node(edges[i].node));
    PyObject* pair =
        checked(Py_BuildValue("(OI)", next.get(), static_cast<unsigned>(edges[i].output_nr)));
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), pair);
  }
  return tuple.leak();
  LAMINA_BORDER_END
}
PyObject* node_repr(PyObject* self) {
  return PyUnicode_FromFormat("<%s object at %p>", node_of(self)->name(), static_cast<void*>(self));
}
PyObject* node_sequence(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(node_of(self)->sequence());
}
PyObject* node_variable(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  const auto* accumulate = dynamic_cast<const autograd::AccumulateGrad*>(node_of(self).get());
  if (!accumulate) raise_python(PyExc_AttributeError, "only AccumulateGrad has a variable");
  return wrap(accumulate->variable());
  LAMINA_BORDER_END
}
PyObject* node_compare(PyObject* a, PyObject* b, int op) {
  if (!PyObject_TypeCheck(b, node_type) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((node_of(a) == node_of(b)) == (op == Py_EQ));
}
Py_hash_t node_hash(PyObject* self) { return _Py_HashPointer(node_of(self).get()); }

PyMethodDef node_methods[] = {{"name", node_name, METH_NOARGS, "Name of the recorded operator."},
                              {"_sequence_nr", node_sequence, METH_NOARGS, nullptr},
                              {}};
PyGetSetDef node_getset[] = {
    {"next_functions", node_next, nullptr, "Where the gradients go: (node, number of its result).",
     nullptr},
    {"variable", node_variable, nullptr, "The leaf of AccumulateGrad.", nullptr},
    {}};

// ---- attributes ---------------------------------------------------------------------------------

PyObject* get_requires_grad(PyObject* self, void*) { return wrap(unwrap(self).requires_grad()); }
int set_requires_grad(PyObject* self, PyObject* value, void*) {
  LAMINA_BORDER_BEGIN
  if (!value || !PyBool_Check(value)) raise_runtime("requires_grad must be a bool");
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
  return wrap_node(autograd::grad_fn(unwrap(self)));
  LAMINA_BORDER_END
}
PyObject* get_is_leaf(PyObject* self, void*) { return wrap(autograd::is_leaf(unwrap(self))); }
PyObject* get_output_nr(PyObject* self, void*) {
  const autograd::Meta* m = autograd::meta(unwrap(self));
  return PyLong_FromUnsignedLong(m ? m->output_nr : 0);
}
PyObject* get_false(PyObject*, void*) { Py_RETURN_FALSE; }
PyObject* get_none(PyObject*, void*) { Py_RETURN_NONE; }

// ---- methods and functions ----------------------------------------------------------------------

constexpr Param kRequiresGrad[] = {{"input", P::Tensor}, {"requires_grad", P::Bool, kDefault}};
constexpr Signature kRequiresGradSignatures[] = {
    make_signature(kRequiresGrad, "Tensor input, bool requires_grad = True")};
constinit Parser requires_grad_parser("requires_grad_", kRequiresGradSignatures);

PyObject* requires_grad_(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  const ParsedArgs r(requires_grad_parser, self, args, nargs, names);
  autograd::set_requires_grad(unwrap(self), r.boolean_or(1, true));
  return Py_NewRef(self);
  LAMINA_BORDER_END
}

// One tensor or a sequence of them; items may be None where `none` says so.
std::vector<Tensor> tensors_of(PyObject* o, const char* what, bool none) {
  std::vector<Tensor> out;
  if (!o || o == Py_None) return out;
  if (is_tensor(o)) {
    out.push_back(unwrap(o));
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
    } else if (roots[i].requires_grad()) {
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

PyObject* grad_function(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  const ParsedArgs r(grad_parser, nullptr, args, nargs, names);
  std::vector<Tensor> outputs = tensors_of(r.object(0), "outputs", false);
  std::vector<Tensor> inputs = tensors_of(r.object(1), "inputs", false);
  std::vector<Tensor> gradients = tensors_of(r.object(2), "grad_outputs", true);
  if (inputs.empty()) raise_value("grad requires non-empty inputs.");
  LAMINA_CHECK_IMPLEMENTED(!r.boolean_or(6, false), "grad: is_grads_batched is not supported");
  check_gradients(outputs, gradients);
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
    results = autograd::grad(outputs, inputs, gradients, retain, create, unused);
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
  const Tensor& t = unwrap(self);
  if (autograd::Meta* m = autograd::meta(t)) {
    LAMINA_CHECK(!m->is_view, "Can't detach views in-place. Use detach() instead.");
    m->grad_fn = nullptr;
    m->has_grad_fn = false;
    m->requires_grad = false;
    m->output_nr = 0;
  }
  return Py_NewRef(self);
  LAMINA_BORDER_END
}

template <class F>
PyCFunction fast(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

}  // namespace

PyGetSetDef tensor_autograd_attributes[] = {
    {"requires_grad", get_requires_grad, set_requires_grad, "Are operators on it recorded?",
     nullptr},
    {"grad", get_grad, set_grad, "The gradient that backward has accumulated.", nullptr},
    {"grad_fn", get_grad_fn, nullptr, "The node of the operator that made it.", nullptr},
    {"is_leaf", get_is_leaf, nullptr, "Made by the user, or without gradient.", nullptr},
    {"output_nr", get_output_nr, nullptr, nullptr, nullptr},
    {"retains_grad", get_false, nullptr, nullptr, nullptr},
    {"_backward_hooks", get_none, nullptr, nullptr, nullptr},
    {}};

PyMethodDef tensor_autograd_methods[] = {
    {"requires_grad_", fast(requires_grad_), METH_FASTCALL | METH_KEYWORDS, "Sets requires_grad."},
    {"backward", fast(backward_method), METH_FASTCALL | METH_KEYWORDS,
     "Adds gradients to the leaves."},
    {"detach_", detach_, METH_NOARGS, "Forgets the history."},
    {}};

PyMethodDef autograd_functions[] = {
    {"_autograd_backward", fast(backward_function), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"_autograd_grad", fast(grad_function), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {}};

void add_node_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                         {Py_tp_methods, node_methods},
                         {Py_tp_getset, node_getset},
                         {Py_tp_repr, reinterpret_cast<void*>(node_repr)},
                         {Py_tp_richcompare, reinterpret_cast<void*>(node_compare)},
                         {Py_tp_hash, reinterpret_cast<void*>(node_hash)},
                         {0, nullptr}};
  PyType_Spec spec = {"lamina.autograd.graph.Node", sizeof(NodeObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  node_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  checked(PyModule_AddObjectRef(module, "_Node", reinterpret_cast<PyObject*>(node_type)));
}

}  // namespace lamina::border
