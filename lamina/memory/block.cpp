// Headers of tensors and storages come from the CPU allocator's thread-local lists.
#include "lamina/core/block.h"

#include "lamina/memory/allocator.h"

namespace lamina {

void* allocate_block(size_t bytes) { return memory::cpu_allocate(bytes); }
void free_block(void* block, size_t bytes) noexcept { memory::cpu_deallocate(block, bytes); }

}  // namespace lamina
