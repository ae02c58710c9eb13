// Gather, scatter and their relatives along one dimension.
#include "lamina/cpu/index_kernels.h"

#include "lamina/cpu/index_along.h"
#include "lamina/cpu/scratch.h"
#include "lamina/tile/tile.h"

namespace lamina::cpu {

void raise_index(IndexStyle style, int64_t index, int64_t dim, int64_t size, size_t ndim) {
  using enum IndexStyle;
  if (style == Select || (style == Add && ndim == 1))
    raise(ErrorKind::Index, str("index out of range in self; got index ", index, " for dimension ",
                                dim, " with size ", size));
  raise(style == Gather || style == Add ? ErrorKind::Runtime : ErrorKind::Index,
        str(style == Copy ? "index_copy_(): " : "", "index ", index,
            " is out of bounds for dimension ", dim, " with size ", size));
}

constexpr int64_t kColumns = 256;  // at least as many in a chunk, so that rows are not taken apart

void scatter_walk(const Strided& self, int dim, std::span<const int64_t> sizes,
                  std::span<const int64_t> index_strides, std::span<const int64_t> src_strides,
                  ScatterRef f) {
  Walk<3> columns;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (static_cast<int>(d) != dim)
      columns.add(sizes[d], {self.strides[d], index_strides[d], src_strides[d]});
  const int64_t length = sizes[dim];
  if (columns.numel == 0 || length == 0) return;
  const Step step = columns.step(), along{0, index_strides[dim], src_strides[dim]};
  // Whichever neighbours lie closer in src are taken together: those of a row, or those of a
  // column.
  const bool by_column = std::abs(along[2]) < std::abs(step[2]);
  const int64_t grain = std::max<int64_t>(by_column ? 1 : kColumns, kWalkGrain / length);
  queue::parallel_for(0, columns.numel, grain, [&](int64_t begin, int64_t end) {
    columns.run(begin, end, [&](const std::array<int64_t, 3>& o, int64_t n) {
      if (by_column || n == 1) {
        for (int64_t k = 0; k < n; ++k)
          f(o[0] + k * step[0], o[1] + k * step[1], o[2] + k * step[2], along, length);
      } else {
        for (int64_t j = 0; j < length; ++j)
          f(o[0], o[1] + j * along[1], o[2] + j * along[2], step, n);
      }
    });
  });
}

namespace {

template <class T>
void gather_as(T* out, const T* self, const int64_t* index, const Walk<3>& walk,
               const Indexed& at) {
  const auto step = walk.step();
  const auto bytes = static_cast<int64_t>(sizeof(T));
  if (walk.ndim == 2 && step[2] == 0 && step[0] == 1 && step[1] == 1) {  // rows of a matrix
    const int64_t n = walk.sizes[1];
    const auto row = walk.strides[0];
    const bool streamed =
        n * bytes >= 1024 && tile::StreamedCopy::pays(walk.numel * bytes, walk.numel * bytes);
    queue::parallel_for(0, walk.sizes[0], std::max<int64_t>(1, kWalkGrain / n),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t r = begin; r < end; ++r) {
                            T* to = out + r * row[0];
                            const T* from = self + r * row[1] + at(index[r * row[2]]);
                            if (streamed)
                              tile::StreamedCopy::piece(to, from, n * bytes);
                            else if (n > 16)
                              copy_run(to, 1, from, 1, n);
                            else
                              for (int64_t k = 0; k < n; ++k) to[k] = from[k];
                          }
                          if (streamed) tile::StreamedCopy::end();
                        });
    return;
  }
  queue::parallel_for(0, walk.numel, kWalkGrain, [&](int64_t begin, int64_t end) {
    walk.run(begin, end, [&](const std::array<int64_t, 3>& o, int64_t n) {
      T* to = out + o[0];
      const T* from = self + o[1];
      const int64_t* i = index + o[2];
      if (step[2] == 0 || n == 1)
        copy_run(to, step[0], from + at(*i), step[1], n);
      else
        for (int64_t k = 0; k < n; ++k) to[k * step[0]] = from[k * step[1] + at(i[k * step[2]])];
    });
  });
}

void gather_any(const Strided& out, const ConstStrided& self, int dim, const int64_t* index,
                std::span<const int64_t> index_strides, size_t item, IndexStyle style) {
  Walk<3> walk;
  for (size_t d = 0; d < out.sizes.size(); ++d)
    walk.add(out.sizes[d],
             {out.strides[d], static_cast<int>(d) == dim ? 0 : self.strides[d], index_strides[d]});
  if (walk.numel == 0) return;
  const Indexed at{style, dim, self.sizes[dim], self.strides[dim], self.sizes.size()};
  visit_item(item, [&](auto word) {
    using T = decltype(word);
    gather_as(static_cast<T*>(out.data), static_cast<const T*>(self.data), index, walk, at);
  });
}

void scatter_any(const Strided& self, int dim, std::span<const int64_t> sizes, const int64_t* index,
                 std::span<const int64_t> index_strides, const void* src,
                 std::span<const int64_t> src_strides, size_t item, IndexStyle style) {
  const Indexed at{style, dim, self.sizes[dim], self.strides[dim], self.sizes.size()};
  visit_item(item, [&](auto word) {
    using T = decltype(word);
    auto* to = static_cast<T*>(self.data);
    const auto* from = static_cast<const T*>(src);
    scatter_walk(self, dim, sizes, index_strides, src_strides,
                 [&](int64_t o, int64_t i, int64_t s, const Step& step, int64_t n) {
                   if (step[1] == 0) {
                     copy_run(to + o + at(index[i]), step[0], from + s, step[2], n);
                     return;
                   }
                   for (int64_t k = 0; k < n; ++k)
                     to[o + k * step[0] + at(index[i + k * step[1]])] = from[s + k * step[2]];
                 });
  });
}

}  // namespace

void gather(const Strided& out, const ConstStrided& self, int dim, const ConstStrided& index,
            size_t item) {
  gather_any(out, self, dim, static_cast<const int64_t*>(index.data), index.strides, item,
             IndexStyle::Gather);
}

void index_select(const Strided& out, const ConstStrided& self, int dim, const ConstStrided& index,
                  size_t item) {
  const AlongDim along(dim, index);
  gather_any(out, self, dim, static_cast<const int64_t*>(index.data),
             {along.strides.data(), out.sizes.size()}, item, IndexStyle::Select);
}

void scatter(const Strided& self, int dim, const ConstStrided& index, const ConstStrided& src,
             size_t item) {
  scatter_any(self, dim, index.sizes, static_cast<const int64_t*>(index.data), index.strides,
              src.data, src.strides, item, IndexStyle::Gather);
}

void scatter_value(const Strided& self, int dim, const ConstStrided& index, const Scalar& value,
                   ScalarType dtype) {
  const ScalarBytes bytes(value, dtype);
  const std::array<int64_t, kMaxDims> zeros{};
  scatter_any(self, dim, index.sizes, static_cast<const int64_t*>(index.data), index.strides,
              bytes.bytes, {zeros.data(), index.sizes.size()}, item_size(dtype),
              IndexStyle::Gather);
}

void index_copy(const Strided& self, int dim, const ConstStrided& index, const ConstStrided& src,
                size_t item) {
  const AlongDim along(dim, index);
  scatter_any(self, dim, src.sizes, static_cast<const int64_t*>(index.data),
              {along.strides.data(), src.sizes.size()}, src.data, src.strides, item,
              IndexStyle::Copy);
}

void index_fill(const Strided& self, int dim, const ConstStrided& index, const Scalar& value,
                ScalarType dtype) {
  const ScalarBytes bytes(value, dtype);
  const AlongDim along(dim, index);
  const size_t ndim = self.sizes.size();
  std::array<int64_t, kMaxDims> sizes, zeros{};
  std::copy(self.sizes.begin(), self.sizes.end(), sizes.begin());
  const int64_t count = index.sizes.empty() ? 1 : index.sizes[0], size = self.sizes[dim];
  sizes[dim] = count;
  // Negative indices count from the end here.
  const Scratch scratch(bytes_of(count, sizeof(int64_t)));
  auto* wrapped = scratch.get<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t v = static_cast<const int64_t*>(index.data)[i * along.strides[dim]];
    if (v < -size || v >= size) raise_index(IndexStyle::Fill, v, dim, size, ndim);
    wrapped[i] = v < 0 ? v + size : v;
  }
  std::array<int64_t, kMaxDims> index_strides{};
  index_strides[dim] = 1;
  scatter_any(self, dim, {sizes.data(), ndim}, wrapped, {index_strides.data(), ndim}, bytes.bytes,
              {zeros.data(), ndim}, item_size(dtype), IndexStyle::Fill);
}

void take(const Strided& out, const ConstStrided& self, const ConstStrided& index, size_t item) {
  int64_t numel = 1;
  for (const int64_t size : self.sizes) numel *= size;
  Walk<2> walk;
  for (size_t d = 0; d < out.sizes.size(); ++d)
    walk.add(out.sizes[d], {out.strides[d], index.strides[d]});
  Walk<1> source;
  for (size_t d = 0; d < self.sizes.size(); ++d) source.add(self.sizes[d], {self.strides[d]});
  const auto step = walk.step();
  const auto* indices = static_cast<const int64_t*>(index.data);
  visit_item(item, [&](auto word) {
    using T = decltype(word);
    auto* to = static_cast<T*>(out.data);
    const auto* from = static_cast<const T*>(self.data);
    queue::parallel_for(0, walk.numel, kWalkGrain, [&](int64_t begin, int64_t end) {
      walk.run(begin, end, [&](const std::array<int64_t, 2>& o, int64_t n) {
        for (int64_t k = 0; k < n; ++k) {
          const int64_t v = indices[o[1] + k * step[1]];
          if (v < -numel || v >= numel) [[unlikely]]
            raise(ErrorKind::Index, str("out of range: tried to access index ", v,
                                        " on a tensor of ", numel, " elements."));
          int64_t rest = v < 0 ? v + numel : v, offset = 0;
          for (int d = source.ndim - 1; d > 0; --d) {
            offset += rest % source.sizes[d] * source.strides[d][0];
            rest /= source.sizes[d];
          }
          if (source.ndim > 0) offset += rest * source.strides[0][0];
          to[o[0] + k * step[0]] = from[offset];
        }
      });
    });
  });
}

}  // namespace lamina::cpu
