// Stores weights in the schemes that rules select (lib/compress/rules.h).
//
//   y = conv(x, w)       ->   y = conv(x, w')
//   w = const(dense)          w' = const(encoded: scale q, table[index], values where a mask is set)
//
// Runs once, on the program's own precision before it is narrowed: weights are final (scales and
// normalisations are folded into them), and the measurement of fp16 sees the compressed weights, so
// that it judges rounding only. The pass encoded-constants then stores the encodings. A weight that
// is encoded already, as a constant or by constexpr operations, is decoded first. Must not fire
// without rules, on constants that are not weights (lib/ir/op_def.h) unless a rule names them, on
// weights with fewer than 2048 elements unless named, with NaN or infinity, or if nothing is saved.
// Numeric effect: the error of each scheme, which the report states for each weight.
#include <algorithm>
#include <map>
#include <tuple>

#include "lib/compress/compression.h"
#include "lib/compress/quantise.h"
#include "lib/ir/encoding.h"
#include "lib/passes/rewriting.h"
#include "lib/support/edit_distance.h"
#include "lib/support/threads.h"

namespace mlc::passes {
namespace {

using compress::Compression;
using compress::Match;
using compress::Quantised;
using compress::Rule;
using compress::Subject;
using compress::WeightReport;

constexpr int64_t kLeastElements = 2048;
// Larger weights are compressed one by one, each on all threads.
constexpr int64_t kLarge = int64_t{1} << 20;

// Constants of a program that have the same elements.
struct Candidate {
  std::vector<Value*> values;
  Tensor tensor;  // perhaps encoded
  Subject subject;
  std::optional<WeightOperand> axes;  // of the first use as a weight
  bool decoded = false;               // by constexpr operations of the program
  bool is_output = false;
  const Rule* rule = nullptr;
  bool named = false;
  WeightReport report;
};

// The location of the elements and how they are transformed. Elements that are computed without a
// source have none, and are not shared.
using Place = std::tuple<const void*, uint64_t, std::string, Dims>;

std::optional<Place> PlaceOf(const Tensor& tensor) {
  const auto [held, plan] = tensor.origin();
  if (const Tensor::FileView view = held.file_view(); view.file)
    return Place(view.file, view.offset, plan, tensor.dims());
  const std::span<const std::byte> bytes = held.InPlace(0, held.size());
  if (bytes.empty()) return std::nullopt;
  return Place(bytes.data(), 0, plan, tensor.dims());
}

// Returns the constants that an encoded constant is made from, and those of a constexpr operation.
void AppendParts(const Tensor& tensor, std::vector<Tensor>& parts) {
  const Encoding* e = tensor.encoding();
  if (!e) return parts.push_back(tensor);
  for (const Tensor* part : {&e->data, &e->scale, &e->offset, &e->bias, &e->table, &e->mask})
    if (*part) AppendParts(*part, parts);
}

const std::string& NameOf(const Operation& op) {
  return op.results.empty() ? op.name : op.result()->name;
}

// Returns whether the value, its sine or its cosine only multiplies other values of the network, or
// is negated, as rotary embeddings are: such rows of a table are no embeddings, and need their
// precision.
// Operators by name: the operators of rotary embeddings.
bool OnlyRotates(const Value* value, int depth = 0) {
  constexpr int kMostDepth = 12;
  if (value->is_output() || value->users.empty() || depth == kMostDepth) return false;
  return std::all_of(value->users.begin(), value->users.end(), [&](const Operation* user) {
    if (user->is("mul")) {
      const Value* other = OtherOperand(user, value);
      if (!other || user->constant("x") || user->constant("y"))
        return OnlyRotates(user->result(), depth + 1);
      return true;
    }
    return (user->def->moves != Moves::kNone || IsCast(*user) || user->is("sin") ||
            user->is("cos")) &&
           std::ranges::all_of(user->results, [&](const auto& result) {
             return OnlyRotates(result.get(), depth + 1);
           });
  });
}

class Collector {
 public:
  explicit Collector(Program& program) {
    for (const auto& function : program.functions) {
      Candidate* first = nullptr;
      Candidate* last = nullptr;
      ForEachOperation(*function, [&](Operation* op) {
        if (op->def->is_constexpr()) return Decode(*op);
        if (op->def->is_const()) return;
        for (const auto& [candidate, weight] : UsesBy(op)) {
          if (!weight) continue;
          if (!first) first = candidate;
          last = candidate;
        }
      });
      if (first) first->subject.first = last->subject.last = true;
      for (Value* output : function->body.outputs())
        if (auto it = by_value_.find(output); it != by_value_.end()) it->second->is_output = true;
    }
  }

  std::vector<std::unique_ptr<Candidate>> Take() { return std::move(candidates_); }

 private:
  // Evaluates a constexpr operation: its results carry their encodings.
  void Decode(const Operation& op) {
    std::vector<Type> types;
    for (const auto& result : op.results) types.push_back(result->type);
    EvalContext context(*op.def, op.args(), decoded_, std::move(types));
    op.def->eval(context);
    for (size_t i = 0; i < op.results.size(); ++i)
      decoded_[op.results[i].get()] = {op.results[i]->type, context.results[i]};
  }

  // Records the uses of constants by an operation, and returns these with whether each is a weight.
  std::vector<std::pair<Candidate*, bool>> UsesBy(Operation* op) {
    std::vector<WeightOperand> weights;
    if (op->def->weights) weights = op->def->weights(OpContext(*op->def, op->args(), op));
    if (op->def->moves == Moves::kCopies && OnlyRotates(op->result())) weights.clear();
    std::vector<std::pair<Candidate*, bool>> uses;
    for (size_t p = 0; p < op->args().size(); ++p)
      for (const Operand& operand : op->args()[p]) {
        Candidate* candidate = operand.value ? Of(operand.value) : nullptr;
        if (!candidate) continue;
        Subject& subject = candidate->subject;
        const std::string_view param = op->def->canonical().params[p].name;
        const auto axes = std::ranges::find(weights, param, &WeightOperand::param);
        const bool weight = axes != weights.end();
        if (weight && !candidate->axes) {
          candidate->axes = *axes;
          candidate->report.consumer = NameOf(*op);
          candidate->report.op = op->def->name;
        } else if (candidate->report.consumer.empty()) {
          candidate->report.consumer = NameOf(*op);
          candidate->report.op = op->def->name;
        }
        subject.weight = subject.weight || weight;
        subject.consumers.push_back(NameOf(*op));
        // The bias of a convolution is not what `conv` selects.
        if (weight || weights.empty()) subject.types.push_back(op->def->name);
        uses.emplace_back(candidate, weight);
      }
    return uses;
  }

  // Returns the candidate that a float constant belongs to; null for other values.
  Candidate* Of(Value* value) {
    if (auto it = by_value_.find(value); it != by_value_.end()) return it->second;
    Tensor tensor = value->constant();
    const auto decoded = decoded_.find(value);
    if (!tensor && decoded != decoded_.end()) tensor = decoded->second.value;
    if (!tensor || (tensor.dtype() != DType::kFp32 && tensor.dtype() != DType::kFp16))
      return nullptr;
    std::vector<Tensor> parts;
    AppendParts(tensor, parts);
    std::vector<Place> places;
    for (const Tensor& part : parts)
      if (std::optional<Place> place = PlaceOf(part)) places.push_back(std::move(*place));
    Candidate* candidate = nullptr;
    if (places.size() == parts.size())
      if (auto it = by_place_.find(places); it != by_place_.end()) candidate = it->second;
    if (!candidate || candidate->tensor.dtype() != tensor.dtype()) {
      candidates_.push_back(std::make_unique<Candidate>());
      candidate = candidates_.back().get();
      candidate->tensor = tensor;
      candidate->decoded = !value->is_constant();
      candidate->report.name = value->name;
      candidate->report.dims = tensor.dims();
      if (places.size() == parts.size()) by_place_[std::move(places)] = candidate;
    }
    candidate->values.push_back(value);
    candidate->subject.names.push_back(value->name);
    candidate->is_output = candidate->is_output || value->is_output();
    return by_value_[value] = candidate;
  }

  OpContext::Values decoded_;
  std::map<const Value*, Candidate*> by_value_;
  std::map<std::vector<Place>, Candidate*> by_place_;
  std::vector<std::unique_ptr<Candidate>> candidates_;
};

bool HasEncoding(const Candidate& candidate) {
  return candidate.decoded || candidate.tensor.encoding();
}

// The size of a constant in a package, as it is.
uint64_t BytesOf(const Candidate& candidate, DType dtype) {
  if (!HasEncoding(candidate)) return ByteCount(dtype, candidate.tensor.size());
  std::vector<Tensor> parts;
  AppendParts(candidate.tensor, parts);
  uint64_t bytes = 0;
  for (const Tensor& part : parts)
    bytes += ByteCount(part.dtype() == DType::kFp32 ? dtype : part.dtype(), part.size());
  return bytes;
}

// Finds the rule of each candidate. A rule that selects nothing is an error.
void Select(const std::vector<Rule>& rules, std::vector<std::unique_ptr<Candidate>>& candidates) {
  for (const Rule& rule : rules) {
    bool any = rule.selector.empty();
    for (const auto& candidate : candidates) {
      const Match match = MatchOf(rule.selector, candidate->subject);
      if (match == Match::kNone) continue;
      if (!candidate->subject.weight && match == Match::kAny) continue;
      any = true;
      candidate->rule = &rule;
      candidate->named = match == Match::kName;
    }
    if (any) continue;
    std::set<std::string> names = {"first", "last"};
    for (const auto& candidate : candidates) {
      const Subject& subject = candidate->subject;
      if (!subject.weight) continue;
      names.insert(subject.names.begin(), subject.names.end());
      names.insert(subject.consumers.begin(), subject.consumers.end());
      names.insert(subject.types.begin(), subject.types.end());
    }
    throw Error("bad-name", "option 'compress': \"{}\" selects no weight", rule.selector)
        .Expected(
            "an operator type, first, last, or a name or glob of a weight or of what uses "
            "it, such as {}",
            Quoted(NearNames(names, rule.selector)));
  }
}

// Why a candidate that a rule selects stays as it is; empty: it does not.
std::string WhyUnchanged(const Candidate& candidate) {
  const Tensor& tensor = candidate.tensor;
  if (candidate.is_output) return "it is an output of the model";
  if (tensor.rank() < 2) return "it has fewer than two dimensions";
  if (tensor.size() < kLeastElements && !candidate.named)
    return fmt::format("it has fewer than {} elements", kLeastElements);
  return "";
}

class Compressor {
 public:
  Compressor(Program& program, PassContext& context)
      : program_(program),
        compression_(*context.compression),
        context_(context),
        half_(context.precision != PassContext::Precision::kFp32) {}

  bool Run() {
    candidates_ = Collector(program_).Take();
    if (compression_.decompress)
      Decompress();
    else
      Select(compression_.rules, candidates_);
    std::vector<Candidate*> large, small;
    for (const auto& candidate : candidates_)
      if (Examine(*candidate))
        (candidate->tensor.size() >= kLarge ? large : small).push_back(candidate.get());
    for (Candidate* candidate : large) Compress(*candidate, 0);
    ParallelFor(std::ssize(small), 0, [&](int64_t i) { Compress(*small[i], 1); });
    bool changed = false;
    for (const auto& candidate : candidates_) {
      changed |= candidate->report.compressed && Replace(*candidate);
      if (Concerns(*candidate)) compression_.weights.push_back(std::move(candidate->report));
    }
    return changed;
  }

 private:
  DType StoredType(const Candidate& candidate) const {
    return half_ ? DType::kFp16 : candidate.tensor.dtype();
  }

  // Whether the report mentions a constant.
  bool Concerns(const Candidate& candidate) const {
    if (compression_.decompress) return candidate.report.compressed;
    return candidate.subject.weight || candidate.rule || candidate.tensor.size() >= kLeastElements;
  }

  void Decompress() {
    static const Rule kPlain{"", {.values = compress::Scheme::Values::kPlain}};
    for (const auto& candidate : candidates_)
      if (HasEncoding(*candidate)) candidate->rule = &kPlain;
  }

  // Returns whether the candidate is to be compressed.
  bool Examine(Candidate& candidate) {
    WeightReport& report = candidate.report;
    report.weight = candidate.subject.weight;
    report.bytes_before = report.bytes_after = BytesOf(candidate, StoredType(candidate));
    if (!candidate.rule) {
      report.reason = candidate.subject.weight ? "no rule selects it"
                                               : fmt::format("it is not a weight of {}", report.op);
      return false;
    }
    report.asked = report.used = Text(candidate.rule->scheme);
    if (compression_.decompress) return true;
    report.reason = WhyUnchanged(candidate);
    if (candidate.rule->scheme.values == compress::Scheme::Values::kKept) return false;
    if (!report.reason.empty()) report.used = "none";
    return report.reason.empty();
  }

  void Compress(Candidate& candidate, int threads) {
    WeightReport& report = candidate.report;
    compress::Request request{.scheme = candidate.rule->scheme,
                              .axes = candidate.axes.value_or(WeightOperand()),
                              .half = half_,
                              .target = context_.target,
                              .threads = threads};
    if (auto it = compression_.importance.find(report.name); it != compression_.importance.end())
      request.importance = it->second;
    Quantised made = compress::Quantise(candidate.tensor, request);
    const bool plain = !made.tensor.encoding();
    report.used = Text(made.used);
    report.reason = made.stepped;
    auto leave = [&](std::string why) {
      report.reason = std::move(why);
      report.used = "none";
    };
    if (!made.refused.empty()) return leave(made.refused);
    if (plain && !HasEncoding(candidate)) return;  // fp16: it is plain already
    const uint64_t dense = ByteCount(StoredType(candidate), candidate.tensor.size());
    if (!plain && made.bytes >= dense)
      return leave(
          fmt::format("{} would take {} bytes instead of {}", report.used, made.bytes, dense));
    if (HasEncoding(candidate) && !plain)
      report.reason += fmt::format("{}it was compressed before, so that errors add up",
                                   report.reason.empty() ? "" : "; ");
    report.compressed = true;
    report.bytes_after = made.bytes;
    report.error = made.error;
    report.energy = made.energy;
    candidate.tensor = std::move(made.tensor);
  }

  bool Replace(Candidate& candidate) {
    for (Value* value : candidate.values) {
      if (candidate.named) compression_.named.insert(value->name);
      if (value->is_constant()) {
        value->def->val = candidate.tensor;
        continue;
      }
      Operation* op = value->def;
      const std::string name = value->name;
      Value* made = BuilderBefore(op, context_).Const(candidate.tensor, name);
      ReplaceAllUses(value, made);
      Function* function = op->block->function;
      EraseUnused(op);
      function->Rename(made, name);
    }
    return true;
  }

  Program& program_;
  Compression& compression_;
  PassContext& context_;
  const bool half_;
  std::vector<std::unique_ptr<Candidate>> candidates_;
};

bool Run(Program& program, PassContext& context) {
  if (!context.compression || context.compression->done) return false;
  compress::CheckTarget(context.compression->rules, context.target);
  context.compression->done = true;
  return Compressor(program, context).Run();
}

}  // namespace

extern const PassDef kCompress = {"compress", "store weights in compressed forms", Run};

}  // namespace mlc::passes
