// Functions of generator.cpp.
#pragma once

#include "lamina/border/python.h"

namespace lamina::border {

extern PyMethodDef generator_functions[];

}  // namespace lamina::border
