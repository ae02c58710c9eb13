// The reference product (any type, any strides, three loops), the direct one for tiny matrices, and
// dot.
#include "lamina/cpu/gemm_plain.h"

#include <algorithm>
#include <complex>
#include <type_traits>

#include "lamina/core/float_types.h"
#include "lamina/cpu/scratch.h"
#include "lamina/queue/parallel.h"

namespace lamina::cpu {
namespace {

// The type that sums products of T: unsigned for integers, which wrap.
template <class T>
struct Sum {
  using type = T;
};
template <>
struct Sum<Half> {
  using type = float;
};
template <>
struct Sum<BFloat16> {
  using type = float;
};
template <>
struct Sum<Float8E5M2> {
  using type = float;
};
template <>
struct Sum<Float8E4M3FN> {
  using type = float;
};
template <class T>
  requires std::is_integral_v<T>
struct Sum<T> {
  using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
};
template <class T>
using sum_t = typename Sum<T>::type;

template <class T>
sum_t<T> value(T v, bool conjugate) {
  if constexpr (is_complex_type<T>)
    return conjugate ? std::conj(v) : v;
  else
    return static_cast<sum_t<T>>(v);
}
template <class A>
A multiply(A x, A y) {
  if constexpr (is_complex_type<A>)  // the plain formula, without the library's repair of
                                     // infinities
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  else
    return x * y;
}
template <class T>
T result(sum_t<T> v) {
  if constexpr (std::is_same_v<T, bool>)
    return v != 0;
  else
    return static_cast<T>(v);
}
template <class T>
sum_t<T> scalar_as(const Scalar& s) {
  if constexpr (is_complex_type<T>)
    return static_cast<sum_t<T>>(s.to_complex());
  else if constexpr (std::is_integral_v<T>)
    return static_cast<sum_t<T>>(s.to_int());
  else
    return static_cast<sum_t<T>>(s.to_double());
}

template <class T>
void rows_of(const Gemm& g, int64_t begin, int64_t end) {
  using A = sum_t<T>;
  const auto* a = static_cast<const T*>(g.a);
  const auto* b = static_cast<const T*>(g.b);
  auto* c = static_cast<T*>(g.c);
  const A alpha = scalar_as<T>(g.alpha), beta = scalar_as<T>(g.beta);
  for (int64_t i = begin; i < end; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      A sum = A(0);
      for (int64_t p = 0; p < g.k; ++p)
        sum += multiply(value(a[i * g.a_row_stride + p * g.a_col_stride], g.conj_a),
                        value(b[p * g.b_row_stride + j * g.b_col_stride], g.conj_b));
      if (alpha != A(1)) sum = multiply(alpha, sum);
      T& target = c[i * g.c_row_stride + j * g.c_col_stride];
      if (beta != A(0)) sum += multiply(beta, value(target, false));
      target = result<T>(sum);
    }
}

// Tiny real matrices of the type that computes; the loop over columns is innermost, so that it
// vectorizes.
template <class T>
void direct(const Gemm& g) {
  const auto* a = static_cast<const T*>(g.a);
  const auto* b = static_cast<const T*>(g.b);
  auto* c = static_cast<T*>(g.c);
  const T alpha = static_cast<T>(g.alpha.to_double()), beta = static_cast<T>(g.beta.to_double());
  const int n = static_cast<int>(g.n), k = static_cast<int>(g.k);
  T sum[kDirectEdge];
  for (int i = 0; i < g.m; ++i) {
    const T* row = a + i * g.a_row_stride;
    for (int j = 0; j < n; ++j) sum[j] = 0;
    if (g.b_col_stride == 1) {
      for (int p = 0; p < k; ++p) {
        const T x = row[p * g.a_col_stride];
        const T* y = b + p * g.b_row_stride;
        for (int j = 0; j < n; ++j) sum[j] += x * y[j];
      }
    } else {
      for (int p = 0; p < k; ++p) {
        const T x = row[p * g.a_col_stride];
        const T* y = b + p * g.b_row_stride;
        for (int j = 0; j < n; ++j) sum[j] += x * y[j * g.b_col_stride];
      }
    }
    T* out = c + i * g.c_row_stride;
    if (alpha == T(1) && beta == T(0)) {
      for (int j = 0; j < n; ++j) out[j * g.c_col_stride] = sum[j];
    } else {
      for (int j = 0; j < n; ++j) {
        T& target = out[j * g.c_col_stride];
        target = beta == T(0) ? alpha * sum[j] : alpha * sum[j] + beta * target;
      }
    }
  }
}

// --- dot: chunks of kDotChunk elements, kDotLanes running sums in each, sums combined in a tree
// ------------------------
constexpr int64_t kDotChunk = 8192, kDotLanes = 32;

template <class A>
A tree_sum(A* parts, int64_t n) {
  for (; n > 1; n = (n + 1) / 2)
    for (int64_t i = 0; i < n / 2; ++i) {
      parts[i] = parts[2 * i] + parts[2 * i + 1];
      if (2 * i + 3 == n) parts[i + 1] = parts[n - 1];
    }
  return n == 0 ? A(0) : parts[0];
}

template <class T>
sum_t<T> dot_chunk(int64_t n, const T* x, int64_t x_stride, const T* y, int64_t y_stride,
                   bool conj_x, bool conj_y) {
  using A = sum_t<T>;
  A lanes[kDotLanes] = {};
  int64_t i = 0;
  if constexpr (!is_complex_type<T>) {
    if (x_stride == 1 && y_stride == 1)
      for (; i + kDotLanes <= n; i += kDotLanes)
        for (int64_t l = 0; l < kDotLanes; ++l)
          lanes[l] += static_cast<A>(x[i + l]) * static_cast<A>(y[i + l]);
  }
  for (; i < n; ++i)
    lanes[i % kDotLanes] +=
        multiply(value(x[i * x_stride], conj_x), value(y[i * y_stride], conj_y));
  return tree_sum(lanes, kDotLanes);
}

// y = alpha * A x + beta * y for rows [begin, end). Rows whose elements are adjacent are dots;
// otherwise kDotLanes rows advance together, so that columns whose elements are adjacent are read
// in order.
template <class T>
void vector_rows(const Gemv& g, int64_t begin, int64_t end) {
  using A = sum_t<T>;
  const auto* a = static_cast<const T*>(g.a);
  const auto* x = static_cast<const T*>(g.x);
  auto* y = static_cast<T*>(g.y);
  const A alpha = scalar_as<T>(g.alpha), beta = scalar_as<T>(g.beta);
  A sums[kDotLanes];
  for (int64_t i = begin; i < end; i += kDotLanes) {
    const int64_t rows = std::min(kDotLanes, end - i);
    const T* block = a + i * g.a_row_stride;
    if (g.a_col_stride == 1) {
      for (int64_t l = 0; l < rows; ++l)
        sums[l] = dot_chunk<T>(g.n, block + l * g.a_row_stride, 1, x, g.x_stride, false, false);
    } else {
      for (int64_t l = 0; l < kDotLanes; ++l) sums[l] = A(0);
      for (int64_t j = 0; j < g.n; ++j) {
        const A v = value(x[j * g.x_stride], false);
        const T* column = block + j * g.a_col_stride;
        if (rows == kDotLanes && g.a_row_stride == 1)
          for (int64_t l = 0; l < kDotLanes; ++l) sums[l] += static_cast<A>(column[l]) * v;
        else
          for (int64_t l = 0; l < rows; ++l)
            sums[l] += static_cast<A>(column[l * g.a_row_stride]) * v;
      }
    }
    for (int64_t l = 0; l < rows; ++l) {
      T& target = y[(i + l) * g.y_stride];
      A sum = alpha == A(1) ? sums[l] : alpha * sums[l];
      if (beta != A(0)) sum += beta * value(target, false);
      target = result<T>(sum);
    }
  }
}

}  // namespace

bool vector_accepts(const Gemv& g) {
  return is_reduced_floating(g.dtype) || is_integral(g.dtype, true);
}

void run_vector(const Gemv& g) {
  const int64_t rows = std::max<int64_t>(65536 / std::max<int64_t>(g.n, 1), 1);
  const int64_t grain = (rows + kDotLanes - 1) / kDotLanes * kDotLanes;
  queue::parallel_for(0, g.m, grain, [&](int64_t begin, int64_t end) {
    visit(g.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
        vector_rows<T>(g, begin, end);
    });
  });
}

void run_reference(const Gemm& g) {
  const double work = std::max(1.0, double(g.n) * double(std::max<int64_t>(g.k, 1)));
  const auto grain = static_cast<int64_t>(std::max(1.0, 65536 / work));
  queue::parallel_for(0, g.m, grain, [&](int64_t begin, int64_t end) {
    visit(g.dtype, [&](auto tag) { rows_of<typename decltype(tag)::type>(g, begin, end); });
  });
}

bool direct_accepts(const Gemm& g, const char** reason) {
  if (g.dtype != ScalarType::Float32 && g.dtype != ScalarType::Float64) {
    *reason = "the direct product is made for float32 and float64";
    return false;
  }
  if (g.m > kDirectEdge || g.n > kDirectEdge || g.k > kDirectEdge ||
      g.m * g.n * g.k > kDirectWork) {
    *reason = "the matrices are too large for the direct product";
    return false;
  }
  return true;
}

void run_direct(const Gemm& g) {
  g.dtype == ScalarType::Float32 ? direct<float>(g) : direct<double>(g);
}

void dot(int64_t n, const void* x, int64_t x_stride, const void* y, int64_t y_stride, void* out,
         ScalarType dtype, bool conj_x, bool conj_y) {
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = sum_t<T>;
    const auto* px = static_cast<const T*>(x);
    const auto* py = static_cast<const T*>(y);
    const auto chunk = [&](int64_t c) {
      const int64_t b = c * kDotChunk;
      return dot_chunk<T>(std::min(kDotChunk, n - b), px + b * x_stride, x_stride,
                          py + b * y_stride, y_stride, conj_x, conj_y);
    };
    if (n <= kDotChunk) {
      *static_cast<T*>(out) = result<T>(n > 0 ? chunk(0) : A(0));
      return;
    }
    const int64_t chunks = (n + kDotChunk - 1) / kDotChunk;
    const Scratch scratch(bytes_of(chunks, sizeof(A)));
    A* parts = scratch.get<A>();
    queue::parallel_for(0, chunks, 4, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) parts[c] = chunk(c);
    });
    *static_cast<T*>(out) = result<T>(tree_sum(parts, chunks));
  });
}

}  // namespace lamina::cpu
