#include "lib/passes/weight_candidates.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "lib/ir/encoding.h"
#include "lib/passes/rewriting.h"
#include "lib/support/edit_distance.h"

namespace mlc::passes {

namespace {

using compress::Match;
using compress::Rule;
using compress::Subject;

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

}  // namespace

bool HasEncoding(const Candidate& candidate) {
  return candidate.decoded || candidate.tensor.encoding();
}

Operation* BiasOf(const Candidate& candidate) {
  if (candidate.values.size() != 1 || candidate.values[0]->users.size() != 1) return nullptr;
  const Operation* op = *candidate.values[0]->users.begin();
  if (!candidate.axes || candidate.axes->param != "weight" || op->def->Find("bias") < 0)
    return nullptr;
  Value* bias = op->value("bias");
  if (!bias || !bias->is_constant() || bias->users.size() != 1 || bias->is_output() ||
      bias->constant().encoding() || bias->constant().rank() != 1)
    return nullptr;
  return bias->def;
}

void CorrectBias(Operation& bias, std::span<const float> correction) {
  std::vector<double> corrected = bias.val.Doubles();
  for (size_t i = 0; i < corrected.size(); ++i) corrected[i] += static_cast<double>(correction[i]);
  const std::vector<float> stored(corrected.begin(), corrected.end());
  bias.val = Tensor::Of(bias.val.dims(), stored).Cast(bias.val.dtype()).InMemory();
}

uint64_t BytesOf(const Candidate& candidate, DType dtype) {
  if (!HasEncoding(candidate)) return ByteCount(dtype, candidate.tensor.size());
  std::vector<Tensor> parts;
  AppendParts(candidate.tensor, parts);
  uint64_t bytes = 0;
  for (const Tensor& part : parts)
    bytes += ByteCount(part.dtype() == DType::kFp32 ? dtype : part.dtype(), part.size());
  return bytes;
}

void SelectRules(const std::vector<Rule>& rules,
                 std::vector<std::unique_ptr<Candidate>>& candidates) {
  for (const Rule& rule : rules) {
    bool any = rule.selector.empty();
    for (const auto& candidate : candidates) {
      const Match match = MatchOf(rule.selector, candidate->subject);
      if (match == Match::kNone) continue;
      if (!candidate->subject.weight && match == Match::kAny) continue;
      any = true;
      candidate->rule = &rule;
      candidate->scheme = rule.scheme;
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
    throw Error("bad-name", "option 'compress': \"{}\" selects no weight{}", rule.selector,
                DidYouMean(names, rule.selector))
        .Expected(
            "an operator type, first, last, or a name or glob of a weight or of what uses "
            "it, such as {}",
            Quoted(NearNames(names, rule.selector)));
  }
}

std::vector<std::unique_ptr<Candidate>> CollectCandidates(Program& program) {
  return Collector(program).Take();
}

}  // namespace mlc::passes
