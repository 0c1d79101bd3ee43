// tools/driver/test_script.h - runs a script of the user that judges a file by its exit code.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

namespace mlc::driver {

// Runs as `SCRIPT FILE` without input and output, in a process group of its own, which is killed
// when the script ends, when its time is up, or when `stop` returns true.
class TestScript {
 public:
  // Error "file-io" if `path` is not an executable file.
  TestScript(const std::filesystem::path& path, std::chrono::milliseconds timeout,
             std::function<bool()> stop);

  struct Outcome {
    bool passed = false;  // exit code 0
    std::string text;     // "it exited with 1", "it was killed by signal 11", "it took over 60 s"
  };
  // Error "file-io" if the system cannot start it (a missing interpreter).
  Outcome Run(const std::filesystem::path& file) const;

 private:
  std::filesystem::path path_;
  std::chrono::milliseconds timeout_;
  std::function<bool()> stop_;
};

}  // namespace mlc::driver
