// Random numbers into tensors.
#include "lamina/cpu/random.h"

#include <limits>

#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/shape/broadcast.h"

namespace lamina {

namespace kernels {

namespace {

cpu::RandomOutput output(const Tensor& t) { return {t.data(), t.dtype(), t.sizes(), t.strides()}; }

// Largest integer that a type holds exactly along with all below it.
int64_t largest_integer(ScalarType t) {
  switch (t) {
    case ScalarType::Bool:
      return 1;
    case ScalarType::UInt8:
      return 255;
    case ScalarType::Int8:
      return 127;
    case ScalarType::Int16:
      return 32767;
    case ScalarType::UInt16:
      return 65535;
    case ScalarType::Int32:
      return 2147483647;
    case ScalarType::UInt32:
      return 4294967295;
    case ScalarType::Float16:
      return 65504;
    case ScalarType::BFloat16:
    case ScalarType::Float32:
    case ScalarType::Float64:
    default:
      return std::numeric_limits<int64_t>::max();
  }
}
int64_t smallest_integer(ScalarType t) {
  switch (t) {
    case ScalarType::Int8:
      return -128;
    case ScalarType::Int16:
      return -32768;
    case ScalarType::Int32:
      return -2147483648LL;
    case ScalarType::Float16:
      return -65504;
    case ScalarType::Bool:
    case ScalarType::UInt8:
    case ScalarType::UInt16:
    case ScalarType::UInt32:
    case ScalarType::UInt64:
      return 0;
    default:
      return std::numeric_limits<int64_t>::min();
  }
}

}  // namespace

void uniform(const Tensor& self, double from, double to, const Generator& generator) {
  LAMINA_CHECK_IMPLEMENTED(is_differentiable(self.dtype()),
                           "uniform_: needs a floating or complex tensor; not implemented for '",
                           legacy_name(self.dtype()), "'");
  LAMINA_CHECK(from <= to, "uniform_: expects to return a [from, to) range, but found from=", from,
               " > to=", to);
  LAMINA_CHECK(to - from <= std::numeric_limits<double>::max(),
               "uniform_: the range is too wide; got ", from, " and ", to);
  if (self.is_meta() || self.numel() == 0) return;
  cpu::uniform(output(self), from, to, cpu::generator_of(generator));
}

void normal(const Tensor& self, double mean, double std, const Generator& generator) {
  LAMINA_CHECK(std >= 0, "normal_: normal expects std >= 0.0, but found std ", std);
  LAMINA_CHECK_IMPLEMENTED(is_differentiable(self.dtype()), "\"normal_\" not implemented for '",
                           legacy_name(self.dtype()), "'");
  if (self.is_meta() || self.numel() == 0) return;
  cpu::normal(output(self), mean, std, cpu::generator_of(generator));
}

void random_from(const Tensor& self, int64_t from, std::optional<int64_t> to,
                 const Generator& generator) {
  LAMINA_CHECK_IMPLEMENTED(!is_complex(self.dtype()), "\"random_\" not implemented for '",
                           legacy_name(self.dtype()), "'");
  if (to) {
    LAMINA_CHECK(from < *to,
                 "random_: random_ expects 'from' to be less than 'to', but got from=", from,
                 " >= to=", *to);
    LAMINA_CHECK(from >= smallest_integer(self.dtype()) && from <= largest_integer(self.dtype()),
                 "random_: from - 1 is out of bounds for ", name(self.dtype()),
                 "; got from=", from);
    LAMINA_CHECK(
        *to - 1 >= smallest_integer(self.dtype()) && *to - 1 <= largest_integer(self.dtype()),
        "random_: to - 1 is out of bounds for ", name(self.dtype()), "; got to=", *to);
    if (self.is_meta() || self.numel() == 0) return;
    cpu::random_from_to(output(self), from, *to, cpu::generator_of(generator));
    return;
  }
  if (self.is_meta() || self.numel() == 0) return;
  if (item_size(self.dtype()) == 8 && is_integral(self.dtype()))
    cpu::random_from(output(self), from, cpu::generator_of(generator));
  else
    random_from(self, from,
                largest_integer(self.dtype()) == INT64_MAX ? int64_t{1} << 24
                                                           : largest_integer(self.dtype()) + 1,
                generator);
}

void random_full(const Tensor& self, const Generator& generator) {
  LAMINA_CHECK_IMPLEMENTED(!is_complex(self.dtype()), "\"random_\" not implemented for '",
                           legacy_name(self.dtype()), "'");
  if (self.is_meta() || self.numel() == 0) return;
  cpu::random_full(output(self), cpu::generator_of(generator));
}

void bernoulli(const Tensor& self, double p, const Generator& generator) {
  LAMINA_CHECK(p >= 0 && p <= 1, "bernoulli_: bernoulli_ expects p to be in [0, 1], but got p=", p);
  if (self.is_meta() || self.numel() == 0) return;
  cpu::bernoulli(output(self), p, cpu::generator_of(generator));
}

void bernoulli_by(const Tensor& self, const Tensor& p, const Generator& generator) {
  LAMINA_CHECK(is_floating(p.dtype()),
               "bernoulli_: expected probabilities tensor to have floating type, got ",
               legacy_name(p.dtype()));
  LAMINA_CHECK_IMPLEMENTED(!is_complex(self.dtype()),
                           "\"bernoulli_tensor_cpu_self_\" not implemented for '",
                           legacy_name(self.dtype()), "'");
  LAMINA_CHECK(is_expandable(p.sizes(), self.sizes()),
               "bernoulli_: the probabilities do not broadcast to self; got ", p, " and ", self);
  if (self.is_meta() || self.numel() == 0) return;
  const ScalarType type = p.dtype() == ScalarType::Float64 ? p.dtype() : ScalarType::Float32;
  const Tensor wide = kernels::expand(converted(p, type), self.sizes(), false);
  cpu::bernoulli(output(self), wide.data(), type, wide.strides(), cpu::generator_of(generator));
}

namespace {
// Drawn in float64 in the order of self's memory, then converted.
void distribute(const Tensor& self, cpu::Distribution kind, double a, double b,
                const Generator& generator) {
  if (self.is_meta() || self.numel() == 0) return;
  const Tensor drawn = empty_preserving(self, ScalarType::Float64);
  cpu::distribute(output(drawn), kind, a, b, cpu::generator_of(generator));
  copy_values(self, drawn);
}
void check_continuous(const Tensor& self, const char* op, const char* called) {
  LAMINA_CHECK(is_floating(self.dtype()), op, ": ", called,
               " distribution is a continuous probability distribution. dtype must be a floating "
               "point but you specified ",
               name(self.dtype()));
}
}  // namespace

void exponential(const Tensor& self, double lambd, const Generator& generator) {
  LAMINA_CHECK(lambd > 0,
               "exponential_: exponential_ expects lambda > 0.0, but found lambda=", lambd);
  check_continuous(self, "exponential_", "Exponential");
  if (self.is_meta() || self.numel() == 0) return;
  cpu::exponential(output(self), lambd, cpu::generator_of(generator));
}
void cauchy(const Tensor& self, double median, double sigma, const Generator& generator) {
  LAMINA_CHECK(sigma > 0, "cauchy_: cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  check_continuous(self, "cauchy_", "Cauchy");
  distribute(self, cpu::Distribution::Cauchy, median, sigma, generator);
}
void geometric(const Tensor& self, double p, const Generator& generator) {
  LAMINA_CHECK(0 < p && p < 1, "geometric_: geometric_ expects p to be in (0, 1), but got p=", p);
  LAMINA_CHECK_IMPLEMENTED(!is_complex(self.dtype()) && self.dtype() != ScalarType::Bool,
                           "\"geometric_cpu\" not implemented for '", legacy_name(self.dtype()),
                           "'");
  distribute(self, cpu::Distribution::Geometric, p, 0, generator);
}
void log_normal(const Tensor& self, double mean, double std, const Generator& generator) {
  LAMINA_CHECK(std > 0, "log_normal_: log_normal_ expects std > 0.0, but found std=", std);
  check_continuous(self, "log_normal_", "Log normal");
  distribute(self, cpu::Distribution::LogNormal, mean, std, generator);
}

void randperm(const Tensor& result, int64_t n, const Generator& generator, ScalarType dtype,
              Device) {
  cpu::randperm(result.data(), dtype, n, cpu::generator_of(generator));
}

}  // namespace kernels
}  // namespace lamina
