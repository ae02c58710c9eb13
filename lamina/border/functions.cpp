// Functions of the module that are no operators: threads, defaults, dispatch tables, memory.
#include "lamina/border/functions.h"

#include <string>

#include "lamina/autograd/variable.h"
#include "lamina/border/generated_support.h"
#include "lamina/border/override.h"
#include "lamina/border/tensor_object.h"
#include "lamina/dispatch/library.h"
#include "lamina/kernels/generated_support.h"
#include "lamina/memory/allocator.h"
#include "lamina/ops/full.h"
#include "lamina/queue/parallel.h"
#include "lamina/shape/promotion.h"

namespace lamina::border {

void raise_no_tensor(const ParsedArgs& r) {
  raise_type(std::string(r.parser().name()) +
             "(): got numbers only; expected at least one Tensor among the operands");
}

Tensor tensor_or_number(const ParsedArgs& r, int slot) {
  return r.is_tensor(slot) ? r.tensor(slot) : ops::full({}, r.scalar(slot));
}

Tensor with_requires_grad(Tensor t, bool requires_grad) {
  if (requires_grad) autograd::set_requires_grad(t, true);
  return t;
}

void check_out_count(size_t given, size_t expected, const char* op) {
  if (given != expected)
    raise_type(std::string(op) + "(): argument 'out' must be a tuple of " +
               std::to_string(expected) + " Tensors, not of " + std::to_string(given));
}

namespace {

PyObject* set_threads(PyObject*, PyObject* n) {
  LAMINA_BORDER_BEGIN
  if (!is_int(n))
    raise_runtime(std::string("set_num_threads expects an int, but got ") + Py_TYPE(n)->tp_name);
  const int64_t v = to_int(n);
  LAMINA_CHECK(v > 0, "set_num_threads expects a positive integer; got ", v);
  queue::set_num_threads(static_cast<int>(v > queue::kMaxThreads ? queue::kMaxThreads : v));
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
PyObject* get_threads(PyObject*, PyObject*) { return PyLong_FromLong(queue::get_num_threads()); }

PyObject* get_dtype(PyObject*, PyObject*) { return wrap(default_dtype()); }
PyObject* set_dtype(PyObject*, PyObject* d) {
  LAMINA_BORDER_BEGIN
  if (Py_TYPE(d) != &dtype_type)
    raise_type("invalid dtype object: only floating-point types are supported as the default type");
  const ScalarType t = to_dtype(d);
  if (!is_floating(t) || is_float8(t))
    raise_type("only floating-point types are supported as the default type");
  set_default_dtype(t);
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
PyObject* get_device(PyObject*, PyObject*) {
  LAMINA_BORDER_BEGIN
  return wrap(default_device());
  LAMINA_BORDER_END
}
PyObject* set_device(PyObject*, PyObject* d) {
  LAMINA_BORDER_BEGIN
  set_default_device(d == Py_None ? kCpu : to_device(d));
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}

PyObject* is_tensor_function(PyObject*, PyObject* o) { return wrap(is_tensor(o)); }
const Tensor& tensor_argument(PyObject* o, const char* op) {
  if (maybe_overridden(o)) [[unlikely]]
    offer_function(op, {o});
  if (!is_tensor(o))
    raise_type(std::string(op) + "(): argument 'input' (position 1) must be Tensor, not " +
               Py_TYPE(o)->tp_name);
  return unwrap(o);
}
PyObject* is_floating_point_function(PyObject*, PyObject* o) {
  LAMINA_BORDER_BEGIN
  return wrap(is_floating(tensor_argument(o, "is_floating_point").dtype()));
  LAMINA_BORDER_END
}
PyObject* is_complex_function(PyObject*, PyObject* o) {
  LAMINA_BORDER_BEGIN
  return wrap(is_complex(tensor_argument(o, "is_complex").dtype()));
  LAMINA_BORDER_END
}
PyObject* is_conj_function(PyObject*, PyObject* o) {
  LAMINA_BORDER_BEGIN
  return wrap(tensor_argument(o, "is_conj").keys().has(DispatchKey::Conjugate));
  LAMINA_BORDER_END
}
PyObject* is_neg_function(PyObject*, PyObject* o) {
  LAMINA_BORDER_BEGIN
  return wrap(tensor_argument(o, "is_neg").keys().has(DispatchKey::Negative));
  LAMINA_BORDER_END
}
PyObject* is_nonzero_function(PyObject*, PyObject* o) {
  LAMINA_BORDER_BEGIN
  const Tensor& t = tensor_argument(o, "is_nonzero");
  if (t.numel() == 0) raise_runtime("Boolean value of Tensor with no values is ambiguous");
  if (t.numel() != 1)
    raise_runtime("Boolean value of Tensor with more than one value is ambiguous");
  return wrap(item_of(t).to_bool());
  LAMINA_BORDER_END
}
PyObject* numel_function(PyObject*, PyObject* o) {
  LAMINA_BORDER_BEGIN
  return wrap(tensor_argument(o, "numel").numel());
  LAMINA_BORDER_END
}

PyObject* promote(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  PyObject *a, *b;
  if (!PyArg_ParseTuple(args, "OO:promote_types", &a, &b)) return nullptr;
  return wrap(promote_types(to_dtype(a), to_dtype(b)));
  LAMINA_BORDER_END
}
PyObject* can_cast_function(PyObject*, PyObject* args, PyObject* kwargs) {
  LAMINA_BORDER_BEGIN
  static const char* names[] = {"from_", "to", nullptr};
  PyObject *a, *b;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:can_cast", const_cast<char**>(names), &a, &b))
    return nullptr;
  return wrap(can_cast(to_dtype(a), to_dtype(b)));
  LAMINA_BORDER_END
}
PyObject* result_type(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  PyObject *a, *b;
  if (!PyArg_ParseTuple(args, "OO:result_type", &a, &b)) return nullptr;
  if (maybe_overridden(a) || maybe_overridden(b)) offer_function("result_type", {a, b});
  ResultType type;
  for (PyObject* o : {a, b}) {
    if (is_tensor(o))
      type.add(unwrap(o));
    else
      type.add(to_scalar(o));
  }
  return wrap(type.get());
  LAMINA_BORDER_END
}

// _write_out(name, result, out): what out= of an operator made in Python does with its result.
PyObject* write_out(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  const char* name;
  PyObject *result, *out;
  if (!PyArg_ParseTuple(args, "sOO:_write_out", &name, &result, &out)) return nullptr;
  if (!is_tensor(out))
    raise_type(std::string(name) + "(): argument 'out' must be Tensor, not " +
               Py_TYPE(out)->tp_name);
  const Tensor &value = unwrap(result), &target = unwrap(out);
  autograd::check_writable(target, name);
  if (autograd::recording(value) || autograd::recording(target)) autograd::raise_out_recorded(name);
  write_result(target, value, name);
  target.impl()->bump_version();
  return Py_NewRef(out);
  LAMINA_BORDER_END
}

const dispatch::Operator& find(PyObject* o) {
  const std::string name(to_string_view(o));
  const dispatch::Operator* op = dispatch::find_operator(name);
  if (!op && name.find("::") == std::string::npos) op = dispatch::find_operator("aten::" + name);
  LAMINA_CHECK(op, "Could not find schema for ", name);
  return *op;
}
PyObject* dump_table(PyObject*, PyObject* o) {
  LAMINA_BORDER_BEGIN
  return wrap(find(o).dump_table());
  LAMINA_BORDER_END
}
PyObject* all_op_names(PyObject*, PyObject*) {
  LAMINA_BORDER_BEGIN
  const std::vector<std::string> names = dispatch::all_operator_names();
  Ref list = owned(PyList_New(static_cast<Py_ssize_t>(names.size())));
  for (size_t i = 0; i < names.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), checked(wrap(names[i])));
  return list.leak();
  LAMINA_BORDER_END
}
PyObject* operator_generation(PyObject*, PyObject*) {
  return PyLong_FromUnsignedLongLong(dispatch::operator_generation());
}
PyObject* has_kernel(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  PyObject* name;
  const char* key = nullptr;
  if (!PyArg_ParseTuple(args, "O|s", &name, &key)) return nullptr;
  if (!key) return wrap(dispatch::find_operator(std::string(to_string_view(name))) != nullptr);
  return wrap(find(name).has_kernel(parse_dispatch_key(key)));
  LAMINA_BORDER_END
}
PyObject* schema(PyObject*, PyObject* o) {
  LAMINA_BORDER_BEGIN
  return PyUnicode_FromString(find(o).info().schema);
  LAMINA_BORDER_END
}

PyObject* keys(PyObject*, PyObject* o) {
  LAMINA_BORDER_BEGIN
  std::string text;
  const KeySet set = tensor_argument(o, "_dispatch_keys").keys();
  for (int k = kNumDispatchKeys - 1; k > 0; --k) {
    const auto key = static_cast<DispatchKey>(k);
    if (set.has(key)) text += (text.empty() ? "" : ", ") + std::string(name(key));
  }
  return wrap("DispatchKeySet(" + text + ")");
  LAMINA_BORDER_END
}

PyObject* memory_stats(PyObject*, PyObject*) {
  const memory::Statistics s = memory::cpu_allocator().statistics();
  return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L}", "allocated", (long long)s.allocated,
                       "peak_allocated", (long long)s.peak_allocated, "reserved",
                       (long long)s.reserved, "peak_reserved", (long long)s.peak_reserved, "cached",
                       (long long)s.cached, "allocations", (long long)s.allocations, "frees",
                       (long long)s.frees, "cache_hits", (long long)s.cache_hits, "out_of_memory",
                       (long long)s.out_of_memory);
}
PyObject* memory_limit(PyObject*, PyObject* o) {
  LAMINA_BORDER_BEGIN
  memory::cpu_allocator().set_limit(o == Py_None ? memory::kNoLimit : to_int(o));
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
PyObject* memory_reset_peak(PyObject*, PyObject*) {
  memory::cpu_allocator().reset_peak();
  Py_RETURN_NONE;
}
PyObject* memory_empty_cache(PyObject*, PyObject*) {
  memory::cpu_allocator().empty_cache();
  Py_RETURN_NONE;
}

#ifdef __SANITIZE_ADDRESS__
// The sanitizer job proves with this that it can fail.
PyObject* planted_fault(PyObject*, PyObject*) {
  const auto bytes = std::make_unique<volatile char[]>(16);
  volatile size_t end = 16;
  return PyLong_FromLong(bytes[end]);
}
#endif

}  // namespace

PyMethodDef functions[] = {
    {"set_num_threads", set_threads, METH_O, "Threads that one operator may use."},
    {"get_num_threads", get_threads, METH_NOARGS, "Threads that one operator may use."},
    {"get_default_dtype", get_dtype, METH_NOARGS, "The type of a Python float."},
    {"set_default_dtype", set_dtype, METH_O, "Sets the type of a Python float."},
    {"get_default_device", get_device, METH_NOARGS, "The device of new tensors."},
    {"set_default_device", set_device, METH_O, "Sets the device of new tensors."},
    {"is_tensor", is_tensor_function, METH_O, "Whether an object is a Tensor."},
    {"is_floating_point", is_floating_point_function, METH_O,
     "Whether a tensor's type is a real floating-point one."},
    {"is_complex", is_complex_function, METH_O, "Whether a tensor's type is complex."},
    {"is_conj", is_conj_function, METH_O,
     "Whether a tensor is marked as conjugate, to be computed when it is read."},
    {"is_neg", is_neg_function, METH_O,
     "Whether a tensor is marked as negative, to be computed when it is read."},
    {"is_nonzero", is_nonzero_function, METH_O,
     "Whether the one element of a tensor is not zero. Raises RuntimeError for another number of "
     "elements."},
    {"numel", numel_function, METH_O, "Number of elements."},
    {"promote_types", promote, METH_VARARGS, "The smallest type that both convert to."},
    {"can_cast", fast(can_cast_function), METH_VARARGS | METH_KEYWORDS,
     "May a result of one type be written to another?"},
    {"result_type", result_type, METH_VARARGS, "The type of arithmetic on two operands."},
    {"_write_out", write_out, METH_VARARGS, "Resizes out, and writes a result into it."},
    {"_dispatch_dump_table", dump_table, METH_O, "Which kernel serves which key, and why."},
    {"_dispatch_get_all_op_names", all_op_names, METH_NOARGS, "Full names of all operators."},
    {"_dispatch_operator_generation", operator_generation, METH_NOARGS,
     "A number that grows whenever an operator is defined or goes."},
    {"_dispatch_has_kernel_for_dispatch_key", has_kernel, METH_VARARGS, nullptr},
    {"_dispatch_has_kernel", has_kernel, METH_VARARGS, nullptr},
    {"_dispatch_schema", schema, METH_O, nullptr},
    {"_dispatch_keys", keys, METH_O, "The keys of a tensor."},
    {"_memory_stats", memory_stats, METH_NOARGS, nullptr},
    {"_memory_set_limit", memory_limit, METH_O, nullptr},
    {"_memory_reset_peak", memory_reset_peak, METH_NOARGS, nullptr},
    {"_memory_empty_cache", memory_empty_cache, METH_NOARGS, nullptr},
#ifdef __SANITIZE_ADDRESS__
    {"_planted_fault", planted_fault, METH_NOARGS, nullptr},
#endif
    {}};

}  // namespace lamina::border
