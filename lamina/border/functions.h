// Functions of functions.cpp.
#pragma once

#include "lamina/border/python.h"

namespace lamina::border {

extern PyMethodDef functions[];

}  // namespace lamina::border
