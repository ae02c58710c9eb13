// scatter_reduce and index_add.
#include <limits>
#include <type_traits>

#include "lamina/cpu/element_sum.h"
#include "lamina/cpu/index_along.h"
#include "lamina/cpu/scratch.h"

namespace lamina::cpu {
namespace {

template <class T>
T times(T a, T b) {
  if constexpr (std::is_same_v<T, bool>)
    return a && b;
  else if constexpr (is_small_float_type<T>)
    return T(static_cast<float>(a) * static_cast<float>(b));
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}
template <class T>
bool is_nan(T v) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return static_cast<float>(v) != static_cast<float>(v) && v != v;
}

template <class T, Reduction kReduction>
T combine(T a, T b) {
  if constexpr (kReduction == Reduction::Sum || kReduction == Reduction::Mean) {
    return element_sum(a, b);
  } else if constexpr (kReduction == Reduction::Prod) {
    return times(a, b);
  } else if constexpr (is_complex_type<T>) {
    return a;
  } else if constexpr (kReduction == Reduction::Amax) {
    return is_nan(a) ? a : (b > a || is_nan(b) ? b : a);
  } else {
    return is_nan(a) ? a : (b < a || is_nan(b) ? b : a);
  }
}

template <class T, Reduction kReduction>
T identity() {
  constexpr bool kFloat = !std::is_integral_v<T>;
  if constexpr (kReduction == Reduction::Prod) {
    return convert_to<T>(int64_t{1});
  } else if constexpr (!is_complex_type<T> &&
                       (kReduction == Reduction::Amax || kReduction == Reduction::Amin)) {
    constexpr bool kMax = kReduction == Reduction::Amax;
    if constexpr (kFloat)
      return convert_to<T>(kMax ? -std::numeric_limits<double>::infinity()
                                : std::numeric_limits<double>::infinity());
    else
      return kMax ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  } else {
    return T();
  }
}

template <class T>
T divide(T v, int64_t count) {
  if constexpr (std::is_same_v<T, bool>)
    return v;
  else if constexpr (is_complex_type<T>)
    return v / static_cast<typename T::value_type>(count);
  else if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_unsigned_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(v) / static_cast<uint64_t>(count));
    } else {
      const int64_t x = v, q = x / count;
      return static_cast<T>(x % count != 0 && x < 0 ? q - 1 : q);  // toward minus infinity
    }
  } else if constexpr (std::is_same_v<T, double>)
    return v / static_cast<double>(count);
  else
    return T(static_cast<float>(v) / static_cast<float>(count));
}

template <class T, Reduction kReduction>
void reduce_as(const Strided& self, int dim, std::span<const int64_t> sizes, const int64_t* index,
               std::span<const int64_t> index_strides, const T* src,
               std::span<const int64_t> src_strides, T alpha, bool scaled, bool include_self,
               IndexStyle style) {
  const Indexed at{style, dim, self.sizes[dim], self.strides[dim], self.sizes.size()};
  auto* to = static_cast<T*>(self.data);
  if (!include_self)
    scatter_walk(self, dim, sizes, index_strides, src_strides,
                 [&](int64_t o, int64_t i, int64_t, const Step& step, int64_t n) {
                   for (int64_t k = 0; k < n; ++k)
                     to[o + k * step[0] + at(index[i + k * step[1]])] = identity<T, kReduction>();
                 });
  scatter_walk(self, dim, sizes, index_strides, src_strides,
               [&](int64_t o, int64_t i, int64_t s, const Step& step, int64_t n) {
                 if (step[1] == 0) {
                   T* row = to + o + at(index[i]);
                   if constexpr (kReduction == Reduction::Sum)
                     if (step[0] == 1 && step[2] == 1 && !scaled) {  // for vectors
                       for (int64_t k = 0; k < n; ++k) row[k] = element_sum(row[k], src[s + k]);
                       return;
                     }
                   for (int64_t k = 0; k < n; ++k) {
                     const T v = src[s + k * step[2]];
                     row[k * step[0]] =
                         combine<T, kReduction>(row[k * step[0]], scaled ? times(v, alpha) : v);
                   }
                   return;
                 }
                 for (int64_t k = 0; k < n; ++k) {
                   T& target = to[o + k * step[0] + at(index[i + k * step[1]])];
                   const T v = src[s + k * step[2]];
                   target = combine<T, kReduction>(target, scaled ? times(v, alpha) : v);
                 }
               });
}

// Divides what was summed by how many values went into it.
template <class T>
void finish_mean(const Strided& self, int dim, std::span<const int64_t> sizes, const int64_t* index,
                 std::span<const int64_t> index_strides, bool include_self) {
  const size_t ndim = self.sizes.size();
  std::array<int64_t, kMaxDims> count_strides;
  int64_t numel = 1;
  for (size_t d = ndim; d-- > 0;) {
    count_strides[d] = numel;
    numel *= self.sizes[d];
  }
  const Scratch scratch(bytes_of(numel, sizeof(int64_t)));
  auto* counts = scratch.get<int64_t>();
  std::fill(counts, counts + numel, int64_t{include_self});
  const Strided target{counts, self.sizes, {count_strides.data(), ndim}};
  scatter_walk(target, dim, sizes, index_strides, index_strides,
               [&](int64_t o, int64_t i, int64_t, const Step& step, int64_t n) {
                 for (int64_t k = 0; k < n; ++k)
                   ++counts[o + k * step[0] + index[i + k * step[1]] * count_strides[dim]];
               });
  Walk<2> walk;
  for (size_t d = 0; d < ndim; ++d) walk.add(self.sizes[d], {self.strides[d], count_strides[d]});
  const auto step = walk.step();
  auto* data = static_cast<T*>(self.data);
  queue::parallel_for(0, walk.numel, kWalkGrain, [&](int64_t begin, int64_t end) {
    walk.run(begin, end, [&](const std::array<int64_t, 2>& o, int64_t n) {
      for (int64_t k = 0; k < n; ++k) {
        const int64_t count = counts[o[1] + k * step[1]];
        if (count > 1) data[o[0] + k * step[0]] = divide(data[o[0] + k * step[0]], count);
      }
    });
  });
}

void reduce_any(const Strided& self, int dim, std::span<const int64_t> sizes, const int64_t* index,
                std::span<const int64_t> index_strides, const void* src,
                std::span<const int64_t> src_strides, const Scalar& alpha, ScalarType dtype,
                Reduction reduction, bool include_self, IndexStyle style) {
  const bool ordered = reduction == Reduction::Amax || reduction == Reduction::Amin;
  LAMINA_CHECK(!ordered || !is_complex(dtype),
               "scatter_reduce: complex numbers have no order; got dtype ", dtype,
               " with reduction ", reduction == Reduction::Amax ? "amax" : "amin");
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto run = [&]<Reduction kReduction>() {
      reduce_as<T, kReduction>(self, dim, sizes, index, index_strides, static_cast<const T*>(src),
                               src_strides, scalar_to<T>(alpha), !alpha.equals(1), include_self,
                               style);
    };
    switch (reduction) {
      case Reduction::Sum:
        return run.template operator()<Reduction::Sum>();
      case Reduction::Prod:
        return run.template operator()<Reduction::Prod>();
      case Reduction::Amax:
        return run.template operator()<Reduction::Amax>();
      case Reduction::Amin:
        return run.template operator()<Reduction::Amin>();
      case Reduction::Mean:
        run.template operator()<Reduction::Sum>();
        finish_mean<T>(self, dim, sizes, index, index_strides, include_self);
    }
  });
}

}  // namespace

void scatter_reduce(const Strided& self, int dim, const ConstStrided& index,
                    const ConstStrided& src, ScalarType dtype, Reduction reduction,
                    bool include_self) {
  reduce_any(self, dim, index.sizes, static_cast<const int64_t*>(index.data), index.strides,
             src.data, src.strides, 1, dtype, reduction, include_self, IndexStyle::Gather);
}

void index_add(const Strided& self, int dim, const ConstStrided& index, const ConstStrided& src,
               const Scalar& alpha, ScalarType dtype) {
  const AlongDim along(dim, index);
  reduce_any(self, dim, src.sizes, static_cast<const int64_t*>(index.data),
             {along.strides.data(), src.sizes.size()}, src.data, src.strides, alpha, dtype,
             Reduction::Sum, true, IndexStyle::Add);
}

}  // namespace lamina::cpu
