// The generator and the fills that draw one value per element.
#include "lamina/cpu/random.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <limits>

#include "lamina/core/error.h"
#include "lamina/core/float_types.h"
#include "lamina/cpu/random_fill.h"
#include "lamina/cpu/scratch.h"

namespace lamina::cpu {

// --- generator
// -------------------------------------------------------------------------------------------------------
namespace {
constexpr uint32_t kStateSize = 624, kShift = 397;

// The layout of a saved state.
struct SavedState {
  uint64_t seed;
  int32_t left;
  int32_t seeded;
  uint64_t next;
  uint64_t state[kStateSize];
  double normal_x, normal_y, normal_rho;
  int32_t normal_is_valid;
  int32_t padding;
  float float_normal;
  uint8_t float_normal_is_valid;
  uint8_t padding2[3];
};
static_assert(sizeof(SavedState) == Mt19937Generator::kStateBytes);

uint32_t twist(uint32_t u, uint32_t v) {
  return (((u & 0x80000000u) | (v & 0x7fffffffu)) >> 1) ^ (v & 1 ? 0x9908b0dfu : 0u);
}
}  // namespace

void Mt19937Generator::set_seed(uint64_t seed) {
  seed_ = seed;
  state_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kStateSize; ++i)
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  left_ = 1;
  next_ = 0;
  next_normal.reset();
  next_float_normal.reset();
}

void Mt19937Generator::refill() {
  uint32_t* p = state_.data();
  for (uint32_t i = 0; i < kStateSize - kShift; ++i) p[i] = p[i + kShift] ^ twist(p[i], p[i + 1]);
  for (uint32_t i = kStateSize - kShift; i < kStateSize - 1; ++i)
    p[i] = p[i + kShift - kStateSize] ^ twist(p[i], p[i + 1]);
  p[kStateSize - 1] = p[kShift - 1] ^ twist(p[kStateSize - 1], p[0]);
  left_ = kStateSize;
  next_ = 0;
}

uint64_t Mt19937Generator::reseed() {
  uint64_t seed = 0;
  FILE* file = std::fopen("/dev/urandom", "rbe");
  if (!file || std::fread(&seed, sizeof seed, 1, file) != 1)
    seed = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) *
               0x9e3779b97f4a7c15u ^
           static_cast<uint64_t>(getpid());
  if (file) std::fclose(file);
  seed &= (uint64_t{1} << 53) - 1;  // exact as a double
  set_seed(seed);
  return seed;
}

void Mt19937Generator::get_state(std::span<uint8_t, kStateBytes> out) const {
  SavedState s{};
  s.seed = seed_;
  s.left = static_cast<int32_t>(left_);
  s.seeded = 1;
  s.next = next_;
  std::copy(state_.begin(), state_.end(), s.state);
  if (next_normal) {
    s.normal_y = *next_normal;
    s.normal_is_valid = 1;
  }
  if (next_float_normal) {
    s.float_normal = *next_float_normal;
    s.float_normal_is_valid = 1;
  }
  std::memcpy(out.data(), &s, sizeof s);
}

void Mt19937Generator::set_state(std::span<const uint8_t> bytes) {
  LAMINA_CHECK(bytes.size() == kStateBytes, "set_state: a generator's state has ", kStateBytes,
               " bytes; got ", bytes.size());
  SavedState s;
  std::memcpy(&s, bytes.data(), sizeof s);
  LAMINA_CHECK(s.seeded == 1 && s.left > 0 && s.left <= static_cast<int32_t>(kStateSize) &&
                   s.next <= kStateSize &&
                   (s.left == 1 || s.next + static_cast<uint64_t>(s.left) <= kStateSize + 1),
               "set_state: the bytes are no state of this generator; got left ", s.left, ", next ",
               s.next);
  seed_ = s.seed;
  left_ = static_cast<uint32_t>(s.left);
  next_ = static_cast<uint32_t>(s.next);
  for (uint32_t i = 0; i < kStateSize; ++i) state_[i] = static_cast<uint32_t>(s.state[i]);
  next_normal.reset();
  next_float_normal.reset();
  if (s.normal_is_valid) next_normal = s.normal_y;
  if (s.float_normal_is_valid) next_float_normal = s.float_normal;
}

Mt19937Generator& default_generator() {
  static auto* generator = new Mt19937Generator;
  return *generator;
}

Mt19937Generator& generator_of(const Generator& handle) {
  if (!handle) return default_generator();
  LAMINA_CHECK(handle->device().is_cpu(), "expected a generator of cpu; got one of another device");
  return static_cast<Mt19937Generator&>(*handle);
}

// --- fills
// -----------------------------------------------------------------------------------------------------------
namespace {

template <class T>
uint64_t full_range() {  // of random_(): values from 0 to full_range - 1
  if constexpr (std::is_same_v<T, bool>)
    return 2;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<uint64_t>(std::numeric_limits<T>::max()) + 1;
  else if constexpr (std::is_same_v<T, double>)
    return (uint64_t{1} << 53) + 1;
  else if constexpr (std::is_same_v<T, float>)
    return (uint64_t{1} << 24) + 1;
  else if constexpr (std::is_same_v<T, Half>)
    return (uint64_t{1} << 11) + 1;
  else
    return (uint64_t{1} << 8) + 1;
}

template <class T>
T from_integer(uint64_t v) {
  if constexpr (std::is_same_v<T, bool>)
    return v != 0;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(v);
  else
    return static_cast<T>(static_cast<int64_t>(v));
}

// Calls f with the C++ type of a dtype that is not complex, nor of 8-bit floats.
template <class F>
void visit_numbers(const char* op, ScalarType dtype, F&& f) {
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_type<T> || std::is_same_v<T, Float8E5M2> ||
                  std::is_same_v<T, Float8E4M3FN>)
      raise(ErrorKind::NotImplemented, str(op, ": not implemented for ", name(dtype)));
    else
      f(tag);
  });
}
template <class F>
void visit_floats(const char* op, ScalarType dtype, F&& f) {
  visit_numbers(op, dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>)
      raise(ErrorKind::NotImplemented, str(op, ": not implemented for ", name(dtype)));
    else
      f(tag);
  });
}

}  // namespace

void uniform(const RandomOutput& out, double from, double to, Mt19937Generator& g) {
  if (is_complex(out.dtype))
    return as_real(out, [&](const RandomOutput& r) { uniform(r, from, to, g); });
  std::lock_guard lock(g.mutex());
  visit_floats("uniform_", out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, double>) {
      for_each(out, [&](double* v) { *v = __builtin_fma(uniform_double(g), to - from, from); });
    } else {
      const auto low = static_cast<float>(from), high = static_cast<float>(to);
      if constexpr (std::is_same_v<T, float>)
        for_each(out, [&](float* v) { *v = __builtin_fmaf(uniform_float(g), high - low, low); });
      else
        for_each(out, [&](T* v) {
          // Rounding may reach the excluded end.
          const T x(__builtin_fmaf(uniform_float(g), high - low, low));
          *v = static_cast<float>(x) >= high ? T(low) : x;
        });
    }
  });
}

void exponential(const RandomOutput& out, double lambda, Mt19937Generator& g) {
  std::lock_guard lock(g.mutex());
  visit_floats("exponential_", out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each(out, [&](T* v) {
      const double x = -1.0 / lambda * std::log1p(-uniform_double(g));
      if constexpr (std::is_same_v<T, double>)
        *v = x;
      else
        *v = static_cast<T>(static_cast<float>(x));
    });
  });
}

void random_from_to(const RandomOutput& out, int64_t from, int64_t to, Mt19937Generator& g) {
  const uint64_t range = static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  LAMINA_CHECK(from < to, "random_: from must be less than to; got from ", from, ", to ", to);
  const auto base = static_cast<uint64_t>(from);
  std::lock_guard lock(g.mutex());
  visit_numbers("random_", out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (range >= uint64_t{1} << 28)
      for_each(out, [&](T* v) { *v = from_integer<T>(g.random64() % range + base); });
    else
      for_each(out, [&](T* v) {
        *v = from_integer<T>(g.random() % static_cast<uint32_t>(range) + base);
      });
  });
}

void random_from(const RandomOutput& out, int64_t from, Mt19937Generator& g) {
  std::lock_guard lock(g.mutex());
  visit_numbers("random_", out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (from == std::numeric_limits<int64_t>::min()) {
      for_each(out, [&](T* v) { *v = from_integer<T>(g.random64()); });
      return;
    }
    const uint64_t range = (uint64_t{1} << 63) - static_cast<uint64_t>(from);
    for_each(out, [&](T* v) {
      *v = from_integer<T>((range >= uint64_t{1} << 28 ? g.random64() : g.random()) % range +
                           static_cast<uint64_t>(from));
    });
  });
}

void random_full(const RandomOutput& out, Mt19937Generator& g) {
  std::lock_guard lock(g.mutex());
  visit_numbers("random_", out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr bool kWide = sizeof(T) == 8;
    const uint64_t range = full_range<T>();  // 0 stands for 2^64
    for_each(out, [&](T* v) {
      const uint64_t x = kWide ? g.random64() : g.random();
      *v = from_integer<T>(range == 0 ? x : x % range);
    });
  });
}

void bernoulli(const RandomOutput& out, double p, Mt19937Generator& g) {
  LAMINA_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  std::lock_guard lock(g.mutex());
  visit_numbers("bernoulli_", out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each(out, [&](T* v) { *v = static_cast<T>(uniform_double(g) < p); });
  });
}

void bernoulli(const RandomOutput& out, const void* p, ScalarType p_dtype,
               std::span<const int64_t> p_strides, Mt19937Generator& g) {
  const auto run = [&](auto p_tag) {
    using P = decltype(p_tag);
    visit_numbers("bernoulli_", out.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      walk<T>(out, static_cast<const P*>(p), p_strides, [&](T* v, const P* probability) {
        LAMINA_CHECK(
            *probability >= 0 && *probability <= 1,
            "bernoulli_ expects p to be in [0, 1], but got p=", static_cast<double>(*probability));
        if constexpr (std::is_same_v<P, float>)
          *v = static_cast<T>(uniform_float(g) < *probability);
        else
          *v = static_cast<T>(uniform_double(g) < *probability);
      });
    });
  };
  LAMINA_CHECK(p_dtype == ScalarType::Float32 || p_dtype == ScalarType::Float64,
               "bernoulli_: probabilities must be float32 or float64; got ", p_dtype);
  std::lock_guard lock(g.mutex());
  p_dtype == ScalarType::Float32 ? run(float()) : run(double());
}

void randperm(void* out, ScalarType dtype, int64_t n, Mt19937Generator& g) {
  if (n <= 0) return;
  std::lock_guard lock(g.mutex());
  visit_numbers("randperm", dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* r = static_cast<T*>(out);
    for (int64_t i = 0; i < n; ++i) r[i] = from_integer<T>(static_cast<uint64_t>(i));
    const bool wide = n >= static_cast<int64_t>(std::numeric_limits<uint32_t>::max() / 20);
    for (int64_t i = 0; i < n - 1; ++i) {
      const auto left = static_cast<uint64_t>(n - i);
      const auto z = static_cast<int64_t>(wide ? g.random64() % left
                                               : g.random() % static_cast<uint32_t>(left));
      std::swap(r[i], r[i + z]);
    }
  });
}

// --- multinomial
// -------------------------------------------------------------------------------------------------------
namespace {

template <class T>
void multinomial_as(int64_t* out, const T* weights, int64_t rows, int64_t n, int64_t row_stride,
                    int64_t col_stride, int64_t samples, bool replacement, Mt19937Generator& g) {
  for (int64_t r = 0; r < rows; ++r) {
    int64_t positive = 0;
    for (int64_t i = 0; i < n; ++i) {
      const T w = weights[r * row_stride + i * col_stride];
      LAMINA_CHECK(w >= 0 && w < std::numeric_limits<T>::infinity(),
                   "probability tensor contains either `inf`, `nan` or element < 0");
      positive += w > 0;
    }
    LAMINA_CHECK(positive > 0, "invalid multinomial distribution (sum of probabilities <= 0)");
    LAMINA_CHECK(
        replacement || positive >= samples,
        "invalid multinomial distribution (with replacement=False, not enough non-negative "
        "category to sample)");
  }
  const Scratch scratch(bytes_of(n, sizeof(T)));
  T* row = scratch.get<T>();
  if (!replacement || samples == 1) {
    // Exponential races: the largest w / e wins.
    const Scratch races(bytes_of(rows * n, sizeof(T)));
    T* e = races.get<T>();
    const int64_t size = rows * n, one = 1;
    exponential({e, scalar_type_of<T>, {&size, 1}, {&one, 1}}, 1.0, g);
    const Scratch order_scratch(bytes_of(n, sizeof(int64_t)));
    auto* order = order_scratch.get<int64_t>();
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < n; ++i) {
        row[i] = weights[r * row_stride + i * col_stride] / e[r * n + i];
        order[i] = i;
      }
      const auto better = [&](int64_t a, int64_t b) {
        const bool nan_a = row[a] != row[a], nan_b = row[b] != row[b];
        if (nan_a || nan_b) return nan_a && (!nan_b || a < b);
        return row[a] != row[b] ? row[a] > row[b] : a < b;
      };
      std::partial_sort(order, order + samples, order + n, better);
      std::copy(order, order + samples, out + r * samples);
    }
    return;
  }
  std::lock_guard lock(g.mutex());
  for (int64_t r = 0; r < rows; ++r) {
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) row[i] = sum += weights[r * row_stride + i * col_stride];
    for (int64_t i = 0; i < n; ++i) row[i] /= sum;
    row[n - 1] = 1;
    for (int64_t s = 0; s < samples; ++s) {
      const double u = uniform_double(g);
      int64_t low = 0, high = n;
      while (high > low) {
        const int64_t middle = low + (high - low) / 2;
        if (row[middle] < u)
          low = middle + 1;
        else
          high = middle;
      }
      // A category of weight zero that ends where u lies is never the answer.
      while (low < n - 1 && weights[r * row_stride + low * col_stride] == 0) ++low;
      out[r * samples + s] = low;
    }
  }
}

}  // namespace

void multinomial(int64_t* out, const void* weights, ScalarType dtype, int64_t rows, int64_t n,
                 int64_t row_stride, int64_t col_stride, int64_t samples, bool replacement,
                 Mt19937Generator& g) {
  LAMINA_CHECK(samples > 0, "cannot sample n_sample <= 0 samples");
  LAMINA_CHECK(n > 0 && (replacement || samples <= n),
               "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  if (dtype == ScalarType::Float32)
    multinomial_as(out, static_cast<const float*>(weights), rows, n, row_stride, col_stride,
                   samples, replacement, g);
  else if (dtype == ScalarType::Float64)
    multinomial_as(out, static_cast<const double*>(weights), rows, n, row_stride, col_stride,
                   samples, replacement, g);
  else
    raise(ErrorKind::NotImplemented, str("multinomial: not implemented for ", name(dtype)));
}

}  // namespace lamina::cpu
