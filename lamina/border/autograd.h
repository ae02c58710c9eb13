// Autograd as Python sees it: nodes, functions, modes.
#pragma once

#include "lamina/autograd/node.h"
#include "lamina/border/tensor_object.h"

namespace lamina::border {

extern PyMethodDef autograd_functions[];
extern PyMethodDef grad_mode_functions[];
extern PyMethodDef forward_functions[];
extern PyMethodDef transform_functions[];  // transforms.cpp
void add_node_type(PyObject* module);
void add_function_type(PyObject* module);
void add_grad_modes(PyObject* module);

// The one Python object of a node while it has one; None for null.
PyObject* wrap_node(IntrusivePtr<autograd::Node> node);
// The node behind an object of Python: a node's own, or the context of a custom function. Raises
// TypeError for others, Runtime where the node is gone.
autograd::Node& node_from(PyObject* object);
// Methods and attributes that every node has; both kinds of objects take them.
extern PyMethodDef node_methods[];
extern PyGetSetDef node_attributes[];

// Every Python object that `node` and what only it keeps alive own, for the garbage collector.
int traverse_node(const autograd::Node& node, visitproc visit, void* arg);

}  // namespace lamina::border
