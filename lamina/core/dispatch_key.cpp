#include "lamina/core/dispatch_key.h"

#include "lamina/core/error.h"

namespace lamina {

std::string_view name(DispatchKey key) {
  switch (key) {
#define X(k)           \
  case DispatchKey::k: \
    return #k;
    LAMINA_DISPATCH_KEYS(X)
    LAMINA_ALIAS_KEYS(X)
#undef X
    default:
      return "UnknownKey";
  }
}

DispatchKey parse_dispatch_key(std::string_view text) {
#define X(k) \
  if (text == #k) return DispatchKey::k;
  LAMINA_DISPATCH_KEYS(X)
  LAMINA_ALIAS_KEYS(X)
#undef X
  raise(ErrorKind::Value, str("dispatch: unknown dispatch key; got '", text, "'"));
}

}  // namespace lamina
