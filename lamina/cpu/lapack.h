// LAPACK, from the library that products come from (blas_library.h): loaded by the same door at the
// first call that wants it. A routine has the same arguments for all four element types but for a
// real workspace of the complex ones, so calls are written once, with pointers without a type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lamina/core/scalar_type.h"

namespace lamina::cpu {

enum class Lapack : uint8_t {
  geev,
  gels,
  gelsd,
  gelss,
  gelsy,
  geqrf,
  gesdd,
  gesvd,
  getrf,
  getrs,
  hetrf,
  hetrs,
  orgqr,  // ungqr of complex numbers
  potrf,
  syevd,  // heevd of complex numbers
  sytrf,
  sytrs,
  trsm,
};
inline constexpr int kLapackRoutines = static_cast<int>(Lapack::trsm) + 1;

// The routine for matrices of so many elements in all, which whoever listens to events is told; a
// negative number of them tells nobody. Raises Runtime where the library, or the routine in it,
// cannot be found.
void* lapack_routine(Lapack routine, ScalarType type, int64_t elements);

// Calls a routine of Fortran. All arguments are pointers; lengths of texts follow at the end, as
// size_t.
template <class... Args>
void lapack(void* routine, Args... args) {
  reinterpret_cast<void (*)(Args...)>(routine)(args...);
}

// The number 1 of an element type.
const void* lapack_one(ScalarType type);
// The size of workspace that a query wrote into its first element.
int lapack_work_size(const void* answer, ScalarType type);
bool all_finite(const void* data, int64_t count, ScalarType type);

}  // namespace lamina::cpu
