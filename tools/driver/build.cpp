#include "tools/driver/build.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <list>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "lib/support/child_process.h"
#include "lib/support/json_text.h"
#include "lib/support/memory_use.h"
#include "lib/support/threads.h"
#include "tools/driver/build_checks.h"
#include "tools/driver/build_test.h"
#include "tools/driver/build_variant.h"
#include "tools/driver/compiled_model_cache.h"
#include "tools/driver/errors.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

using Clock = std::chrono::steady_clock;
using Status = BuildRecord::Status;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A recipe as it was checked.
struct CheckedRecipe {
  Recipe recipe;
  RecipeInputs inputs;
  std::vector<VariantInputs> variants;  // as those of the recipe
};

BuildRecord NotBuilt(const Recipe& recipe, const Recipe::Variant& variant,
                     std::vector<Error> errors) {
  return {.recipe = recipe.file.string(),
          .name = variant.name,
          .options = JoinedOptions(variant.options),
          .errors = std::move(errors)};
}

LatencyOptions LatencyOf(const BuildOptions& options) {
  LatencyOptions latency = options.latency;
  if (latency.baselines.empty()) latency.baselines = options.output / "baselines";
  return latency;
}

struct Job {
  size_t recipe, variant;
  int64_t estimate = 0;  // bytes of memory
  bool alone = false;    // it exceeded the limit beside others
};

// Starts jobs as memory permits.
class JobQueue {
 public:
  JobQueue(std::vector<Job> jobs, int64_t limit, bool explicit_limit)
      : waiting_(std::move(jobs)), limit_(limit), explicit_(explicit_limit) {}

  struct Running {
    Job job;
    int64_t resident = 0;
    int started = 0;
    bool again = false;
  };

  // Returns the next job when it may start, or null if there are no more.
  Running* Take() {
    std::unique_lock lock(mutex_);
    while (true) {
      auto next = std::ranges::find_if(waiting_, [&](const Job& job) { return Fits(job); });
      if (next != waiting_.end()) {
        Running& running = running_.emplace_back(Running{*next, 0, ++started_});
        waiting_.erase(next);
        return &running;
      }
      if (waiting_.empty() && running_.empty()) return nullptr;
      changed_.wait(lock);
    }
  }

  // The number of jobs that are not done.
  int Left() {
    std::lock_guard lock(mutex_);
    return static_cast<int>(waiting_.size() + running_.size());
  }

  // Notes the memory of a job. Returns whether it is to be ended, because all jobs together exceed
  // the limit: the one that started last runs again when the others are done.
  bool Stop(Running& running, int64_t resident) {
    std::lock_guard lock(mutex_);
    running.resident = resident;
    int64_t sum = 0;
    for (const Running& one : running_) sum += one.resident;
    if (sum <= limit_) return false;
    if (running_.size() == 1) return explicit_;
    running.again = std::ranges::none_of(
        running_, [&](const Running& one) { return one.started > running.started; });
    return running.again;
  }

  void Done(Running& running) {
    std::lock_guard lock(mutex_);
    if (running.again) {
      running.job.alone = true;
      waiting_.insert(waiting_.begin(), running.job);
    }
    running_.remove_if([&](const Running& one) { return &one == &running; });
    changed_.notify_all();
  }

 private:
  bool Fits(const Job& job) const {
    if (running_.empty()) return true;
    int64_t sum = job.estimate;
    for (const Running& one : running_) {
      if (one.job.alone) return false;
      sum += std::max(one.job.estimate, one.resident);
    }
    return !job.alone && sum <= limit_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Job> waiting_;
  std::list<Running> running_;
  int64_t limit_;
  bool explicit_;
  int started_ = 0;
};

class Fleet {
 public:
  Fleet(const BuildOptions& options, const VariantCommand& command,
        const std::function<void(const BuildRecord&)>& done, BuildReport& report)
      : options_(options),
        command_(command),
        done_(done),
        report_(report),
        folder_(options.output, options.test ? BuildFolder::kTemporary : BuildFolder::kIfPresent),
        latency_(LatencyOf(options)) {}

  void Run(const std::vector<std::string>& paths) {
    Check(paths);
    std::vector<Job> jobs = Look();
    if (!options_.dry_run) BuildJobs(std::move(jobs));
  }

 private:
  // Reads all recipes, and every file whose hash is not known.
  void Check(const std::vector<std::string>& paths) {
    report_.recipes.resize(paths.size());
    checked_.resize(paths.size());
    ParallelFor(static_cast<int64_t>(paths.size()), 0, [&](int64_t i) {
      const auto index = static_cast<size_t>(i);
      BuildReport::Recipe& into = report_.recipes[index];
      CheckedRecipe& checked = checked_[index];
      into.path = paths[index];
      try {
        checked.recipe = ReadRecipe(into.path);
        std::erase_if(checked.recipe.variants, [&](const Recipe::Variant& variant) {
          return !IsWanted(variant.name, options_.only);
        });
        if (checked.recipe.variants.empty()) return;
        Diagnostics said;  // the compilation says it, too
        checked.inputs =
            (options_.test ? CheckRecipeOfTest : CheckRecipe)(checked.recipe, folder_, said);
      } catch (...) {
        into.errors = CurrentErrors();
      }
    });
    std::map<std::string, std::string> recipe_of;
    bool any = false;
    for (size_t i = 0; i < paths.size(); ++i) {
      BuildReport::Recipe& into = report_.recipes[i];
      const Recipe& recipe = checked_[i].recipe;
      any = any || !recipe.variants.empty() || !into.errors.empty();
      for (const Recipe::Variant& variant : recipe.variants)
        if (auto [first, is_new] = recipe_of.emplace(variant.name, into.path);
            !is_new && into.errors.empty())
          into.errors.push_back(Error("bad-recipe", "duplicate name \"{}\"", variant.name)
                                    .At({into.path, ""})
                                    .Note("the other one is in " + first->second)
                                    .Help("rename the recipe or the variant: both would write the "
                                          "same package"));
      for (const Recipe::Variant& variant : recipe.variants) {
        into.variants.push_back(NotBuilt(recipe, variant, into.errors));
        checked_[i].variants.emplace_back();
        // A test needs the options only with the source.
        const bool needed = !options_.test || !checked_[i].inputs.source.empty();
        if (into.errors.empty() && needed) try {
            checked_[i].variants.back() = CheckVariant(recipe, variant, options_.base);
          } catch (...) {
            into.variants.back().errors = CurrentErrors();
          }
      }
    }
    if (!any)
      throw Error("usage", "no variant matches {}", fmt::join(options_.only, ", "))
          .Help("--dry-run lists the variants");
  }

  VariantBuild BuildOf(const Job& job) {
    const CheckedRecipe& checked = checked_[job.recipe];
    return {checked.recipe, checked.recipe.variants[job.variant], checked.inputs,
            checked.variants[job.variant], latency_};
  }
  BuildRecord& RecordOf(const Job& job) {
    return report_.recipes[job.recipe].variants[job.variant];
  }

  // Reports what is up to date or cannot be built, and returns the rest.
  std::vector<Job> Look() {
    std::vector<Job> jobs;
    for (size_t i = 0; i < checked_.size(); ++i) {
      BuildReport::Recipe& recipe = report_.recipes[i];
      const size_t before = jobs.size();
      for (size_t k = 0; k < recipe.variants.size(); ++k) {
        const Job job{i, k};
        BuildRecord& record = recipe.variants[k];
        if (record.errors.empty() && !options_.test)
          record = *BuildVariant(BuildOf(job), BuildMode::kLook, folder_, nullptr, false);
        if (record.status == Status::kNotBuilt && record.errors.empty() && !options_.dry_run)
          jobs.push_back(job);
        else
          done_(record);
      }
      if (jobs.size() > before) RequireCheckFiles(i, jobs, before);
    }
    return jobs;
  }

  // The samples of a recipe that has something to build must be readable, or nothing of it is built.
  void RequireCheckFiles(size_t recipe, std::vector<Job>& jobs, size_t first) {
    try {
      ReadCheckFiles(checked_[recipe].recipe);
    } catch (...) {
      report_.recipes[recipe].errors = CurrentErrors();
      for (size_t i = first; i < jobs.size(); ++i) {
        RecordOf(jobs[i]).errors = report_.recipes[recipe].errors;
        done_(RecordOf(jobs[i]));
      }
      jobs.resize(first);
    }
  }

  void BuildJobs(std::vector<Job> jobs) {
    if (jobs.empty()) return;
    if (!options_.test) folder_.Create();
    constexpr int64_t kLeast = 300'000'000;  // of a small model
    for (Job& job : jobs) {
      job.estimate = folder_.PeakMemory(RecordOf(job).name);
      if (job.estimate > 0) continue;
      uint64_t source = 0;
      for (const SourceFile& file : checked_[job.recipe].inputs.source) source += file.bytes;
      job.estimate = kLeast + static_cast<int64_t>(MemoryForSource(source));
    }
    const int workers = std::min(options_.jobs, static_cast<int>(jobs.size()));
    JobQueue queue(std::move(jobs), static_cast<int64_t>(MemoryLimitOf(options_)),
                   options_.memory_limit > 0);
    ParallelFor(workers, workers, [&](int64_t) {
      std::optional<BuildCache> cache;
      if (!options_.cache.place.empty()) cache.emplace(options_.cache);
      while (JobQueue::Running* running = queue.Take()) {
        std::optional<BuildRecord> record = BuildJob(*running, queue, cache ? &*cache : nullptr);
        std::lock_guard lock(done_mutex_);
        if (record) {
          NoteCacheWarnings(*record);
          RecordOf(running->job) = std::move(*record);
          done_(RecordOf(running->job));
        }
        queue.Done(*running);
      }
    });
  }

  // Returns nothing if the job has to run again.
  std::optional<BuildRecord> BuildJob(JobQueue::Running& running, JobQueue& queue,
                                      BuildCache* cache) {
    const VariantBuild build = BuildOf(running.job);
    const Clock::time_point begin = Clock::now();
    if (cache && cache_works_ && !options_.test) {
      if (std::optional<BuildRecord> record =
              BuildVariant(build, BuildMode::kFetch, folder_, cache, options_.base.force))
        return record;
    }
    BuildRecord record = RecordOf(running.job);
    const std::string& name = record.name;
    const int share = DefaultThreads() / std::clamp(queue.Left(), 1, options_.jobs);
    ChildOptions child{.arguments = command_(build.recipe.file.string(), name, cache_works_),
                       .environment = {{"MLC_THREADS", std::to_string(std::max(share, 1))}},
                       .timeout = options_.timeout};
    child.stop = [&](int64_t resident) { return queue.Stop(running, resident); };
    child.arguments.insert(child.arguments.begin(), "mlc");
    try {
      const ChildResult result = RunChild(ThisExecutable(), child);
      if (result.stopped && running.again) return std::nullopt;
      if (std::optional<BuildRecord> read = ReadRecord(result.output)) {
        std::vector<std::string> why = std::move(record.why);
        record = std::move(*read);
        if (record.why.empty()) record.why = std::move(why);
      } else {
        record.errors = {Ended(name, result)};
      }
      record.peak_memory_bytes = result.peak_memory_bytes;
      if (!options_.test) folder_.WritePeakMemory(name, result.peak_memory_bytes);
    } catch (...) {
      record.errors = CurrentErrors();
    }
    record.seconds = SecondsSince(begin);
    return record;
  }

  static std::optional<BuildRecord> ReadRecord(const std::string& output) {
    try {
      return BuildRecordFromJson(ParseJson(output));
    } catch (const nlohmann::ordered_json::exception&) {
      return std::nullopt;
    }
  }

  Error Ended(const std::string& name, const ChildResult& result) const {
    if (result.timed_out)
      return Error("timeout", "\"{}\" took more than {} s", name,
                   std::chrono::duration<double>(options_.timeout).count())
          .Help("raise --timeout");
    if (result.stopped)
      return Error("resource-limit", "\"{}\" took more than {}", name,
                   BytesText(options_.memory_limit))
          .Help("raise --memory-limit");
    if (result.signal == SIGKILL)
      return Error("resource-limit", "the process that built \"{}\" was killed after it took {}",
                   name, BytesText(static_cast<uint64_t>(result.peak_memory_bytes)))
          .Help("the system does that when memory runs out: set a lower --memory-limit or -j");
    if (result.signal != 0)
      return Error("internal", "the process that built \"{}\" ended by signal {}", name,
                   result.signal)
          .Help("this is a bug in mlc: please report the model and this text");
    return Error("internal", "the process that built \"{}\" exited with {}", name,
                 result.exit_code);
  }

  // A cache that fails is reported once, and not used any more.
  void NoteCacheWarnings(BuildRecord& record) {
    auto of_cache = [](const Error& warning) { return warning.id() == "remote-cache"; };
    for (const Error& warning : record.warnings)
      if (of_cache(warning) && cache_works_.exchange(false)) report_.warnings.push_back(warning);
    std::erase_if(record.warnings, of_cache);
  }

  const BuildOptions& options_;
  const VariantCommand& command_;
  const std::function<void(const BuildRecord&)>& done_;
  BuildReport& report_;
  BuildFolder folder_;
  LatencyMeter latency_;
  std::vector<CheckedRecipe> checked_;  // as the recipes of the report
  std::mutex done_mutex_;
  std::atomic<bool> cache_works_ = true;
};

}  // namespace

uint64_t MemoryLimitOf(const BuildOptions& options) {
  return options.memory_limit > 0 ? options.memory_limit
                                  : static_cast<uint64_t>(MachineMemory()) / 5 * 4;
}

std::vector<std::string> FindRecipes(const std::vector<std::string>& paths) {
  std::vector<std::string> recipes;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      recipes.push_back(path);
      continue;
    }
    std::set<std::string> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_regular_file(error) && name.ends_with(".json") &&
          !name.ends_with(".schema.json") && !name.ends_with(".manifest.json"))
        found.insert(entry.path().string());
    }
    if (error) throw Error("file-io", "cannot read \"{}\": {}", path, error.message());
    if (found.empty())
      throw Error("usage", "the folder \"{}\" has no recipes", path).Expected("*.json files");
    recipes.insert(recipes.end(), found.begin(), found.end());
  }
  return recipes;
}

BuildReport Build(const std::vector<std::string>& recipes, const BuildOptions& options,
                  const VariantCommand& command,
                  const std::function<void(const BuildRecord&)>& done) {
  const Clock::time_point begin = Clock::now();
  BuildReport report{.dry_run = options.dry_run};
  Fleet(options, command, done, report).Run(recipes);
  report.seconds = SecondsSince(begin);
  return report;
}

BuildRecord BuildOne(const std::string& path, const std::string& name,
                     const BuildOptions& options) {
  const Recipe recipe = ReadRecipe(path);
  auto variant = std::ranges::find(recipe.variants, name, &Recipe::Variant::name);
  if (variant == recipe.variants.end())
    throw Error("usage", "the recipe has no variant \"{}\"", name).At({path, ""});
  try {
    BuildFolder folder(options.output,
                       options.test ? BuildFolder::kTemporary : BuildFolder::kAlways);
    LatencyMeter latency(LatencyOf(options));
    Diagnostics said;
    if (options.test) {
      const RecipeInputs inputs = CheckRecipeOfTest(recipe, folder, said);
      VariantInputs of_variant;
      if (!inputs.source.empty()) of_variant = CheckVariant(recipe, *variant, options.base);
      return TestVariant({recipe, *variant, inputs, of_variant, latency}, options.output,
                         options.latency.units);
    }
    const RecipeInputs inputs = CheckRecipe(recipe, folder, said);
    const VariantInputs of_variant = CheckVariant(recipe, *variant, options.base);
    std::optional<BuildCache> cache;
    if (!options.cache.place.empty()) cache.emplace(options.cache);
    return *BuildVariant({recipe, *variant, inputs, of_variant, latency}, BuildMode::kMake, folder,
                         cache ? &*cache : nullptr, options.base.force);
  } catch (...) {
    return NotBuilt(recipe, *variant, CurrentErrors());
  }
}

}  // namespace mlc::driver
