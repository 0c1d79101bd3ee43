// tools/runtime/context.h - the settings of a context.
#pragma once

#include <atomic>

#include "tools/runtime/mlc.h"

struct mlc_context {
  int threads = 0;  // 0: as many as the machine has
  std::atomic<bool> cancelled = false;
  std::atomic<bool> busy = false;  // a call uses the context
  mlc_log_function log = nullptr;
  void* log_user = nullptr;
  mlc_progress_function progress = nullptr;
  void* progress_user = nullptr;
};
