// Kernels over one row of a normalization.
#include <cmath>

#include "lamina/tile/loops/row_sums.h"
#include "lamina/tile/loops/vector_math.h"

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

template <class T>
void forward(void* out, double* mean_out, double* rstd_out, const void* in, const void* weight,
             const void* bias, double eps, bool centered, int64_t n) {
  using V = Vec<T>;
  auto* o = static_cast<T*>(out);
  auto* x = static_cast<const T*>(in);
  auto* w = static_cast<const T*>(weight);
  auto* b = static_cast<const T*>(bias);
  T mean = 0;
  if (centered) {
    const T sum = sum_leaves<T>(n, [&](int64_t i, int count) __attribute__((always_inline)) {
      return load_part<T>(x + i, count, T(0));
    });
    mean = T(double(sum) / double(n));
  }
  const V center = splat<V>(mean);
  const T squares = sum_leaves<T>(n, [&](int64_t i, int count) __attribute__((always_inline)) {
    const V d = load_part<T>(x + i, count, mean) - center;
    return d * d;
  });
  const double rstd = 1 / std::sqrt(double(squares) / double(n) + eps);
  const T r = T(rstd);
  if (w && b) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = (x[i] - mean) * r * w[i] + b[i];
  } else if (w) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = (x[i] - mean) * r * w[i];
  } else {
    const bool shifted = b != nullptr;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = (x[i] - mean) * r + (shifted ? b[i] : T(0));
  }
  *mean_out = double(mean);
  *rstd_out = rstd;
}

// dx = rstd * (g - mean(g) - unit * mean(g * unit)) with g = grad * weight and unit the normalized
// row.
template <class T>
void backward(void* dx, const void* grad, const void* in, const void* weight, double mean_in,
              double rstd, bool centered, int64_t n) {
  using V = Vec<T>;
  auto* o = static_cast<T*>(dx);
  auto* g = static_cast<const T*>(grad);
  auto* x = static_cast<const T*>(in);
  auto* w = static_cast<const T*>(weight);
  const T mean = T(mean_in);
  const auto weighted = [&](int64_t i, int count) __attribute__((always_inline)) {
    const V v = load_part<T>(g + i, count, T(0));
    return w ? V(v * load_part<T>(w + i, count, T(0))) : v;
  };
  const T sum = centered ? sum_leaves<T>(n, weighted) : T(0);
  const V center = splat<V>(mean);
  const T products = sum_leaves<T>(n, [&](int64_t i, int count) __attribute__((always_inline)) {
    return weighted(i, count) * (load_part<T>(x + i, count, mean) - center);
  });
  const T r = T(rstd), shift = T(double(sum) / double(n)),
          slope = T(double(products) * rstd * rstd / double(n));
  if (w) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = r * (g[i] * w[i] - shift - (x[i] - mean) * slope);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = r * (g[i] - shift - (x[i] - mean) * slope);
  }
}

template <class T>
void add_parameters(void* weight_grad, void* bias_grad, const void* grad, const void* in,
                    double mean_in, double rstd, int64_t n) {
  auto* dw = static_cast<T*>(weight_grad);
  auto* db = static_cast<T*>(bias_grad);
  auto* g = static_cast<const T*>(grad);
  auto* x = static_cast<const T*>(in);
  const T mean = T(mean_in), r = T(rstd);
  if (dw)
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) dw[i] += g[i] * ((x[i] - mean) * r);
  if (db)
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) db[i] += g[i];
}

template <class T>
void affine(void* out, const void* in, double a_in, double b_in, int64_t n) {
  auto* o = static_cast<T*>(out);
  auto* x = static_cast<const T*>(in);
  const T a = T(a_in), b = T(b_in);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = x[i] * a + b;
}

template <class T>
void affine2(void* out, const void* grad, const void* in, double mean_in, double a_in, double b_in,
             double c_in, int64_t n) {
  auto* o = static_cast<T*>(out);
  auto* g = static_cast<const T*>(grad);
  auto* x = static_cast<const T*>(in);
  const T mean = T(mean_in), a = T(a_in), b = T(b_in), c = T(c_in);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = g[i] * a + (x[i] - mean) * b + c;
}

template <class T>
void product_sums(double* g_sum, double* gx_sum, const void* grad, const void* in, double mean_in,
                  int64_t n) {
  using V = Vec<T>;
  auto* g = static_cast<const T*>(grad);
  auto* x = static_cast<const T*>(in);
  const T mean = T(mean_in);
  const V center = splat<V>(mean);
  *g_sum = double(sum_leaves<T>(n, [&](int64_t i, int count) __attribute__((always_inline)) {
    return load_part<T>(g + i, count, T(0));
  }));
  *gx_sum = double(sum_leaves<T>(n, [&](int64_t i, int count) __attribute__((always_inline)) {
    return load_part<T>(g + i, count, T(0)) * (load_part<T>(x + i, count, mean) - center);
  }));
}

template <class T>
void fill(Level& l) {
  NormKernels& k = l.rows[slot_of<T>].norm;
  k.forward = forward<T>;
  k.backward = backward<T>;
  k.add_parameters = add_parameters<T>;
  k.affine = affine<T>;
  k.affine2 = affine2<T>;
  k.product_sums = product_sums<T>;
}

}  // namespace

void fill_norms(Level& l) {
  fill<float>(l);
  fill<double>(l);
}

}  // namespace lamina::tile::LAMINA_TILE_LEVEL
