// A sanitizer job that cannot fail proves nothing: `./run test --sanitize --planted-fault` sets
// the variable below, and the read past the end must end this program.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

namespace {

TEST(Sanitizer, ReportsAPlantedFault) {
  const char* planted = std::getenv("LAMINA_PLANTED_FAULT");
  auto bytes = std::make_unique<volatile char[]>(16);
  const size_t end = planted != nullptr ? 16 : 15;
  bytes[15] = 0;
  EXPECT_EQ(bytes[end], 0);
}

}  // namespace
