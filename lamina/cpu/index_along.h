// What gather, scatter and their relatives along one dimension share.
#pragma once

#include "lamina/cpu/index_kernels.h"
#include "lamina/cpu/index_walk.h"
#include "lamina/queue/parallel.h"

namespace lamina::cpu {

enum class IndexStyle { Gather, Select, Add, Copy, Fill };  // of the error for a bad index

[[noreturn]] void raise_index(IndexStyle style, int64_t index, int64_t dim, int64_t size,
                              size_t ndim);

// Where an indexed dimension lies in self.
struct Indexed {
  IndexStyle style;
  int64_t dim, size, stride;
  size_t ndim;
  int64_t operator()(int64_t index) const {
    if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(size)) [[unlikely]]
      raise_index(style, index, dim, size, ndim);
    return index * stride;
  }
};

// The strides of a 1-d index along dim, broadcast over the other dimensions.
struct AlongDim {
  std::array<int64_t, kMaxDims> strides{};
  AlongDim(int dim, const ConstStrided& index) {
    strides[dim] = index.strides.empty() ? 0 : index.strides[0];
  }
};

using Step = std::array<int64_t, 3>;

// f(self, index, src, step, n): offsets of the first of n neighbours, and how they advance.
class ScatterRef {
 public:
  template <class F>
  ScatterRef(F&& f)  // NOLINT: made on the fly from lambdas
      : context_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* context, int64_t o, int64_t i, int64_t s, const Step& step, int64_t n) {
          (*static_cast<std::remove_reference_t<F>*>(context))(o, i, s, step, n);
        }) {}
  void operator()(int64_t o, int64_t i, int64_t s, const Step& step, int64_t n) const {
    call_(context_, o, i, s, step, n);
  }

 private:
  void* context_;
  void (*call_)(void*, int64_t, int64_t, int64_t, const Step&, int64_t);
};

// Calls f for every column (all coordinates but dim) and, in order, every position along dim: with
// n columns of one position, or with n positions of one column, which a step of 0 in self tells.
// Columns are apart, so they run in parallel.
void scatter_walk(const Strided& self, int dim, std::span<const int64_t> sizes,
                  std::span<const int64_t> index_strides, std::span<const int64_t> src_strides,
                  ScatterRef f);

}  // namespace lamina::cpu
