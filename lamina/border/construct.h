// Tensors from data of Python; what numpy.cpp and construct.cpp know of each other.
#pragma once

#include "lamina/border/tensor_object.h"
#include "lamina/core/float_types.h"

namespace lamina::border {

// Anything with the buffer protocol, __array_interface__ or __array__.
ScalarType array_dtype(PyObject* array);
Sizes array_sizes(PyObject* array);
// A tensor on the array's own memory, which stays alive as long. `warn`: say so when it is
// read-only.
Tensor share_array(PyObject* array, bool warn);
Tensor share_buffer(PyObject* buffer, ScalarType dtype, int64_t count, int64_t offset,
                    const char* op);

// Rows of a nested sequence that are arrays: their elements in order, from `p` on.
template <class T>
T* fill_from_array(PyObject* array, size_t depth, const Sizes& sizes, T* p) {
  Ref plain = Ref::share(array);
  if (!is_tensor(array)) plain = owned(wrap(share_array(array, false)));
  const Tensor& t = unwrap(plain.get());
  const IntList rest(sizes.data() + depth, sizes.size() - depth);
  if (!(t.sizes() == rest))
    raise_value("tensor: rows of different sizes; got " + str(std::span<const int64_t>(t.sizes())) +
                "; expected " + str(std::span<const int64_t>(rest)));
  LAMINA_CHECK(t.device().is_cpu(), "tensor: rows must be tensors on the CPU");
  Sizes index(rest.size(), 0);
  for (int64_t k = 0; k < t.numel(); ++k) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * t.strides()[d];
    const char* from =
        static_cast<const char*>(t.data()) + at * static_cast<int64_t>(item_size(t.dtype()));
    visit(t.dtype(), [&](auto tag) {
      using S = typename decltype(tag)::type;
      *p++ = convert_to<T>(*reinterpret_cast<const S*>(from));
    });
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < rest[d]) break;
      index[d] = 0;
    }
  }
  return p;
}

extern PyMethodDef construct_functions[];
extern PyMethodDef numpy_functions[];

}  // namespace lamina::border
