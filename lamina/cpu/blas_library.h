// OpenBLAS, loaded at the first product that wants it: an import stays small, and a machine without
// it falls back to our own kernels.
#pragma once

#include <cblas.h>

namespace lamina::cpu {

struct BlasLibrary {
  decltype(&scipy_cblas_sgemm) sgemm;
  decltype(&scipy_cblas_dgemm) dgemm;
  decltype(&scipy_cblas_cgemm) cgemm;
  decltype(&scipy_cblas_zgemm) zgemm;
  decltype(&scipy_cblas_sgemv) sgemv;
  decltype(&scipy_cblas_dgemv) dgemv;
  void* handle;
  char* (*config)();
  char* (*corename)();
};

// Null where the library cannot be found; loaded once, by whichever thread comes first.
const BlasLibrary* blas_library();
// Another function of the library, null where it has none of that name.
void* blas_symbol(const char* name);

}  // namespace lamina::cpu
