#include "lamina/core/error.h"

#include <charconv>

namespace lamina {
namespace detail {

namespace {
template <class T>
void append_number(std::string& out, T v) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  out.append(buffer, end);
}
}  // namespace

void append(std::string& out, std::string_view v) { out.append(v); }
void append(std::string& out, const char* v) { out.append(v); }
void append(std::string& out, bool v) { out.append(v ? "True" : "False"); }
void append(std::string& out, double v) { append_number(out, v); }
void append(std::string& out, long long v) { append_number(out, v); }
void append(std::string& out, unsigned long long v) { append_number(out, v); }
void append(std::string& out, ScalarType v) { out.append(name(v)); }
void append(std::string& out, std::span<const int64_t> v) {
  out += '[';
  for (size_t i = 0; i < v.size(); ++i) {
    if (i) out += ", ";
    append_number(out, v[i]);
  }
  out += ']';
}

}  // namespace detail

void raise(ErrorKind kind, std::string message) { throw Error(kind, std::move(message)); }

void raise_internal(const char* file, int line, const char* condition, std::string message) {
  throw Error(ErrorKind::Internal,
              str("internal fault: ", condition, " does not hold at ", file, ":", line, "; ",
                  message, "; this is a bug of Lamina, please report it"));
}

}  // namespace lamina
