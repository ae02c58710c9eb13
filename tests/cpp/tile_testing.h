// What the tests of the tile machine share: arrays of any type and layout, and every level that
// runs here.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "lamina/core/float_types.h"
#include "lamina/tile/tile.h"

namespace lamina::tile::testing {

// A strided array over its own memory.
struct Array {
  ScalarType dtype;
  std::vector<int64_t> sizes, strides;
  std::vector<unsigned char> memory;
  int64_t offset = 0;

  // Dimensions are laid out in the order `order` (last is innermost), each `step` times as wide;
  // dimensions in `broadcast` have stride 0.
  Array(ScalarType t, std::vector<int64_t> shape, std::vector<int> order = {}, int64_t step = 1,
        bool flip = false, std::vector<bool> broadcast = {})
      : dtype(t), sizes(std::move(shape)) {
    const size_t n = sizes.size();
    strides.assign(n, 0);
    if (order.empty()) {
      order.resize(n);
      std::iota(order.begin(), order.end(), 0);
    }
    int64_t next = 1;
    for (size_t i = n; i-- > 0;) {
      const auto d = static_cast<size_t>(order[i]);
      if (!broadcast.empty() && broadcast[d]) continue;
      strides[d] = next * step;
      next *= std::max<int64_t>(1, sizes[d]) * step;
      step = 1;
    }
    memory.assign(static_cast<size_t>(next) * item_size(t) + 64, 0);
    if (flip && n > 0) {
      offset = (std::max<int64_t>(1, sizes[0]) - 1) * strides[0];
      strides[0] = -strides[0];
    }
  }
  int64_t numel() const {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  }
  unsigned char* at(int64_t linear) {
    int64_t p = offset;
    for (size_t d = sizes.size(); d-- > 0;) {
      p += linear % sizes[d] * strides[d];
      linear /= sizes[d];
    }
    return memory.data() + p * static_cast<int64_t>(item_size(dtype));
  }
  Scalar get(int64_t i) { return load_scalar(at(i), dtype); }
  void set(int64_t i, Scalar v) { store_scalar(at(i), dtype, v); }
  Operand operand() {
    return {memory.data() + offset * static_cast<int64_t>(item_size(dtype)), dtype, strides.data()};
  }
  void randomize(uint64_t seed) {
    std::mt19937_64 g(seed);
    std::normal_distribution<double> normal(0, 8);
    for (int64_t i = 0, n = numel(); i < n; ++i) {
      if (is_complex(dtype))
        set(i, Scalar(std::complex<double>(normal(g), normal(g))));
      else if (is_integral(dtype))
        set(i, Scalar(static_cast<int64_t>(normal(g))));
      else if (dtype == ScalarType::Bool)
        set(i, Scalar((g() & 1) != 0));
      else
        set(i, Scalar(normal(g)));
    }
  }
};

inline std::vector<Isa> levels() {
  std::vector<Isa> found;
  for (Isa i : {Isa::Baseline, Isa::Avx2, Isa::Avx512})
    if (isa_available(i)) found.push_back(i);
  return found;
}

// Runs f under every level of this machine, then goes back.
template <class F>
void at_every_level(F&& f) {
  const Isa before = isa();
  for (Isa i : levels()) {
    ASSERT_TRUE(set_isa(i));
    SCOPED_TRACE(isa_name());
    f();
  }
  set_isa(before);
}

inline void run_op(Op op, ScalarType compute, Array& out, std::vector<Array*> ins,
                   const std::vector<Scalar>& scalars = {}) {
  std::vector<Operand> operands;
  for (Array* a : ins) operands.push_back(a->operand());
  const Operand o = out.operand();
  run({.program = &one_op(op),
       .compute = compute,
       .ndim = static_cast<int>(out.sizes.size()),
       .sizes = out.sizes.data(),
       .outs = &o,
       .ins = operands.data(),
       .scalars = scalars.data()});
}

}  // namespace lamina::tile::testing
