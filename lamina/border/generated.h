// What opgen gives the border.
#pragma once

#include "lamina/border/python.h"

namespace lamina::border {

// Functions of the module lamina and methods of lamina.Tensor; each table ends with a null entry.
PyMethodDef* generated_functions();
PyMethodDef* generated_methods();
// Functions for lamina.nn.functional and other submodules: {"nn.functional.relu", ...} by full
// name.
PyMethodDef* generated_submodule_functions();

}  // namespace lamina::border
