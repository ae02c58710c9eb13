// Generator: a source of random numbers with a state of its own.
#include <string>

#include "lamina/border/generator.h"
#include "lamina/border/tensor_object.h"
#include "lamina/cpu/random.h"
#include "lamina/kernels/result.h"

namespace lamina::border {

namespace {

GeneratorObject* as_generator(PyObject* self) { return reinterpret_cast<GeneratorObject*>(self); }
cpu::Mt19937Generator& engine(PyObject* self) {
  return cpu::generator_of(as_generator(self)->value);
}

PyObject* make(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  LAMINA_BORDER_BEGIN
  static const char* names[] = {"device", nullptr};
  PyObject* device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names),
                                   &device))
    return nullptr;
  if (device && device != Py_None && !to_device(device).is_cpu())
    raise_runtime("Generator: device type " + std::string(name(to_device(device).type)) +
                  " is not supported; expected cpu");
  PyObject* self = checked(type->tp_alloc(type, 0));
  new (&as_generator(self)->value) Generator(IntrusivePtr<cpu::Mt19937Generator>::make());
  as_generator(self)->weakrefs = nullptr;
  return self;
  LAMINA_BORDER_END
}
void dealloc(PyObject* self) {
  if (as_generator(self)->weakrefs) PyObject_ClearWeakRefs(self);
  as_generator(self)->value.~Generator();
  Py_TYPE(self)->tp_free(self);
}

// Seeds are 64 bits; a negative one counts from the end.
uint64_t to_seed(PyObject* o) {
  if (!PyIndex_Check(o))
    raise_runtime(std::string("manual_seed expected a long, but got ") + Py_TYPE(o)->tp_name);
  Ref index = owned(PyNumber_Index(o));
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow == 0) {
    if (v == -1 && PyErr_Occurred()) throw PythonError{};
    return static_cast<uint64_t>(v);
  }
  const unsigned long long u = PyLong_AsUnsignedLongLong(index.get());
  if (u == static_cast<unsigned long long>(-1) && PyErr_Occurred()) {
    PyErr_Clear();
    raise_runtime("Overflow when unpacking long long: the seed does not fit in 64 bits");
  }
  return u;
}

Tensor state_of(cpu::Mt19937Generator& g) {
  Tensor t = empty_contiguous(Sizes{static_cast<int64_t>(cpu::Mt19937Generator::kStateBytes)},
                              ScalarType::UInt8, kCpu);
  const std::lock_guard lock(g.mutex());
  g.get_state(std::span<uint8_t, cpu::Mt19937Generator::kStateBytes>(
      t.data_as<uint8_t>(), cpu::Mt19937Generator::kStateBytes));
  return t;
}
void set_state_of(cpu::Mt19937Generator& g, PyObject* state) {
  if (!is_tensor(state) || unwrap(state).dtype() != ScalarType::UInt8)
    raise_type("expected a torch.ByteTensor, but got " + std::string(Py_TYPE(state)->tp_name));
  const Tensor t = contiguous_values(unwrap(state));
  const std::lock_guard lock(g.mutex());
  g.set_state(std::span<const uint8_t>(t.data_as<uint8_t>(), static_cast<size_t>(t.numel())));
}

PyObject* manual_seed(PyObject* self, PyObject* seed) {
  LAMINA_BORDER_BEGIN
  const uint64_t v = to_seed(seed);
  const std::lock_guard lock(engine(self).mutex());
  engine(self).set_seed(v);
  return Py_NewRef(self);
  LAMINA_BORDER_END
}
PyObject* initial_seed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(engine(self).seed());
}
PyObject* seed(PyObject* self, PyObject*) {
  LAMINA_BORDER_BEGIN
  const std::lock_guard lock(engine(self).mutex());
  return PyLong_FromUnsignedLongLong(engine(self).reseed());
  LAMINA_BORDER_END
}
PyObject* get_state(PyObject* self, PyObject*) {
  LAMINA_BORDER_BEGIN
  return wrap(state_of(engine(self)));
  LAMINA_BORDER_END
}
PyObject* set_state(PyObject* self, PyObject* state) {
  LAMINA_BORDER_BEGIN
  set_state_of(engine(self), state);
  return Py_NewRef(self);
  LAMINA_BORDER_END
}
PyObject* clone_state(PyObject* self, PyObject*) {
  LAMINA_BORDER_BEGIN
  Ref copy = owned(generator_type.tp_alloc(&generator_type, 0));
  auto fresh = IntrusivePtr<cpu::Mt19937Generator>::make();
  new (&as_generator(copy.get())->value) Generator(fresh);
  Ref state = owned(wrap(state_of(engine(self))));
  set_state_of(*fresh, state.get());
  return copy.leak();
  LAMINA_BORDER_END
}
PyObject* get_device(PyObject*, void*) { return wrap(kCpu); }

PyMethodDef methods[] = {
    {"manual_seed", manual_seed, METH_O, "Starts the sequence of this seed."},
    {"initial_seed", initial_seed, METH_NOARGS, "The seed it was started with."},
    {"seed", seed, METH_NOARGS, "Starts at a seed from the system; returns it."},
    {"get_state", get_state, METH_NOARGS, "The state as a uint8 tensor."},
    {"set_state", set_state, METH_O, "Goes back to a state."},
    {"clone_state", clone_state, METH_NOARGS, "A generator in the same state."},
    {}};
PyGetSetDef getset[] = {{"device", get_device, nullptr, nullptr, nullptr}, {}};

PyObject* global_seed(PyObject*, PyObject* value) {
  LAMINA_BORDER_BEGIN
  const uint64_t v = to_seed(value);
  cpu::Mt19937Generator& g = cpu::default_generator();
  const std::lock_guard lock(g.mutex());
  g.set_seed(v);
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}

}  // namespace

PyTypeObject generator_type = [] {
  PyTypeObject t = blank_type();
  t.tp_name = "lamina.Generator";
  t.tp_basicsize = sizeof(GeneratorObject);
  t.tp_weaklistoffset = offsetof(GeneratorObject, weakrefs);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_methods = methods;
  t.tp_getset = getset;
  t.tp_new = make;
  t.tp_dealloc = dealloc;
  t.tp_doc = "A source of random numbers.";
  return t;
}();

PyMethodDef generator_functions[] = {{"_set_default_seed", global_seed, METH_O, nullptr}, {}};

void add_generator(PyObject* module) {
  checked(PyType_Ready(&generator_type));
  checked(PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(&generator_type)));
  // A null handle stands for the default generator.
  PyObject* self = checked(generator_type.tp_alloc(&generator_type, 0));
  new (&as_generator(self)->value) Generator();
  checked(PyModule_AddObjectRef(module, "default_generator", self));
  Py_DECREF(self);
}

}  // namespace lamina::border
