// What this thread does with the operators it runs.
#pragma once

namespace lamina {

struct Mode {
  bool grad = true;        // they are recorded for backward
  bool inference = false;  // their results never will be: inference tensors
};
extern __attribute__((tls_model("initial-exec"))) constinit thread_local Mode t_mode;

}  // namespace lamina
