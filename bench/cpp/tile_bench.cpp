// The tile machine against hand-written loops, one thread or several:
//   tile_bench [threads]
// Each line: what, microseconds of the machine, microseconds of a plain loop over the same data, their ratio. Both are
// timed in turn and the smallest of many single calls counts, so that a busy machine spoils neither.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "lamina/core/float_types.h"
#include "lamina/queue/parallel.h"
#include "lamina/tile/tile.h"

namespace {

using lamina::BFloat16;
using lamina::ScalarType;
using namespace lamina::tile;

double now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class F, class G>
void compare(const char* what, int64_t elements, F&& machine, G&& plain) {
  const int repeat = elements < 100'000 ? 200 : 1;
  const int rounds = elements < 100'000 ? 200 : 60;
  double best[2] = {1e30, 1e30};
  machine();
  plain();
  for (int r = 0; r < rounds; ++r)
    for (int side = 0; side < 2; ++side) {
      const double start = now();
      for (int k = 0; k < repeat; ++k)
        if (side == 0)
          machine();
        else
          plain();
      best[side] = std::min(best[side], (now() - start) / repeat);
    }
  std::printf("%-28s %10.3f us  loop %10.3f us  ratio %.2f\n", what, best[0], best[1], best[1] / best[0]);
}

void call(Op op, ScalarType compute, std::vector<int64_t> sizes, const Operand& out, std::vector<Operand> ins) {
  run({.program = &one_op(op), .compute = compute, .ndim = static_cast<int>(sizes.size()), .sizes = sizes.data(),
       .outs = &out, .ins = ins.data()});
}

}  // namespace

int main(int argc, char** argv) {
  lamina::queue::set_num_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  std::printf("level %s, %d thread(s)\n", std::string(isa_name()).c_str(), lamina::queue::get_num_threads());
  constexpr int64_t n = 4'000'000;
  constexpr int64_t s = 2000;
  std::vector<float> a(n, 1.5f), b(n, 2.5f), out(n);
  std::vector<BFloat16> h(n, BFloat16(0.5f));
  const ScalarType f32 = ScalarType::Float32;
  const int64_t one[] = {1}, rows[] = {s, 1}, columns[] = {1, s}, broadcast[] = {0, 1}, two[] = {2};
  const auto f = [&](std::vector<float>& v, const int64_t* strides) { return Operand{v.data(), f32, strides}; };

  compare("add, 1 element (run)", 1, [&] { call(Op::add, f32, {1}, f(out, one), {f(a, one), f(b, one)}); },
          [&] { out[0] = a[0] + b[0]; });
  compare("add, 1 element (direct)", 1,
          [&] { direct_loop(Op::add, f32)(out.data(), a.data(), b.data(), nullptr, 1); }, [&] { out[0] = a[0] + b[0]; });
  for (int64_t count : {int64_t{10'000}, n})
    compare(count == n ? "add, 4M" : "add, 10k", count,
            [&] { call(Op::add, f32, {count}, f(out, one), {f(a, one), f(b, one)}); },
            [&] {
              for (int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
            });
  compare("add, every second, 2M", n / 2, [&] { call(Op::add, f32, {n / 2}, f(out, one), {f(a, two), f(b, two)}); },
          [&] {
            for (int64_t i = 0; i < n / 2; ++i) out[i] = a[2 * i] + b[2 * i];
          });
  compare("add, transposed, 2000x2000", n, [&] { call(Op::add, f32, {s, s}, f(out, rows), {f(a, rows), f(b, columns)}); },
          [&] {
            for (int64_t i = 0; i < s; ++i)
              for (int64_t j = 0; j < s; ++j) out[i * s + j] = a[i * s + j] + b[j * s + i];
          });
  compare("add, row broadcast", n, [&] { call(Op::add, f32, {s, s}, f(out, rows), {f(a, rows), f(b, broadcast)}); },
          [&] {
            for (int64_t i = 0; i < s; ++i)
              for (int64_t j = 0; j < s; ++j) out[i * s + j] = a[i * s + j] + b[j];
          });
  const Operand half{h.data(), ScalarType::BFloat16, one};
  compare("add, bfloat16 + float32, 4M", n, [&] { call(Op::add, f32, {n}, f(out, one), {half, f(b, one)}); },
          [&] {
            for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(h[i]) + b[i];
          });
  const int64_t sizes[] = {n};
  compare("float32 to bfloat16, 4M", n, [&] { copy(half, f(a, one), 1, sizes); },
          [&] {
            for (int64_t i = 0; i < n; ++i) h[i] = BFloat16(a[i]);
          });
  compare("exp, 4M", n, [&] { call(Op::exp, f32, {n}, f(out, one), {f(a, one)}); },
          [&] {
            for (int64_t i = 0; i < n; ++i) out[i] = std::exp(a[i]);
          });
  // a * b + a, one program against one fused loop.
  static constexpr Instr fused_code[] = {{Op::mul, 2, 0, 1}, {Op::add, 3, 2, 0}};
  static constexpr RegClass fused_classes[4] = {};
  static constexpr uint8_t fused_outputs[] = {3};
  static constexpr Program fused{.code = fused_code, .classes = fused_classes, .outputs = fused_outputs, .num_instr = 2,
                                 .num_inputs = 2, .num_outputs = 1, .num_registers = 4};
  compare("a * b + a fused, 4M", n,
          [&] {
            const Operand o = f(out, one);
            const Operand ins[] = {f(a, one), f(b, one)};
            run({.program = &fused, .compute = f32, .ndim = 1, .sizes = sizes, .outs = &o, .ins = ins});
          },
          [&] {
            for (int64_t i = 0; i < n; ++i) out[i] = a[i] * b[i] + a[i];
          });
  float sum = 0;
  const bool yes[] = {true};
  compare("sum, 4M", n,
          [&] {
            reduce({.kind = Reduce::sum, .ndim = 1, .sizes = sizes, .reduced = yes, .input = f(a, one),
                    .out = {&sum, f32, one}, .out_index = {}});
          },
          [&] {
            float lanes[32] = {};
            for (int64_t i = 0; i < n; i += 32)
              for (int k = 0; k < 32; ++k) lanes[k] += a[i + k];
            sum = 0;
            for (float l : lanes) sum += l;
          });
  return 0;
}
