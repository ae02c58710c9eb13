// Matrix products of the `gemm` workloads and a comparison of the candidates.
//   gemm_bench [threads] [kernel]      kernel: blas, packed, ... forces one
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "lamina/core/error.h"
#include "lamina/core/float_types.h"
#include "lamina/cpu/gemm.h"
#include "lamina/memory/allocator.h"
#include "lamina/queue/parallel.h"

namespace cpu = lamina::cpu;

namespace {

template <class F>
double seconds(F&& call) {
  using Clock = std::chrono::steady_clock;
  const auto timed = [&](int n) {
    const auto start = Clock::now();
    for (int i = 0; i < n; ++i) call();
    return std::chrono::duration<double>(Clock::now() - start).count() / n;
  };
  call();
  const int n = std::max(1, static_cast<int>(0.05 / std::max(timed(1), 1e-8)));
  double best = timed(n);
  for (int round = 1; round < 5; ++round) best = std::min(best, timed(n));
  return best;
}

template <class T>
void product(const char* name, int64_t m, int64_t n, int64_t k, int64_t batch = 1,
             bool transposed_b = false) {
  std::vector<T> a(batch * m * k), b(batch * k * n);
  for (size_t i = 0; i < a.size(); ++i) a[i] = T(static_cast<float>(i % 97) / 97);
  for (size_t i = 0; i < b.size(); ++i) b[i] = T(static_cast<float>(i % 89) / 89);
  cpu::BatchedGemm g;
  g.gemm.m = m, g.gemm.n = n, g.gemm.k = k, g.batch = batch;
  g.gemm.dtype = lamina::scalar_type_of<T>;
  g.gemm.a = a.data(), g.gemm.a_row_stride = k, g.gemm.a_col_stride = 1;
  g.gemm.b = b.data();
  g.gemm.b_row_stride = transposed_b ? 1 : n, g.gemm.b_col_stride = transposed_b ? k : 1;
  g.gemm.c_row_stride = n, g.gemm.c_col_stride = 1;
  g.a_batch_stride = m * k, g.b_batch_stride = k * n, g.c_batch_stride = m * n;
  const size_t bytes = batch * m * n * sizeof(T);
  const double t = seconds([&] {
    void* c = lamina::memory::cpu_allocate(bytes);
    g.gemm.c = c;
    if (batch == 1)
      cpu::gemm(g.gemm);
    else
      cpu::bmm(g);
    lamina::memory::cpu_deallocate(c, bytes);
  });
  std::printf("%-24s %10.2f us %8.1f GFLOP/s\n", name, t * 1e6, 2e-9 * batch * m * n * k / t);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) lamina::queue::set_num_threads(std::atoi(argv[1]));
  if (argc > 2) cpu::force_gemm(argv[2]);
  for (int64_t n : {4, 16, 32, 64, 128, 256, 512, 1024}) {
    char name[32];
    std::snprintf(name, sizeof name, "mm_%d", static_cast<int>(n));
    product<float>(name, n, n, n);
  }
  if (argc <= 2) product<float>("mm_1x768x768", 1, 768, 768);
  product<float>("bmm_64x64x64x64", 64, 64, 64, 64);
  product<float>("linear_128x768x3072", 128, 3072, 768, 1, true);
  product<double>("mm_256_f64", 256, 256, 256);
  product<double>("mm_512_f64", 512, 512, 512);
  if (argc > 2) return 0;
  product<lamina::BFloat16>("mm_512_bf16", 512, 512, 512);
  product<lamina::Half>("mm_512_f16", 512, 512, 512);
  product<int32_t>("mm_256_i32", 256, 256, 256);
  product<int64_t>("mm_256_i64", 256, 256, 256);
  std::printf("%s\n", cpu::blas_name());
}
