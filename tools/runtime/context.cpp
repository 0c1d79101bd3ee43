#include "tools/runtime/context.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>

#include "lib/support/work_scope.h"
#include "tools/driver/errors.h"
#include "tools/driver/options_json.h"
#include "tools/runtime/function_options.h"

namespace mlc::abi {

namespace {

// The state that the thread of a job and the thread of its caller share.
class SharedJob {
 public:
  SharedJob(mlc_context* context, const std::function<void(Job&)>& work)
      : context_(context), work_(work) {
    if (context && context->progress)
      job_.progress = [this](const ProgressStep& step) {
        std::lock_guard lock(mutex_);
        // Passes run again after changes; what is reported of a step never falls.
        double& highest = shares_[std::string(step.name)];
        highest = std::max(highest, std::min(step.share, 1.0));
        event_ = {std::string(step.name), highest};
        changed_.notify_one();
      };
  }

  void Work() noexcept {
    try {
      WorkLimits limits{.map_files = false};
      if (context_) {
        limits.threads = context_->threads;
        limits.cancelled = &context_->cancelled;
        limits.temporary_folder = context_->temporary_folder;
        limits.cache_folder = context_->cache_folder;
      }
      const WorkScope scope(limits);
      ThrowIfCancelled();
      work_(job_);
    } catch (...) {
      failure_ = std::current_exception();
    }
    std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_one();
  }

  // Calls back until the work is done.
  void Watch() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return done_ || event_; });
      if (!event_) break;
      const auto [step, share] = *std::exchange(event_, std::nullopt);
      lock.unlock();
      if (!stopped_ && context_->progress(step.c_str(), share, context_->progress_user) != 0)
        stopped_ = context_->cancelled = true;
      lock.lock();
    }
  }

  // Reports notes and warnings, and throws the exception of the work.
  void Finish() {
    // A callback cancels its own call only.
    if (stopped_) context_->cancelled = false;
    if (context_ && context_->log) {
      for (const Error& warning : job_.diagnostics.warnings()) {
        std::string text = warning.text();
        for (const std::string& note : warning.notes()) text += "\n" + note;
        Log(MLC_WARNING, warning.id(), text);
      }
      for (const std::string& note : job_.diagnostics.notes()) Log(MLC_NOTE, "", note);
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void Log(int32_t level, const std::string& id, const std::string& text) {
    context_->log(level, id.c_str(), driver::WithFields(text).c_str(), context_->log_user);
  }

  mlc_context* const context_;
  const std::function<void(Job&)>& work_;
  Job job_;
  std::exception_ptr failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::pair<std::string, double>> event_;  // the latest progress
  std::map<std::string, double> shares_;                 // the highest of each step
  bool done_ = false;
  bool stopped_ = false;  // by the callback; of the calling thread
};

// Marks a context as used by one call.
class Use {
 public:
  explicit Use(mlc_context* context) : context_(context) {
    if (context_ && context_->busy.exchange(true))
      throw Error("usage", "the context is used by another call").Help("create one per thread");
  }
  ~Use() {
    if (context_) context_->busy = false;
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  mlc_context* context_;
};

// Starts a thread that has a large stack and receives no signals of the host.
pthread_t StartThread(SharedJob& shared) {
  constexpr size_t kStack = size_t{16} << 20;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  const auto run = [](void* job) -> void* {
    static_cast<SharedJob*>(job)->Work();
    return nullptr;
  };
  pthread_t thread;
  const int failed = pthread_create(&thread, &attributes, run, &shared);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed) throw Error("resource-limit", "the system cannot create a thread");
  return thread;
}

}  // namespace

void RunJob(mlc_context* context, const std::function<void(Job&)>& work) {
  const Use use(context);
  SharedJob shared(context, work);
  const pthread_t thread = StartThread(shared);
  shared.Watch();
  pthread_join(thread, nullptr);
  shared.Finish();
}

}  // namespace mlc::abi

using namespace mlc;

int32_t mlc_context_new(const char* options, mlc_context** context, mlc_error** error) {
  return abi::Call(error, [&] {
    abi::Require(context, "context");
    auto made = std::make_unique<mlc_context>();
    abi::ContextOptions given;
    driver::FillFromJson(abi::ContextTable(given), abi::OrEmpty(options));
    made->threads = given.threads;
    const auto folder = [](const std::filesystem::path& path) {
      return path.empty() ? nullptr : std::make_shared<const std::filesystem::path>(path);
    };
    made->temporary_folder = folder(given.temporary_folder);
    made->cache_folder = folder(given.cache_folder);
    *context = made.release();
  });
}
void mlc_context_set_log(mlc_context* context, mlc_log_function log, void* user) {
  if (!context) return;
  context->log = log;
  context->log_user = user;
}
void mlc_context_set_progress(mlc_context* context, mlc_progress_function progress, void* user) {
  if (!context) return;
  context->progress = progress;
  context->progress_user = user;
}
void mlc_context_cancel(mlc_context* context) {
  if (context) context->cancelled = true;
}
void mlc_context_reset(mlc_context* context) {
  if (context) context->cancelled = false;
}
void mlc_context_free(mlc_context* context) { delete context; }
