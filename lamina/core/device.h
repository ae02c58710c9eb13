// Where a tensor's bytes live, and the enums of layout and memory order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lamina {

enum class DeviceType : int8_t { CPU = 0, CUDA = 1, Meta = 2 };
inline constexpr int kNumDeviceTypes = 3;

std::string_view name(DeviceType type);

struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = -1;  // -1: the current device of that type

  constexpr bool is_cpu() const { return type == DeviceType::CPU; }
  constexpr bool is_meta() const { return type == DeviceType::Meta; }
  constexpr bool has_index() const { return index >= 0; }
  friend constexpr bool operator==(Device a, Device b) = default;
};
inline constexpr Device kCpu{DeviceType::CPU, -1};
inline constexpr Device kMeta{DeviceType::Meta, -1};

std::string to_string(Device device);        // "cuda:1"
Device parse_device(std::string_view text);  // raises Runtime where the text names no device
void append(std::string& out, Device device);

enum class Layout : int8_t {
  Strided = 0,
  SparseCoo = 1,
  SparseCsr = 2,
  SparseCsc = 3,
  SparseBsr = 4,
  SparseBsc = 5
};
enum class MemoryFormat : int8_t {
  Contiguous = 0,
  Preserve = 1,
  ChannelsLast = 2,
  ChannelsLast3d = 3
};

}  // namespace lamina
