// What the module and the Tensor type take from autograd.cpp and grad_mode.cpp.
#pragma once

#include "lamina/border/tensor_object.h"

namespace lamina::border {

extern PyMethodDef autograd_functions[];
extern PyMethodDef grad_mode_functions[];
void add_node_type(PyObject* module);
void add_grad_modes(PyObject* module);

}  // namespace lamina::border
