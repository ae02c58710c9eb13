// The iteration plan of a set of strided operands: dimensions sorted, coalesced and cut into blocks
// of rows x cols.
#pragma once

#include <cstdint>
#include <span>

#include "lamina/tile/level.h"

namespace lamina::tile {

inline constexpr int64_t kBlock = 1024;  // elements of a block, at most

struct Plan {
  int num_operands = 0;
  int ndim = 0;  // at least 1; dimension 0 is the innermost
  int64_t numel = 0;
  int64_t size[kMaxDims];
  int64_t stride[kMaxDims][kMaxOperands];  // bytes
  char* base[kMaxOperands];
  int64_t item[kMaxOperands];
  bool transposed = false;  // dimension 1 is the fast one of some operand

  int64_t cols = 1, rows = 1;  // of a full block
  int64_t col_blocks = 1, row_blocks = 1;
  int64_t num_blocks = 1;

  // Operands in order of importance: the first one's layout decides the order of dimensions.
  void build(int ndim, const int64_t* sizes, std::span<const Operand> first,
             std::span<const Operand> second);
  // Cuts into blocks of at most `block` elements.
  void cut(int64_t block);

  int64_t stride1(int op) const { return ndim > 1 ? stride[1][op] : 0; }
  // Whether every block of the operand is one run of adjacent elements.
  bool adjacent(int op) const {
    return (stride[0][op] == item[op] || (cols == 1 && size[0] == 1)) &&
           (rows == 1 || (cols == size[0] && stride[1][op] == cols * item[op]));
  }
  // Memory of the elements that the operand has, each counted once.
  int64_t bytes(int op) const {
    int64_t n = item[op];
    for (int d = 0; d < ndim; ++d)
      if (stride[d][op] != 0) n *= size[d];
    return n;
  }
  bool constant(int op) const {
    for (int d = 0; d < ndim; ++d)
      if (stride[d][op] != 0) return false;
    return true;
  }
};

// Walks blocks [begin, end) of a plan; at() gives each operand's address.
class BlockWalk {
 public:
  BlockWalk(const Plan& plan, int64_t begin);
  void next();
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  char* at(int op) const {
    return outer_[op] + row_ * plan_.stride1(op) + col_ * plan_.stride[0][op];
  }

 private:
  void shape() {
    cols_ = plan_.size[0] - col_ < plan_.cols ? plan_.size[0] - col_ : plan_.cols;
    const int64_t rest = (plan_.ndim > 1 ? plan_.size[1] : 1) - row_;
    rows_ = rest < plan_.rows ? rest : plan_.rows;
  }
  const Plan& plan_;
  int64_t col_ = 0, row_ = 0;    // position of the block in dimensions 0 and 1
  int64_t cols_ = 0, rows_ = 0;  // its shape
  int64_t index_[kMaxDims];
  char* outer_[kMaxOperands];
};

// Whether a result of `out_bytes`, computed from `in_bytes` of other memory, goes around the
// caches: measured faster where the whole exceeds them, the sooner the less else there is to do per
// block.
inline constexpr int64_t kStreamDirect = int64_t{28} << 20;
inline constexpr int64_t kStreamBlocks = int64_t{36} << 20;
constexpr bool streams(int64_t out_bytes, int64_t in_bytes, int64_t limit) {
  return out_bytes >= (int64_t{4} << 20) && out_bytes + in_bytes >= limit;
}
// Whether the memory of two operands of a plan may overlap.
bool overlap(const Plan& plan, int a, int b);

// Conversion of n adjacent elements between slots, by way of float where no direct loop exists.
void convert_block(const Level& l, void* out, int to, const void* in, int from, int64_t n);

}  // namespace lamina::tile
