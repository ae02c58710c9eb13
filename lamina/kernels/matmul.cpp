// Products of vectors and matrices, by cpu/gemm.
#include "lamina/core/error.h"
#include "lamina/cpu/gemm.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"

namespace lamina::kernels {

namespace {

cpu::Gemm gemm_of(const Tensor& c, const Tensor& a, const Tensor& b, int64_t first) {
  cpu::Gemm g;
  g.m = a.sizes()[first];
  g.k = a.sizes()[first + 1];
  g.n = b.sizes()[first + 1];
  g.a = a.data();
  g.a_row_stride = a.strides()[first];
  g.a_col_stride = a.strides()[first + 1];
  g.b = b.data();
  g.b_row_stride = b.strides()[first];
  g.b_col_stride = b.strides()[first + 1];
  g.c = c.data();
  g.c_row_stride = c.strides()[first];
  g.c_col_stride = c.strides()[first + 1];
  g.dtype = c.dtype();
  return g;
}

void check_types(const Scalar& beta, const Scalar& alpha, ScalarType dtype, const char* op) {
  for (const Scalar& s : {beta, alpha}) {
    LAMINA_CHECK(!is_integral(dtype, true) || s.is_integral() || s.is_bool(), op,
                 ": For integral input tensors, argument alpha and beta must not be floating point "
                 "numbers.");
    LAMINA_CHECK(
        is_complex(dtype) || !s.is_complex(), op,
        ": For non-complex input tensors, argument alpha and beta must not be complex numbers.");
  }
}

void check_matmul_type(const Tensor& t, const char* op) {
  LAMINA_CHECK_IMPLEMENTED(!is_bool(t.dtype()) && !is_float8(t.dtype()), "\"", op,
                           "\" not implemented for '", legacy_name(t.dtype()), "'");
}

// Puts beta * self, broadcast, where the product will be added; returns the beta for the product.
Scalar prepare_sum(const Tensor& result, const Tensor& self, const Scalar& beta) {
  if (beta.equals(0)) return 0;
  copy_values(result, self);
  return beta;
}

}  // namespace

void mm(const Tensor& result, const Tensor& self, const Tensor& mat2) {
  check_matmul_type(self, "addmm_impl_cpu_");
  cpu::gemm(gemm_of(result, self, mat2, 0));
}

void addmm(const Tensor& result, const Tensor& self, const Tensor& mat1, const Tensor& mat2,
           const Scalar& beta, const Scalar& alpha) {
  check_types(beta, alpha, result.dtype(), "addmm");
  check_matmul_type(self, "addmm_impl_cpu_");
  cpu::Gemm g = gemm_of(result, mat1, mat2, 0);
  g.alpha = alpha;
  g.beta = prepare_sum(result, self, beta);
  cpu::gemm(g);
}

namespace {
cpu::BatchedGemm batched(const Tensor& c, const Tensor& a, const Tensor& b) {
  return {.gemm = gemm_of(c, a, b, 1),
          .batch = a.sizes()[0],
          .a_batch_stride = a.strides()[0],
          .b_batch_stride = b.strides()[0],
          .c_batch_stride = c.strides()[0]};
}
}  // namespace

void bmm(const Tensor& result, const Tensor& self, const Tensor& mat2) {
  check_matmul_type(self, "bmm");
  cpu::bmm(batched(result, self, mat2));
}

void baddbmm(const Tensor& result, const Tensor& self, const Tensor& batch1, const Tensor& batch2,
             const Scalar& beta, const Scalar& alpha) {
  check_matmul_type(self, "baddbmm");
  cpu::BatchedGemm g = batched(result, batch1, batch2);
  g.gemm.alpha = alpha;
  g.gemm.beta = prepare_sum(result, self, beta);
  cpu::bmm(g);
}

namespace {
cpu::Gemv gemv_of(const Tensor& y, const Tensor& a, const Tensor& x) {
  return {.m = a.sizes()[0],
          .n = a.sizes()[1],
          .a = a.data(),
          .a_row_stride = a.strides()[0],
          .a_col_stride = a.strides()[1],
          .x = x.data(),
          .x_stride = x.strides()[0],
          .y = y.data(),
          .y_stride = y.strides()[0],
          .alpha = 1,
          .beta = 0,
          .dtype = y.dtype()};
}
}  // namespace

void mv(const Tensor& result, const Tensor& self, const Tensor& vec) {
  check_matmul_type(self, "addmv_impl_cpu");
  cpu::gemv(gemv_of(result, self, vec));
}

void addmv(const Tensor& result, const Tensor& self, const Tensor& mat, const Tensor& vec,
           const Scalar& beta, const Scalar& alpha) {
  check_matmul_type(self, "addmv_impl_cpu");
  cpu::Gemv g = gemv_of(result, mat, vec);
  g.alpha = alpha;
  g.beta = prepare_sum(result, self, beta);
  cpu::gemv(g);
}

void dot(const Tensor& result, const Tensor& self, const Tensor& tensor) {
  check_matmul_type(self, "dot");
  cpu::dot(self.numel(), self.data(), self.strides()[0], tensor.data(), tensor.strides()[0],
           result.data(), self.dtype());
}

void vdot(const Tensor& result, const Tensor& self, const Tensor& other) {
  check_matmul_type(self, "vdot");
  cpu::dot(self.numel(), self.data(), self.strides()[0], other.data(), other.strides()[0],
           result.data(), self.dtype(), true);
}

}  // namespace lamina::kernels
