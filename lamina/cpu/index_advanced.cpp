// Advanced indexing. The index arrays become one array of checked offsets first, so nothing is read
// or written before every index has been seen.
#include "lamina/cpu/element_sum.h"
#include "lamina/cpu/index_kernels.h"
#include "lamina/cpu/index_walk.h"
#include "lamina/cpu/scratch.h"
#include "lamina/queue/parallel.h"

namespace lamina::cpu {
namespace {

// Offsets into self for every position of the dimensions that the index arrays span; stride 0 in
// the others.
class Offsets {
 public:
  Offsets(std::span<const int64_t> sizes, const IndexArrays& indices)
      : numel_(count(sizes, indices)), scratch_(bytes_of(numel_, sizeof(int64_t))) {
    auto* out = scratch_.get<int64_t>();
    for (size_t k = 0; k < indices.data.size(); ++k) {
      Walk<2> walk;
      for (size_t d = 0; d < sizes.size(); ++d)
        if (strides_[d] != 0) walk.add(sizes[d], {strides_[d], indices.strides[k][d]});
      const auto step = walk.step();
      const int64_t size = indices.indexed_sizes[k], stride = indices.indexed_strides[k];
      const int64_t* index = indices.data[k];
      queue::parallel_for(0, walk.numel, kWalkGrain, [&](int64_t begin, int64_t end) {
        walk.run(begin, end, [&](const std::array<int64_t, 2>& o, int64_t n) {
          for (int64_t i = 0; i < n; ++i) {
            int64_t v = index[o[1] + i * step[1]];
            if (v < -size || v >= size) [[unlikely]]
              raise_bad(v, k, size, indices);
            v = (v < 0 ? v + size : v) * stride;
            int64_t& offset = out[o[0] + i * step[0]];
            offset = k == 0 ? v : offset + v;
          }
        });
      });
    }
  }
  const int64_t* data() const { return scratch_.get<int64_t>(); }
  int64_t stride(size_t d) const { return strides_[d]; }

 private:
  int64_t count(std::span<const int64_t> sizes, const IndexArrays& indices) {
    LAMINA_INTERNAL_CHECK(sizes.size() <= kMaxDims && !indices.data.empty());
    int64_t numel = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
      bool spanned = false;
      for (const int64_t* strides : indices.strides) spanned = spanned || strides[d] != 0;
      strides_[d] = spanned && sizes[d] > 1 ? numel : 0;
      if (strides_[d] != 0) numel *= sizes[d];
    }
    return numel;
  }
  [[noreturn, gnu::cold, gnu::noinline]] static void raise_bad(int64_t v, size_t k, int64_t size,
                                                               const IndexArrays& indices) {
    const int64_t dim =
        k < indices.indexed_dims.size() ? indices.indexed_dims[k] : static_cast<int64_t>(k);
    raise(ErrorKind::Index,
          str("index ", v, " is out of bounds for dimension ", dim, " with size ", size));
  }

  std::array<int64_t, kMaxDims> strides_;
  int64_t numel_;
  Scratch scratch_;
};

bool is_empty(std::span<const int64_t> sizes) {
  for (const int64_t size : sizes)
    if (size == 0) return true;
  return false;
}

}  // namespace

void index_get(const Strided& out, const ConstStrided& self, const IndexArrays& indices,
               size_t item) {
  if (is_empty(out.sizes)) return;
  const Offsets offsets(out.sizes, indices);
  Walk<3> walk;
  for (size_t d = 0; d < out.sizes.size(); ++d)
    walk.add(out.sizes[d], {out.strides[d], self.strides[d], offsets.stride(d)});
  const auto step = walk.step();
  const int64_t* offset = offsets.data();
  visit_item(item, [&](auto word) {
    using T = decltype(word);
    auto* to = static_cast<T*>(out.data);
    const auto* from = static_cast<const T*>(self.data);
    queue::parallel_for(0, walk.numel, kWalkGrain, [&](int64_t begin, int64_t end) {
      walk.run(begin, end, [&](const std::array<int64_t, 3>& o, int64_t n) {
        if (step[2] == 0) {
          copy_run(to + o[0], step[0], from + o[1] + offset[o[2]], step[1], n);
          return;
        }
        for (int64_t k = 0; k < n; ++k)
          to[o[0] + k * step[0]] = from[o[1] + k * step[1] + offset[o[2] + k * step[2]]];
      });
    });
  });
}

void index_put(const Strided& self, const IndexArrays& indices, const ConstStrided& values,
               ScalarType dtype, bool accumulate) {
  if (is_empty(self.sizes)) return;
  const Offsets offsets(self.sizes, indices);
  Walk<3> walk;
  for (size_t d = 0; d < self.sizes.size(); ++d)
    walk.add(self.sizes[d], {self.strides[d], values.strides[d], offsets.stride(d)});
  const auto step = walk.step();
  const int64_t* offset = offsets.data();
  // One thread: indices may repeat, and then the last one stays or the order of the sum matters.
  if (!accumulate) {
    visit_item(item_size(dtype), [&](auto word) {
      using T = decltype(word);
      auto* to = static_cast<T*>(self.data);
      const auto* from = static_cast<const T*>(values.data);
      walk.run(0, walk.numel, [&](const std::array<int64_t, 3>& o, int64_t n) {
        for (int64_t k = 0; k < n; ++k)
          to[o[0] + k * step[0] + offset[o[2] + k * step[2]]] = from[o[1] + k * step[1]];
      });
    });
    return;
  }
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* to = static_cast<T*>(self.data);
    const auto* from = static_cast<const T*>(values.data);
    walk.run(0, walk.numel, [&](const std::array<int64_t, 3>& o, int64_t n) {
      for (int64_t k = 0; k < n; ++k) {
        T& target = to[o[0] + k * step[0] + offset[o[2] + k * step[2]]];
        target = element_sum(target, from[o[1] + k * step[1]]);
      }
    });
  });
}

}  // namespace lamina::cpu
