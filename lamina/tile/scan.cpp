// Cumulative sums, products, extremes along one dimension.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lamina/core/error.h"
#include "lamina/core/float_types.h"
#include "lamina/queue/parallel.h"
#include "lamina/tile/along.h"
#include "lamina/tile/plan.h"

namespace lamina::tile {

namespace {

constexpr int64_t kMembers = 64;  // positions scanned side by side, at most
constexpr int64_t kPiece = 64;    // elements of the scanned dimension per conversion

// Sums of floats are carried in double.
template <class T>
struct CarryOf {
  using type = T;
};
template <>
struct CarryOf<float> {
  using type = double;
};
template <>
struct CarryOf<std::complex<float>> {
  using type = std::complex<double>;
};

template <class T>
T wrapping(T a, T b, Scan kind) {
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<uint64_t>(a);
    const auto y = static_cast<uint64_t>(b);
    return static_cast<T>(kind == Scan::cumsum ? x + y : x * y);
  } else {
    return kind == Scan::cumsum ? a + b : a * b;
  }
}

// carry[g] runs along i; x and out have byte strides `member` between positions and `step` along
// the dimension.
template <class T, Scan kind, int kFixed>
void run_sums(char* out, int64_t out_member, int64_t out_step, const char* in, int64_t in_member,
              int64_t in_step, int64_t members, int64_t n, void* carry_v) {
  using C = typename CarryOf<T>::type;
  auto* carry_out = static_cast<C*>(carry_v);
  const int64_t g_end = kFixed ? kFixed : members;
  C carry[kFixed ? kFixed : kMembers];
  std::copy_n(carry_out, g_end, carry);
  for (int64_t i = 0; i < n; ++i) {
    const char* x = in + i * in_step;
    char* o = out + i * out_step;
#pragma GCC ivdep
    for (int64_t g = 0; g < g_end; ++g) {
      carry[g] = wrapping(carry[g], C(*reinterpret_cast<const T*>(x + g * in_member)), kind);
      *reinterpret_cast<T*>(o + g * out_member) = static_cast<T>(carry[g]);
    }
  }
  std::copy_n(carry, g_end, carry_out);
}

template <class T, Scan kind>
void sums(char* out, int64_t out_member, int64_t out_step, const char* in, int64_t in_member,
          int64_t in_step, int64_t members, int64_t n, void* carry) {
  constexpr int64_t S = sizeof(T);
  if (in_member == S && out_member == S && members > 8)
    return run_sums<T, kind, 0>(out, S, out_step, in, S, in_step, members, n, carry);
  auto* c = static_cast<typename CarryOf<T>::type*>(carry);
  int64_t g = 0;
  // Eight independent chains hide the latency of the additions.
  for (; g + 8 <= members; g += 8) {
    if (in_step == S && out_step == S)
      run_sums<T, kind, 8>(out + g * out_member, out_member, S, in + g * in_member, in_member, S, 8,
                           n, c + g);
    else
      run_sums<T, kind, 8>(out + g * out_member, out_member, out_step, in + g * in_member,
                           in_member, in_step, 8, n, c + g);
  }
  if (g < members)
    run_sums<T, kind, 0>(out + g * out_member, out_member, out_step, in + g * in_member, in_member,
                         in_step, members - g, n, c + g);
}

template <class T>
struct Extreme {
  T value;
  int64_t index;
};

// A later equal value replaces an earlier one; a NaN replaces all.
template <class T, bool kMax>
void extremes(char* out, int64_t out_member, int64_t out_step, char* index, int64_t index_member,
              int64_t index_step, const char* in, int64_t in_member, int64_t in_step,
              int64_t members, int64_t begin, int64_t n, void* carry_v) {
  auto* carry = static_cast<Extreme<T>*>(carry_v);
  for (int64_t g = 0; g < members; ++g) {
    Extreme<T> best = carry[g];
    for (int64_t i = 0; i < n; ++i) {
      const T v = *reinterpret_cast<const T*>(in + g * in_member + i * in_step);
      const bool better = v != v || (kMax ? v >= best.value : v <= best.value) || begin + i == 0;
      if (better) best = {v, begin + i};
      *reinterpret_cast<T*>(out + g * out_member + i * out_step) = best.value;
      *reinterpret_cast<int64_t*>(index + g * index_member + i * index_step) = best.index;
    }
    carry[g] = best;
  }
}

template <class T>
void log_sums(char* out, int64_t out_member, int64_t out_step, const char* in, int64_t in_member,
              int64_t in_step, int64_t members, int64_t n, void* carry_v) {
  auto* carry = static_cast<double*>(carry_v);
  for (int64_t g = 0; g < members; ++g) {
    double sum = carry[g];
    for (int64_t i = 0; i < n; ++i) {
      const double v = *reinterpret_cast<const T*>(in + g * in_member + i * in_step);
      const double top = v > sum ? v : sum;
      if (v == sum && std::isinf(v)) {
      } else {
        sum = top + std::log1p(std::exp(-std::fabs(v - sum)));
      }
      *reinterpret_cast<T*>(out + g * out_member + i * out_step) = static_cast<T>(sum);
    }
    carry[g] = sum;
  }
}

template <class T>
void run_piece(const ScanCall& call, char* out, int64_t out_member, int64_t out_step, char* index,
               int64_t index_member, int64_t index_step, const char* in, int64_t in_member,
               int64_t in_step, int64_t members, int64_t begin, int64_t n, void* carry) {
  constexpr bool kSums = std::is_same_v<T, int64_t> || std::is_same_v<T, float> ||
                         std::is_same_v<T, double> || is_complex_type<T>;
  switch (call.kind) {
    case Scan::cumsum:
      if constexpr (kSums)
        sums<T, Scan::cumsum>(out, out_member, out_step, in, in_member, in_step, members, n, carry);
      break;
    case Scan::cumprod:
      if constexpr (kSums)
        sums<T, Scan::cumprod>(out, out_member, out_step, in, in_member, in_step, members, n,
                               carry);
      break;
    case Scan::logcumsumexp:
      if constexpr (std::is_floating_point_v<T>)
        log_sums<T>(out, out_member, out_step, in, in_member, in_step, members, n, carry);
      break;
    case Scan::cummax:
    case Scan::cummin:
      if constexpr (!is_complex_type<T>) {
        if (call.kind == Scan::cummax)
          extremes<T, true>(out, out_member, out_step, index, index_member, index_step, in,
                            in_member, in_step, members, begin, n, carry);
        else
          extremes<T, false>(out, out_member, out_step, index, index_member, index_step, in,
                             in_member, in_step, members, begin, n, carry);
      }
      break;
  }
}

template <class T>
void start_carry(Scan kind, void* carry, int64_t members) {
  using C = typename CarryOf<T>::type;
  for (int64_t g = 0; g < members; ++g) {
    if (kind == Scan::logcumsumexp)
      static_cast<double*>(carry)[g] = -std::numeric_limits<double>::infinity();
    else if (kind == Scan::cumsum || kind == Scan::cumprod)
      static_cast<C*>(carry)[g] = C(kind == Scan::cumprod ? 1 : 0);
    else
      static_cast<Extreme<T>*>(carry)[g] = {T(0), 0};
  }
}

template <class T>
void run_groups(const ScanCall& call, const Along& a, ScalarType type) {
  const Level& l = level();
  constexpr int64_t S = sizeof(T);
  const bool direct_in = call.input.dtype == type;
  const bool direct_out = call.out.dtype == type;
  const auto magnitude = [](int64_t v) { return v < 0 ? -v : v; };
  const bool along_is_fast = a.ndim == 0 || magnitude(a.step[0]) <= magnitude(a.stride[0][0]);
  const int64_t group = along_is_fast ? 8 : kMembers;
  const int64_t grain =
      std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, group * a.length));
  queue::parallel_for(0, a.num_groups(group), grain, [&](int64_t b, int64_t e) {
    alignas(64) char carry[kMembers * 32];
    alignas(64) char raw[kMembers * kPiece * 16];
    alignas(64) char x_room[kMembers * kPiece * S];
    alignas(64) char y_room[kMembers * kPiece * S];
    for (int64_t task = b; task < e; ++task) {
      int64_t first, members;
      a.group_at(task, group, first, members);
      start_carry<T>(call.kind, carry, members);
      char* out = a.at(0, first);
      const char* in = a.at(1, first);
      char* index = a.base[2] ? a.at(2, first) : nullptr;
      const int64_t piece = direct_in && direct_out ? a.length : kPiece;
      for (int64_t i = 0; i < a.length; i += piece) {
        const int64_t n = std::min(piece, a.length - i);
        const char* x = in + i * a.step[1];
        int64_t x_member = a.stride[0][1];
        int64_t x_step = a.step[1];
        if (!direct_in) {
          l.move[size_index(a.item[1])](raw, n * a.item[1], a.item[1], x, x_member, x_step, members,
                                        n);
          convert_block(l, x_room, memory_slot(type), raw, memory_slot(call.input.dtype),
                        members * n);
          x = x_room;
          x_member = n * S;
          x_step = S;
        }
        char* y = direct_out ? out + i * a.step[0] : y_room;
        const int64_t y_member = direct_out ? a.stride[0][0] : n * S;
        const int64_t y_step = direct_out ? a.step[0] : S;
        run_piece<T>(call, y, y_member, y_step, index ? index + i * a.step[2] : nullptr,
                     a.stride[0][2], a.step[2], x, x_member, x_step, members, i, n, carry);
        if (!direct_out) {
          convert_block(l, raw, memory_slot(call.out.dtype), y_room, memory_slot(type),
                        members * n);
          l.move[size_index(a.item[0])](out + i * a.step[0], a.stride[0][0], a.step[0], raw,
                                        n * a.item[0], a.item[0], members, n);
        }
      }
    }
  });
}

}  // namespace

void scan(const ScanCall& call) {
  ScalarType type = compute_type(call.accumulate);
  const bool sums_up = call.kind == Scan::cumsum || call.kind == Scan::cumprod;
  if (sums_up && is_integral(type, true)) type = ScalarType::Int64;
  LAMINA_INTERNAL_CHECK(sums_up || !is_complex(type), "scan of complex values has no order");
  LAMINA_INTERNAL_CHECK(call.kind != Scan::logcumsumexp || is_floating(type));
  const Operand operands[] = {call.out, call.input, call.out_index};
  const Along along(call.ndim, call.sizes, call.dim, operands);
  if (along.count == 0 || along.length == 0) return;
  LAMINA_INTERNAL_CHECK(sums_up || call.kind == Scan::logcumsumexp ||
                        (along.base[2] && call.out_index.dtype == ScalarType::Int64));
  visit(type, [&]<class T>(TypeTag<T>) {
    if constexpr (!is_small_float_type<T>) run_groups<T>(call, along, type);
  });
}

}  // namespace lamina::tile
