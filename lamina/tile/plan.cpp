#include "lamina/tile/plan.h"

#include <algorithm>

#include "lamina/core/error.h"

namespace lamina::tile {

namespace {

int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

// Whether dimension a should lie inside dimension b: decided by the first operand that moves along
// both.
bool inside(const Plan& p, int a, int b) {
  for (int op = 0; op < p.num_operands; ++op) {
    const int64_t x = magnitude(p.stride[a][op]);
    const int64_t y = magnitude(p.stride[b][op]);
    if (x != 0 && y != 0 && x != y) return x < y;
  }
  return false;
}

void swap_dims(Plan& p, int a, int b) {
  std::swap(p.size[a], p.size[b]);
  for (int op = 0; op < p.num_operands; ++op) std::swap(p.stride[a][op], p.stride[b][op]);
}

}  // namespace

void Plan::build(int dims, const int64_t* sizes, std::span<const Operand> first,
                 std::span<const Operand> second) {
  LAMINA_INTERNAL_CHECK(dims <= kMaxDims && first.size() + second.size() <= size_t(kMaxOperands));
  num_operands = 0;
  const Operand* operand[kMaxOperands];
  for (const auto& list : {first, second})
    for (const Operand& o : list) {
      operand[num_operands] = &o;
      base[num_operands] = static_cast<char*>(o.data);
      item[num_operands] = static_cast<int64_t>(item_size(o.dtype));
      ++num_operands;
    }
  numel = 1;
  ndim = 0;
  for (int d = dims - 1; d >= 0; --d) {
    numel *= sizes[d];
    if (sizes[d] == 1) continue;
    size[ndim] = sizes[d];
    for (int op = 0; op < num_operands; ++op) stride[ndim][op] = operand[op]->strides[d] * item[op];
    ++ndim;
  }
  if (numel == 0) return;
  if (ndim == 0) {
    size[0] = 1;
    for (int op = 0; op < num_operands; ++op) stride[0][op] = item[op];
    ndim = 1;
    return;
  }
  for (int d = 0; d < ndim; ++d) {
    if (stride[d][0] >= 0) continue;
    for (int op = 0; op < num_operands; ++op) {
      base[op] += (size[d] - 1) * stride[d][op];
      stride[d][op] = -stride[d][op];
    }
  }
  for (int i = 1; i < ndim; ++i)
    for (int j = i; j > 0 && inside(*this, j, j - 1); --j) swap_dims(*this, j, j - 1);
  int last = 0;
  for (int d = 1; d < ndim; ++d) {
    bool merges = true;
    for (int op = 0; op < num_operands && merges; ++op)
      merges = stride[d][op] == size[last] * stride[last][op];
    if (merges) {
      size[last] *= size[d];
    } else if (++last != d) {
      size[last] = size[d];
      std::copy_n(stride[d], num_operands, stride[last]);
    }
  }
  ndim = last + 1;
}

void Plan::cut(int64_t block) {
  transposed = false;
  if (ndim > 1 && size[0] >= 8) {
    for (int op = 0; op < num_operands && !transposed; ++op) {
      if (stride[0][op] == 0 || magnitude(stride[0][op]) == item[op]) continue;
      for (int d = 1; d < ndim && !transposed; ++d)
        if (stride[d][op] == item[op] && size[d] >= 8) {
          if (d != 1) swap_dims(*this, d, 1);
          transposed = true;
        }
    }
  }
  const int64_t size1 = ndim > 1 ? size[1] : 1;
  if (transposed) {
    int64_t side = 32;
    while (side * side > block) side /= 2;
    cols = std::min(size[0], side);
    rows = std::min(size1, block / cols);
    rows = std::min(rows, std::max<int64_t>(side, block / cols));
  } else if (size[0] >= block) {
    // Equal blocks rather than full ones and a rest.
    const int64_t count = (size[0] + block - 1) / block;
    cols = std::min(block, ((size[0] + count - 1) / count + 15) / 16 * 16);
    rows = 1;
  } else {
    cols = size[0];
    rows = std::min(size1, block / cols);
  }
  col_blocks = (size[0] + cols - 1) / cols;
  row_blocks = (size1 + rows - 1) / rows;
  num_blocks = col_blocks * row_blocks;
  for (int d = 2; d < ndim; ++d) num_blocks *= size[d];
}

bool overlap(const Plan& p, int a, int b) {
  const auto range = [&](int op, const char*& low, const char*& high) {
    low = high = p.base[op];
    for (int d = 0; d < p.ndim; ++d) {
      const int64_t span = (p.size[d] - 1) * p.stride[d][op];
      (span < 0 ? low : high) += span;
    }
    high += p.item[op];
  };
  const char *a0, *a1, *b0, *b1;
  range(a, a0, a1);
  range(b, b0, b1);
  return a0 < b1 && b0 < a1;
}

BlockWalk::BlockWalk(const Plan& plan, int64_t begin) : plan_(plan) {
  col_ = begin % plan.col_blocks * plan.cols;
  begin /= plan.col_blocks;
  row_ = begin % plan.row_blocks * plan.rows;
  begin /= plan.row_blocks;
  for (int op = 0; op < plan.num_operands; ++op) outer_[op] = plan.base[op];
  for (int d = 2; d < plan.ndim; ++d) {
    index_[d] = begin % plan.size[d];
    begin /= plan.size[d];
    for (int op = 0; op < plan.num_operands; ++op) outer_[op] += index_[d] * plan.stride[d][op];
  }
  shape();
}

void BlockWalk::next() {
  col_ += plan_.cols;
  if (col_ >= plan_.size[0]) {
    col_ = 0;
    row_ += plan_.rows;
    if (row_ >= (plan_.ndim > 1 ? plan_.size[1] : 1)) {
      row_ = 0;
      for (int d = 2; d < plan_.ndim; ++d) {
        const bool wraps = ++index_[d] == plan_.size[d];
        for (int op = 0; op < plan_.num_operands; ++op)
          outer_[op] += wraps ? -(plan_.size[d] - 1) * plan_.stride[d][op] : plan_.stride[d][op];
        if (!wraps) break;
        index_[d] = 0;
      }
    }
  }
  shape();
}

}  // namespace lamina::tile
