#include "lamina/core/tensor.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "lamina/core/dim.h"
#include "lamina/core/error.h"

namespace lamina {

void append(std::string& out, const Tensor& t) {
  out += t.defined() ? str(t.dtype(), t.sizes()) : "undefined tensor";
}

namespace {

// The dimensions of size over one, by falling stride magnitude.
SmallVector<int, 8> by_stride(IntList sizes, IntList strides) {
  SmallVector<int, 8> order;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1) order.push_back(static_cast<int>(i));
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return std::abs(strides[a]) > std::abs(strides[b]); });
  return order;
}

}  // namespace

bool Tensor::is_contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve)
    return is_contiguous();
  const int64_t rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
  if (dim() != rank) return false;
  const Sizes want = strides_for(sizes(), format);
  for (int64_t i = 0; i < rank; ++i)
    if (sizes()[i] != 1 && strides()[i] != want[i]) return false;
  return true;
}

bool Tensor::is_non_overlapping_and_dense() const {
  if (is_contiguous()) return true;
  const auto order = by_stride(sizes(), strides());
  int64_t expected = 1;
  for (size_t i = order.size(); i-- > 0;) {
    if (strides()[order[i]] != expected) return false;
    expected *= sizes()[order[i]];
  }
  return true;
}

Sizes contiguous_strides(IntList sizes) {
  Sizes strides(sizes.size());
  Dim step = 1;  // raises on overflow, which an empty tensor may have
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

Sizes strides_for(IntList sizes, MemoryFormat format) {
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve)
    return contiguous_strides(sizes);
  const size_t rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
  LAMINA_CHECK(sizes.size() == rank,
               "memory_format: ", rank == 4 ? "channels_last" : "channels_last_3d",
               " needs a tensor of ", rank, " dimensions; got sizes ", sizes);
  // Channels vary fastest, then the spatial dimensions from the last to the first, then the batch.
  // Unsigned, which may wrap: asked of views of empty tensors too, whose sizes may be anything.
  Sizes strides(rank);
  uint64_t step = 1;
  const auto next = [&](size_t i) {
    strides[i] = static_cast<int64_t>(step);
    step *= static_cast<uint64_t>(std::max<int64_t>(sizes[i], 1));
  };
  next(1);
  for (size_t i = rank - 1; i >= 2; --i) next(i);
  next(0);
  return strides;
}

Overlap internal_overlap(const Tensor& t) {
  if (t.numel() <= 1 || t.is_contiguous()) return Overlap::No;
  const auto order = by_stride(t.sizes(), t.strides());
  for (const int d : order)
    if (t.strides()[d] == 0) return Overlap::Yes;
  // Sorted from the innermost: if each stride exceeds the reach of all inner dimensions, addresses
  // are distinct.
  int64_t reach = 0;
  for (size_t i = order.size(); i-- > 0;) {
    const int64_t step = std::abs(t.strides()[order[i]]);
    if (step <= reach) return Overlap::Maybe;
    reach += step * (t.sizes()[order[i]] - 1);
  }
  return Overlap::No;
}

bool same_window(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.storage_offset() == b.storage_offset() &&
         a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

namespace {
// First and last byte that a tensor may touch.
std::array<const char*, 2> byte_range(const Tensor& t) {
  const char* low = static_cast<const char*>(t.data());
  const char* high = low;
  const auto item = static_cast<int64_t>(item_size(t.dtype()));
  for (int64_t i = 0; i < t.dim(); ++i) {
    const int64_t reach = (t.sizes()[i] - 1) * t.strides()[i] * item;
    (reach < 0 ? low : high) += reach;
  }
  return {low, high + item - 1};
}
}  // namespace

namespace {

// Calls f with the distance of every element from the tensor's first, in elements.
template <class F>
void for_each_place(const Tensor& t, F&& f) {
  Sizes at(static_cast<size_t>(t.dim()), 0);
  const IntList sizes = t.sizes(), strides = t.strides();
  int64_t place = 0;
  while (true) {
    f(place);
    int64_t d = t.dim() - 1;
    for (; d >= 0; --d) {
      place += strides[d];
      if (++at[d] < sizes[d]) break;
      place -= strides[d] * sizes[d];
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

// Whether two tensors of one item size, whose byte ranges overlap, have an element in common:
// decided by marking one's elements. About as dear as one operator on them.
bool elements_meet(const Tensor& a, const Tensor& b, const char* low, int64_t elements) {
  const auto item = static_cast<int64_t>(item_size(a.dtype()));
  const auto origin = [&](const Tensor& t) {
    return (static_cast<const char*>(t.data()) - low) / item;
  };
  std::vector<bool> marked(static_cast<size_t>(elements));
  for_each_place(a, [&, from = origin(a)](int64_t p) { marked[from + p] = true; });
  bool meet = false;
  for_each_place(b, [&, from = origin(b)](int64_t p) { meet = meet || marked[from + p]; });
  return meet;
}

constexpr int64_t kMostMarked = int64_t{1} << 24;

}  // namespace

bool may_share_bytes(const Tensor& a, const Tensor& b) {
  if (a.storage() != b.storage() || a.storage() == nullptr || a.numel() == 0 || b.numel() == 0 ||
      !a.data())
    return false;
  const auto ra = byte_range(a), rb = byte_range(b);
  if (ra[1] < rb[0] || rb[1] < ra[0]) return false;
  const auto item = static_cast<int64_t>(item_size(a.dtype()));
  if (item != static_cast<int64_t>(item_size(b.dtype()))) return true;
  // Two windows with the same strides on one grid, but different phase, never meet (real and imag).
  if (a.sizes() == b.sizes() && a.strides() == b.strides() && a.dim() > 0) {
    int64_t step = 0;
    for (int64_t i = 0; i < a.dim(); ++i)
      if (a.sizes()[i] > 1) step = std::gcd(step, a.strides()[i]);
    if (step > 1 && (a.storage_offset() - b.storage_offset()) % step != 0) return false;
  }
  // Windows without gaps that overlap do meet.
  if (a.is_non_overlapping_and_dense() && b.is_non_overlapping_and_dense()) return true;
  const char* low = std::min(ra[0], rb[0]);
  const int64_t elements = (std::max(ra[1], rb[1]) - low + item) / item;
  return elements > kMostMarked || elements_meet(a, b, low, elements);
}

}  // namespace lamina
