// A trace: what was heard of one thread, and what Python makes of it.
#pragma once

#include <memory>
#include <vector>

#include "lamina/border/trace_stream.h"

namespace lamina::border {

struct Trace {
  trace::Stream stream;
  std::vector<std::unique_ptr<dispatch::Value>> others;  // values that are no plain data
  bool values = false;                                   // whether they were wanted
  int64_t started = 0, stopped = 0;                      // ticks
  int64_t started_ns = 0, stopped_ns = 0;
};

namespace trace {
// A tensor's facts, with a name behind them; the tensor itself is not kept alive.
void put_tensor(Stream& stream, Tag tag, const Tensor& t, std::string_view name = {});
}  // namespace trace

PyObject* wrap_trace(std::unique_ptr<Trace> trace);
// {"records": [...], "memory": [...], "started": ns, "stopped": ns}
PyObject* trace_read(PyObject*, PyObject* trace);

}  // namespace lamina::border
