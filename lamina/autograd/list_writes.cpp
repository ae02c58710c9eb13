#include "lamina/autograd/list_writes.h"

#include "lamina/autograd/variable.h"
#include "lamina/core/error.h"

namespace lamina::autograd {

void check_list_writable(TensorList list, const char* op) {
  for (const Tensor& t : list) {
    check_writable(t, op);
    if (!recording(t)) continue;
    check_inplace(t, op);
    LAMINA_CHECK(false, op, ": has no derivative; got ", t,
                 ", which requires grad; expected a call under no_grad");
  }
}

void count_list_writes(TensorList list) {
  for (const Tensor& t : list) t.impl()->bump_version();
}

}  // namespace lamina::autograd
