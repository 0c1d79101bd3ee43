// lib/support/child_process.h - runs a program and watches its time and memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlc {

// The running executable. On Linux it stays valid when another file is installed at its path.
std::filesystem::path ThisExecutable();

struct ChildOptions {
  std::vector<std::string> arguments;  // including the name of the program
  // Added to the environment of this process.
  std::vector<std::pair<std::string, std::string>> environment;
  std::chrono::milliseconds timeout{0};  // 0: none
  // Called a few times per second with the resident memory in bytes (0: unknown). Returns whether
  // the child is to be ended.
  std::function<bool(int64_t resident)> stop;
};

struct ChildResult {
  std::string output;  // standard output
  int exit_code = 0;   // if it ended by itself
  int signal = 0;      // the signal that ended it
  bool timed_out = false, stopped = false;
  int64_t peak_memory_bytes = 0;
};

// Runs `program` until it ends. Its standard error is that of this process. Its standard input is a
// pipe that closes when this process ends, even by SIGKILL (EndWithParent). A child that is to be
// ended gets SIGTERM, and SIGKILL two seconds later. Thread-safe. Error "file-io" if it cannot be
// started.
ChildResult RunChild(const std::filesystem::path& program, const ChildOptions& options);

// For a program started by RunChild: sends itself SIGTERM when the other process has ended.
void EndWithParent();

}  // namespace mlc
