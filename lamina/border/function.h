// autograd.Function: operators whose backward is written in Python.
#pragma once

#include "lamina/autograd/saved_tensor.h"
#include "lamina/border/tensor_object.h"

namespace lamina::border {

// The node of a custom function's context. Raises TypeError for other objects, Runtime where the
// node is gone or not made yet.
autograd::Node& node_of_context(PyObject* object);
// A saved tensor of `node` as Python sees it (_raw_saved_*).
PyObject* wrap_saved(autograd::Node& node, autograd::SavedTensor& saved);

}  // namespace lamina::border
