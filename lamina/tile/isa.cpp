// Which instruction-set level runs: the best that this machine has, or the one LAMINA_CPU names if
// that is lower.
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "lamina/core/error.h"
#include "lamina/tile/level.h"

namespace lamina::tile {

namespace detail {
constinit const DirectLoop* g_loops = nullptr;
}

namespace {

constinit Level g_levels[3];
constinit bool g_filled[3] = {};
constinit std::atomic<const Level*> g_level{nullptr};
constinit std::atomic<Isa> g_isa{Isa::Baseline};

#define LAMINA_FILL(ns)      \
  do {                       \
    ns::fill_integers(l);    \
    ns::fill_floats(l);      \
    ns::fill_compares(l);    \
    ns::fill_math_float(l);  \
    ns::fill_math_double(l); \
    ns::fill_complex(l);     \
    ns::fill_converts(l);    \
    ns::fill_moves(l);       \
    ns::fill_folds(l);       \
    ns::fill_rows(l);        \
    ns::fill_norms(l);       \
    ns::fill_adam(l);        \
  } while (0)

void fill(Isa level) {
  const int index = static_cast<int>(level);
  if (g_filled[index]) return;
  Level& l = g_levels[index];
  switch (level) {
#ifdef LAMINA_TILE_HAVE_AVX512
    case Isa::Avx512:
      LAMINA_FILL(avx512);
      break;
#endif
#ifdef LAMINA_TILE_HAVE_AVX2
    case Isa::Avx2:
      LAMINA_FILL(avx2);
      break;
#endif
    default:
      LAMINA_FILL(baseline);
      break;
  }
  fill_complex_functions(l);
  fill_scalar_functions(l);
  g_filled[index] = true;
}

std::mutex& choice_mutex() {
  static std::mutex mutex;
  return mutex;
}

void use(Isa level) {
  fill(level);
  const Level* l = &g_levels[static_cast<int>(level)];
  g_isa.store(level, std::memory_order_relaxed);
  g_level.store(l, std::memory_order_release);
  const DirectLoop* loops = l->loops;
  __atomic_store_n(&detail::g_loops, loops, __ATOMIC_RELEASE);
}

Isa best_level() {
  Isa limit = Isa::Avx512;
  if (const char* forced = std::getenv("LAMINA_CPU")) {
    const std::string_view name = forced;
    if (name == "baseline") limit = Isa::Baseline;
    if (name == "avx2") limit = Isa::Avx2;
  }
  for (Isa level : {Isa::Avx512, Isa::Avx2})
    if (level <= limit && isa_available(level)) return level;
  return Isa::Baseline;
}

}  // namespace

const DirectLoop* detail::choose_loops() {
  std::lock_guard lock(choice_mutex());
  if (!g_level.load(std::memory_order_acquire)) use(best_level());
  return g_level.load(std::memory_order_relaxed)->loops;
}

const Level& level() {
  const Level* l = g_level.load(std::memory_order_acquire);
  if (!l) [[unlikely]] {
    detail::choose_loops();
    l = g_level.load(std::memory_order_acquire);
  }
  return *l;
}

Isa isa() {
  level();
  return g_isa.load(std::memory_order_relaxed);
}

std::string_view isa_name() {
  switch (isa()) {
    case Isa::Avx512:
      return "avx512";
    case Isa::Avx2:
      return "avx2";
    default:
      return "baseline";
  }
}

bool isa_available(Isa level) {
  switch (level) {
#if defined(LAMINA_TILE_HAVE_AVX2)
    case Isa::Avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi2");
#endif
#if defined(LAMINA_TILE_HAVE_AVX512)
    case Isa::Avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512cd") && isa_available(Isa::Avx2);
#endif
    case Isa::Baseline:
      return true;
    default:
      return false;
  }
}

bool set_isa(Isa level) {
  if (!isa_available(level)) return false;
  std::lock_guard lock(choice_mutex());
  use(level);
  return true;
}

void raise_zero_division() { raise(ErrorKind::Runtime, "ZeroDivisionError"); }

}  // namespace lamina::tile
