// A page as rendered by a browser after its scripts have run.
#pragma once
#include <cstdlib>

#include "tests/support/files.h"

namespace skein::testing {

// The browser's command; empty if none is installed.
inline std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
    if (std::system(text("command -v ", name, " >/dev/null 2>&1").c_str()) == 0) return name;
  return "";
}

inline std::string drawn(const std::string& page, const ScratchDir& dir) {
  const std::string command = text(
      "timeout 120 ", browser(), " --headless --no-sandbox --disable-gpu --user-data-dir=", dir / "profile",
      " --virtual-time-budget=2000 --dump-dom file://", page, " >", dir / "dom", " 2>", dir / "log");
  EXPECT_EQ(std::system(command.c_str()), 0) << slurp(dir / "log").substr(0, 2000);
  return slurp(dir / "dom");
}

inline size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

}  // namespace skein::testing
