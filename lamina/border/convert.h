// Numbers of Python (ints of any size, NumPy's, tensors of one element) to C++.
#pragma once

#include "lamina/border/python.h"
#include "lamina/border/wrap.h"

namespace lamina::border {

// Checks look at the type only; conversions raise TypeError, or OverflowError beyond 64 bits.
bool is_int(PyObject* object);     // int or NumPy integer, no bool
bool is_real(PyObject* object);    // float or int
bool is_number(PyObject* object);  // bool, int, float, complex, NumPy scalar
bool is_numpy_scalar(PyObject* object);

int64_t to_int(PyObject* object);
Sizes to_sizes(PyObject* object);  // a sequence of ints
double to_double(PyObject* object);
bool to_bool(PyObject* object);
Scalar to_scalar(PyObject* object);
std::string_view to_string_view(PyObject* object);

// The value of a tensor's only element; raises Runtime for any other number of elements.
Scalar item_of(const Tensor& t);
// The element at an address.
Scalar load_element(const void* p, ScalarType t);
// A Scalar as the Python number of a tensor element: bool, int, float, complex.
PyObject* wrap(Scalar v);

}  // namespace lamina::border
