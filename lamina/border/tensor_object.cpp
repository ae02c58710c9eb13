// Tensor's Python object: allocation, identity, garbage collection, the type.
//
// One tensor has at most one object. The object holds the tensor; when Python drops its last
// reference while C++ still holds the tensor, an object that a program could tell from a new one
// (it has attributes, weak references or a subclass) stays alive, held by the tensor, and is turned
// round again the next time the tensor comes to Python. Any other object simply dies.
#include "lamina/border/tensor_object.h"

#include <structmember.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <unordered_map>

#include "lamina/border/generated.h"
#include "lamina/border/operators.h"
#include "lamina/border/override.h"
#include "lamina/kernels/result.h"

namespace lamina::border {

PyTypeObject* tensor_type = nullptr;

namespace {

constexpr int kFreeObjects = 128;
TensorObject* free_objects[kFreeObjects];
int num_free_objects = 0;

TensorObject* as_object(PyObject* self) { return reinterpret_cast<TensorObject*>(self); }

void dealloc(PyObject* self);

// `value` becomes the object's without touching the count.
PyObject* new_object(PyTypeObject* type, Tensor&& value) {
  TensorObject* o;
  if (type == tensor_type && num_free_objects > 0) {
    // An object in the list has kept its type, and the type's reference with it.
    o = free_objects[--num_free_objects];
    Py_SET_REFCNT(reinterpret_cast<PyObject*>(o), 1);
    new (&o->value) Tensor(std::move(value));
    PyObject_GC_Track(o);
  } else if (type == tensor_type) {
    o = PyObject_GC_New(TensorObject, type);
    if (!o) throw PythonError{};
    new (&o->value) Tensor(std::move(value));
    o->dict = nullptr;
    o->weakrefs = nullptr;
    o->shape = nullptr;
    PyObject_GC_Track(o);
  } else {
    // Tracked by the allocation. A plain subclass dies the way its base does.
    if (type->tp_basicsize == tensor_type->tp_basicsize) type->tp_dealloc = dealloc;
    o = as_object(checked(type->tp_alloc(type, 0)));
    new (&o->value) Tensor(std::move(value));
  }
  if (TensorImpl* impl = o->value.impl()) impl->set_pyobject(o, false);
  return reinterpret_cast<PyObject*>(o);
}

// True where the object lives on, held by its tensor.
bool hand_to_tensor(PyObject* self) {
  TensorObject* o = as_object(self);
  TensorImpl* impl = o->value.impl();
  if (!impl || impl->pyobject() != self) return false;
  if (impl->use_count() == 1 || !(o->dict || o->weakrefs || Py_TYPE(self) != tensor_type ||
                                  (impl->autograd() && outlives_python(o->value)))) {
    impl->set_pyobject(nullptr, false);
    return false;
  }
  Py_SET_REFCNT(self, 1);
  impl->set_pyobject(self, true);
  impl->release();  // the object keeps the bare pointer
  return true;
}

void dealloc(PyObject* self) {
  TensorObject* o = as_object(self);
  PyTypeObject* type = Py_TYPE(self);
  if (type != tensor_type && type->tp_finalize) {
    if (PyObject_CallFinalizerFromDealloc(self) < 0) return;
  }
  if (hand_to_tensor(self)) return;
  PyObject_GC_UnTrack(self);
  if (o->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(o->dict);
  Py_CLEAR(o->shape);
  o->value.~Tensor();
  if (type == tensor_type && num_free_objects < kFreeObjects) {
    free_objects[num_free_objects++] = o;
    return;
  }
  type->tp_free(self);
  Py_DECREF(type);
}

// Whether this thread may use Python objects. An interpreter that shuts down no longer counts as
// initialized, but it still runs destructors and the garbage collector, on the thread that holds
// it.
bool python_is_usable() {
  if (Py_IsInitialized()) return true;
  PyThreadState* mine = PyGILState_GetThisThreadState();
#if PY_VERSION_HEX >= 0x030d0000
  return mine && mine == PyThreadState_GetUnchecked();
#else
  return mine && mine == _PyThreadState_UncheckedGet();
#endif
}

// A tensor that owns its object dies. Without the interpreter there is nobody to tell: both stay
// until the process ends, for the collector may still come to the object, which points to the
// tensor.
bool release_object(void* object) noexcept {
  if (!python_is_usable()) {
    as_object(static_cast<PyObject*>(object))->value.impl()->revive();
    return true;
  }
  const PyGILState_STATE state = PyGILState_Ensure();
  auto* self = static_cast<PyObject*>(object);
  TensorObject* o = as_object(self);
  TensorImpl* impl = o->value.impl();
  bool revived = false;
  if (Py_REFCNT(self) > 1) {
    // A weak reference has brought the object back to Python: it holds the tensor from now on.
    impl->revive();
    impl->set_pyobject(self, false);
    revived = true;
  } else {
    o->value.leak();
    impl->set_pyobject(nullptr, false);
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Py_DECREF(self);
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
  return revived;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  TensorObject* o = as_object(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(o->dict);
  return o->value.defined() ? traverse_autograd(o->value, visit, arg) : 0;
}
int clear(PyObject* self) {
  TensorObject* o = as_object(self);
  Py_CLEAR(o->dict);
  if (o->value.defined()) clear_autograd(o->value);
  return 0;
}

std::unordered_map<std::string, FastMethod>& generated() {
  static std::unordered_map<std::string, FastMethod> table;
  return table;
}

PyObject* missing_method(PyObject*, PyObject* const*, Py_ssize_t, PyObject*) {
  PyErr_SetString(PyExc_NotImplementedError, "this operator is not part of this build of Lamina");
  return nullptr;
}

// Tensor(2, 3), Tensor([1., 2.]), Tensor(other): the historic constructor of float32 tensors.
PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs);

void add_methods(PyMethodDef* table) {
  for (PyMethodDef* m = table; m->ml_name; ++m) {
    PyObject* method = m->ml_flags & METH_STATIC
                           ? PyStaticMethod_New(owned(PyCFunction_New(m, nullptr)).get())
                       : m->ml_flags & METH_CLASS ? PyDescr_NewClassMethod(tensor_type, m)
                                                  : PyDescr_NewMethod(tensor_type, m);
    Ref descriptor = owned(method);
    checked(PyDict_SetItemString(tensor_type->tp_dict, m->ml_name, descriptor.get()));
  }
}
void add_attributes(PyGetSetDef* table) {
  for (PyGetSetDef* a = table; a->name; ++a) {
    auto* made = new PyGetSetDef(overridable_attribute(*a));  // lives as long as the type
    Ref descriptor = owned(PyDescr_NewGetSet(tensor_type, made));
    checked(PyDict_SetItemString(tensor_type->tp_dict, a->name, descriptor.get()));
  }
}

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
    {}};
PyGetSetDef getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {}};

}  // namespace

PyObject* wrap(Tensor t) {
  TensorImpl* impl = t.impl();
  if (!impl) Py_RETURN_NONE;
  if (auto* object = static_cast<PyObject*>(impl->pyobject())) {
    if (!impl->owns_pyobject()) return Py_NewRef(object);
    // Turn round: the object holds the tensor again, and its reference goes to the caller.
    impl->retain();
    impl->set_pyobject(object, false);
    return object;
  }
  return new_object(tensor_type, std::move(t));
}

PyObject* wrap_as(PyTypeObject* type, Tensor t) {
  if (has_torch_dispatch(type)) {
    serve_python_key();
    t.impl()->set_keys(t.keys() | DispatchKey::Python);
  }
  return new_object(type, std::move(t));
}

PyObject* wrap(const std::vector<Tensor>& v) {
  Ref tuple = owned(PyTuple_New(static_cast<Py_ssize_t>(v.size())));
  for (size_t i = 0; i < v.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), wrap(v[i]));
  return tuple.leak();
}

PyObject* wrap(const std::string& v) {
  return PyUnicode_FromStringAndSize(v.data(), static_cast<Py_ssize_t>(v.size()));
}

namespace {

// torch.return_types.max(\nvalues=...,\nindices=...)
PyObject* repr_named(PyObject* self) {
  LAMINA_BORDER_BEGIN
  std::string text =
      std::string("torch.return_types.") + (std::strrchr(Py_TYPE(self)->tp_name, '.') + 1) + "(";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i) {
    Ref item = owned(PyObject_Repr(PyTuple_GET_ITEM(self, i)));
    const char* shown = PyUnicode_AsUTF8(item.get());
    if (!shown) throw PythonError{};
    text += (i ? ",\n" : "\n") + std::string(Py_TYPE(self)->tp_members[i].name) + "=" + shown;
  }
  return wrap(text + ")");
  LAMINA_BORDER_END
}

}  // namespace

namespace detail {

PyObject* make_tuple(PyObject** items, size_t n) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(n));
  for (size_t i = 0; i < n; ++i) {
    if (tuple && items[i]) {
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), items[i]);
    } else {
      Py_XDECREF(items[i]);
      Py_CLEAR(tuple);
    }
  }
  return tuple;
}

PyObject* make_named_tuple(const char* name, const char* const* fields, PyObject** items,
                           size_t n) {
  // One type for each operator, made at first use; the field names live in constants.
  static std::unordered_map<std::string, PyTypeObject*> types;
  PyTypeObject*& type = types[name];
  if (!type) {
    std::vector<PyStructSequence_Field> list(n + 1);
    for (size_t i = 0; i < n; ++i) list[i] = {fields[i], nullptr};
    list[n] = {nullptr, nullptr};
    const std::string full = std::string("torch.return_types.") + name;
    PyStructSequence_Desc desc{full.c_str(), nullptr, list.data(), static_cast<int>(n)};
    type = PyStructSequence_NewType(&desc);
    if (type) type->tp_repr = repr_named;
  }
  PyObject* result = type ? PyStructSequence_New(type) : nullptr;
  for (size_t i = 0; i < n; ++i) {
    if (result && items[i]) {
      PyStructSequence_SET_ITEM(result, static_cast<Py_ssize_t>(i), items[i]);
    } else {
      Py_XDECREF(items[i]);
      Py_CLEAR(result);
    }
  }
  return result;
}

}  // namespace detail

FastMethod generated_method(const char* name) {
  const auto found = generated().find(name);
  return found == generated().end() ? missing_method : found->second;
}

namespace {

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  LAMINA_BORDER_BEGIN
  if (kwargs && PyDict_GET_SIZE(kwargs) > 0 && !PyDict_GetItemString(kwargs, "device"))
    raise_type("Tensor(): takes no keyword arguments but device");
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyObject* first = n > 0 ? PyTuple_GET_ITEM(args, 0) : nullptr;
  Tensor value;
  if (n == 1 && is_tensor(first)) {
    Ref detached = call_method(generated_method("detach"), first);
    value = unwrap(detached.get());
    if (value.impl()->pyobject() && detached.get() != first) {
      // The fresh object of the fresh tensor is not needed: the new one takes its place.
      value.impl()->set_pyobject(nullptr, false);
    }
  } else if (n == 0) {
    value = empty_contiguous(Sizes{0}, default_dtype(), kCpu);
  } else {
    bool all_ints = true;
    Sizes sizes;
    PyObject* source = n == 1 && Py_TYPE(first) == &size_type ? first : args;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(source) && all_ints; ++i) {
      all_ints = is_int(PyTuple_GET_ITEM(source, i));
      if (all_ints) sizes.push_back(to_int(PyTuple_GET_ITEM(source, i)));
    }
    if (all_ints) {
      for (const int64_t s : sizes)
        LAMINA_CHECK(s >= 0, "Trying to create tensor with negative dimension ", s, ": ",
                     IntList(sizes));
      value = empty_contiguous(sizes, default_dtype(), kCpu);
    } else if (n == 1) {
      if (!PySequence_Check(first))
        raise_type(std::string("new(): data must be a sequence (got ") + Py_TYPE(first)->tp_name +
                   ")");
      value = tensor_from_data(first, default_dtype(), kCpu);
    } else {
      raise_type("new(): invalid combination of arguments; expected sizes, a sequence or a tensor");
    }
  }
  return wrap_as(type, std::move(value));
  LAMINA_BORDER_END
}

}  // namespace

void add_tensor_type(PyObject* module) {
  set_pyobject_releaser(release_object);
  for (PyMethodDef* m = generated_methods(); m->ml_name; ++m)
    generated()[m->ml_name] =
        reinterpret_cast<FastMethod>(reinterpret_cast<void (*)()>(m->ml_meth));
  find_slot_methods();
  const auto slot = [](int id, auto* p) { return PyType_Slot{id, reinterpret_cast<void*>(p)}; };
  const PyNumberMethods& n = tensor_number_slots;
  std::vector<PyType_Slot> slots = {
      slot(Py_tp_dealloc, dealloc),
      slot(Py_tp_traverse, traverse),
      slot(Py_tp_clear, clear),
      slot(Py_tp_new, make),
      slot(Py_tp_repr, tensor_repr),
      slot(Py_tp_richcompare, tensor_compare),
      slot(Py_tp_hash, _Py_HashPointer),
      slot(Py_tp_iter, tensor_iterate),
      slot(Py_mp_length, tensor_length),
      slot(Py_mp_subscript, tensor_subscript),
      slot(Py_mp_ass_subscript, tensor_assign_subscript),
      slot(Py_sq_contains, tensor_contains),
      slot(Py_tp_members, members),
      slot(Py_tp_getset, getset),
      {Py_tp_doc, const_cast<char*>("An array of numbers of one type, with gradients.")},
      slot(Py_nb_add, n.nb_add),
      slot(Py_nb_subtract, n.nb_subtract),
      slot(Py_nb_multiply, n.nb_multiply),
      slot(Py_nb_remainder, n.nb_remainder),
      slot(Py_nb_power, n.nb_power),
      slot(Py_nb_negative, n.nb_negative),
      slot(Py_nb_positive, n.nb_positive),
      slot(Py_nb_absolute, n.nb_absolute),
      slot(Py_nb_bool, n.nb_bool),
      slot(Py_nb_invert, n.nb_invert),
      slot(Py_nb_lshift, n.nb_lshift),
      slot(Py_nb_rshift, n.nb_rshift),
      slot(Py_nb_and, n.nb_and),
      slot(Py_nb_xor, n.nb_xor),
      slot(Py_nb_or, n.nb_or),
      slot(Py_nb_int, n.nb_int),
      slot(Py_nb_float, n.nb_float),
      slot(Py_nb_index, n.nb_index),
      slot(Py_nb_inplace_add, n.nb_inplace_add),
      slot(Py_nb_inplace_subtract, n.nb_inplace_subtract),
      slot(Py_nb_inplace_multiply, n.nb_inplace_multiply),
      slot(Py_nb_inplace_remainder, n.nb_inplace_remainder),
      slot(Py_nb_inplace_power, n.nb_inplace_power),
      slot(Py_nb_inplace_lshift, n.nb_inplace_lshift),
      slot(Py_nb_inplace_rshift, n.nb_inplace_rshift),
      slot(Py_nb_inplace_and, n.nb_inplace_and),
      slot(Py_nb_inplace_xor, n.nb_inplace_xor),
      slot(Py_nb_inplace_or, n.nb_inplace_or),
      slot(Py_nb_floor_divide, n.nb_floor_divide),
      slot(Py_nb_true_divide, n.nb_true_divide),
      slot(Py_nb_inplace_floor_divide, n.nb_inplace_floor_divide),
      slot(Py_nb_inplace_true_divide, n.nb_inplace_true_divide),
      slot(Py_nb_matrix_multiply, n.nb_matrix_multiply),
      {0, nullptr}};
  PyType_Slot base_slots[] = {{Py_tp_doc, const_cast<char*>("Base of Tensor; not to be made.")},
                              {0, nullptr}};
  PyType_Spec base_spec = {"lamina._C.TensorBase", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                           base_slots};
  Ref base = owned(PyType_FromSpec(&base_spec));
  PyType_Spec spec = {"lamina.Tensor", sizeof(TensorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  Ref bases = owned(PyTuple_Pack(1, base.get()));
  tensor_type =
      reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(&spec, bases.get())));
  add_methods(generated_methods());
  for (PyMethodDef* table :
       {tensor_methods, tensor_convert_methods, tensor_numpy_methods, tensor_autograd_methods,
        tensor_override_methods, tensor_dispatch_methods, index_functions})
    add_methods(table);
  add_attributes(tensor_attributes);
  add_attributes(tensor_autograd_attributes);
  PyType_Modified(tensor_type);
  checked(PyModule_AddObjectRef(module, "TensorBase", base.get()));
  checked(PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type)));
}

}  // namespace lamina::border
