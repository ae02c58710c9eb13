#include "lamina/cpu/blas_library.h"

#include <dlfcn.h>
#include <sched.h>

#include <optional>

namespace lamina::cpu {

namespace {

// OpenBLAS starts one thread for each core it may use while it loads, and they spin. Loaded by a
// thread that is bound to one core it starts none; work is spread over threads by us.
class OneCore {
 public:
  OneCore() {
    if (sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &before_)) {
        CPU_SET(i, &one);
        break;
      }
    bound_ = sched_setaffinity(0, sizeof one, &one) == 0;
  }
  ~OneCore() {
    if (bound_) sched_setaffinity(0, sizeof before_, &before_);
  }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t before_;
  bool bound_ = false;
};

template <class F>
bool find(void* library, const char* name, F& out) {
  out = reinterpret_cast<F>(dlsym(library, name));
  return out != nullptr;
}

std::optional<BlasLibrary> load() {
  const OneCore guard;
  // Found by the run path of liblamina.
  void* library = dlopen("libscipy_openblas.so", RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::nullopt;
  BlasLibrary b;
  b.handle = library;
  void (*set_num_threads)(int);
  if (!find(library, "scipy_cblas_sgemm", b.sgemm) ||
      !find(library, "scipy_cblas_dgemm", b.dgemm) ||
      !find(library, "scipy_cblas_cgemm", b.cgemm) ||
      !find(library, "scipy_cblas_zgemm", b.zgemm) ||
      !find(library, "scipy_cblas_sgemv", b.sgemv) ||
      !find(library, "scipy_cblas_dgemv", b.dgemv) ||
      !find(library, "scipy_openblas_get_config", b.config) ||
      !find(library, "scipy_openblas_get_corename", b.corename) ||
      !find(library, "scipy_openblas_set_num_threads", set_num_threads))
    return std::nullopt;
  set_num_threads(1);
  return b;
}

}  // namespace

const BlasLibrary* blas_library() {
  static const std::optional<BlasLibrary> library = load();
  return library ? &*library : nullptr;
}

void* blas_symbol(const char* name) {
  const BlasLibrary* library = blas_library();
  return library ? dlsym(library->handle, name) : nullptr;
}

}  // namespace lamina::cpu
