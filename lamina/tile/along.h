// Helper of the kernels that work along one dimension: the positions in all other dimensions.
#pragma once

#include <span>
#include <utility>

#include "lamina/tile/level.h"

namespace lamina::tile {

inline constexpr int kAlongOperands = 3;

struct Along {
  int ndim = 0;
  int64_t size[kMaxDims];
  int64_t stride[kMaxDims][kAlongOperands];  // bytes; dimension 0 is the innermost
  int64_t count = 1;                         // positions
  int64_t length = 1;                        // of the dimension worked along
  int64_t step[kAlongOperands] = {};         // bytes between its elements
  char* base[kAlongOperands] = {};
  int64_t item[kAlongOperands] = {};
  int num = 0;

  Along(int dims, const int64_t* sizes, int dim, std::span<const Operand> operands) {
    num = static_cast<int>(operands.size());
    for (int o = 0; o < num; ++o) {
      item[o] = static_cast<int64_t>(item_size(operands[o].dtype));
      base[o] = static_cast<char*>(operands[o].data);
      step[o] = dims > 0 && base[o] ? operands[o].strides[dim] * item[o] : item[o];
    }
    if (dims > 0) length = sizes[dim];
    for (int d = dims - 1; d >= 0; --d) {
      if (d == dim) continue;
      count *= sizes[d];
      if (sizes[d] == 1) continue;
      size[ndim] = sizes[d];
      for (int o = 0; o < num; ++o)
        stride[ndim][o] = base[o] ? operands[o].strides[d] * item[o] : 0;
      ++ndim;
    }
    const auto magnitude = [](int64_t v) { return v < 0 ? -v : v; };
    for (int i = 1; i < ndim; ++i)
      for (int j = i; j > 0 && magnitude(stride[j][0]) < magnitude(stride[j - 1][0]); --j) {
        std::swap(size[j], size[j - 1]);
        for (int o = 0; o < num; ++o) std::swap(stride[j][o], stride[j - 1][o]);
      }
    int last = 0;
    for (int d = 1; d < ndim; ++d) {
      bool merges = true;
      for (int o = 0; o < num; ++o) merges = merges && stride[d][o] == size[last] * stride[last][o];
      if (merges) {
        size[last] *= size[d];
      } else if (++last != d) {
        size[last] = size[d];
        for (int o = 0; o < num; ++o) stride[last][o] = stride[d][o];
      }
    }
    ndim = ndim ? last + 1 : 1;
    if (count == 1) {
      ndim = 1;
      size[0] = 1;
      for (int o = 0; o < num; ++o) stride[0][o] = 0;
    }
  }

  char* at(int operand, int64_t position) const {
    char* p = base[operand];
    for (int d = 0; d < ndim; ++d) {
      p += position % size[d] * stride[d][operand];
      position /= size[d];
    }
    return p;
  }

  // Positions are taken in groups of at most `group` neighbours of the innermost dimension.
  int64_t groups_per_row(int64_t group) const { return (size[0] + group - 1) / group; }
  int64_t num_groups(int64_t group) const { return count / size[0] * groups_per_row(group); }
  void group_at(int64_t g, int64_t group, int64_t& first, int64_t& members) const {
    const int64_t per_row = groups_per_row(group);
    const int64_t start = g % per_row * group;
    first = g / per_row * size[0] + start;
    members = size[0] - start < group ? size[0] - start : group;
  }
};

}  // namespace lamina::tile
