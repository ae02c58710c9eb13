// Random numbers into tensors.
#include "lamina/cpu/random.h"

#include <limits>

#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"

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

void randperm(const Tensor& result, int64_t n, const Generator& generator, ScalarType dtype,
              Device) {
  cpu::randperm(result.data(), dtype, n, cpu::generator_of(generator));
}

}  // namespace kernels
}  // namespace lamina
