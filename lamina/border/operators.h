// Functions of operators.cpp.
#pragma once

#include "lamina/border/python.h"

namespace lamina::border {

extern PyMethodDef operator_functions[];

}  // namespace lamina::border
