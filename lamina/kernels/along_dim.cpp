// Kernels along one dimension: extrema with index, scans, softmax, sort.
#include "lamina/core/error.h"
#include "lamina/cpu/sort.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/tile/tile.h"

namespace lamina::kernels {

namespace {

tile::Operand operand(const Tensor& t) { return {t.data(), t.dtype(), t.strides().data()}; }

// A tensor without dimensions as one of one element.

void extremum(tile::Reduce kind, const Tensor& values, const Tensor& indices, const Tensor& self,
              int64_t dim, bool keepdim) {
  const Tensor in = at_least_1d(self);
  const int64_t d = wrap_dim(dim, self.dim(), "max");
  bool reduced[tile::kMaxDims] = {};
  reduced[d] = true;
  Sizes value_strides(in.dim(), 0), index_strides(in.dim(), 0);
  int64_t at = 0;
  for (int64_t i = 0; i < in.dim(); ++i) {
    if (i != d && self.dim() > 0) {
      value_strides[i] = values.strides()[at];
      index_strides[i] = indices.strides()[at];
    }
    if (i != d || keepdim) ++at;
  }
  tile::reduce({.kind = kind,
                .accumulate = compute_type(self.dtype()),
                .ndim = static_cast<int>(in.dim()),
                .sizes = in.sizes().data(),
                .reduced = reduced,
                .input = operand(in),
                .out = {values.data(), values.dtype(), value_strides.data()},
                .out_index = {indices.data(), ScalarType::Int64, index_strides.data()}});
}

void scan(tile::Scan kind, const Tensor& result, const Tensor& self, int64_t dim,
          const Tensor& indices = {}) {
  const Tensor in = at_least_1d(self), out = at_least_1d(result),
               index = indices.defined() ? at_least_1d(indices) : Tensor();
  tile::scan({.kind = kind,
              .accumulate = compute_type(result.dtype()),
              .ndim = static_cast<int>(in.dim()),
              .sizes = in.sizes().data(),
              .dim = static_cast<int>(wrap_dim(dim, self.dim(), "cumsum")),
              .input = operand(in),
              .out = operand(out),
              .out_index = index.defined() ? operand(index) : tile::Operand{}});
}

void run_softmax(tile::Softmax kind, const Tensor& result, const Tensor& first,
                 const Tensor& second, int64_t dim) {
  const Tensor out = at_least_1d(result), a = at_least_1d(first),
               b = second.defined() ? at_least_1d(second) : Tensor();
  tile::softmax({.kind = kind,
                 .accumulate = compute_type(first.dtype()),
                 .ndim = static_cast<int>(out.dim()),
                 .sizes = out.sizes().data(),
                 .dim = static_cast<int>(wrap_dim(dim, result.dim(), "softmax")),
                 .out = operand(out),
                 .in0 = operand(a),
                 .in1 = b.defined() ? operand(b) : tile::Operand{}});
}

// Rows along `dim` of a contiguous work copy with that dimension last.
template <class F>
void by_rows(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim,
             int64_t out_length, F&& f) {
  const Tensor in = at_least_1d(self);
  const int64_t d = wrap_dim(dim, self.dim(), "sort");
  const Tensor rows = contiguous_values(kernels::transpose(in, d, -1));
  const int64_t n = rows.size(-1);
  const int64_t count = n == 0 ? 0 : rows.numel() / n;
  Sizes out_sizes{std::span<const int64_t>(rows.sizes())};
  out_sizes.back() = out_length;
  const Tensor v = empty_contiguous(out_sizes, values.dtype(), kCpu),
               i = empty_contiguous(out_sizes, ScalarType::Int64, kCpu);
  if (count > 0) f(v.data(), i.data_as<int64_t>(), rows.data(), count, n);
  copy_values(at_least_1d(values), kernels::transpose(v, d, -1));
  copy_values(at_least_1d(indices), kernels::transpose(i, d, -1));
}

}  // namespace

void max_dim(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim,
             bool keepdim) {
  extremum(tile::Reduce::max_index, values, indices, self, dim, keepdim);
}
void min_dim(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim,
             bool keepdim) {
  extremum(tile::Reduce::min_index, values, indices, self, dim, keepdim);
}

void cumsum(const Tensor& result, const Tensor& self, int64_t dim, std::optional<ScalarType>) {
  scan(tile::Scan::cumsum, result, self, dim);
}
void cumprod(const Tensor& result, const Tensor& self, int64_t dim, std::optional<ScalarType>) {
  scan(tile::Scan::cumprod, result, self, dim);
}

void cummax(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim) {
  scan(tile::Scan::cummax, values, self, dim, indices);
}
void cummin(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim) {
  scan(tile::Scan::cummin, values, self, dim, indices);
}
void logcumsumexp(const Tensor& result, const Tensor& self, int64_t dim) {
  scan(tile::Scan::logcumsumexp, result, self, dim);
}

void softmax(const Tensor& result, const Tensor& self, int64_t dim, bool) {
  run_softmax(tile::Softmax::softmax, result, self, {}, dim);
}
void log_softmax(const Tensor& result, const Tensor& self, int64_t dim, bool) {
  run_softmax(tile::Softmax::log_softmax, result, self, {}, dim);
}
void softmax_backward(const Tensor& result, const Tensor& grad_output, const Tensor& output,
                      int64_t dim) {
  run_softmax(tile::Softmax::softmax_backward, result, grad_output, output, dim);
}
void log_softmax_backward(const Tensor& result, const Tensor& grad_output, const Tensor& output,
                          int64_t dim) {
  run_softmax(tile::Softmax::log_softmax_backward, result, grad_output, output, dim);
}

void sort(const Tensor& values, const Tensor& indices, const Tensor& self, std::optional<bool>,
          int64_t dim, bool descending) {
  const int64_t n = self.dim() == 0 ? 1 : self.size(dim);
  by_rows(values, indices, self, dim, n,
          [&](void* v, int64_t* i, const void* in, int64_t rows, int64_t length) {
            cpu::sort_rows(v, i, in, rows, length, length, 1, self.dtype(), descending);
          });
}

void topk(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t k, int64_t dim,
          bool largest, bool) {
  if (self.dim() == 0) k = 1;  // a number has one element, whatever is asked for
  by_rows(values, indices, self, dim, k,
          [&](void* v, int64_t* i, const void* in, int64_t rows, int64_t length) {
            cpu::topk_rows(v, i, in, rows, length, k, length, 1, self.dtype(), largest);
          });
}

}  // namespace lamina::kernels
