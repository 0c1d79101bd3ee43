// tools/runtime/context.h - the settings of a context.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>

#include "tools/runtime/mlc.h"

struct mlc_context {
  int threads = 0;  // 0: as many as the machine has
  // Null: those of the environment.
  std::shared_ptr<const std::filesystem::path> temporary_folder, cache_folder;
  std::atomic<bool> cancelled = false;
  std::atomic<bool> busy = false;  // a call uses the context
  mlc_log_function log = nullptr;
  void* log_user = nullptr;
  mlc_progress_function progress = nullptr;
  void* progress_user = nullptr;
};
