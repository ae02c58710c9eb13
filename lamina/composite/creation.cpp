// Composite creation: constants, ranges, random tensors, conversions.
#include <cmath>

#include "lamina/autograd/formulas.h"
#include "lamina/core/defaults.h"
#include "lamina/core/error.h"
#include "lamina/dispatch/local_state.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/ops.h"
#include "lamina/shape/broadcast.h"

namespace lamina::composite {

namespace {

using Dtype = std::optional<ScalarType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using Pin = std::optional<bool>;
using Format = std::optional<MemoryFormat>;

// The first values of a fresh tensor are no write that anybody could have noticed.
Tensor filled(const Tensor& fresh, const Scalar& value) {
  const dispatch::ExcludeGuard below(kAutogradKeys);
  return ops::fill_(fresh, value);
}
Tensor zeroed(const Tensor& fresh) {
  const dispatch::ExcludeGuard below(kAutogradKeys);
  return ops::zero_(fresh);
}

}  // namespace

Tensor new_empty(const Tensor& self, IntList size, Dtype dtype, MaybeLayout layout,
                 MaybeDevice device, Pin pin) {
  return ops::empty(size, dtype.value_or(self.dtype()), layout, device.value_or(self.device()), pin,
                    std::nullopt);
}
Tensor new_zeros(const Tensor& self, IntList size, Dtype dtype, MaybeLayout layout,
                 MaybeDevice device, Pin pin) {
  return zeroed(new_empty(self, size, dtype, layout, device, pin));
}
Tensor new_ones(const Tensor& self, IntList size, Dtype dtype, MaybeLayout layout,
                MaybeDevice device, Pin pin) {
  return filled(new_empty(self, size, dtype, layout, device, pin), Scalar(1));
}
Tensor new_full(const Tensor& self, IntList size, const Scalar& fill_value, Dtype dtype,
                MaybeLayout layout, MaybeDevice device, Pin pin) {
  return filled(new_empty(self, size, dtype, layout, device, pin), fill_value);
}
Tensor new_empty_strided(const Tensor& self, IntList size, IntList stride, Dtype dtype,
                         MaybeLayout layout, MaybeDevice device, Pin pin) {
  return ops::empty_strided(size, stride, dtype.value_or(self.dtype()), layout,
                            device.value_or(self.device()), pin);
}

Tensor zeros(IntList size, Dtype dtype, MaybeLayout layout, MaybeDevice device, Pin pin) {
  return zeroed(ops::empty(size, dtype, layout, device, pin, std::nullopt));
}
Tensor ones(IntList size, Dtype dtype, MaybeLayout layout, MaybeDevice device, Pin pin) {
  return filled(ops::empty(size, dtype, layout, device, pin, std::nullopt), Scalar(1));
}
Tensor full(IntList size, const Scalar& fill_value, Dtype dtype, MaybeLayout layout,
            MaybeDevice device, Pin pin) {
  const ScalarType type = dtype.value_or(fill_value.default_type(default_dtype()));
  return filled(ops::empty(size, type, layout, device, pin, std::nullopt), fill_value);
}

Tensor zeros_like(const Tensor& self, Dtype dtype, MaybeLayout layout, MaybeDevice device, Pin pin,
                  Format format) {
  return zeroed(ops::empty_like(self, dtype, layout, device, pin, format));
}
Tensor ones_like(const Tensor& self, Dtype dtype, MaybeLayout layout, MaybeDevice device, Pin pin,
                 Format format) {
  return filled(ops::empty_like(self, dtype, layout, device, pin, format), Scalar(1));
}
Tensor full_like(const Tensor& self, const Scalar& fill_value, Dtype dtype, MaybeLayout layout,
                 MaybeDevice device, Pin pin, Format format) {
  return filled(ops::empty_like(self, dtype, layout, device, pin, format), fill_value);
}

Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, Dtype dtype,
              MaybeLayout layout, MaybeDevice device, Pin pin) {
  LAMINA_CHECK(!layout || *layout == Layout::Strided,
               "arange: only the strided layout has a kernel");
  LAMINA_CHECK(!pin.value_or(false), "arange: pinned memory needs an accelerator");
  for (const Scalar& s : {start, end, step}) {
    LAMINA_CHECK(!s.is_complex(), "arange: complex bounds are not supported");
    LAMINA_CHECK(std::isfinite(s.to_double()),
                 "arange: unsupported range: bounds and step must be finite");
  }
  const bool integral = !start.is_floating() && !end.is_floating() && !step.is_floating();
  const double by = step.to_double();
  LAMINA_CHECK(by != 0, "arange: step must be nonzero");
  LAMINA_CHECK((by > 0 && end.to_double() >= start.to_double()) ||
                   (by < 0 && end.to_double() <= start.to_double()),
               "arange: upper bound and lower bound inconsistent with step sign");
  int64_t count;
  if (integral) {
    // Exact for all of int64: the distance needs 65 bits.
    const __int128 distance = static_cast<__int128>(end.to_int()) - start.to_int(),
                   s = step.to_int();
    count = static_cast<int64_t>((distance + s - (s > 0 ? 1 : -1)) / s);
  } else {
    const double n = std::ceil((end.to_double() - start.to_double()) / by);
    LAMINA_CHECK(n < 9.2e18, "arange: invalid size, possible overflow?");
    count = static_cast<int64_t>(n);
  }
  const ScalarType type = dtype.value_or(integral ? ScalarType::Int64 : default_dtype());
  LAMINA_CHECK_IMPLEMENTED(!is_bool(type), "\"arange_cpu\" not implemented for 'Bool'");
  return ops::_range(start, step, count, type, device.value_or(kCpu));
}
Tensor arange_end(const Scalar& end, Dtype dtype, MaybeLayout layout, MaybeDevice device, Pin pin) {
  return arange(Scalar(0), end, Scalar(1), dtype, layout, device, pin);
}
Tensor arange_start(const Scalar& start, const Scalar& end, Dtype dtype, MaybeLayout layout,
                    MaybeDevice device, Pin pin) {
  return arange(start, end, Scalar(1), dtype, layout, device, pin);
}

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, Dtype dtype,
                MaybeLayout layout, MaybeDevice device, Pin pin) {
  LAMINA_CHECK(steps >= 0, "linspace: number of steps must be non-negative; got ", steps);
  const bool complex = start.is_complex() || end.is_complex();
  const ScalarType natural = complex ? to_complex(default_dtype()) : default_dtype();
  const ScalarType type = dtype.value_or(natural);
  LAMINA_CHECK(!complex || is_complex(type), "linspace: inferred dtype ", natural,
               " can't be safely cast to passed dtype ", type);
  LAMINA_CHECK(!layout || *layout == Layout::Strided,
               "linspace: only the strided layout has a kernel");
  (void)pin;
  const Device where = device.value_or(kCpu);
  // Counted from the nearer end, in double, so that both ends are exact.
  if (complex || is_complex(type)) {
    const auto a = start.to_complex(), b = end.to_complex();
    const Tensor re =
        linspace(Scalar(a.real()), Scalar(b.real()), steps, ScalarType::Float64, {}, where, {});
    const Tensor im =
        linspace(Scalar(a.imag()), Scalar(b.imag()), steps, ScalarType::Float64, {}, where, {});
    return ops::_to_dtype(ops::complex(re, im), type);
  }
  if (steps == 1) return full({1}, start, type, {}, where, {});
  // The ends are values of the result's type.
  const bool whole = is_integral(type, true);
  const double a = whole ? std::trunc(start.to_double()) : start.to_double();
  const double b = whole ? std::trunc(end.to_double()) : end.to_double();
  const double by = steps > 1 ? (b - a) / static_cast<double>(steps - 1) : 0;
  const ScalarType work = ScalarType::Float64;
  const Tensor low = ops::_range(Scalar(a), Scalar(by), steps / 2, work, where);
  const Tensor high = ops::_range(Scalar(b - by * static_cast<double>(steps - 1 - steps / 2)),
                                  Scalar(by), steps - steps / 2, work, where);
  Tensor all = ops::cat(std::vector<Tensor>{low, high}, 0);
  if (steps > 0) filled(ops::select(all, 0, steps - 1), Scalar(b));
  return ops::_to_dtype(all, type);
}

namespace {
Scalar number_of(const Tensor& t, const char* name) {
  LAMINA_CHECK(t.dim() == 0,
               "linspace: linspace only supports 0-dimensional start and end tensors, but got ",
               name, " of ", t.dim(), " dimensions");
  return scalar_of(t);
}
}  // namespace
Tensor linspace(const Tensor& start, const Tensor& end, int64_t steps, Dtype dtype,
                MaybeLayout layout, MaybeDevice device, Pin pin) {
  return linspace(number_of(start, "start"), number_of(end, "end"), steps, dtype, layout, device,
                  pin);
}
Tensor linspace(const Tensor& start, const Scalar& end, int64_t steps, Dtype dtype,
                MaybeLayout layout, MaybeDevice device, Pin pin) {
  return linspace(number_of(start, "start"), end, steps, dtype, layout, device, pin);
}
Tensor linspace(const Scalar& start, const Tensor& end, int64_t steps, Dtype dtype,
                MaybeLayout layout, MaybeDevice device, Pin pin) {
  return linspace(start, number_of(end, "end"), steps, dtype, layout, device, pin);
}

Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base, Dtype dtype,
                MaybeLayout layout, MaybeDevice device, Pin pin) {
  LAMINA_CHECK(steps >= 0, "logspace: number of steps must be non-negative; got ", steps);
  const bool complex = start.is_complex() || end.is_complex();
  const ScalarType natural = complex ? to_complex(default_dtype()) : default_dtype();
  const ScalarType type = dtype.value_or(natural);
  LAMINA_CHECK(!complex || is_complex(type), "logspace: inferred dtype ", natural,
               " can't be safely cast to passed dtype ", type);
  const ScalarType work = is_complex(type) ? ScalarType::Complex128 : ScalarType::Float64;
  // The ends of a whole result are whole, too.
  const bool whole = is_integral(type, true);
  const auto limit = [&](const Scalar& s) { return whole ? Scalar(std::trunc(s.to_double())) : s; };
  const Tensor exponents = linspace(limit(start), limit(end), steps, work, layout, device, pin);
  return ops::_to_dtype(ops::pow(Scalar(base), exponents), type);
}
Tensor logspace(const Tensor& start, const Tensor& end, int64_t steps, double base, Dtype dtype,
                MaybeLayout layout, MaybeDevice device, Pin pin) {
  return logspace(number_of(start, "start"), number_of(end, "end"), steps, base, dtype, layout,
                  device, pin);
}
Tensor logspace(const Tensor& start, const Scalar& end, int64_t steps, double base, Dtype dtype,
                MaybeLayout layout, MaybeDevice device, Pin pin) {
  return logspace(number_of(start, "start"), end, steps, base, dtype, layout, device, pin);
}
Tensor logspace(const Scalar& start, const Tensor& end, int64_t steps, double base, Dtype dtype,
                MaybeLayout layout, MaybeDevice device, Pin pin) {
  return logspace(start, number_of(end, "end"), steps, base, dtype, layout, device, pin);
}

Tensor empty_permuted(IntList size, IntList physical_layout, Dtype dtype, MaybeLayout layout,
                      MaybeDevice device, Pin pin) {
  LAMINA_CHECK(size.size() == physical_layout.size(),
               "empty_permuted: Number of dimensions in size does not match the length of the "
               "physical_layout; got ",
               size, " and ", physical_layout);
  Sizes strides(size.size(), 0);
  Dim step = 1;
  for (size_t i = physical_layout.size(); i-- > 0;) {
    const int64_t d = physical_layout[i];
    LAMINA_CHECK(d >= 0 && d < static_cast<int64_t>(size.size()),
                 "empty_permuted: Dimension out of range (expected to be between 0 and ",
                 size.size(), ", but got ", d, " at index ", i, ")");
    LAMINA_CHECK(strides[d] == 0, "empty_permuted: Duplicate dim not allowed; got ",
                 physical_layout);
    strides[d] = step;
    step *= Dim(std::max<int64_t>(size[d], 1));
  }
  return ops::empty_strided(size, strides, dtype, layout, device, pin);
}

Tensor eye(int64_t n, int64_t m, Dtype dtype, MaybeLayout layout, MaybeDevice device, Pin pin) {
  LAMINA_CHECK(n >= 0, "eye: n must be greater or equal to 0, got ", n);
  LAMINA_CHECK(m >= 0, "eye: m must be greater or equal to 0, got ", m);
  Tensor out = zeros({n, m}, dtype, layout, device, pin);
  filled(ops::diagonal(out), Scalar(1));
  return out;
}
Tensor eye_square(int64_t n, Dtype dtype, MaybeLayout layout, MaybeDevice device, Pin pin) {
  return eye(n, n, dtype, layout, device, pin);
}

Tensor fill_copy(const Tensor& self, const Tensor& value) {
  return ops::fill_(ops::clone(self), value);
}
Tensor fill_copy(const Tensor& self, const Scalar& value) {
  return ops::fill_(ops::clone(self), value);
}

Tensor contiguous(const Tensor& self, MemoryFormat memory_format) {
  LAMINA_CHECK(memory_format != MemoryFormat::Preserve,
               "contiguous: preserve memory format is unsupported by the contiguous operator");
  return self.is_contiguous(memory_format) ? self : ops::clone(self, memory_format);
}

Tensor to_dtype(const Tensor& self, ScalarType dtype) {
  return self.dtype() == dtype ? self : ops::_to_copy(self, dtype, std::nullopt, std::nullopt);
}

namespace {
// The format that the strides suggest: what is neither way of channels last counts as contiguous.
MemoryFormat format_of(const Tensor& t) {
  if (!t.is_contiguous())
    for (const MemoryFormat f : {MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d})
      if (t.is_contiguous(f)) return f;
  return MemoryFormat::Contiguous;
}
}  // namespace

Tensor to(const Tensor& self, Dtype dtype, MaybeLayout layout, MaybeDevice device, Pin pin, bool,
          bool copy, Format format) {
  LAMINA_CHECK(!layout || *layout == Layout::Strided, "to: only the strided layout has a kernel");
  LAMINA_CHECK(!pin.value_or(false),
               "to: pinned memory needs an accelerator; Lamina was built without CUDA");
  const MemoryFormat f = format.value_or(MemoryFormat::Preserve);
  const bool same = (!dtype || *dtype == self.dtype()) &&
                    (!device || device->type == self.device().type) &&
                    (f == MemoryFormat::Preserve || f == format_of(self));
  return same && !copy ? self : ops::_to_copy(self, dtype, device, format);
}

Tensor resize(const Tensor& self, IntList size, Format format) {
  LAMINA_CHECK(!self.requires_grad(), "resize_: cannot resize variables that require grad");
  LAMINA_CHECK(format.value_or(MemoryFormat::Contiguous) == MemoryFormat::Contiguous,
               "resize_: only the contiguous memory format is supported");
  return ops::_set_data_window_(self, size);
}

Tensor rand(IntList size, const Generator& g, Dtype dtype, MaybeLayout layout, MaybeDevice device,
            Pin pin) {
  return ops::uniform_(ops::empty(size, dtype, layout, device, pin, std::nullopt), 0, 1, g);
}
Tensor randn(IntList size, const Generator& g, Dtype dtype, MaybeLayout layout, MaybeDevice device,
             Pin pin) {
  return ops::normal_(ops::empty(size, dtype, layout, device, pin, std::nullopt), 0, 1, g);
}
Tensor rand_like(const Tensor& self, Dtype dtype, MaybeLayout layout, MaybeDevice device, Pin pin,
                 Format format) {
  return ops::uniform_(ops::empty_like(self, dtype, layout, device, pin, format), 0, 1, {});
}
Tensor randn_like(const Tensor& self, Dtype dtype, MaybeLayout layout, MaybeDevice device, Pin pin,
                  Format format) {
  return ops::normal_(ops::empty_like(self, dtype, layout, device, pin, format), 0, 1, {});
}
Tensor randint_low(int64_t low, int64_t high, IntList size, const Generator& g, Dtype dtype,
                   MaybeLayout layout, MaybeDevice device, Pin pin) {
  return ops::random_(
      ops::empty(size, dtype.value_or(ScalarType::Int64), layout, device, pin, std::nullopt), low,
      high, g);
}
Tensor randint(int64_t high, IntList size, const Generator& g, Dtype dtype, MaybeLayout layout,
               MaybeDevice device, Pin pin) {
  return randint_low(0, high, size, g, dtype, layout, device, pin);
}
Tensor randint_like(const Tensor& self, int64_t high, Dtype dtype, MaybeLayout layout,
                    MaybeDevice device, Pin pin, Format format) {
  return randint_like_low(self, 0, high, dtype, layout, device, pin, format);
}
Tensor randint_like_low(const Tensor& self, int64_t low, int64_t high, Dtype dtype,
                        MaybeLayout layout, MaybeDevice device, Pin pin, Format format) {
  return ops::random_(ops::empty_like(self, dtype, layout, device, pin, format), low, high, {});
}
Tensor randperm(int64_t n, const Generator& g, Dtype dtype, MaybeLayout layout, MaybeDevice device,
                Pin pin) {
  LAMINA_CHECK(!layout || *layout == Layout::Strided,
               "randperm: only the strided layout has a kernel");
  (void)pin;
  const ScalarType type = dtype.value_or(ScalarType::Int64);
  LAMINA_CHECK(!(type == ScalarType::UInt8 && n > 256) && !(type == ScalarType::Int8 && n > 128),
               "randperm: value cannot be converted to type ", type,
               " without overflow; got n=", n);
  return ops::_randperm(n, g, dtype.value_or(ScalarType::Int64), device.value_or(kCpu));
}
Tensor random_to(const Tensor& self, int64_t to, const Generator& g) {
  return ops::random_(self, 0, to, g);
}

Tensor binomial(const Tensor& count, const Tensor& prob, const Generator& generator) {
  const Sizes sizes = broadcast_sizes(count.sizes(), prob.sizes(), "binomial");
  return ops::_binomial(ops::expand(count, sizes), ops::expand(prob, sizes), generator);
}

}  // namespace lamina::composite
