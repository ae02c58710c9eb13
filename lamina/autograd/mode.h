// Whether this thread records operators for backward.
#pragma once

#include "lamina/core/mode.h"

namespace lamina::autograd {

inline bool grad_enabled() { return t_mode.grad; }
inline bool inference_enabled() { return t_mode.inference; }

class GradModeGuard {
 public:
  explicit GradModeGuard(bool enabled) : before_(t_mode.grad) { t_mode.grad = enabled; }
  ~GradModeGuard() { t_mode.grad = before_; }
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  bool before_;
};
struct NoGrad : GradModeGuard {
  NoGrad() : GradModeGuard(false) {}
};

}  // namespace lamina::autograd
