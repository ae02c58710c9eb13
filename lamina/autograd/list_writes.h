// Operators that write whole lists of tensors and have no derivative: optimizers' steps.
#pragma once

#include "lamina/core/tensor.h"

namespace lamina::autograd {

// Raises Runtime where a tensor of the list may not be written, or its write would have to be
// recorded.
void check_list_writable(TensorList list, const char* op);
// Each tensor of the list has been written once more.
void count_list_writes(TensorList list);

}  // namespace lamina::autograd
