// The Tensor type: its object, and what its parts in other files share.
#pragma once

#include "lamina/border/arg_parser.h"
#include "lamina/border/convert.h"
#include "lamina/border/types.h"
#include "lamina/border/wrap.h"

namespace lamina::border {

using FastMethod = PyObject* (*)(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                                 PyObject* kwnames);

// The generated method of that name; raises AttributeError from a call where there is none.
FastMethod generated_method(const char* name);
// Calls a generated method.
template <class... Args>
Ref call_method(FastMethod method, PyObject* self, Args*... args) {
  PyObject* list[sizeof...(Args) + 1] = {args..., nullptr};
  return owned(method(self, list, sizeof...(Args), nullptr));
}

// Parts of the type.
extern PyMethodDef tensor_methods[];           // tensor_methods.cpp
extern PyMethodDef tensor_convert_methods[];   // tensor_convert.cpp
extern PyMethodDef tensor_numpy_methods[];     // numpy.cpp
extern PyMethodDef tensor_autograd_methods[];  // autograd.cpp
extern PyMethodDef index_functions[];          // indexing.cpp; methods too
extern PyGetSetDef tensor_attributes[];        // tensor_attributes.cpp
extern PyGetSetDef tensor_autograd_attributes[];
void find_slot_methods();  // number_slots.cpp: after the generated methods are known
extern PyNumberMethods tensor_number_slots;
PyObject* tensor_compare(PyObject* a, PyObject* b, int op);
PyObject* tensor_subscript(PyObject* self, PyObject* index);  // indexing.cpp
int tensor_assign_subscript(PyObject* self, PyObject* index, PyObject* value);
Py_ssize_t tensor_length(PyObject* self);
PyObject* tensor_iterate(PyObject* self);
int tensor_contains(PyObject* self, PyObject* value);
PyObject* tensor_repr(PyObject* self);

// Visits the Python objects that only this tensor keeps alive (its gradient's), and lets go of
// them.
int traverse_autograd(const Tensor& t, visitproc visit, void* arg);
void clear_autograd(const Tensor& t);
// Whether the tensor may be part of a cycle that only the garbage collector can find: then its
// object stays with it.
bool outlives_python(const Tensor& t);

// A tensor of no dimension. Raises where the number does not fit the type.
Tensor make_scalar_tensor(Scalar value, ScalarType dtype);
// The type that a number takes beside a tensor: the tensor's, unless the number's category is
// higher.
ScalarType number_type_beside(Scalar value, ScalarType tensor_type);
// A new CPU tensor from nested sequences, numbers, arrays; see lamina.tensor. (construct.cpp)
Tensor tensor_from_data(PyObject* data, std::optional<ScalarType> dtype,
                        std::optional<Device> device);

void add_tensor_type(PyObject* module);
void add_storage_type(PyObject* module);  // storage.cpp
bool is_storage(PyObject* object);
PyObject* wrap_storage(IntrusivePtr<Storage> storage);
extern PyMethodDef storage_functions[];      // storage.cpp
extern PyMethodDef dlpack_functions[];       // dlpack.cpp
extern PyMethodDef module_slot_functions[];  // module_slots.cpp

}  // namespace lamina::border
