// Poisson, binomial and gamma numbers, and how gamma numbers move with their shape.
#include "lamina/cpu/variates.h"

#include "lamina/core/error.h"
#include "lamina/cpu/scratch.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/queue/parallel.h"
#include "lamina/tile/tile.h"

namespace lamina::kernels {

namespace {

// The elements of a tensor as doubles, in order.
class Doubles {
 public:
  explicit Doubles(const Tensor& t)
      : memory_(cpu::bytes_of(t.numel(), sizeof(double))), count_(t.numel()) {
    const Tensor values = contiguous_values(t);
    tile::convert(memory_.get(), ScalarType::Float64, values.data(), t.dtype(), count_);
  }
  double* data() const { return memory_.get<double>(); }
  int64_t count() const { return count_; }
  // A tensor of them.
  Tensor result(IntList sizes, ScalarType dtype) const {
    const Tensor out = empty_contiguous(sizes, dtype, kCpu);
    tile::convert(out.data(), dtype, data(), ScalarType::Float64, count_);
    return out;
  }

 private:
  cpu::Scratch memory_;
  int64_t count_;
};

void check_floating(const Tensor& t, const char* op) {
  LAMINA_CHECK_IMPLEMENTED(is_floating(t.dtype()) && !is_float8(t.dtype()), op,
                           ": not implemented for '", legacy_name(t.dtype()), "'");
}

}  // namespace

Tensor poisson(const Tensor& self, const Generator& generator) {
  check_floating(self, "poisson");
  const Doubles values(self);
  for (int64_t i = 0; i < values.count(); ++i)
    LAMINA_CHECK(values.data()[i] >= 0 && values.data()[i] < 0x1p62,
                 "poisson: expected rates that are not negative; got ", values.data()[i]);
  cpu::poisson(values.data(), values.data(), values.count(), cpu::generator_of(generator));
  return values.result(self.sizes(), self.dtype());
}

Tensor binomial(const Tensor& count, const Tensor& prob, const Generator& generator) {
  check_floating(count, "binomial");
  check_floating(prob, "binomial");
  LAMINA_CHECK(count.dtype() == prob.dtype() && count.sizes() == prob.sizes(),
               "binomial: expected count and prob of one dtype and size; got ", count, " and ",
               prob);
  const Doubles counts(count), probs(prob);
  for (int64_t i = 0; i < counts.count(); ++i) {
    LAMINA_CHECK(counts.data()[i] >= 0 && counts.data()[i] < 0x1p53,
                 "binomial: expected counts that are not negative; got ", counts.data()[i]);
    LAMINA_CHECK(probs.data()[i] >= 0 && probs.data()[i] <= 1,
                 "binomial: expected probabilities in [0, 1]; got ", probs.data()[i]);
  }
  cpu::binomial(counts.data(), counts.data(), probs.data(), counts.count(),
                cpu::generator_of(generator));
  return counts.result(count.sizes(), count.dtype());
}

Tensor standard_gamma(const Tensor& self, const Generator& generator) {
  check_floating(self, "_standard_gamma");
  const Doubles values(self);
  for (int64_t i = 0; i < values.count(); ++i)
    LAMINA_CHECK(values.data()[i] > 0 && values.data()[i] < 0x1p62,
                 "_standard_gamma: expected shapes greater than 0; got ", values.data()[i]);
  cpu::standard_gamma(values.data(), values.data(), values.count(), cpu::generator_of(generator));
  // Never a zero, whose logarithm nobody wants.
  const double least = self.dtype() == ScalarType::Float64   ? 0x1p-1022
                       : self.dtype() == ScalarType::Float16 ? 0x1p-14
                                                             : 0x1p-126;
  for (int64_t i = 0; i < values.count(); ++i) values.data()[i] = std::max(values.data()[i], least);
  return values.result(self.sizes(), self.dtype());
}

Tensor standard_gamma_grad(const Tensor& self, const Tensor& output) {
  check_floating(self, "_standard_gamma_grad");
  LAMINA_CHECK(self.sizes() == output.sizes() && self.dtype() == output.dtype(),
               "_standard_gamma_grad: expected self and output of one dtype and size; got ", self,
               " and ", output);
  const Doubles alpha(self), x(output);
  queue::parallel_for(0, x.count(), 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      x.data()[i] = cpu::standard_gamma_grad(alpha.data()[i], x.data()[i]);
  });
  return x.result(self.sizes(), self.dtype());
}

}  // namespace lamina::kernels
