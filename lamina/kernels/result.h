// Where results live: fresh tensors, and the rules of out= and in-place targets.
#pragma once

#include <optional>

#include "lamina/core/scalar.h"
#include "lamina/core/tensor.h"

namespace lamina {

// Uninitialized tensors. Raise Runtime for negative sizes and sizes whose bytes overflow,
// OutOfMemory where memory ends. On the meta device no memory is taken.
Tensor empty_contiguous(IntList sizes, ScalarType dtype, Device device);
Tensor empty_strided(IntList sizes, IntList strides, ScalarType dtype, Device device);
// The layout of `like` (memory format preserve).
Tensor empty_preserving(const Tensor& like, ScalarType dtype);
// Zero bytes.
void zero_bytes(const Tensor& t);

// The bytes that a window may touch must lie inside its storage; raises Runtime.
void check_window(const Tensor& self, IntList sizes, IntList strides, int64_t offset,
                  ScalarType dtype, const char* op);
// A tensor on the storage of `self`; keys and version counter are shared.
Tensor alias_window(const Tensor& self, IntList sizes, IntList strides, int64_t offset);
// The same with the window still to be written; see TensorImpl::begin_window.
Tensor alias_without_window(const Tensor& self);
// `t`, as a vector of one element where it has no dimensions.
Tensor at_least_1d(const Tensor& t);

// Gives `t` new sizes, row-major; its storage grows where needed.
void resize(const Tensor& t, IntList sizes, const char* op);

// Makes `out` fit to take a result: resized where its sizes differ; raises Runtime where the
// result's type cannot be cast to out's, or the devices differ.
void prepare_out(const Tensor& out, IntList sizes, ScalarType result_dtype, Device device,
                 const char* op);
// As prepare_out, but an in-place target is never resized.
void prepare_inplace(const Tensor& self, IntList sizes, ScalarType result_dtype, const char* op);
// Raises Runtime where two indices of a written tensor share an address, or it overlaps an input
// without being the same window.
void check_no_internal_overlap(const Tensor& written, const char* op);
void check_no_partial_overlap(const Tensor& written, const Tensor& input, const char* op);

// All on one device; tensors without dimensions may lie on the CPU. Returns the device of the
// result.
Device common_device(std::initializer_list<const Tensor*> tensors, const char* op);

// Copies with conversion and broadcasting, below the dispatcher (both on the CPU).
void copy_values(const Tensor& out, const Tensor& in);
// The one element of a tensor; raises Runtime where it has another number of them or no data.
Scalar scalar_of(const Tensor& t);
// A contiguous tensor with the same values: `t` itself where it is one.
Tensor contiguous_values(const Tensor& t);
Tensor converted(const Tensor& t, ScalarType dtype);  // t itself where it has the type

}  // namespace lamina
