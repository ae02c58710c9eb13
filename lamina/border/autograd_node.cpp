// Nodes of the recorded graph as Python objects.
#include <string>
#include <unordered_map>

#include "lamina/autograd/accumulate_grad.h"
#include "lamina/border/autograd.h"
#include "lamina/border/convert.h"
#include "lamina/border/function.h"
#include "lamina/border/hooks.h"
#include "lamina/border/types.h"

namespace lamina::border {

namespace {

struct NodeObject {
  PyObject_HEAD IntrusivePtr<autograd::Node> node;
};
PyTypeObject* node_type = nullptr;

NodeObject* as_node(PyObject* self) { return reinterpret_cast<NodeObject*>(self); }

void node_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  IntrusivePtr<autograd::Node>& node = as_node(self)->node;
  if (node && node->wrapper() == self) node->set_wrapper(nullptr);
  node.~IntrusivePtr<autograd::Node>();
  type->tp_free(self);
  Py_DECREF(type);
}
int node_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const autograd::Node* node = as_node(self)->node.get();
  return node && node->use_count() == 1 ? traverse_node(*node, visit, arg) : 0;
}
int node_clear(PyObject* self) {
  // The node dies with the last reference; without it this object tells of nothing any more.
  IntrusivePtr<autograd::Node> node = as_node(self)->node;
  if (node && node->use_count() == 2) {
    node->set_wrapper(nullptr);
    as_node(self)->node = nullptr;
  }
  return 0;
}

// One type for each name, so that type(t.grad_fn).__name__ says which operator it was.
PyTypeObject* type_of_node(const char* name) {
  static std::unordered_map<std::string, PyTypeObject*> types;
  // The type's name is the key's text, which stays where it is.
  const auto entry = types.try_emplace(std::string("lamina.autograd.") + name, nullptr).first;
  PyTypeObject*& type = entry->second;
  if (!type) {
    // A heap type that the collector looks at does not inherit how.
    PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                           {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
                           {0, nullptr}};
    PyType_Spec spec = {entry->first.c_str(), sizeof(NodeObject), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
    Ref bases = owned(PyTuple_Pack(1, reinterpret_cast<PyObject*>(node_type)));
    type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(&spec, bases.get())));
  }
  return type;
}

PyObject* node_repr(PyObject* self) {
  const autograd::Node* node = as_node(self)->node.get();
  return PyUnicode_FromFormat("<%s object at %p>", node ? node->name() : "Node",
                              static_cast<void*>(self));
}

// ---- what a node keeps, by name -----------------------------------------------------------------

PyObject* wrap_value(const dispatch::Value& v) {
  return std::visit(
      [](const auto& x) -> PyObject* {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, std::monostate> || std::is_same_v<T, Generator>)
          Py_RETURN_NONE;
        else if constexpr (std::is_same_v<T, std::vector<int64_t>>)
          return wrap_ints(x);
        else if constexpr (std::is_same_v<T, std::vector<double>> ||
                           std::is_same_v<T, std::vector<bool>> ||
                           std::is_same_v<T, std::vector<Scalar>>) {
          Ref tuple = owned(PyTuple_New(static_cast<Py_ssize_t>(x.size())));
          for (size_t i = 0; i < x.size(); ++i)
            PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), checked(wrap(x[i])));
          return tuple.leak();
        } else {
          return wrap(x);
        }
      },
      v);
}

// Finds one name (`_saved_self`), or lists all.
class Finder final : public autograd::SavedReader {
 public:
  Finder(autograd::Node& node, const char* wanted, bool raw)
      : node_(node), wanted_(wanted), raw_(raw) {}
  void tensor(const char* name, autograd::SavedTensor& t) override {
    if (!take(name)) return;
    node_.check_not_released();
    found = owned(raw_ ? wrap_saved(node_, t) : wrap(t.unpack(&node_)));
  }
  void tensors(const char* name, autograd::SavedTensorList& list) override {
    if (!take(name)) return;
    node_.check_not_released();
    Ref tuple = owned(PyTuple_New(static_cast<Py_ssize_t>(list.items().size())));
    for (size_t i = 0; i < list.items().size(); ++i) {
      autograd::SavedTensor& t = list.items()[i];
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       checked(raw_ ? wrap_saved(node_, t) : wrap(t.unpack(&node_))));
    }
    found = std::move(tuple);
  }
  void value(const char* name, const dispatch::Value& v) override {
    if (!raw_ && take(name)) found = owned(wrap_value(v));
  }
  Ref found;
  std::vector<std::string> names;

 private:
  bool take(const char* name) {
    if (!wanted_) names.emplace_back(name);
    return wanted_ && std::string_view(name) == wanted_;
  }
  autograd::Node& node_;
  const char* wanted_;
  const bool raw_;
};

PyObject* node_getattro(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  const std::string_view wanted(text);
  const bool raw = wanted.starts_with("_raw_saved_");
  if (!raw && !wanted.starts_with("_saved_")) return nullptr;
  PyErr_Clear();
  LAMINA_BORDER_BEGIN
  autograd::Node& node = node_from(self);
  Finder finder(node, text + (raw ? 11 : 7), raw);
  node.read_saved(finder);
  if (finder.found) return finder.found.leak();
  PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'", node.name(), name);
  return nullptr;
  LAMINA_BORDER_END
}

PyObject* node_dir(PyObject* self, PyObject*) {
  LAMINA_BORDER_BEGIN
  Ref type_names = owned(
      PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__", "O", self));
  Ref names = owned(PySequence_List(type_names.get()));
  autograd::Node& node = node_from(self);
  Finder finder(node, nullptr, false);
  node.read_saved(finder);
  for (const std::string& n : finder.names)
    checked(PyList_Append(names.get(), owned(wrap("_saved_" + n)).get()));
  return names.leak();
  LAMINA_BORDER_END
}

// ---- a tensor that a node keeps, with its hooks (_raw_saved_self) -------------------------------

struct SavedObject {
  PyObject_HEAD IntrusivePtr<autograd::Node> node;
  autograd::SavedTensor* saved;  // inside the node
};
SavedObject* as_saved(PyObject* o) { return reinterpret_cast<SavedObject*>(o); }
void saved_dealloc(PyObject* self) {
  as_saved(self)->node.~IntrusivePtr<autograd::Node>();
  Py_TYPE(self)->tp_free(self);
}
PyObject* saved_register_hooks(PyObject* self, PyObject* args) {
  LAMINA_BORDER_BEGIN
  PyObject *pack, *unpack;
  if (!PyArg_ParseTuple(args, "OO:register_hooks", &pack, &unpack)) return nullptr;
  if (!PyCallable_Check(pack) || !PyCallable_Check(unpack))
    raise_type("register_hooks(): expected two functions, pack and unpack");
  as_saved(self)->node->check_not_released();
  PythonPacker packer(pack, unpack);
  as_saved(self)->saved->pack_with(packer);
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
PyObject* saved_unpack(PyObject* self, PyObject*) {
  LAMINA_BORDER_BEGIN
  return wrap(as_saved(self)->saved->unpack(as_saved(self)->node.get()));
  LAMINA_BORDER_END
}
PyMethodDef saved_methods[] = {
    {"register_hooks", saved_register_hooks, METH_VARARGS, "Packs what is kept, once."},
    {"unpack", saved_unpack, METH_NOARGS, "The tensor."},
    {}};
PyTypeObject saved_type = [] {
  PyTypeObject t = blank_type();
  t.tp_name = "lamina._C._autograd.SavedTensor";
  t.tp_doc = "A tensor that a node keeps for backward.";
  t.tp_basicsize = sizeof(SavedObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  t.tp_dealloc = saved_dealloc;
  t.tp_methods = saved_methods;
  return t;
}();

// ---- what every node has ------------------------------------------------------------------------

PyObject* node_name(PyObject* self, PyObject*) {
  LAMINA_BORDER_BEGIN
  return PyUnicode_FromString(node_from(self).name());
  LAMINA_BORDER_END
}
PyObject* node_next(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  const autograd::EdgeList& edges = node_from(self).edges();
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
PyObject* node_sequence(PyObject* self, PyObject*) {
  LAMINA_BORDER_BEGIN
  return PyLong_FromUnsignedLongLong(node_from(self).sequence());
  LAMINA_BORDER_END
}
PyObject* node_set_sequence(PyObject* self, PyObject* n) {
  LAMINA_BORDER_BEGIN
  node_from(self).set_sequence(static_cast<uint64_t>(to_int(n)));
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
PyObject* node_variable(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  const auto* accumulate = dynamic_cast<const autograd::AccumulateGrad*>(&node_from(self));
  if (!accumulate)
    raise_python(PyExc_AttributeError, "only AccumulateGrad has the attribute 'variable'");
  return wrap(accumulate->variable());
  LAMINA_BORDER_END
}
PyObject* node_metadata(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  auto& kept = node_from(self).hooks().metadata;
  if (!kept) kept = std::make_shared<ObjectAttachment>(owned(PyDict_New()).get());
  return Py_NewRef(static_cast<PyObject*>(kept->python_object()));
  LAMINA_BORDER_END
}
// (shape, dtype, device) of each result of the forward call.
PyObject* node_input_metadata(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  const autograd::Node& node = node_from(self);
  Ref list = owned(PyList_New(0));
  for (uint32_t i = 0; i < node.num_outputs(); ++i) {
    const ResultMeta& m = node.output(i);
    Ref size = owned(wrap_size(m.sizes));
    Ref device = owned(wrap(m.device));
    checked(PyList_Append(
        list.get(), owned(PyTuple_Pack(3, size.get(), dtype_object(m.dtype), device.get())).get()));
  }
  return list.leak();
  LAMINA_BORDER_END
}
PyObject* node_register_hook(PyObject* self, PyObject* function) {
  LAMINA_BORDER_BEGIN
  return add_hook(dict_of<DictPostHook>(node_from(self).hooks().after), function);
  LAMINA_BORDER_END
}
PyObject* node_register_prehook(PyObject* self, PyObject* function) {
  LAMINA_BORDER_BEGIN
  return add_hook(dict_of<DictPreHook>(node_from(self).hooks().before), function);
  LAMINA_BORDER_END
}
PyObject* node_compare(PyObject* a, PyObject* b, int op) {
  if (!PyObject_TypeCheck(b, node_type) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((as_node(a)->node == as_node(b)->node) == (op == Py_EQ));
}
Py_hash_t node_hash(PyObject* self) { return _Py_HashPointer(as_node(self)->node.get()); }

PyMethodDef own_node_methods[] = {{"__dir__", node_dir, METH_NOARGS, nullptr}, {}};
PyGetSetDef own_node_attributes[] = {
    {"variable", node_variable, nullptr, "The leaf of AccumulateGrad.", nullptr}, {}};

}  // namespace

PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "Name of the recorded operator."},
    {"register_hook", node_register_hook, METH_O,
     "Calls function(gradients made, gradients given) after the node has run; returns a handle."},
    {"register_prehook", node_register_prehook, METH_O,
     "Calls function(gradients given) before the node runs; returns a handle."},
    {"_sequence_nr", node_sequence, METH_NOARGS, "Number of the node in its thread."},
    {"_set_sequence_nr", node_set_sequence, METH_O, nullptr},
    {}};
PyGetSetDef node_attributes[] = {
    {"next_functions", node_next, nullptr, "Where the gradients go: (node, number of its result).",
     nullptr},
    {"metadata", node_metadata, nullptr, "A dict for notes about the node.", nullptr},
    {"_input_metadata", node_input_metadata, nullptr,
     "(size, dtype, device) of each result of the forward call.", nullptr},
    {}};

PyObject* wrap_saved(autograd::Node& node, autograd::SavedTensor& saved) {
  PyObject* o = checked(saved_type.tp_alloc(&saved_type, 0));
  new (&as_saved(o)->node) IntrusivePtr<autograd::Node>(IntrusivePtr<autograd::Node>::share(&node));
  as_saved(o)->saved = &saved;
  return o;
}

PyObject* wrap_node(IntrusivePtr<autograd::Node> node) {
  if (!node) Py_RETURN_NONE;
  if (void* defining = node->python_object()) return Py_NewRef(static_cast<PyObject*>(defining));
  if (void* object = node->wrapper()) return Py_NewRef(static_cast<PyObject*>(object));
  PyTypeObject* type = type_of_node(node->name());
  PyObject* o = checked(type->tp_alloc(type, 0));
  node->set_wrapper(o);
  new (&as_node(o)->node) IntrusivePtr<autograd::Node>(std::move(node));
  return o;
}

autograd::Node& node_from(PyObject* object) {
  if (PyObject_TypeCheck(object, node_type)) {
    if (autograd::Node* node = as_node(object)->node.get()) return *node;
    raise_runtime("this node is gone");
  }
  return node_of_context(object);
}

void add_node_type(PyObject* module) {
  checked(PyType_Ready(&saved_type));
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
                         {Py_tp_getattro, reinterpret_cast<void*>(node_getattro)},
                         {Py_tp_methods, own_node_methods},
                         {Py_tp_getset, own_node_attributes},
                         {Py_tp_repr, reinterpret_cast<void*>(node_repr)},
                         {Py_tp_richcompare, reinterpret_cast<void*>(node_compare)},
                         {Py_tp_hash, reinterpret_cast<void*>(node_hash)},
                         {0, nullptr}};
  PyType_Spec spec = {"lamina.autograd.graph.Node", sizeof(NodeObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
                          Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  node_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  add_descriptors(node_type, node_methods, node_attributes);
  checked(PyModule_AddObjectRef(module, "_Node", reinterpret_cast<PyObject*>(node_type)));
}

}  // namespace lamina::border
