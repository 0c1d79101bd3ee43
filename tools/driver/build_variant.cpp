#include "tools/driver/build_variant.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>

#include "backends/coreml/manifest.h"
#include "backends/coreml/write_mlmodelc.h"
#include "backends/coreml/write_package.h"
#include "lib/support/atomic_install.h"
#include "lib/support/json_text.h"
#include "tools/driver/errors.h"
#include "tools/driver/tokenizer.h"

namespace fs = std::filesystem;

namespace mlc::driver {
namespace {

using Files = std::vector<cache::ActionRecord::File>;

// Thrown through the cache, which keeps no result then.
struct ChecksFailed {
  BuildRecord facts;
};

bool AllOk(const BuildRecord& record) {
  return std::ranges::all_of(record.checks, [](const BuildCheck& check) { return check.ok; });
}

// Adds the facts of an action.
void Merge(const BuildRecord& facts, BuildRecord& into) {
  if (!facts.precision.empty()) {
    into.precision = facts.precision;
    into.target = facts.target;
    into.content_hash = facts.content_hash;
    into.fp16_share = facts.fp16_share;
    into.operations = facts.operations;
    into.weight_bytes = facts.weight_bytes;
    into.package_bytes = facts.package_bytes;
  }
  if (facts.latency_ms) {
    into.latency_ms = facts.latency_ms;
    into.machine = facts.machine;
  }
  auto append = [](const auto& from, auto& to) { to.insert(to.end(), from.begin(), from.end()); };
  append(facts.checks, into.checks);
  append(facts.warnings, into.warnings);
  append(facts.notes, into.notes);
}

// Describes what differs between the keys of two builds. `package` includes the files of the
// package, which differ whenever it is built again.
std::vector<std::string> Changes(const cache::KeyParts& before, const cache::KeyParts& now,
                                 bool package) {
  std::vector<std::string> changes;
  auto add = [&](std::string_view what, std::string name) {
    if (name.starts_with("package ") && !package) return;
    if (name.starts_with("file ")) name = name.substr(5);
    if (name == "build" || name == "mlc") name = "mlc itself";
    const std::string text = fmt::format("{}: {}", what, name);
    if (std::ranges::find(changes, text) == changes.end()) changes.push_back(text);
  };
  for (const auto& [name, value] : now) {
    const std::string* old = cache::FindPart(before, name);
    if (!old)
      add("new", name);
    else if (*old != value)
      add("changed", name);
  }
  for (const auto& [name, value] : before)
    if (!cache::FindPart(now, name)) add("removed", name);
  return changes;
}

std::set<std::string> Tops(const Files& files) {
  std::set<std::string> tops;
  for (const cache::ActionRecord::File& file : files)
    tops.insert(fs::path(file.path).begin()->string());
  return tops;
}

std::optional<BuildRecord> ReadFacts(const fs::path& into) {
  constexpr size_t kMost = 64u << 20;
  const std::optional<std::string> text = cache::TextOf(into / kFactsFile, kMost);
  if (!text) return std::nullopt;
  try {
    return BuildRecordFromJson(ParseJson(*text));
  } catch (const nlohmann::ordered_json::exception&) {
    return std::nullopt;
  }
}

class VariantBuilder {
 public:
  VariantBuilder(const VariantBuild& build, BuildMode mode, BuildFolder& folder, BuildCache* cache,
                 bool force)
      : build_(build), mode_(mode), folder_(folder), cache_(cache), force_(force) {
    step_.record.recipe = build.recipe.file.string();
    step_.record.name = build.variant.name;
    step_.record.options = JoinedOptions(build.variant.options);
  }

  std::optional<BuildRecord> Run() {
    const auto begin = std::chrono::steady_clock::now();
    try {
      std::optional<FileLock> lock;
      if (mode_ != BuildMode::kLook) lock = folder_.Lock(build_.variant.name);
      old_ = folder_.ReadState(build_.variant.name);
      announced_ = folder_.Announced(build_.variant.name);
      for (const BuildAction& action : BuildActions())
        if (action.wanted(build_) && !RunAction(action)) {
          if (mode_ == BuildMode::kFetch) return std::nullopt;
          step_.record.status = BuildRecord::Status::kNotBuilt;
          return step_.record;
        }
      Finish();
    } catch (const ChecksFailed& failed) {
      Merge(failed.facts, step_.record);
      step_.record.status = BuildRecord::Status::kFailed;
      NoteEarlier();
    } catch (...) {
      step_.record.status = BuildRecord::Status::kNotBuilt;
      step_.record.checks.clear();
      step_.record.errors = CurrentErrors();
      NoteEarlier();
    }
    if (cache_)
      for (Error& warning : cache_->TakeWarnings())
        step_.record.warnings.push_back(std::move(warning));
    step_.record.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::move(step_.record);
  }

 private:
  fs::path Output(const char* suffix) const {
    return folder_.out() / (build_.variant.name + suffix);
  }

  // Returns false if the result is not there and may not be made.
  bool RunAction(const BuildAction& action) {
    const std::string name(action.name);
    const cache::CacheKey key = KeyOf(action, build_, step_, folder_);
    const BuildState::Action* before = nullptr;
    if (old_)
      if (auto it = old_->actions.find(name); it != old_->actions.end()) before = &it->second;
    std::vector<std::string> why;
    if (!before) {
      why.push_back(old_ ? "new: " + name : "first build");
    } else if (before->parts != key.parts()) {
      why = Changes(before->parts, key.parts(), new_.empty());
    } else if (std::string difference = folder_.Difference(before->files); !difference.empty()) {
      why.push_back(std::move(difference));
    }
    BuildState::Action now{.parts = key.parts()};
    fs::path place = folder_.out();
    if (before && why.empty() && before->parts == key.parts()) {
      now = *before;
    } else {
      for (std::string& reason : why)
        if (std::ranges::find(step_.record.why, reason) == step_.record.why.end())
          step_.record.why.push_back(std::move(reason));
      if (mode_ == BuildMode::kLook) return false;
      if (!stage_) CheckTargets();
      place = stage_->path().parent_path() / name;
      if (!FetchOrMake(action, key, place)) return false;
      std::optional<BuildRecord> facts = ReadFacts(place);
      MLC_CHECK(facts.has_value(), "the action {} left no facts", name);
      now.facts = std::move(*facts);
      fs::remove(place / kFactsFile);
      now.files = cache::RecordFiles(place, folder_.digests());
      new_.push_back(place);
    }
    Merge(now.facts, step_.record);
    if (name == "package") {
      step_.package = place / (build_.variant.name + ".mlpackage");
      step_.files = now.files;
    }
    if (std::ranges::all_of(now.facts.checks, &BuildCheck::judged))
      state_.actions[name] = std::move(now);
    return true;
  }

  bool FetchOrMake(const BuildAction& action, const cache::CacheKey& key, const fs::path& place) {
    const std::string name(action.name);
    BuildCache* const cache = action.of_machine ? nullptr : cache_;
    if (cache && cache->Fetch(key, name, place)) {
      if (ReadFacts(place)) {
        step_.record.cached.push_back(name);
        return true;
      }
      fs::remove_all(place);
    }
    if (mode_ != BuildMode::kMake) return false;
    auto make = [&](const fs::path& into) {
      const FileLock working = folder_.Working(action.of_machine);
      fs::create_directory(into);
      Diagnostics diagnostics;
      BuildRecord facts = action.make(build_, step_, into, diagnostics);
      facts.warnings = diagnostics.warnings();
      facts.notes = diagnostics.notes();
      if (!AllOk(facts)) throw ChecksFailed{std::move(facts)};
      key.RequireUnchanged();
      OutputFile file(into / kFactsFile);
      file.Write(JsonText(BuildRecordJson(facts), 1, BadUtf8::kReplace) + "\n");
      file.Close();
    };
    if (cache && cache->FetchOrMake(key, name, place, make)) {
      step_.record.cached.push_back(name);
      return true;
    }
    if (!cache) make(place);
    step_.record.made.push_back(name);
    return true;
  }

  // Results of earlier builds in this folder are replaced even if they were modified, and those of a
  // build that was interrupted while it installed them.
  bool MayReplace(const std::string& top) const {
    if (force_ || announced_.contains(top)) return true;
    return old_ && std::ranges::any_of(old_->actions, [&](const auto& action) {
             return Tops(action.second.files).contains(top);
           });
  }

  void CheckTarget(const fs::path& target) const {
    const bool force = MayReplace(target.filename().string());
    std::error_code error;
    if (target.extension() == ".mlpackage")
      coreml::CheckPackageTarget(target, force);
    else if (target.extension() == ".mlmodelc")
      coreml::CheckBundleTarget(target, force);
    else if (target.string().ends_with(".manifest.json"))
      coreml::CheckManifestTarget(Output(".mlpackage"), force);
    else if (!force && fs::exists(fs::symlink_status(target, error)))
      throw Error("file-exists", "\"{}\" exists and was not written by mlc build", target.string())
          .Help("remove it first, or pass option 'force'");
  }

  void CheckTargets() {
    CheckTarget(Output(".mlpackage"));
    if (build_.options.options.manifest) CheckTarget(Output(".manifest.json"));
    if (build_.variant.bundle) CheckTarget(Output(".mlmodelc"));
    if (build_.variant.parity_bundle) CheckTarget(Output(".parity"));
    // Its folder holds all results until they are installed.
    stage_.emplace(Output(".mlpackage"), Staging::kFolder, force_);
  }

  void Finish() {
    BuildRecord& record = step_.record;
    record.status = new_.empty() ? BuildRecord::Status::kUpToDate : BuildRecord::Status::kPassed;
    if (!new_.empty() && mode_ != BuildMode::kLook) Install();
    auto set = [&](fs::path& field, const char* suffix) {
      std::error_code error;
      for (const auto& [name, action] : state_.actions)
        if (Tops(action.files).contains(build_.variant.name + suffix)) field = Output(suffix);
    };
    set(record.package, ".mlpackage");
    set(record.manifest, ".manifest.json");
    set(record.tokenizer, ".tokenizer");
    set(record.bundle, ".mlmodelc");
    set(record.parity_bundle, ".parity");
  }

  void Install() {
    std::vector<fs::path> tops;
    for (const fs::path& place : new_)
      for (const fs::directory_entry& entry : fs::directory_iterator(place))
        tops.push_back(entry.path());
    std::ranges::sort(tops, {}, [](const fs::path& path) { return path.filename(); });
    std::set<std::string> outputs = announced_;
    for (const fs::path& top : tops) {
      CheckTarget(folder_.out() / top.filename());
      outputs.insert(top.filename().string());
    }
    folder_.Announce(build_.variant.name, outputs);
    for (const fs::path& top : tops) {
      const bool folder = fs::is_directory(top);
      Staging staging(folder_.out() / top.filename(), folder ? Staging::kFolder : Staging::kFile,
                      force_);
      fs::rename(top, staging.path());
      staging.Commit();
    }
    RemoveNeedless();
    folder_.WriteState(build_.variant.name, state_);
  }

  // Removes unmodified results of the last build that this one does not have.
  void RemoveNeedless() {
    if (!old_) return;
    std::set<std::string> now;
    for (const auto& [name, action] : state_.actions) now.merge(Tops(action.files));
    for (const auto& [name, action] : old_->actions)
      for (const std::string& top : Tops(action.files)) {
        if (now.contains(top)) continue;
        Files files;
        std::ranges::copy_if(action.files, std::back_inserter(files), [&](const auto& file) {
          return fs::path(file.path).begin()->string() == top;
        });
        std::error_code ignored;
        if (folder_.Difference(files).empty()) fs::remove_all(folder_.out() / top, ignored);
      }
  }

  // The package that passed before is kept, because it may be the only copy.
  void NoteEarlier() {
    const std::string top = build_.variant.name + ".mlpackage";
    std::error_code error;
    if (!fs::exists(Output(".mlpackage"), error)) return;
    std::string difference = "it was not built here";
    if (old_)
      for (const auto& [name, action] : old_->actions)
        if (Tops(action.files).contains(top)) difference = folder_.Difference(action.files);
    step_.record.notes.push_back(
        difference.empty()
            ? fmt::format("{} is that of the last build that passed", top)
            : fmt::format("{} is not the result of a build that passed: {}", top, difference));
  }

  const VariantBuild& build_;
  BuildMode mode_;
  BuildFolder& folder_;
  BuildCache* cache_;
  bool force_;
  std::optional<BuildState> old_;
  std::set<std::string> announced_;  // by a build that was interrupted
  BuildState state_;
  BuildStep step_;
  std::optional<Staging> stage_;
  std::vector<fs::path> new_;  // folders with the results that are not installed yet
};

}  // namespace

std::optional<BuildRecord> BuildVariant(const VariantBuild& build, BuildMode mode,
                                        BuildFolder& folder, BuildCache* cache, bool force) {
  return VariantBuilder(build, mode, folder, cache, force).Run();
}

}  // namespace mlc::driver
