// What this thread adds to and takes from every call's key set, and the reader of events, if any.
#pragma once

#include "lamina/core/dispatch_key.h"

namespace lamina::dispatch {

class Observer;

struct LocalState {
  KeySet included;
  KeySet excluded;
  Observer* observer = nullptr;
};

extern __attribute__((tls_model("initial-exec"))) constinit thread_local LocalState t_local;

class IncludeGuard {
 public:
  explicit IncludeGuard(KeySet keys) : before_(t_local.included) {
    t_local.included = before_ | keys;
  }
  ~IncludeGuard() { t_local.included = before_; }
  IncludeGuard(const IncludeGuard&) = delete;
  IncludeGuard& operator=(const IncludeGuard&) = delete;

 private:
  KeySet before_;
};

class ExcludeGuard {
 public:
  explicit ExcludeGuard(KeySet keys) : before_(t_local.excluded) {
    t_local.excluded = before_ | keys;
  }
  ~ExcludeGuard() { t_local.excluded = before_; }
  ExcludeGuard(const ExcludeGuard&) = delete;
  ExcludeGuard& operator=(const ExcludeGuard&) = delete;

 private:
  KeySet before_;
};

}  // namespace lamina::dispatch
