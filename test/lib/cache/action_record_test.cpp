#include "lib/cache/action_record.h"

#include "test/catch.h"

namespace mlc::cache {
namespace {

CacheKey KeyOf(const std::string& model) {
  CacheKey key;
  key.Add("model", model);
  return key;
}

ActionRecord Sample() {
  return {.name = "out",
          .parts = KeyOf("m").parts(),
          .files = {{"out/a", std::string(64, '1'), 3}, {"out/b/c", std::string(64, '2'), 0}},
          .made = 1700000000,
          .seconds = 1.5};
}

// The record of Sample with other paths, and a checksum that fits them.
std::optional<ActionRecord> WithPaths(std::string name, std::vector<std::string> paths) {
  ActionRecord record = Sample();
  record.name = std::move(name);
  record.files.clear();
  for (std::string& path : paths) record.files.push_back({path, std::string(64, '1'), 3});
  return Decode(Encode(record), KeyOf("m").Hex());
}

TEST_CASE("action record: decoding returns what was encoded", "[cache]") {
  const ActionRecord record = Sample();
  const std::optional<ActionRecord> read = Decode(Encode(record), KeyOf("m").Hex());
  REQUIRE(read);
  CHECK(read->name == record.name);
  CHECK(read->parts == record.parts);
  CHECK(read->made == record.made);
  CHECK(read->seconds == record.seconds);
  CHECK(read->bytes() == 3);
  CHECK(read->model() == "m");
  REQUIRE(read->files.size() == 2);
  CHECK(read->files[1].path == "out/b/c");
  CHECK(read->files[1].sha256 == std::string(64, '2'));
}

TEST_CASE("action record: the numbers of the fields are those of the Remote Execution API",
          "[cache]") {
  const std::string bytes = Encode(Sample());
  // Field 2 of ActionResult, with field 1 of OutputFile and field 2, a Digest with field 1.
  const std::string first = std::string("\x12\x4d\x0a\x05out/a\x12\x44\x0a\x40", 13) +
                            std::string(64, '1') + std::string("\x10\x03", 2);
  CHECK(bytes.starts_with(first));
}

TEST_CASE("action record: that of another action is refused", "[cache]") {
  CHECK_FALSE(Decode(Encode(Sample()), KeyOf("n").Hex()));
}

TEST_CASE("action record: damage is detected", "[cache]") {
  const std::string bytes = Encode(Sample()), key = KeyOf("m").Hex();
  CHECK_FALSE(Decode("", key));
  CHECK_FALSE(Decode("<html>", key));
  int accepted = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] ^= 1;
    const std::optional<ActionRecord> read = Decode(damaged, key);
    if (!read) continue;
    // Only times may differ, which decide nothing.
    ++accepted;
    CHECK(read->name == "out");
    CHECK(read->files[0].sha256 == std::string(64, '1'));
  }
  CHECK(accepted < 40);
  for (size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(Decode(bytes.substr(0, size), key));
}

TEST_CASE("action record: fields that a server adds are ignored", "[cache]") {
  // execution_metadata = 9, with a worker = 1.
  CHECK(Decode(Encode(Sample()) + std::string("\x4a\x03\x0a\x01w", 5), KeyOf("m").Hex()));
}

TEST_CASE("action record: a failed action is no result", "[cache]") {
  CHECK_FALSE(Decode(Encode(Sample()) + std::string("\x20\x01", 2), KeyOf("m").Hex()));
}

TEST_CASE("action record: paths stay inside of the folder", "[cache]") {
  CHECK(WithPaths("out", {"out"}));
  CHECK(WithPaths("out", {"out/a b", "out/\xc3\xa9"}));
  for (const char* path : {"/etc/passwd", "..", "../out", "out/../../x", "out/..", "out/.",
                           "other/a", "outside", "", "out/", "out//a"})
    CHECK_FALSE(WithPaths("out", {path}));
  for (const char* name : {"", ".", "..", "a/b"}) CHECK_FALSE(WithPaths(name, {name}));
  CHECK_FALSE(WithPaths("out", {"out/b", "out/a"}));  // not sorted
  CHECK_FALSE(WithPaths("out", {"out/a", "out/a"}));
}

}  // namespace
}  // namespace mlc::cache
