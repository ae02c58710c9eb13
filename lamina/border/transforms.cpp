// Batched tensors and levels as lamina.func sees them.
#include <string>

#include "lamina/border/autograd.h"
#include "lamina/border/convert.h"
#include "lamina/border/wrap.h"
#include "lamina/transforms/grad_level.h"

namespace lamina::border {

namespace {

using transforms::Level;
using transforms::Randomness;

const Tensor& tensor_of(PyObject* o, const char* name) {
  if (!is_tensor(o)) raise_type(str(name, ": expected a Tensor; got ", Py_TYPE(o)->tp_name));
  return unwrap(o);
}
void check_count(const char* name, Py_ssize_t got, Py_ssize_t expected) {
  if (got != expected)
    raise_type(str(name, " takes ", expected, " positional arguments but ", got, " were given"));
}

PyObject* enter_vmap(PyObject*, PyObject* const* args, Py_ssize_t n) {
  LAMINA_BORDER_BEGIN
  check_count("_vmap_enter", n, 2);
  const std::string_view kind = to_string_view(args[1]);
  if (kind != "error" && kind != "different" && kind != "same")
    raise_runtime(
        str("Only allowed values for randomness are 'error', 'different', or 'same'. Got ", kind));
  const Randomness randomness = kind == "error"       ? Randomness::Error
                                : kind == "different" ? Randomness::Different
                                                      : Randomness::Same;
  const int64_t size = to_int(args[0]);
  LAMINA_CHECK(size >= 0, "_vmap_enter: a negative number of samples; got ", size);
  return wrap(transforms::enter_vmap(size, randomness));
  LAMINA_BORDER_END
}
PyObject* leave_vmap(PyObject*, PyObject*) {
  LAMINA_BORDER_BEGIN
  transforms::leave_vmap();
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
// (level, samples, randomness) of each level of this thread, outermost first.
PyObject* as_list(const std::vector<Level>& levels) {
  static const char* names[] = {"error", "different", "same"};
  Ref list = owned(PyList_New(0));
  for (const Level& l : levels) {
    Ref row = owned(Py_BuildValue("(LLs)", static_cast<long long>(l.number),
                                  static_cast<long long>(l.size),
                                  names[static_cast<size_t>(l.randomness)]));
    checked(PyList_Append(list.get(), row.get()));
  }
  return list.leak();
}
PyObject* levels(PyObject*, PyObject*) {
  LAMINA_BORDER_BEGIN
  return as_list(transforms::levels());
  LAMINA_BORDER_END
}
// Takes the levels from one on away and runs a function without them.
PyObject* call_outside(PyObject*, PyObject* const* args, Py_ssize_t n) {
  LAMINA_BORDER_BEGIN
  check_count("_vmap_call_outside", n, 4);
  const transforms::Lowered outside(to_int(args[0]));
  return owned(PyObject_Call(args[1], args[2], args[3])).leak();
  LAMINA_BORDER_END
}
PyObject* add_batch_dim(PyObject*, PyObject* const* args, Py_ssize_t n) {
  LAMINA_BORDER_BEGIN
  check_count("_add_batch_dim", n, 3);
  return wrap(transforms::put_under(tensor_of(args[0], "_add_batch_dim"), to_int(args[1]),
                                    to_int(args[2])));
  LAMINA_BORDER_END
}
PyObject* remove_batch_dim(PyObject*, PyObject* const* args, Py_ssize_t n) {
  LAMINA_BORDER_BEGIN
  check_count("_remove_batch_dim", n, 4);
  const Tensor& t = tensor_of(args[0], "_remove_batch_dim");
  const int64_t dim = to_int(args[3]);
  LAMINA_CHECK(dim >= 0 && dim <= t.dim(), "vmap: no place ", dim, " for the samples of ", t);
  return wrap(transforms::unbatched(t, dim, to_int(args[1]), to_int(args[2])));
  LAMINA_BORDER_END
}
PyObject* is_batched(PyObject*, PyObject* t) {
  return wrap(is_tensor(t) && transforms::is_batched(unwrap(t)));
}
// (value, dimension of the samples, level) of a batched tensor; None for others.
PyObject* batch_of(PyObject*, PyObject* t) {
  LAMINA_BORDER_BEGIN
  const transforms::Batched* b = is_tensor(t) ? transforms::batched(unwrap(t)) : nullptr;
  if (!b) Py_RETURN_NONE;
  Ref value = owned(wrap(b->value));
  return Py_BuildValue("(OLL)", value.get(), static_cast<long long>(b->dim),
                       static_cast<long long>(b->level));
  LAMINA_BORDER_END
}

PyObject* enter_grad(PyObject*, PyObject*) {
  LAMINA_BORDER_BEGIN
  return wrap(transforms::enter_grad());
  LAMINA_BORDER_END
}
PyObject* leave_grad(PyObject*, PyObject* level) {
  LAMINA_BORDER_BEGIN
  transforms::leave_grad(to_int(level));
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
PyObject* grad_input(PyObject*, PyObject* const* args, Py_ssize_t n) {
  LAMINA_BORDER_BEGIN
  check_count("_grad_input", n, 3);
  return wrap(
      transforms::grad_input(tensor_of(args[0], "_grad_input"), to_int(args[1]), to_bool(args[2])));
  LAMINA_BORDER_END
}
PyObject* depends_outside(PyObject*, PyObject* const* args, Py_ssize_t n) {
  LAMINA_BORDER_BEGIN
  check_count("_depends_outside", n, 2);
  return wrap(transforms::depends_outside(tensor_of(args[0], "_depends_outside"), to_int(args[1])));
  LAMINA_BORDER_END
}
PyObject* without_history(PyObject*, PyObject* t) {
  LAMINA_BORDER_BEGIN
  return wrap(transforms::without_history(tensor_of(t, "_without_history")));
  LAMINA_BORDER_END
}

}  // namespace

PyMethodDef transform_functions[] = {
    {"_vmap_enter", fast(enter_vmap), METH_FASTCALL, "(samples, randomness): a level's number."},
    {"_vmap_leave", leave_vmap, METH_NOARGS, "Leaves the innermost level."},
    {"_vmap_levels", levels, METH_NOARGS, "(level, samples, randomness), outermost first."},
    {"_vmap_call_outside", fast(call_outside), METH_FASTCALL,
     "(level, function, args, kwargs): the call without the levels from this one on."},
    {"_add_batch_dim", fast(add_batch_dim), METH_FASTCALL, "(tensor, dim, level)"},
    {"_remove_batch_dim", fast(remove_batch_dim), METH_FASTCALL, "(tensor, level, samples, dim)"},
    {"_is_batched", is_batched, METH_O, "Whether it stands for samples of a vmap."},
    {"_batch_of", batch_of, METH_O, "(value, dimension, level), or None."},
    {"_grad_enter", enter_grad, METH_NOARGS, "A new level of reverse mode."},
    {"_grad_leave", leave_grad, METH_O, "Its inputs count no longer as something outside."},
    {"_grad_input", fast(grad_input), METH_FASTCALL, "(tensor, level, recorded)"},
    {"_depends_outside", fast(depends_outside), METH_FASTCALL, "(tensor, level)"},
    {"_without_history", without_history, METH_O, "The tensor outside of the graph."},
    {}};

}  // namespace lamina::border
