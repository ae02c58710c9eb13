// Cuts a product into packed panels and blocks of C, and runs them in parallel.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "lamina/cpu/packed.h"
#include "lamina/cpu/scratch.h"
#include "lamina/queue/parallel.h"

namespace lamina::cpu {
namespace {

// What is packed at once: at most 32 MiB of floats for each operand.
constexpr int64_t kOuterM = 4032, kOuterN = 4096, kOuterK = 8 * kPackedKc;
constexpr int64_t kBlockRows = 96;       // a block's piece of A fits the second cache
constexpr int64_t kBlockWork = 1 << 20;  // multiply-adds that are worth a chunk of a parallel loop
constexpr int64_t kWantedBlocks = 16;
constexpr int64_t kPackLanes =
    252;  // packed in one chunk: a multiple of 6 and 12; rounded up for 16 and 32
constexpr int64_t kPackSerially = 32 * 1024;
constexpr int64_t kFewRows =
    2 * kBlockRows;  // up to here B is used too little to be packed as a whole
constexpr int64_t kLocalCols = 128;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

const char* at(const void* base, int64_t elements, size_t item) {
  return static_cast<const char*>(base) + elements * static_cast<int64_t>(item);
}
char* at(void* base, int64_t elements, size_t item) {
  return static_cast<char*>(base) + elements * static_cast<int64_t>(item);
}

// One operand: `lanes` rows of A or columns of B.
struct Side {
  const void* data;
  int64_t lanes, lane_stride, k_stride;
  int width;
  int64_t padded, group;
  void* panels;

  Side(const void* d, int64_t l, int64_t ls, int64_t ks, int w)
      : data(d),
        lanes(l),
        lane_stride(ls),
        k_stride(ks),
        width(w),
        padded(round_up(l, w)),
        group(round_up(kPackLanes, w)),
        panels(nullptr) {}
  int64_t groups() const { return ceil_div(lanes, group); }
  // Task t packs one group of lanes for one piece of k (elements).
  void pack(const PackedKernels& kernels, ScalarType type, int64_t k, int64_t t) const {
    const int64_t piece = t / groups(), lane = t % groups() * group;
    const int64_t k0 = piece * kPackedKc * kernels.depth;
    const int64_t length = std::min(kPackedKc * kernels.depth, k - k0);
    const int64_t items = ceil_div(length, kernels.depth);
    kernels.pack(at(panels, piece * kPackedKc * padded + lane * items, kernels.item),
                 at(data, lane * lane_stride + k0 * k_stride, item_size(type)), type,
                 std::min(group, lanes - lane), length, lane_stride, k_stride, width);
  }
};

struct Target {
  void* c;
  int64_t stride;
  Scalar alpha, beta;
};

// Few rows, many columns: each chunk packs its columns of B piece by piece into memory that stays
// in its cache.
void multiply_few_rows(const PackedKernels& kernels, const Gemm& g, const Target& target,
                       void* a_panels) {
  Side a(g.a, g.m, g.a_row_stride, g.a_col_stride, kernels.mr);
  a.panels = a_panels;
  const int64_t step = kPackedKc * kernels.depth;
  const int64_t a_tasks = a.groups() * ceil_div(g.k, step);
  queue::parallel_for(0, a_tasks, g.m * g.k <= kPackSerially ? a_tasks : 1,
                      [&](int64_t begin, int64_t end) {
                        for (int64_t t = begin; t < end; ++t) a.pack(kernels, g.dtype, g.k, t);
                      });
  queue::parallel_for(0, g.n, kLocalCols, [&](int64_t begin, int64_t end) {
    const Scratch scratch(static_cast<size_t>(kPackedKc * kLocalCols) * kernels.item);
    for (int64_t j = begin; j < end; j += kLocalCols) {
      const int64_t cols = std::min(kLocalCols, end - j);
      for (int64_t k0 = 0; k0 < g.k; k0 += step) {
        const int64_t length = std::min(step, g.k - k0);
        PackedBlock block;
        block.k = ceil_div(length, kernels.depth);
        kernels.pack(scratch.get(),
                     at(g.b, k0 * g.b_row_stride + j * g.b_col_stride, item_size(g.dtype)), g.dtype,
                     cols, length, g.b_col_stride, g.b_row_stride, kernels.nr);
        block.a = at(a.panels, k0 / kernels.depth * a.padded, kernels.item);
        block.b = scratch.get();
        block.c = at(target.c, j, kernels.item);
        block.c_stride = target.stride;
        block.rows = g.m;
        block.cols = cols;
        block.alpha = target.alpha;
        block.beta = k0 == 0 ? target.beta : Scalar(1);
        kernels.block(block);
      }
    }
  });
}

void multiply(const PackedKernels& kernels, const Gemm& g, const Target& target, void* a_panels,
              void* b_panels) {
  if (g.m <= kFewRows && g.n >= 2 * kLocalCols)
    return multiply_few_rows(kernels, g, target, a_panels);
  Side a(g.a, g.m, g.a_row_stride, g.a_col_stride, kernels.mr);
  Side b(g.b, g.n, g.b_col_stride, g.b_row_stride, kernels.nr);
  a.panels = a_panels;
  b.panels = b_panels;
  const int64_t pieces = ceil_div(g.k, kPackedKc * kernels.depth);
  const int64_t a_tasks = a.groups() * pieces, tasks = a_tasks + b.groups() * pieces;
  const int64_t pack_grain = (g.m + g.n) * g.k <= kPackSerially ? tasks : 1;
  queue::parallel_for(0, tasks, pack_grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      if (t < a_tasks)
        a.pack(kernels, g.dtype, g.k, t);
      else
        b.pack(kernels, g.dtype, g.k, t - a_tasks);
    }
  });

  const int64_t rows = round_up(ceil_div(g.m, ceil_div(g.m, kBlockRows)), kernels.mr);
  const int64_t row_blocks = ceil_div(g.m, rows);
  const int64_t wanted = std::min({ceil_div(kWantedBlocks, row_blocks), ceil_div(g.n, 64),
                                   g.m * g.n * g.k / kBlockWork / row_blocks});
  const int64_t cols = round_up(ceil_div(g.n, std::max<int64_t>(wanted, 1)), kernels.nr);
  const int64_t col_blocks = ceil_div(g.n, cols), blocks = row_blocks * col_blocks;
  const int64_t work = std::max<int64_t>(rows * std::min(cols, g.n) * g.k, 1);
  queue::parallel_for(0, blocks, ceil_div(kBlockWork / 2, work), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      PackedBlock block;
      block.row = t % row_blocks * rows;
      block.col = t / row_blocks * cols;
      block.a = a.panels;
      block.b = b.panels;
      block.a_piece = kPackedKc * a.padded;
      block.b_piece = kPackedKc * b.padded;
      block.k = ceil_div(g.k, kernels.depth);
      block.c = at(target.c, block.row * target.stride + block.col, kernels.item);
      block.c_stride = target.stride;
      block.rows = std::min(rows, g.m - block.row);
      block.cols = std::min(cols, g.n - block.col);
      block.alpha = target.alpha;
      block.beta = target.beta;
      kernels.block(block);
    }
  });
}

const PackedLevel& pick_level() {
#if defined(__x86_64__)
  const char* wish = std::getenv("LAMINA_CPU");
  const bool baseline = wish && !std::strcmp(wish, "baseline");
  const bool only_avx2 = wish && !std::strcmp(wish, "avx2");
  __builtin_cpu_init();
  if (!baseline && !only_avx2 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return packed_avx512::kLevel;
  if (!baseline && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c"))
    return packed_avx2::kLevel;
#endif
  return packed_baseline::kLevel;
}

}  // namespace

const PackedLevel& packed_level() {
  static const PackedLevel& level = pick_level();
  return level;
}

const PackedKernels& packed_kernels(ScalarType type, const char** name) {
#if defined(__x86_64__)
  // GCC 12 knows the feature by this name only.
  static const bool pairs =
      &packed_level() == &packed_avx512::kLevel && __builtin_cpu_supports("avx512bf16");
  if (pairs && type == ScalarType::BFloat16) {
    if (name) *name = "avx512_bf16";
    return packed_pairs::kPairs;
  }
#endif
  if (name) *name = packed_level().name;
  return packed_level().kernels[packed_type(type)];
}

int packed_type(ScalarType type) {
  switch (type) {
    case ScalarType::Float32:
    case ScalarType::Float16:
    case ScalarType::BFloat16:
      return kPackedFloat;
    case ScalarType::Float64:
      return kPackedDouble;
    case ScalarType::Int64:
    case ScalarType::UInt64:
      return kPackedInt64;
    default:
      return is_integral(type, true) ? kPackedInt32 : -1;
  }
}

void run_packed(const Gemm& whole) {
  Gemm g = whole;
  if (g.c_col_stride != 1 &&
      g.c_row_stride == 1) {  // work on the transpose, whose rows are adjacent
    std::swap(g.m, g.n);
    std::swap(g.a, g.b);
    std::swap(g.a_row_stride, g.b_col_stride);
    std::swap(g.a_col_stride, g.b_row_stride);
    std::swap(g.c_row_stride, g.c_col_stride);
  }
  const PackedKernels& kernels = packed_kernels(g.dtype);
  const size_t item = item_size(g.dtype);
  const bool same_type = is_complex(g.dtype) || (item == kernels.item);
  const bool direct = same_type && g.c_col_stride == 1;
  const int64_t m = std::min(g.m, kOuterM), n = std::min(g.n, kOuterN);
  const int64_t k = std::min(g.k, kOuterK * kernels.depth), items = ceil_div(k, kernels.depth);
  const Scratch a(bytes_of(round_up(m, kernels.mr) * items, kernels.item));
  const Scratch b(bytes_of(round_up(n, kernels.nr) * items, kernels.item));
  const Scratch work(direct ? 0 : bytes_of(m * n, kernels.item));
  for (int64_t i = 0; i < g.m; i += m) {
    for (int64_t j = 0; j < g.n; j += n) {
      const int64_t rows = std::min(m, g.m - i), cols = std::min(n, g.n - j);
      char* c = at(g.c, i * g.c_row_stride + j * g.c_col_stride, item);
      for (int64_t p = 0; p < g.k; p += k) {
        Gemm part = g;
        part.m = rows;
        part.n = cols;
        part.k = std::min(k, g.k - p);
        part.a = at(g.a, i * g.a_row_stride + p * g.a_col_stride, item);
        part.b = at(g.b, p * g.b_row_stride + j * g.b_col_stride, item);
        const Target target = direct
                                  ? Target{c, g.c_row_stride, g.alpha, p == 0 ? g.beta : Scalar(1)}
                                  : Target{work.get(), n, 1, p == 0 ? Scalar(0) : Scalar(1)};
        multiply(kernels, part, target, a.get(), b.get());
      }
      if (!direct) {
        const int64_t grain = std::max<int64_t>(1, 65536 / cols);
        queue::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
          kernels.finish(at(c, begin * g.c_row_stride, item), g.dtype, g.c_row_stride,
                         g.c_col_stride, at(work.get(), begin * n, kernels.item), n, end - begin,
                         cols, g.alpha, g.beta);
        });
      }
    }
  }
}

namespace {
// From where on a product is no small one: B no longer stays in the second cache while A passes by.
constexpr double kSmallWork = 1 << 20;
}  // namespace

bool small_accepts(const Gemm& g, const char** reason) {
  if (g.dtype != ScalarType::Float32 && g.dtype != ScalarType::Float64) {
    *reason = "small products are for float32 and float64";
    return false;
  }
  if (g.k > kSmallK || double(g.m) * double(g.n) * double(g.k) > kSmallWork) {
    *reason = "not a small product";
    return false;
  }
  if (g.m < 4 || g.n < 8) {
    *reason = "too few rows or columns for a tile of registers";
    return false;
  }
  if (g.c_col_stride != 1 && g.c_row_stride != 1) {
    *reason = "neither rows nor columns of the result are adjacent";
    return false;
  }
  return true;
}

void run_small(const Gemm& g) {
  const PackedKernels& kernels = packed_level().kernels[packed_type(g.dtype)];
  SmallProduct p{.m = g.m,
                 .n = g.n,
                 .k = g.k,
                 .a = g.a,
                 .a_row_stride = g.a_row_stride,
                 .a_col_stride = g.a_col_stride,
                 .b = g.b,
                 .b_row_stride = g.b_row_stride,
                 .b_col_stride = g.b_col_stride,
                 .c = g.c,
                 .c_row_stride = g.c_row_stride,
                 .alpha = g.alpha,
                 .beta = g.beta};
  if (g.c_col_stride != 1) {  // C^T = B^T A^T
    std::swap(p.m, p.n);
    std::swap(p.a, p.b);
    p.a_row_stride = g.b_col_stride;
    p.a_col_stride = g.b_row_stride;
    p.b_row_stride = g.a_col_stride;
    p.b_col_stride = g.a_row_stride;
    p.c_row_stride = g.c_col_stride;
  }
  kernels.small(p);
}

}  // namespace lamina::cpu
