// Scaled dot-product attention in blocks of rows: softmax(q k^T * scale + mask) v.
#include <algorithm>
#include <limits>

#include "lamina/core/error.h"
#include "lamina/cpu/gemm.h"
#include "lamina/cpu/scratch.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/queue/parallel.h"
#include "lamina/tile/level.h"

namespace lamina::kernels {

namespace {

// Rows of queries that one block of scores holds; scores of a block stay in the cache.
constexpr int64_t kRows = 64;

// A tensor (batch, heads, rows, columns) or (batch, rows, columns), by strides.
struct Matrices {
  char* data = nullptr;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0, col_stride = 0;
  size_t item = 0;

  explicit Matrices(const Tensor& t) {
    if (!t.defined()) return;
    const bool heads = t.dim() == 4;
    data = static_cast<char*>(t.data());
    item = item_size(t.dtype());
    batch_stride = t.strides()[0];
    head_stride = heads ? t.strides()[1] : 0;
    row_stride = t.strides()[heads ? 2 : 1];
    col_stride = t.strides()[heads ? 3 : 2];
  }
  char* at(int64_t batch, int64_t head, int64_t row = 0) const {
    return data + (batch * batch_stride + head * head_stride + row * row_stride) *
                      static_cast<int64_t>(item);
  }
};

struct Shape {
  int64_t batch, heads, rows, keys, width, value_width;
  ScalarType type;
};

Shape shape_of(const Tensor& q, const Tensor& k, const Tensor& v) {
  return {q.size(0),  q.dim() == 4 ? q.size(1) : 1, q.size(-2), k.size(-2), q.size(-1),
          v.size(-1), compute_type(q.dtype())};
}

// Callers of the operator itself may pass anything; scaled_dot_product_attention passes what fits.
void check_operands(const char* op, const Tensor& q, const Tensor& k, const Tensor& v,
                    const Tensor& mask) {
  LAMINA_CHECK_IMPLEMENTED(is_floating(q.dtype()) && !is_float8(q.dtype()), op,
                           ": not implemented for '", legacy_name(q.dtype()), "'");
  LAMINA_CHECK(q.dtype() == k.dtype() && q.dtype() == v.dtype(), op,
               ": query, key and value must have one dtype; got ", q.dtype(), ", ", k.dtype(),
               " and ", v.dtype());
  const int64_t dims = q.dim();
  bool fits = (dims == 3 || dims == 4) && k.dim() == dims && v.dim() == dims &&
              q.size(-1) == k.size(-1) && k.size(-2) == v.size(-2);
  for (int64_t i = 0; fits && i + 2 < dims; ++i)
    fits = q.size(i) == k.size(i) && q.size(i) == v.size(i);
  LAMINA_CHECK(fits, op,
               ": query (..., l, e), key (..., s, e) and value (..., s, v) must fit; got ", q, ", ",
               k, " and ", v);
  LAMINA_CHECK(q.numel() > 0 && k.numel() > 0 && v.numel() > 0, op,
               ": operands must not be empty; scaled_dot_product_attention takes such");
  if (!mask.defined()) return;
  fits = mask.dim() == dims && mask.size(-2) == q.size(-2) && mask.size(-1) == k.size(-2);
  for (int64_t i = 0; fits && i + 2 < dims; ++i) fits = mask.size(i) == q.size(i);
  LAMINA_CHECK(fits && !is_complex(mask.dtype()), op,
               ": the mask is added to scores (..., l, s); got ", mask, " for query ", q,
               " and key ", k);
}

Tensor computing(const Tensor& t, ScalarType type) {
  return t.defined() ? converted(t, type) : Tensor();
}

// A result laid out as (batch, rows, heads, columns): what layers make of the heads next is then a
// view.
Tensor heads_inside(const Tensor& like, int64_t columns, ScalarType type) {
  if (like.dim() == 3) return empty_contiguous({like.size(0), like.size(1), columns}, type, kCpu);
  const Tensor whole =
      empty_contiguous({like.size(0), like.size(2), like.size(1), columns}, type, kCpu);
  return kernels::transpose(whole, 1, 2);
}

// One product of a block: C (m, n) = alpha * A (m, k) * B (k, n) + beta * C.
struct Operand {
  const void* data;
  int64_t row, col;
};
void product(ScalarType type, int64_t m, int64_t n, int64_t k, Operand a, Operand b, void* c,
             int64_t c_row, int64_t c_col, double alpha, double beta) {
  cpu::gemm({.m = m,
             .n = n,
             .k = k,
             .a = a.data,
             .a_row_stride = a.row,
             .a_col_stride = a.col,
             .b = b.data,
             .b_row_stride = b.row,
             .b_col_stride = b.col,
             .c = c,
             .c_row_stride = c_row,
             .c_col_stride = c_col,
             .alpha = alpha,
             .beta = beta,
             .dtype = type});
}

// Scores of rows [first, first + m) against the first `keys` keys, row-major with `stride`.
template <class T>
void scores(const Shape& s, const Matrices& q, const Matrices& k, const Matrices& mask, T* out,
            int64_t stride, int64_t b, int64_t h, int64_t first, int64_t m, int64_t keys,
            double scale) {
  product(s.type, m, keys, s.width, {q.at(b, h, first), q.row_stride, q.col_stride},
          {k.at(b, h), k.col_stride, k.row_stride}, out, stride, 1, scale, 0);
  if (!mask.data) return;
  for (int64_t i = 0; i < m; ++i) {
    const T* add = reinterpret_cast<const T*>(mask.at(b, h, first + i));
    T* row = out + i * stride;
    for (int64_t j = 0; j < keys; ++j) row[j] += add[j * mask.col_stride];
  }
}

// Calls f(batch, head) for every matrix, a few small ones to a task.
template <class F>
void each_head(const Shape& s, double products, F&& f) {
  const double work = products * double(s.rows) * double(s.keys) * double(s.width + s.value_width);
  const auto grain = static_cast<int64_t>(std::max(1.0, double(1 << 19) / std::max(work, 1.0)));
  queue::parallel_for(0, s.batch * s.heads, grain, [&](int64_t begin, int64_t end) {
    const cpu::Scratch scratch(
        cpu::bytes_of(2 * std::min(kRows, s.rows) * s.keys, item_size(s.type)));
    for (int64_t i = begin; i < end; ++i) f(i / s.heads, i % s.heads, scratch.get());
  });
}

// Softmax in place over the rows of a block of scores: those from `first` on, and with `causal` row
// i sees the first i + 1 keys only. Rows that see nothing, or -inf alone, become zeros.
template <class T>
class RowSoftmax {
 public:
  RowSoftmax(ScalarType type, bool causal)
      : level_(tile::level()),
        rows_(level_.rows[tile::memory_slot(type)]),
        fold_max_(level_.fold_leaf[static_cast<int>(tile::Fold::amax)][tile::memory_slot(type)]),
        causal_(causal) {}

  void operator()(T* p, int64_t first, int64_t m, int64_t keys) const {
    if (keys > 0 && keys <= tile::kShortRow) {
      for (int64_t i = 0; i < m; i += tile::kShortRows)
        by_lanes(p + i * keys, first + i, std::min<int64_t>(tile::kShortRows, m - i), keys);
    } else {
      for (int64_t i = 0; i < m; ++i)
        by_row(p + i * keys, causal_ ? std::min(keys, first + i + 1) : keys, keys);
    }
  }

 private:
  static constexpr T kNothing = -std::numeric_limits<T>::infinity();

  bool sees_nothing(const T* row, int64_t n) const {
    if (n > 0 && row[0] != kNothing) return false;
    for (int64_t j = 0; j < n; j += tile::kLeaf) {
      T most;
      fold_max_(&most, row + j, std::min(tile::kLeaf, n - j));
      if (most != kNothing) return false;
    }
    return true;
  }

  void by_row(T* row, int64_t seen, int64_t keys) const {
    if (sees_nothing(row, seen))
      std::fill(row, row + seen, T(0));
    else
      rows_.softmax(row, row, seen);
    std::fill(row + seen, row + keys, T(0));
  }

  // Short rows, a lane for each.
  void by_lanes(T* p, int64_t first, int64_t count, int64_t keys) const {
    constexpr int64_t kLanes = tile::kShortRows, kItem = sizeof(T);
    const int64_t seen = causal_ ? std::min(keys, first + count) : keys;  // by the last row
    alignas(64) T x[tile::kShortRow * kLanes];
    if (count < kLanes) std::fill(x, x + seen * kLanes, T(0));
    const auto move = level_.move[tile::size_index(kItem)];
    move(reinterpret_cast<char*>(x), kItem, kLanes * kItem, reinterpret_cast<const char*>(p),
         keys * kItem, kItem, count, seen);
    for (int64_t k = first + 1; causal_ && k < seen; ++k)
      std::fill(x + k * kLanes, x + k * kLanes + std::min(kLanes, k - first), kNothing);
    bool nothing[kLanes], any = false;
    for (int64_t r = 0; r < kLanes; ++r) {
      nothing[r] = true;
      for (int64_t k = 0; nothing[r] && k < seen; ++k) nothing[r] = x[k * kLanes + r] == kNothing;
      any |= nothing[r];
    }
    rows_.short_rows[static_cast<int>(tile::Softmax::softmax)](x, x, nullptr, seen);
    for (int64_t r = 0; any && r < kLanes; ++r)
      for (int64_t k = 0; nothing[r] && k < seen; ++k) x[k * kLanes + r] = T(0);
    move(reinterpret_cast<char*>(p), keys * kItem, kItem, reinterpret_cast<const char*>(x), kItem,
         kLanes * kItem, count, seen);
    for (int64_t r = 0; seen < keys && r < count; ++r)
      std::fill(p + r * keys + seen, p + (r + 1) * keys, T(0));
  }

  const tile::Level& level_;
  const tile::RowKernels& rows_;
  tile::FoldLeaf fold_max_;
  bool causal_;
};

template <class T>
void forward(const Shape& s, const Tensor& qt, const Tensor& kt, const Tensor& vt, const Tensor& mt,
             const Tensor& out, bool causal, double scale) {
  const Matrices q(qt), k(kt), v(vt), mask(mt), o(out);
  const RowSoftmax<T> softmax(s.type, causal);
  each_head(s, 2, [&](int64_t b, int64_t h, void* memory) {
    T* p = static_cast<T*>(memory);
    for (int64_t first = 0; first < s.rows; first += kRows) {
      const int64_t m = std::min(kRows, s.rows - first);
      const int64_t keys = causal ? std::min(s.keys, first + m) : s.keys;
      scores(s, q, k, mask, p, keys, b, h, first, m, keys, scale);
      softmax(p, first, m, keys);
      product(s.type, m, s.value_width, keys, {p, keys, 1},
              {v.at(b, h), v.row_stride, v.col_stride}, o.at(b, h, first), o.row_stride,
              o.col_stride, 1, 0);
    }
  });
}

// In sixteen lanes that meet in a fixed tree.
template <class T>
T dot(const T* a, const T* b, int64_t n) {
  constexpr int kLanes = 16;
  T lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int j = 0; j < kLanes; ++j) lane[j] += a[i + j] * b[i + j];
  for (int j = 0; i < n; ++i, ++j) lane[j] += a[i] * b[i];
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) lane[j] += lane[j + half];
  return lane[0];
}

template <class T>
void backward(const Shape& s, const Tensor& gt, const Tensor& qt, const Tensor& kt,
              const Tensor& vt, const Tensor& mt, const Tensor& dqt, const Tensor& dkt,
              const Tensor& dvt, bool causal, double scale) {
  const Matrices g(gt), q(qt), k(kt), v(vt), mask(mt), dq(dqt), dk(dkt), dv(dvt);
  const RowSoftmax<T> softmax(s.type, causal);
  each_head(s, 5, [&](int64_t b, int64_t h, void* memory) {
    T* p = static_cast<T*>(memory);
    T* dp = p + std::min(kRows, s.rows) * s.keys;
    // Keys that no row sees get zeros from the first block, which covers them all.
    for (int64_t first = 0; first < s.rows; first += kRows) {
      const int64_t m = std::min(kRows, s.rows - first);
      const int64_t keys = causal ? std::min(s.keys, first + m) : s.keys;
      const double beta = first == 0 ? 0 : 1;
      scores(s, q, k, mask, p, keys, b, h, first, m, keys, scale);
      softmax(p, first, m, keys);
      const Operand rows_g{g.at(b, h, first), g.row_stride, g.col_stride};
      // dv += p^T g,  dp = g v^T
      const auto add = [&](const Matrices& to, const T* weights, Operand from, int64_t width) {
        product(s.type, keys, width, m, {weights, 1, keys}, from, to.at(b, h), to.row_stride,
                to.col_stride, 1, beta);
        if (beta == 0 && keys < s.keys)
          for (int64_t r = keys; r < s.keys; ++r)
            for (int64_t c = 0; c < width; ++c)
              reinterpret_cast<T*>(to.at(b, h, r))[c * to.col_stride] = 0;
      };
      add(dv, p, rows_g, s.value_width);
      product(s.type, m, keys, s.value_width, rows_g, {v.at(b, h), v.col_stride, v.row_stride}, dp,
              keys, 1, 1, 0);
      for (int64_t i = 0; i < m; ++i) {
        T* row = p + i * keys;
        const T* d = dp + i * keys;
        const T mean = dot(row, d, keys);
        const T factor = T(scale);
        for (int64_t j = 0; j < keys; ++j) row[j] = row[j] * (d[j] - mean) * factor;
      }
      product(s.type, m, s.width, keys, {p, keys, 1}, {k.at(b, h), k.row_stride, k.col_stride},
              dq.at(b, h, first), dq.row_stride, dq.col_stride, 1, 0);
      add(dk, p, {q.at(b, h, first), q.row_stride, q.col_stride}, s.width);
    }
  });
}

}  // namespace

Tensor fused_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                       const Tensor& attn_mask, bool is_causal, double scale) {
  check_operands("_fused_attention", query, key, value, attn_mask);
  const Shape s = shape_of(query, key, value);
  const Tensor q = computing(query, s.type), k = computing(key, s.type),
               v = computing(value, s.type), m = computing(attn_mask, s.type);
  const Tensor out = heads_inside(query, s.value_width, s.type);
  if (s.type == ScalarType::Float64)
    forward<double>(s, q, k, v, m, out, is_causal, scale);
  else
    forward<float>(s, q, k, v, m, out, is_causal, scale);
  return converted(out, query.dtype());
}

std::tuple<Tensor, Tensor, Tensor> fused_attention_backward(const Tensor& grad_output,
                                                            const Tensor& query, const Tensor& key,
                                                            const Tensor& value,
                                                            const Tensor& attn_mask, bool is_causal,
                                                            double scale) {
  constexpr const char* kName = "_fused_attention_backward";
  check_operands(kName, query, key, value, attn_mask);
  const Shape s = shape_of(query, key, value);
  Sizes sizes(std::span<const int64_t>(query.sizes()));
  sizes.back() = s.value_width;
  LAMINA_CHECK(grad_output.sizes() == sizes, kName, ": the gradient must be of size ", sizes,
               "; got ", grad_output);
  const Tensor g = computing(grad_output, s.type), q = computing(query, s.type),
               k = computing(key, s.type), v = computing(value, s.type),
               m = computing(attn_mask, s.type);
  const Tensor dq = heads_inside(query, s.width, s.type), dk = heads_inside(key, s.width, s.type),
               dv = heads_inside(value, s.value_width, s.type);
  if (s.type == ScalarType::Float64)
    backward<double>(s, g, q, k, v, m, dq, dk, dv, is_causal, scale);
  else
    backward<float>(s, g, q, k, v, m, dq, dk, dv, is_causal, scale);
  return {converted(dq, query.dtype()), converted(dk, key.dtype()), converted(dv, value.dtype())};
}

}  // namespace lamina::kernels
