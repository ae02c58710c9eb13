// Kernels over one row of adjacent values: softmax and relatives, moments.
#include "lamina/tile/loops/row_sums.h"
#include "lamina/tile/loops/vector_math.h"

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

template <class T>
[[gnu::always_inline]] inline T row_max(const T* x, int64_t n) {
  using V = Vec<T>;
  constexpr int W = kLanes<T>;
  constexpr T kLowest = T(-__builtin_inf());
  V best[4];
  for (auto& b : best) b = splat<V>(kLowest);
  int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W)
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) {
      const V v = load_vec<V>(x + i + u * W);
      best[u] = v > best[u] ? v : best[u];
    }
  for (; i < n; i += W) {
    const V v = load_part<T>(x + i, n - i < W ? int(n - i) : W, kLowest);
    best[0] = v > best[0] ? v : best[0];
  }
  best[0] = best[0] > best[1] ? best[0] : best[1];
  best[2] = best[2] > best[3] ? best[2] : best[3];
  best[0] = best[0] > best[2] ? best[0] : best[2];
  return fold_halves<T, W>(
      best[0], [](auto a, auto b) __attribute__((always_inline)) { return a > b ? a : b; });
}

// A NaN anywhere makes the sum, and so the whole row, NaN.
template <class T>
void softmax(void* out, const void* in, int64_t n) {
  using V = Vec<T>;
  constexpr int W = kLanes<T>;
  auto* o = static_cast<T*>(out);
  auto* x = static_cast<const T*>(in);
  const T top = row_max(x, n);
  const T sum = sum_leaves<T>(n, [&](int64_t i, int count) __attribute__((always_inline)) {
    V e = v_exp(load_part<T>(x + i, count, T(-__builtin_inf())) - top);
    store_part<T>(o + i, e, count);
    if (count < W) {
      // Padding counts for nothing, also where the row is all -inf and the difference is NaN.
      for (int k = count; k < W; ++k) e[k] = 0;
    }
    return e;
  });
  const T scale = T(1) / sum;
  for (int64_t i = 0; i < n; ++i) o[i] *= scale;
}

template <class T>
void log_softmax(void* out, const void* in, int64_t n) {
  using V = Vec<T>;
  constexpr int W = kLanes<T>;
  auto* o = static_cast<T*>(out);
  auto* x = static_cast<const T*>(in);
  const T top = row_max(x, n);
  const T sum = sum_leaves<T>(n, [&](int64_t i, int count) __attribute__((always_inline)) {
    V e = v_exp(load_part<T>(x + i, count, T(-__builtin_inf())) - top);
    if (count < W) {
      for (int k = count; k < W; ++k) e[k] = 0;
    }
    return e;
  });
  const T log_sum = static_cast<T>(std::log(double(sum)));
  for (int64_t i = 0; i < n; ++i) o[i] = x[i] - top - log_sum;
}

template <class T>
void softmax_backward(void* out, const void* grad, const void* y_v, int64_t n) {
  auto* o = static_cast<T*>(out);
  auto* g = static_cast<const T*>(grad);
  auto* y = static_cast<const T*>(y_v);
  const T sum = sum_leaves<T>(n, [&](int64_t i, int count) __attribute__((always_inline)) {
    return load_part<T>(g + i, count, T(0)) * load_part<T>(y + i, count, T(0));
  });
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = (g[i] - sum) * y[i];
}

template <class T>
void log_softmax_backward(void* out, const void* grad, const void* y_v, int64_t n) {
  using V = Vec<T>;
  constexpr int W = kLanes<T>;
  auto* o = static_cast<T*>(out);
  auto* g = static_cast<const T*>(grad);
  auto* y = static_cast<const T*>(y_v);
  const T sum = sum_leaves<T>(n, [&](int64_t i, int count) __attribute__((always_inline)) {
    return load_part<T>(g + i, count, T(0));
  });
  for (int64_t i = 0; i < n; i += W) {
    const int count = n - i < W ? int(n - i) : W;
    const V v = load_part<T>(g + i, count, T(0)) - v_exp(load_part<T>(y + i, count, T(0))) * sum;
    store_part<T>(o + i, v, count);
  }
}

// --- short rows
// -------------------------------------------------------------------------------------------------------
// kShortRows rows side by side, element k of row r at [k * kShortRows + r]: a lane is a row, whose
// elements are added in their order.
template <class T, Softmax kKind>
void short_rows(void* out, const void* first, const void* second, int64_t n) {
  using V = Vec<T>;
  constexpr int W = kLanes<T>;
  for (int r = 0; r < kShortRows; r += W) {
    auto* o = static_cast<T*>(out) + r;
    auto* x = static_cast<const T*>(first) + r;
    const auto at = [](const T* p, int64_t k) { return load_vec<V>(p + k * kShortRows); };
    V sum = {};
    if constexpr (kKind == Softmax::softmax || kKind == Softmax::log_softmax) {
      V top = at(x, 0);
      for (int64_t k = 1; k < n; ++k) {
        const V v = at(x, k);
        top = v > top ? v : top;
      }
      for (int64_t k = 0; k < n; ++k) {
        const V e = v_exp(at(x, k) - top);
        if constexpr (kKind == Softmax::softmax) store_vec(o + k * kShortRows, e);
        sum += e;
      }
      if constexpr (kKind == Softmax::softmax) {
        const V scale = T(1) / sum;
        for (int64_t k = 0; k < n; ++k) store_vec(o + k * kShortRows, V(at(o, k) * scale));
      } else {
        const V log_sum = v_log(sum);
        for (int64_t k = 0; k < n; ++k) store_vec(o + k * kShortRows, V(at(x, k) - top - log_sum));
      }
    } else {
      auto* y = static_cast<const T*>(second) + r;
      for (int64_t k = 0; k < n; ++k)
        sum += kKind == Softmax::softmax_backward ? V(at(x, k) * at(y, k)) : at(x, k);
      for (int64_t k = 0; k < n; ++k) {
        const V v = kKind == Softmax::softmax_backward ? V((at(x, k) - sum) * at(y, k))
                                                       : V(at(x, k) - v_exp(at(y, k)) * sum);
        store_vec(o + k * kShortRows, v);
      }
    }
  }
}

// In double whatever the type: a row of floats cannot lose digits.
template <class T>
void moments(double* mean, double* m2, const void* in, int64_t n) {
  constexpr int L = 16;
  auto* x = static_cast<const T*>(in);
  double lane[L] = {};
  int64_t i = 0;
  for (; i + L <= n; i += L)
#pragma GCC unroll 16
    for (int j = 0; j < L; ++j) lane[j] += double(x[i + j]);
  for (int j = 0; i < n; ++i, ++j) lane[j] += double(x[i]);
  for (int half = L / 2; half >= 1; half /= 2)
    for (int j = 0; j < half; ++j) lane[j] += lane[j + half];
  const double m = lane[0] / double(n);
  double square[L] = {};
  for (i = 0; i + L <= n; i += L)
#pragma GCC unroll 16
    for (int j = 0; j < L; ++j) {
      const double d = double(x[i + j]) - m;
      square[j] += d * d;
    }
  for (int j = 0; i < n; ++i, ++j) {
    const double d = double(x[i]) - m;
    square[j] += d * d;
  }
  for (int half = L / 2; half >= 1; half /= 2)
    for (int j = 0; j < half; ++j) square[j] += square[j + half];
  *mean = m;
  *m2 = square[0];
}

template <class T>
void fill(Level& l) {
  RowKernels& r = l.rows[slot_of<T>];
  r.softmax = softmax<T>;
  r.log_softmax = log_softmax<T>;
  r.softmax_backward = softmax_backward<T>;
  r.log_softmax_backward = log_softmax_backward<T>;
  r.short_rows[int(Softmax::softmax)] = short_rows<T, Softmax::softmax>;
  r.short_rows[int(Softmax::log_softmax)] = short_rows<T, Softmax::log_softmax>;
  r.short_rows[int(Softmax::softmax_backward)] = short_rows<T, Softmax::softmax_backward>;
  r.short_rows[int(Softmax::log_softmax_backward)] = short_rows<T, Softmax::log_softmax_backward>;
  r.moments = moments<T>;
}

}  // namespace

void fill_rows(Level& l) {
  fill<float>(l);
  fill<double>(l);
}

}  // namespace lamina::tile::LAMINA_TILE_LEVEL
