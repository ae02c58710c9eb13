// Schemas as the border needs them, and values between Python and the dispatcher's stack.
#pragma once

#include <string>
#include <vector>

#include "lamina/border/python.h"
#include "lamina/dispatch/operator.h"

namespace lamina::border {

struct SchemaParam {
  std::string type;   // without alias marks: "Tensor?", "int[2]"
  std::string alias;  // the marks: "a!", or ""
  std::string name;
  std::string preset;
  bool has_preset = false;
  bool keyword_only = false;
};
struct ParsedSchema {
  std::vector<SchemaParam> params;
  std::vector<SchemaParam> returns;
};
ParsedSchema parse_schema(std::string_view schema);
const ParsedSchema& schema_of(const dispatch::Operator& op);  // parsed once

// An argument, or a result that a function of Python gave. Raises TypeError.
dispatch::Value value_of(const SchemaParam& p, PyObject* object);
dispatch::Value preset_of(const SchemaParam& p);
PyObject* wrap_value(const dispatch::Value& v);

// Arguments as Python gives them: positional ones without trailing defaults, keyword-only ones that
// are not the default by name.
struct CallArguments {
  Ref args;    // a tuple
  Ref kwargs;  // a dict
};
CallArguments arguments_of(const dispatch::Operator& op, const dispatch::Stack& stack);
// Puts what a function of Python returned in place of the arguments.
void set_results(const dispatch::Operator& op, PyObject* result, dispatch::Stack& stack);

// lamina.ops.aten.add.Tensor: a new reference.
PyObject* overload_object(const dispatch::Operator& op);

extern PyMethodDef operator_functions[];
extern PyMethodDef python_dispatch_functions[];  // python_dispatch.cpp
extern PyMethodDef tensor_dispatch_methods[];
extern PyMethodDef trace_functions[];  // trace.cpp
void add_python_dispatch(PyObject* module);

// Does the type of a tensor's object define __torch_dispatch__?
bool has_torch_dispatch(PyTypeObject* type);
// Calls on tensors with the key Python reach __torch_dispatch__ from now on.
void serve_python_key();

}  // namespace lamina::border
