// Forward mode as Python sees it: levels, dual tensors and their parts.
#include "lamina/autograd/forward.h"

#include "lamina/border/autograd.h"
#include "lamina/border/convert.h"
#include "lamina/transforms/grad_level.h"

namespace lamina::border {

namespace {

namespace forward = autograd::forward;

void check_count(const char* name, Py_ssize_t got, Py_ssize_t expected) {
  if (got != expected)
    raise_type(str(name, " takes ", expected, " positional arguments but ", got, " were given"));
}
const Tensor& tensor_at(const char* name, PyObject* const* args, Py_ssize_t i) {
  if (!is_tensor(args[i]))
    raise_type(
        str(name, ": argument ", i + 1, " must be a Tensor; got ", Py_TYPE(args[i])->tp_name));
  return unwrap(args[i]);
}
int level_at(PyObject* o) {
  const int64_t level = to_int(o);
  if (level < 0 || level > 63)
    raise_runtime(str("forward_ad: Dual level must be a number from 0 to 63; got ", level));
  return static_cast<int>(level);
}

PyObject* enter(PyObject*, PyObject*) {
  LAMINA_BORDER_BEGIN
  return wrap(static_cast<int64_t>(forward::enter_level()));
  LAMINA_BORDER_END
}
PyObject* leave(PyObject*, PyObject* level) {
  LAMINA_BORDER_BEGIN
  forward::leave_level(level_at(level));
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
PyObject* current(PyObject*, PyObject*) { return PyLong_FromLong(forward::num_levels() - 1); }
PyObject* make_dual(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  LAMINA_BORDER_BEGIN
  check_count("_make_dual", nargs, 3);
  return wrap(transforms::make_dual(tensor_at("_make_dual", args, 0),
                                    tensor_at("_make_dual", args, 1), level_at(args[2])));
  LAMINA_BORDER_END
}
PyObject* unpack_dual(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  LAMINA_BORDER_BEGIN
  check_count("_unpack_dual", nargs, 2);
  auto [primal, tangent] =
      transforms::unpack_dual(tensor_at("_unpack_dual", args, 0), level_at(args[1]));
  return wrap(std::make_tuple(std::move(primal), std::move(tangent)));
  LAMINA_BORDER_END
}
PyObject* set_enabled(PyObject*, PyObject* value) {
  LAMINA_BORDER_BEGIN
  forward::set_enabled(to_bool(value));
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
PyObject* is_enabled(PyObject*, PyObject*) { return wrap(forward::enabled()); }

}  // namespace

PyMethodDef forward_functions[] = {
    {"_enter_dual_level", enter, METH_NOARGS, "Enters a level of forward mode; gives its number."},
    {"_exit_dual_level", leave, METH_O, "Leaves the last level and frees its tangents."},
    {"_current_dual_level", current, METH_NOARGS, "The last level; -1 where there is none."},
    {"_make_dual", fast(make_dual), METH_FASTCALL, "(primal, tangent, level): a dual tensor."},
    {"_unpack_dual", fast(unpack_dual), METH_FASTCALL, "(tensor, level): primal and tangent."},
    {"_set_fwd_grad_enabled", set_enabled, METH_O, nullptr},
    {"_is_fwd_grad_enabled", is_enabled, METH_NOARGS, nullptr},
    {}};

}  // namespace lamina::border
