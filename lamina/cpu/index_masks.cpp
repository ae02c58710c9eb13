// Kernels that pick elements by a mask. Each counts its mask in fixed chunks first, so that the
// chunks know where their output begins and run in parallel.
#include "lamina/cpu/index_kernels.h"
#include "lamina/cpu/index_walk.h"
#include "lamina/cpu/scratch.h"
#include "lamina/queue/parallel.h"

namespace lamina::cpu {
namespace {

constexpr int64_t kBlock = 256;  // compacted in the first cache before it goes out

template <class T>
bool is_nonzero(T v) {
  if constexpr (is_small_float_type<T>)
    return static_cast<float>(v) != 0;
  else
    return v != T();
}

int64_t chunks_of(int64_t numel) { return (numel + kWalkGrain - 1) / kWalkGrain; }

// Starts of each chunk's output: starts[c] elements lie in chunks before c; starts[chunks] is the
// total.
template <class F>
void count_chunks(int64_t numel, int64_t* starts, F&& count) {
  const int64_t chunks = chunks_of(numel);
  queue::parallel_for(0, numel, kWalkGrain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b += kWalkGrain)
      starts[b / kWalkGrain] = count(b, std::min(b + kWalkGrain, end));
  });
  int64_t sum = 0;
  for (int64_t c = 0; c < chunks; ++c) {
    const int64_t here = starts[c];
    starts[c] = sum;
    sum += here;
  }
  starts[chunks] = sum;
}

template <int N>
int64_t count_mask(const Walk<N>& walk, int which, const uint8_t* mask, int64_t begin,
                   int64_t end) {
  int64_t total = 0;
  const int64_t step = walk.step()[which];
  walk.run(begin, end, [&](const auto& o, int64_t n) {
    const uint8_t* m = mask + o[which];
    if (step == 1) {
      for (int64_t i = 0; i < n; i += 128) {
        uint8_t sum = 0;  // at most 128: fits
        const int64_t stop = std::min<int64_t>(n, i + 128);
        for (int64_t k = i; k < stop; ++k) sum = static_cast<uint8_t>(sum + (m[k] != 0));
        total += sum;
      }
    } else {
      for (int64_t i = 0; i < n; ++i) total += m[i * step] != 0;
    }
  });
  return total;
}

template <class T>
int64_t count_as(const ConstStrided& self) {
  Walk<1> walk;
  for (size_t d = 0; d < self.sizes.size(); ++d) walk.add(self.sizes[d], {self.strides[d]});
  if (walk.numel == 0) return 0;
  const Scratch scratch(bytes_of(chunks_of(walk.numel) + 1, sizeof(int64_t)));
  auto* starts = scratch.get<int64_t>();
  const auto* data = static_cast<const T*>(self.data);
  const int64_t step = walk.step()[0];
  count_chunks(walk.numel, starts, [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, bool>) {
      return count_mask(walk, 0, reinterpret_cast<const uint8_t*>(data), begin, end);
    } else {
      int64_t total = 0;
      walk.run(begin, end, [&](const std::array<int64_t, 1>& o, int64_t n) {
        for (int64_t i = 0; i < n; ++i) total += is_nonzero(data[o[0] + i * step]);
      });
      return total;
    }
  });
  return starts[chunks_of(walk.numel)];
}

}  // namespace

void masked_fill(const Strided& self, const ConstStrided& mask, const Scalar& value,
                 ScalarType dtype) {
  Walk<2> walk;
  for (size_t d = 0; d < self.sizes.size(); ++d)
    walk.add(self.sizes[d], {self.strides[d], mask.strides[d]});
  const ScalarBytes bytes(value, dtype);
  const auto step = walk.step();
  const auto* m = static_cast<const uint8_t*>(mask.data);
  visit_item(item_size(dtype), [&](auto word) {
    using T = decltype(word);
    auto* data = static_cast<T*>(self.data);
    const T fill = bytes.as<T>();
    queue::parallel_for(0, walk.numel, kWalkGrain, [&](int64_t begin, int64_t end) {
      walk.run(begin, end, [&](const std::array<int64_t, 2>& o, int64_t n) {
        T* to = data + o[0];
        const uint8_t* on = m + o[1];
        if (step[0] == 1 && step[1] == 1)
          for (int64_t i = 0; i < n; ++i) to[i] = on[i] != 0 ? fill : to[i];
        else
          for (int64_t i = 0; i < n; ++i)
            if (on[i * step[1]] != 0) to[i * step[0]] = fill;
      });
    });
  });
}

int64_t count_nonzero(const ConstStrided& self, ScalarType dtype) {
  return visit(dtype, [&](auto tag) { return count_as<typename decltype(tag)::type>(self); });
}

void masked_select(void* out, int64_t count, const ConstStrided& self, const ConstStrided& mask,
                   size_t item) {
  Walk<2> walk;
  for (size_t d = 0; d < self.sizes.size(); ++d)
    walk.add(self.sizes[d], {self.strides[d], mask.strides[d]});
  if (walk.numel == 0) return;
  const auto step = walk.step();
  const auto* m = static_cast<const uint8_t*>(mask.data);
  const Scratch scratch(bytes_of(chunks_of(walk.numel) + 1, sizeof(int64_t)));
  auto* starts = scratch.get<int64_t>();
  count_chunks(walk.numel, starts,
               [&](int64_t begin, int64_t end) { return count_mask(walk, 1, m, begin, end); });
  LAMINA_CHECK(starts[chunks_of(walk.numel)] == count,
               "masked_select: the mask changed while it was read; ", "counted ", count, ", then ",
               starts[chunks_of(walk.numel)]);
  if (count == 0) return;  // `out` may be null
  visit_item(item, [&](auto word) {
    using T = decltype(word);
    auto* to = static_cast<T*>(out);
    const auto* from = static_cast<const T*>(self.data);
    queue::parallel_for(0, walk.numel, kWalkGrain, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; b += kWalkGrain) {
        int64_t at = starts[b / kWalkGrain];
        const int64_t limit = starts[b / kWalkGrain + 1];
        T kept[kBlock + 1];
        walk.run(b, std::min(b + kWalkGrain, end), [&](const std::array<int64_t, 2>& o, int64_t n) {
          const T* v = from + o[0];
          const uint8_t* on = m + o[1];
          for (int64_t i = 0; i < n; i += kBlock) {
            const int64_t stop = std::min(n, i + kBlock);
            int64_t c = 0;
            for (int64_t k = i; k < stop; ++k) {
              kept[c] = v[k * step[0]];
              c += on[k * step[1]] != 0;
            }
            c = std::min(c, limit - at);  // another thread may write to the mask
            std::memcpy(static_cast<void*>(to + at), kept, static_cast<size_t>(c) * sizeof(T));
            at += c;
          }
        });
      }
    });
  });
}

void masked_scatter(const Strided& self, const ConstStrided& mask, const void* source,
                    int64_t available, size_t item) {
  Walk<2> walk;
  for (size_t d = 0; d < self.sizes.size(); ++d)
    walk.add(self.sizes[d], {self.strides[d], mask.strides[d]});
  if (walk.numel == 0) return;
  const auto step = walk.step();
  const auto* m = static_cast<const uint8_t*>(mask.data);
  const Scratch scratch(bytes_of(chunks_of(walk.numel) + 1, sizeof(int64_t)));
  auto* starts = scratch.get<int64_t>();
  count_chunks(walk.numel, starts,
               [&](int64_t begin, int64_t end) { return count_mask(walk, 1, m, begin, end); });
  const int64_t needed = starts[chunks_of(walk.numel)];
  LAMINA_CHECK(needed <= available,
               "masked_scatter: Number of elements of source < number of ones in mask; got ",
               available, " elements for ", needed, " ones");
  visit_item(item, [&](auto word) {
    using T = decltype(word);
    auto* to = static_cast<T*>(self.data);
    const auto* from = static_cast<const T*>(source);
    queue::parallel_for(0, walk.numel, kWalkGrain, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; b += kWalkGrain) {
        int64_t at = starts[b / kWalkGrain];
        const int64_t limit = starts[b / kWalkGrain + 1];
        walk.run(b, std::min(b + kWalkGrain, end), [&](const std::array<int64_t, 2>& o, int64_t n) {
          for (int64_t i = 0; i < n; ++i)
            if (m[o[1] + i * step[1]] != 0 && at < limit) to[o[0] + i * step[0]] = from[at++];
        });
      }
    });
  });
}

void nonzero(int64_t* out, int64_t count, int64_t out_row_stride, int64_t out_col_stride,
             const ConstStrided& self, ScalarType dtype) {
  const size_t ndim = self.sizes.size();
  Walk<1> walk;
  for (size_t d = 0; d < ndim; ++d) walk.add(self.sizes[d], {self.strides[d]});
  if (walk.numel == 0 || count == 0) return;
  const Scratch scratch(bytes_of(chunks_of(walk.numel) + 1, sizeof(int64_t)));
  auto* starts = scratch.get<int64_t>();
  const int64_t step = walk.step()[0];
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* data = static_cast<const T*>(self.data);
    count_chunks(walk.numel, starts, [&](int64_t begin, int64_t end) {
      int64_t total = 0;
      walk.run(begin, end, [&](const std::array<int64_t, 1>& o, int64_t n) {
        for (int64_t i = 0; i < n; ++i) total += is_nonzero(data[o[0] + i * step]);
      });
      return total;
    });
    LAMINA_CHECK(starts[chunks_of(walk.numel)] == count,
                 "nonzero: the tensor changed while it was read");
    queue::parallel_for(0, walk.numel, kWalkGrain, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; b += kWalkGrain) {
        int64_t row = starts[b / kWalkGrain], position = b;
        const int64_t limit = starts[b / kWalkGrain + 1];
        walk.run(b, std::min(b + kWalkGrain, end), [&](const std::array<int64_t, 1>& o, int64_t n) {
          for (int64_t i = 0; i < n; ++i, ++position) {
            if (!is_nonzero(data[o[0] + i * step]) || row >= limit) continue;
            int64_t rest = position;
            for (size_t d = ndim; d-- > 0;) {
              const int64_t size = self.sizes[d];
              out[row * out_row_stride + static_cast<int64_t>(d) * out_col_stride] =
                  d == 0 ? rest : rest % size;
              rest = d == 0 ? 0 : rest / size;
            }
            ++row;
          }
        });
      }
    });
  });
}

// --- copies
// --------------------------------------------------------------------------------------------------------------
void copy_strided(const Strided& out, const ConstStrided& self, size_t item) {
  Walk<2> walk;
  for (size_t d = 0; d < out.sizes.size(); ++d)
    walk.add(out.sizes[d], {out.strides[d], self.strides[d]});
  const auto step = walk.step();
  visit_item(item, [&](auto word) {
    using T = decltype(word);
    auto* to = static_cast<T*>(out.data);
    const auto* from = static_cast<const T*>(self.data);
    queue::parallel_for(0, walk.numel, kWalkGrain, [&](int64_t begin, int64_t end) {
      walk.run(begin, end, [&](const std::array<int64_t, 2>& o, int64_t n) {
        copy_run(to + o[0], step[0], from + o[1], step[1], n);
      });
    });
  });
}

void cat(const Strided& out, std::span<const ConstStrided> inputs, int dim, size_t item) {
  auto* data = static_cast<char*>(out.data);
  for (const ConstStrided& input : inputs) {
    copy_strided({data, input.sizes, out.strides}, input, item);
    data += input.sizes[dim] * out.strides[dim] * static_cast<int64_t>(item);
  }
}

}  // namespace lamina::cpu
