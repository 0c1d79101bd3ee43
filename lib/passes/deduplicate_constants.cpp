// Replaces equal constants by the first of them.
//
//   a = const([1, 2]); b = const([1, 2])   ->   a, and every use of b uses a
//
// A constant that stands for several tensors of the source is no longer one of them.
//
// Must not fire on constants that differ in type or shape, on a constant that is a block output, or
// on default arguments as packages contain them, one for each operation: a package that mlc has just
// written would change. No numeric effect.
#include <unordered_map>

#include "lib/passes/rewriting.h"

namespace mlc::passes {
namespace {

// Computes a key that distinguishes most tensors: type, shape and the bytes at both ends of the
// stored data. Large tensors are compared in full only if their keys are equal. Returns whether the
// key holds the whole tensor.
bool Sketch(const Tensor& lazy, std::string& key) {
  constexpr int64_t kEnd = 64;  // a multiple of 8, as sub-byte types require
  key = {static_cast<char>(lazy.dtype()), static_cast<char>(lazy.rank())};
  key.append(reinterpret_cast<const char*>(lazy.dims().data()),
             lazy.dims().size() * sizeof(int64_t));
  if (lazy.size() <= kEnd && !lazy.file_view().file)
    if (auto bytes = lazy.InPlace(0, lazy.size()); !bytes.empty()) {
      key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return true;
    }
  auto [tensor, plan] = lazy.origin();
  key += plan;
  if (tensor.dtype() == DType::kString) {
    for (const std::string& text : tensor.strings()) {
      key += std::to_string(text.size());
      (key += ':') += text;
    }
    return true;
  }
  int64_t n = tensor.size();
  std::byte buffer[kEnd * 8];
  auto append = [&](int64_t first) {
    int64_t count = std::min(kEnd, n - first);
    tensor.Read(first, count, buffer);
    key.append(reinterpret_cast<const char*>(buffer), ByteCount(tensor.dtype(), count));
  };
  if (n > 0) append(0);
  if (n > kEnd) append((n - 1) / kEnd * kEnd);
  tensor.Release(0, n);  // the system maps more pages than were read
  return n <= kEnd;
}

// Returns whether the constant is an argument that its only user could omit, under the name that
// backends/coreml and coremltools give to defaults when they write them: OPERATION_PARAMETER_0.
bool IsWrittenDefault(const Operation& constant) {
  const Value* value = constant.result();
  if (value->users.size() != 1) return false;
  const Operation& user = *value->users.front();
  const std::string& name =
      user.name.empty() && !user.results.empty() ? user.result()->name : user.name;
  const std::vector<Param>& params = user.def->canonical().params;
  for (size_t i = 0; i < params.size(); ++i)
    if (params[i].default_kind != Param::Default::kRequired && user.args()[i].size() == 1 &&
        user.args()[i][0].value == value)
      return value->name.starts_with(fmt::format("{}_{}_0", name, params[i].name));
  return false;
}

// Records that `kept` also stands for an equal constant.
void MergeSources(Operation& kept, const Tensor& other) {
  const Tensor::Provenance *ours = kept.val.provenance(), *theirs = other.provenance();
  const bool same = ours && theirs
                        ? ours->sources == theirs->sources && ours->unchanged == theirs->unchanged
                        : ours == theirs;
  if (!same) kept.val = kept.val.ComputedFrom(kept.val).ComputedFrom(other);
}

// The constants of a block, by key, and those of the enclosing blocks.
struct Seen {
  const Seen* outer = nullptr;
  std::unordered_map<std::string, std::vector<Value*>> constants = {};
};

bool RunOnBlock(Block& block, const Seen* outer) {
  Seen seen{outer};
  bool changed = false;
  std::string sketch;
  for (auto it = block.operations().begin(); it != block.operations().end();) {
    Operation* op = *it++;
    for (std::unique_ptr<Block>& nested : op->blocks) changed |= RunOnBlock(*nested, &seen);
    if (!op->def->is_const() || op->result()->is_output() || IsWrittenDefault(*op)) continue;
    bool whole = Sketch(op->val, sketch);
    Value* same = nullptr;
    for (const Seen* around = &seen; around && !same; around = around->outer)
      if (auto it = around->constants.find(sketch); it != around->constants.end())
        for (Value* other : it->second)
          if (whole || other->constant().SameBytes(op->val)) same = other;
    if (!same) {
      seen.constants[sketch].push_back(op->result());
      continue;
    }
    MergeSources(*same->def, op->val);
    ReplaceAllUses(op->result(), same);
    block.Erase(op);
    changed = true;
  }
  return changed;
}

bool RunDeduplicateConstants(Program& program, PassContext&) {
  return OnEachFunction(program, [&](Function& f) { return RunOnBlock(f.body, nullptr); });
}

}  // namespace

extern const PassDef kDeduplicateConstants = {"deduplicate-constants", "merge equal constants",
                                              RunDeduplicateConstants};

}  // namespace mlc::passes
