#include "lamina/core/device.h"

#include <charconv>

#include "lamina/core/error.h"

namespace lamina {

std::string_view name(DeviceType type) {
  switch (type) {
    case DeviceType::CPU:
      return "cpu";
    case DeviceType::CUDA:
      return "cuda";
    case DeviceType::Meta:
      return "meta";
  }
  return "unknown";
}

std::string to_string(Device device) {
  return device.has_index() ? str(name(device.type), ":", device.index)
                            : std::string(name(device.type));
}

Device parse_device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view type_name = text.substr(0, colon);
  for (int i = 0; i < kNumDeviceTypes; ++i) {
    const auto type = static_cast<DeviceType>(i);
    if (type_name != name(type)) continue;
    if (colon == std::string_view::npos) return {type, -1};
    const std::string_view digits = text.substr(colon + 1);
    int index = -1;
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), index);
    const bool canonical = !digits.empty() && (digits.size() == 1 || digits[0] != '0');
    LAMINA_CHECK(problem == std::errc() && end == digits.data() + digits.size() && canonical &&
                     index >= 0 && index < 128,
                 "device: Invalid device string: '", text,
                 "'; expected an index of 0 to 127 behind the colon");
    return {type, static_cast<int8_t>(index)};
  }
  raise(
      ErrorKind::Runtime,
      str("device: Expected one of cpu, cuda, meta device type at start of device string: ", text));
}

void append(std::string& out, Device device) { out += to_string(device); }

}  // namespace lamina
