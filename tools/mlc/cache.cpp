#include <nlohmann/json.hpp>

#include "lib/report/render.h"
#include "lib/support/utc_time.h"
#include "tools/driver/compiled_model_cache.h"
#include "tools/mlc/command.h"
#include "tools/mlc/terminal.h"

namespace mlc::driver {
namespace {

using Json = nlohmann::ordered_json;
using SystemTime = std::chrono::system_clock::time_point;

struct CacheArguments {
  std::string action, limit;
  std::filesystem::path folder;
  bool verify = false;
};

std::string TimeText(SystemTime time) {
  return UtcText(std::chrono::system_clock::to_time_t(time));
}

// `cache` is null if there is none.
int List(cache::FolderCache* cache, const std::filesystem::path& folder, bool json) {
  const std::vector<cache::CachedModel> models =
      cache ? cache->List() : std::vector<cache::CachedModel>();
  if (json) {
    Json list = Json::array();
    for (const cache::CachedModel& model : models) {
      Json parts = Json::array();
      for (const auto& [name, value] : model.parts)
        parts.push_back({{"name", name}, {"value", value}});
      list.push_back({{"key", model.key},
                      {"model", model.part("model")},
                      {"maker", model.part("maker")},
                      {"units", model.part("units")},
                      {"bytes", model.bytes},
                      {"seconds", model.seconds},
                      {"made", TimeText(model.made)},
                      {"used", TimeText(model.used)},
                      {"in_use", model.in_use},
                      {"parts", parts}});
    }
    PrintDocument({{"folder", folder.string()}, {"entries", list}});
    return 0;
  }
  report::Table table{
      "",
      {{"key"}, {"model"}, {"maker"}, {"units"}, {"size"}, {"took"}, {"last used"}, {""}},
      {},
      0};
  constexpr size_t kShownDigits = 12;
  for (const cache::CachedModel& model : models)
    table.rows.push_back({model.key.substr(0, kShownDigits), model.part("model"),
                          model.part("maker"), model.part("units"), BytesText(model.bytes),
                          fmt::format("{:.2f} s", model.seconds), TimeText(model.used),
                          model.in_use ? "in use" : ""});
  if (models.empty())
    fmt::print("{} in {}\n", cache ? "no entries" : "no cache", folder.string());
  else
    fmt::print("{}", CutLines(report::TerminalText(table), stdout));
  return 0;
}

int Stats(cache::FolderCache* cache, const std::filesystem::path& folder, bool json) {
  const cache::CacheStatistics found =
      cache ? cache->Statistics() : cache::CacheStatistics{.limit = CacheLimit()};
  const uint64_t asked = found.hits + found.misses;
  if (json) {
    Json document{{"folder", folder.string()},
                  {"entries", found.entries},
                  {"bytes", found.bytes},
                  {"limit", found.limit},
                  {"hits", found.hits},
                  {"misses", found.misses},
                  {"evictions", found.evictions},
                  {"evicted_bytes", found.evicted_bytes},
                  {"damaged", found.damaged},
                  {"made_seconds", found.made_seconds},
                  {"saved_seconds", found.saved_seconds}};
    if (asked > 0)
      document["hit_rate"] = static_cast<double>(found.hits) / static_cast<double>(asked);
    PrintDocument(document);
    return 0;
  }
  fmt::print("folder     {}{}\n", folder.string(), cache ? "" : " (does not exist)");
  fmt::print("entries    {}, {} of {}\n", found.entries, BytesText(found.bytes),
             BytesText(found.limit));
  fmt::print("hits       {} of {}{}\n", found.hits, asked,
             asked > 0 ? fmt::format(" ({:.1f} %)", 100.0 * static_cast<double>(found.hits) /
                                                        static_cast<double>(asked))
                       : "");
  fmt::print("saved      {:.1f} s of compilation; {:.1f} s spent on it\n", found.saved_seconds,
             found.made_seconds);
  fmt::print("removed    {}, {}; {} of them damaged\n", found.evictions,
             BytesText(found.evicted_bytes), found.damaged);
  return 0;
}

int Removed(const std::filesystem::path& folder, const std::vector<cache::Eviction>& removed,
            bool json) {
  uint64_t bytes = 0;
  Json list = Json::array();
  for (const cache::Eviction& eviction : removed) {
    bytes += eviction.bytes;
    list.push_back({{"key", eviction.key},
                    {"model", eviction.model},
                    {"bytes", eviction.bytes},
                    {"reason", eviction.reason}});
    if (!json)
      fmt::print("{}  {}  ({})\n", BytesText(eviction.bytes),
                 eviction.model.empty() ? "pieces" : eviction.model, eviction.reason);
  }
  if (json)
    PrintDocument({{"folder", folder.string()}, {"removed", list}, {"removed_bytes", bytes}});
  else
    fmt::print("{} removed, {}\n", removed.size(), BytesText(bytes));
  return 0;
}

int RunCache(const CacheArguments& given, Session& session) {
  const std::string& action = given.action;
  if (action != "ls" && action != "gc" && action != "clear" && action != "stats")
    throw UnknownWord("ACTION", action, {"ls", "gc", "clear", "stats"});
  if (action != "gc" && (given.verify || !given.limit.empty()))
    throw Error("usage", "--limit and --verify require mlc cache gc");
  const uint64_t limit = given.limit.empty() ? CacheLimit() : ParseBytes("--limit", given.limit);
  const std::filesystem::path folder =
      std::filesystem::absolute(given.folder.empty() ? DefaultCacheFolder() : given.folder);
  const std::unique_ptr<cache::FolderCache> cache = OpenExistingCache(folder);
  if (action == "ls") return List(cache.get(), folder, session.json);
  if (action == "stats") return Stats(cache.get(), folder, session.json);
  if (!cache) {
    session.diagnostics.Note("no cache in \"{}\"", folder.string());
    return Removed(folder, {}, session.json);
  }
  // Entries evicted by opening the cache are reported, too.
  std::vector<cache::Eviction> removed = cache->evictions();
  auto add = [&](std::vector<cache::Eviction> more) {
    removed.insert(removed.end(), more.begin(), more.end());
  };
  if (given.verify) {
    std::vector<cache::Eviction> in_use;
    add(cache->Verify(&in_use));
    for (const cache::Eviction& entry : in_use)
      session.diagnostics.Note("{} is in use and was kept, although {}", entry.model, entry.reason);
  }
  if (action == "clear") {
    add(cache->Clear());
    for (const cache::CachedModel& model : cache->List())
      session.diagnostics.Note("{} is in use and was kept", model.part("model"));
  } else {
    add(cache->Collect(limit));
  }
  return Removed(folder, removed, session.json);
}

}  // namespace

Command CacheCommand() {
  auto given = std::make_shared<CacheArguments>();
  return {
      "cache",
      "Manage the cache of compiled models",
      {"mlc cache ls", "mlc cache gc --limit 5GB"},
      {{"ACTION", "ls|stats|gc|clear",
        "ls (list entries), stats, gc (shrink to the limit) or clear (remove all)",
        Into(given->action), true},
       {"--cache", "DIR", "cache folder (default: MLC_CACHE_DIR, or the user's cache folder)",
        Into(given->folder)},
       {"--limit", "BYTES", "gc: maximum size, e.g. 500MB (default: MLC_CACHE_LIMIT, or 10GB)",
        Into(given->limit)},
       {"--verify", "", "gc: read every file and remove damaged entries", Switch(given->verify)},
       JsonOption()},
      [given](Session& session) { return RunCache(*given, session); },
      "Entries in use are never removed. DIR/log records removals and their reasons.\n\n",
      {"run", "precompile"}};
}

}  // namespace mlc::driver
