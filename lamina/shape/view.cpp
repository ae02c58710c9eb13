#include "lamina/shape/view.h"

#include <algorithm>

#include "lamina/core/error.h"

namespace lamina {

Sizes infer_size(IntList size, int64_t numel, const char* op) {
  Sizes out{std::span<const int64_t>(size)};
  int64_t unknown = -1;
  Dim known = 1;
  for (size_t i = 0; i < size.size(); ++i) {
    if (size[i] == -1) {
      LAMINA_CHECK(unknown < 0, op, ": only one dimension can be inferred; got ", size);
      unknown = static_cast<int64_t>(i);
      continue;
    }
    LAMINA_CHECK(size[i] >= 0, op, ": invalid shape dimension ", size[i], "; got ", size);
    known *= size[i];
  }
  if (unknown >= 0 && known.value() > 0 && numel % known.value() == 0) {
    out[unknown] = numel / known.value();
    return out;
  }
  LAMINA_CHECK(unknown < 0 || known.value() != 0 || numel != 0, op,
               ": cannot reshape tensor of 0 elements into shape ", size,
               " because the unspecified dimension size -1 can be any value and is ambiguous");
  LAMINA_CHECK(unknown < 0 && known.value() == numel, op, ": shape '", size,
               "' is invalid for input of size ", numel);
  return out;
}

std::optional<Sizes> view_strides(IntList sizes, IntList strides, IntList to) {
  const int64_t numel = numel_of(sizes);
  if (numel == 0) {
    if (sizes == to) return Sizes{std::span<const int64_t>(strides)};
    return contiguous_strides(to);
  }
  Sizes out(to.size(), 1);
  int64_t view_d = static_cast<int64_t>(to.size()) - 1;
  // Runs of dimensions that follow each other in memory, from the last; each must be filled exactly
  // by dimensions of `to`.
  int64_t base_stride = sizes.empty() ? 1 : strides.back();
  int64_t run = 1, viewed = 1;
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; --d) {
    run *= sizes[d];
    const bool run_ends = d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != run * base_stride);
    if (!run_ends) continue;
    while (view_d >= 0 && (viewed < run || to[view_d] == 1)) {
      out[view_d] = viewed * base_stride;
      viewed *= to[view_d];
      --view_d;
    }
    if (viewed != run) return std::nullopt;
    if (d > 0) {
      base_stride = strides[d - 1];
      run = 1;
      viewed = 1;
    }
  }
  if (sizes.empty())
    for (int64_t& s : out) s = 1;
  else if (view_d != -1)
    return std::nullopt;
  return out;
}

SliceRange slice_range(int64_t size, std::optional<int64_t> start, std::optional<int64_t> end,
                       int64_t step) {
  LAMINA_CHECK_VALUE(step != 0, "slice: slice step cannot be zero");
  const bool forward = step > 0;
  const int64_t low = forward ? 0 : -1, high = forward ? size : size - 1;
  const auto clip = [&](std::optional<int64_t> v, int64_t absent) {
    if (!v) return absent;
    const int64_t w = *v < 0 ? (*v < -size ? low : *v + size) : *v;
    return std::clamp(w, low, high);
  };
  const int64_t from = clip(start, forward ? 0 : size - 1);
  const int64_t to = clip(end, forward ? size : -1);
  if (forward) return {from, to > from ? (to - from - 1) / step + 1 : 0};
  // -step would overflow for the smallest integer; distances are positive here.
  const uint64_t stride = uint64_t{0} - static_cast<uint64_t>(step);
  return {from,
          from > to ? static_cast<int64_t>(static_cast<uint64_t>(from - to - 1) / stride) + 1 : 0};
}

int64_t diagonal_size(int64_t rows, int64_t columns, int64_t offset) {
  if (offset >= 0) return offset >= columns ? 0 : std::min(rows, columns - offset);
  // offset may be the smallest integer
  return offset <= -rows ? 0 : std::min(rows + offset, columns);
}

}  // namespace lamina
