#include "lamina/shape/broadcast.h"

#include <algorithm>

#include "lamina/core/error.h"

namespace lamina {

Sizes broadcast_sizes(IntList a, IntList b, const char* op) {
  const size_t n = std::max(a.size(), b.size());
  Sizes out(n);
  for (size_t i = 0; i < n; ++i) {  // from the right
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    LAMINA_CHECK(x == y || x == 1 || y == 1, op, ": The size of tensor a (", x,
                 ") must match the size of tensor b (", y, ") at non-singleton dimension ",
                 n - 1 - i, "; got ", a, " and ", b);
    out[n - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

bool is_expandable(IntList from, IntList to) {
  if (from.size() > to.size()) return false;
  const size_t shift = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1 && from[i] != to[shift + i]) return false;
  return true;
}

Sizes broadcast_strides(IntList sizes, IntList strides, IntList to) {
  Sizes out(to.size(), 0);
  const size_t shift = to.size() - sizes.size();
  for (size_t i = 0; i < sizes.size(); ++i)
    out[shift + i] = sizes[i] == 1 && to[shift + i] != 1 ? 0 : strides[i];
  return out;
}

Sizes result_strides(IntList sizes, std::span<const Sizes> operands) {
  const int n = static_cast<int>(sizes.size());
  SmallVector<int, 8> order;  // from the innermost dimension
  for (int i = n - 1; i >= 0; --i) order.push_back(i);
  // -1: a lies inside b; 1: outside; 0: no operand tells.
  const auto compare = [&](int a, int b) {
    for (const Sizes& strides : operands) {
      const int64_t sa = std::abs(strides[a]), sb = std::abs(strides[b]);
      if (sa == 0 || sb == 0) continue;
      if (sa != sb) return sa < sb ? -1 : 1;
      if (sizes[a] > sizes[b]) return 1;
    }
    return 0;
  };
  for (int i = 1; i < n; ++i) {
    int at = i;
    for (int j = i - 1; j >= 0; --j) {
      const int c = compare(order[j], order[at]);
      if (c > 0) {
        std::swap(order[j], order[at]);
        at = j;
      } else if (c < 0) {
        break;
      }
    }
  }
  Sizes out(n);
  Dim step = 1;  // raises on overflow, which an empty tensor may have
  for (const int d : order) {
    out[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  return out;
}

}  // namespace lamina
