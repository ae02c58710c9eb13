// Rules of indexing with tensors.
//
// Where index tensors stand next to each other, their dimensions take the place of those they
// index; otherwise they come first. The dimension of samples may change which of both holds, so
// what a sample would give is put back in its place.
#include <algorithm>

#include "lamina/ops/_range.h"
#include "lamina/ops/expand.h"
#include "lamina/ops/permute.h"
#include "lamina/ops/reshape.h"
#include "lamina/transforms/rules.h"

namespace lamina::transforms {

namespace {

struct Places {
  int64_t first = -1;    // dimension of the sample that the first index tensor indexes
  bool together = true;  // no dimension without index lies between them
  int64_t rank = 0;      // dimensions that the index tensors have together
  bool plain = true;     // no masks
  int64_t count = 0;
};

Places places_of(const std::vector<Tensor>& indices) {
  Places p;
  int64_t last = -1;
  for (size_t i = 0; i < indices.size(); ++i) {
    const Tensor& t = indices[i];
    if (!t.defined()) continue;
    const auto d = static_cast<int64_t>(i);
    if (t.dtype() == ScalarType::Bool || t.dtype() == ScalarType::UInt8) p.plain = false;
    if (p.first < 0) p.first = d;
    if (last >= 0 && d != last + 1) p.together = false;
    last = d;
    p.rank = std::max(p.rank, t.dim());
    ++p.count;
  }
  return p;
}

// Where the dimensions of the index tensors begin in what a sample gives.
int64_t begins(const Places& p) { return p.together ? p.first : 0; }

// Index tensors for the values. With `samples`, one that counts the samples is in front.
std::vector<Tensor> for_values(const Frame& f, const std::vector<Tensor>& indices, const Places& p,
                               bool samples, Device device) {
  std::vector<Tensor> out(1);
  if (samples) {
    Sizes sizes{f.size};
    for (int64_t i = 0; i < p.rank; ++i) sizes.push_back(1);
    out[0] =
        ops::reshape(ops::_range(Scalar(0), Scalar(1), f.size, ScalarType::Int64, device), sizes);
  }
  for (const Tensor& t : indices) out.push_back(f.aligned(t, p.rank));
  return out;
}

Tensor move_block(const Tensor& t, int64_t from, int64_t count, int64_t to) {
  if (from == to || count == 0) return t;
  std::vector<int64_t> rest, order;
  for (int64_t i = 0; i < t.dim(); ++i)
    if (i < from || i >= from + count) rest.push_back(i);
  order.assign(rest.begin(), rest.begin() + to);
  for (int64_t i = 0; i < count; ++i) order.push_back(from + i);
  order.insert(order.end(), rest.begin() + to, rest.end());
  return ops::permute(t, Sizes(std::span<const int64_t>(order.data(), order.size())));
}

}  // namespace

bool gather_rows(Frame& f) {
  const Tensor self = *f.tensor(0);
  const auto indices = std::get<std::vector<Tensor>>(f.stack[1]);
  const Places p = places_of(indices);
  for (const Tensor& t : indices)
    if (t.defined() && t.dtype() == ScalarType::Bool && f.is_batched(t))
      throw BatchingError(
          "vmap: indexing with a mask gives a tensor whose size depends on values, which can "
          "differ "
          "from sample to sample; got a batched mask; use torch.where",
          true);
  if (!p.plain || p.count == 0 || static_cast<int64_t>(indices.size()) > self.dim()) return false;
  const bool of_self = f.is_batched(self);
  const bool of_indices = f.is_batched(f.stack[1]);
  std::vector<Tensor> given;
  if (of_self) {
    given = for_values(f, indices, p, of_indices, self.device());
    f.stack[0] = front(self, f.level);
  } else {
    for (const Tensor& t : indices) given.push_back(f.aligned(t, p.rank));
  }
  f.stack[1] = given;
  f.op.call_boxed(f.stack);
  Tensor out = std::get<Tensor>(f.stack[0]);
  if (!of_indices) {
    // [samples, ...], or the index dimensions before the samples where they stand apart.
    if (!p.together) out = move_block(out, p.rank, 1, 0);
  } else if (of_self) {
    // The index dimensions are [samples, index...]; with the samples' own index in front they begin
    // the result wherever a dimension without index follows.
    out = move_block(out, 1, p.rank, 1 + begins(p));
  } else if (p.together && p.first > 0) {
    // [dims before, samples, index..., rest]
    out = move_block(out, p.first, 1, 0);
  }
  f.give(out);
  return true;
}

bool put_rows(Frame& f) {
  const Tensor self = *f.tensor(0);
  const auto indices = std::get<std::vector<Tensor>>(f.stack[1]);
  const Tensor values = *f.tensor(2);
  const Places p = places_of(indices);
  if (!p.plain || p.count == 0 || static_cast<int64_t>(indices.size()) > self.dim()) return false;
  // What a sample of self[indices] looks like.
  Sizes block(static_cast<size_t>(p.rank), 1);
  for (const Tensor& t : indices) {
    if (!t.defined()) continue;
    for (int64_t i = 1; i <= t.dim(); ++i) {
      int64_t& n = block[block.size() - static_cast<size_t>(i)];
      const int64_t m = t.sizes()[t.dim() - i];
      if (n != 1 && m != 1 && n != m) return false;
      if (n == 1) n = m;
    }
  }
  Sizes sample;
  for (int64_t d = 0; d <= self.dim(); ++d) {
    if (d == begins(p))
      for (const int64_t n : block) sample.push_back(n);
    if (d < self.dim() &&
        (d >= static_cast<int64_t>(indices.size()) || !indices[static_cast<size_t>(d)].defined()))
      sample.push_back(self.sizes()[d]);
  }
  // The block may begin after dimensions that are indexed: count those without index before it.
  const auto rank = static_cast<int64_t>(sample.size());
  if (values.dim() > rank) return false;
  for (int64_t i = 1; i <= values.dim(); ++i) {
    const int64_t n = values.sizes()[values.dim() - i];
    if (n != 1 && n != sample[static_cast<size_t>(rank - i)]) return false;
  }
  const Tensor target = front(self, f.level);
  Tensor source = values;
  if (f.is_batched(values)) {
    Sizes whole{f.size};
    for (const int64_t n : sample) whole.push_back(n);
    source = ops::expand(f.aligned(values, rank), whole);
  } else if (values.dim() > 0) {
    Sizes whole{f.size};
    for (const int64_t n : sample) whole.push_back(n);
    source = ops::expand(values, whole);
  }
  // With an index of samples in front the index dimensions come first.
  if (source.dim() > 0) source = move_block(source, 1 + begins(p), p.rank, 1);
  f.stack = {Value(target), Value(for_values(f, indices, p, true, self.device())), Value(source),
             f.stack[3]};
  f.op.call_boxed(f.stack);
  f.stack.clear();
  f.stack.emplace_back(self);
  return true;
}

}  // namespace lamina::transforms
