#include "lamina/event/event.h"

namespace lamina::event {

constinit thread_local Listener* t_listener = nullptr;

void report(const Kernel& kernel) {
  if (t_listener) t_listener->on_kernel(kernel);
}

}  // namespace lamina::event
