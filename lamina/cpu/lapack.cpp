#include "lamina/cpu/lapack.h"

#include <atomic>
#include <climits>
#include <cmath>
#include <complex>
#include <string>

#include "lamina/core/error.h"
#include "lamina/cpu/blas_library.h"
#include "lamina/cpu/gemm.h"
#include "lamina/event/event.h"

namespace lamina::cpu {

namespace {

struct Names {
  const char *real, *complex;
};
constexpr Names kNames[kLapackRoutines] = {
    {"geev", "geev"},   {"gels", "gels"},   {"gelsd", "gelsd"}, {"gelss", "gelss"},
    {"gelsy", "gelsy"}, {"geqrf", "geqrf"}, {"gesdd", "gesdd"}, {"gesvd", "gesvd"},
    {"getrf", "getrf"}, {"getrs", "getrs"}, {"sytrf", "hetrf"}, {"sytrs", "hetrs"},
    {"orgqr", "ungqr"}, {"potrf", "potrf"}, {"syevd", "heevd"}, {"sytrf", "sytrf"},
    {"sytrs", "sytrs"}, {"trsm", "trsm"},
};

int letter_index(ScalarType type) {
  switch (type) {
    case ScalarType::Float32:
      return 0;
    case ScalarType::Float64:
      return 1;
    case ScalarType::Complex64:
      return 2;
    case ScalarType::Complex128:
      return 3;
    default:
      raise(ErrorKind::NotImplemented, str("LAPACK: not implemented for '", legacy_name(type),
                                           "'; expected floating or complex numbers"));
  }
}

}  // namespace

void* lapack_routine(Lapack routine, ScalarType type, int64_t elements) {
  static std::atomic<void*> found[kLapackRoutines][4];
  const int letter = letter_index(type);
  std::atomic<void*>& slot = found[static_cast<int>(routine)][letter];
  const Names& names = kNames[static_cast<int>(routine)];
  const char* const plain = letter < 2 ? names.real : names.complex;
  if (event::listening() && elements >= 0) [[unlikely]]
    event::report({"LAPACK", plain, blas_name(), elements});
  if (void* known = slot.load(std::memory_order_acquire)) return known;
  const std::string name = std::string("scipy_") + "sdcz"[letter] + plain + "_";
  void* address = blas_symbol(name.c_str());
  LAMINA_CHECK(address, "linear algebra: ", name,
               " was not found; expected libscipy_openblas.so beside liblamina or in the package "
               "scipy-openblas32");
  slot.store(address, std::memory_order_release);
  return address;
}

const void* lapack_one(ScalarType type) {
  static const std::complex<double> one64 = 1;
  static const std::complex<float> one32 = 1;
  return to_real(type) == ScalarType::Float64 ? static_cast<const void*>(&one64) : &one32;
}

int lapack_work_size(const void* answer, ScalarType type) {
  // float32 cannot hold every size; what it rounded away is given back.
  const double size = to_real(type) == ScalarType::Float64
                          ? *static_cast<const double*>(answer)
                          : std::nextafter(*static_cast<const float*>(answer), INFINITY);
  LAMINA_CHECK(size < INT_MAX, "linear algebra: the matrix is too large for this LAPACK");
  return size < 1 ? 1 : static_cast<int>(std::ceil(size));
}

bool all_finite(const void* data, int64_t count, ScalarType type) {
  if (is_complex(type)) count *= 2;
  const auto check = [count](const auto* x) {
    for (int64_t i = 0; i < count; ++i)
      if (!std::isfinite(x[i])) return false;
    return true;
  };
  return to_real(type) == ScalarType::Float64 ? check(static_cast<const double*>(data))
                                              : check(static_cast<const float*>(data));
}

}  // namespace lamina::cpu
