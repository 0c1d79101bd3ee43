#include "lib/analysis/weight_bytes.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "lib/ir/encoding.h"

namespace mlc::analysis {
namespace {

constexpr int64_t kLeastElements = 10;

class Weights {
 public:
  // `value` is the result of a constant or of an operation that decodes one.
  void Add(const Value& value) {
    if (value.is_constant()) return Add(value.name, value.constant());
    Add({value.name, value.def->def->name, value.type.dtype, StaticDims(value.type.shape),
         PartsOf(value)});
  }
  void Add(std::string name, const Tensor& constant) {
    Add({std::move(name), "", constant.dtype(), constant.dims(), PartsOf(constant)});
  }

  std::vector<Weight> Take() { return std::move(weights_); }

 private:
  // The location of the elements. Computed elements have none, and are not shared.
  using Place = std::tuple<const void*, uint64_t, size_t>;

  static void Append(const Tensor& tensor, std::vector<Tensor>& parts) {
    const Encoding* e = tensor.encoding();
    if (!e) return parts.push_back(tensor);
    for (const Tensor* part : {&e->data, &e->scale, &e->offset, &e->bias, &e->table, &e->mask})
      if (*part) Append(*part, parts);
  }
  static std::vector<Tensor> PartsOf(const Tensor& tensor) {
    std::vector<Tensor> parts;
    Append(tensor, parts);
    return parts;
  }

  std::vector<Tensor> PartsOf(const Value& value) {
    if (value.is_constant()) return PartsOf(value.constant());
    std::vector<Tensor> parts;
    for (const Operands& operands : value.def->args())
      for (const Operand& operand : operands) {
        const DType dtype = operand.type().dtype;
        // Skip axes and shapes; no constexpr operation stores elements in these types.
        if (dtype == DType::kString || dtype == DType::kInt32 || dtype == DType::kUint32) continue;
        const Tensor literal = operand.constant();
        const std::vector<Tensor> more = literal ? PartsOf(literal) : PartsOf(*operand.value);
        parts.insert(parts.end(), more.begin(), more.end());
      }
    return parts;
  }

  void Add(Weight weight) {
    if (weight.dtype == DType::kString || weight.elements() < kLeastElements) return;
    std::erase_if(weight.parts, [&](const Tensor& part) {
      const auto [held, plan] = part.origin();
      const std::span<const std::byte> bytes = held.InPlace(0, held.size());
      const Tensor::FileView view = held.file_view();
      const Place place = view.file ? Place(view.file, view.offset, view.size)
                                    : Place(bytes.data(), 0, bytes.size());
      return std::get<0>(place) && !seen_.insert(place).second;
    });
    if (weight.parts.empty()) return;
    for (const Tensor& part : weight.parts) weight.bytes += part.byte_size();
    weights_.push_back(std::move(weight));
  }

  std::vector<Weight> weights_;
  std::set<Place> seen_;
};

bool Decodes(const Operation* op) { return op->def->is_constexpr(); }

}  // namespace

std::vector<Weight> WeightsOf(const Program& program) {
  Weights weights;
  for (const auto& function : program.functions)
    ForEachOperation(*function, [&](Operation* op) {
      if (op->def->is_const() || Decodes(op)) {
        // A constant that is only decoded further is a part of the later operation.
        for (const auto& result : op->results)
          if (result->is_output() || result->users.empty() ||
              !std::all_of(result->users.begin(), result->users.end(), Decodes))
            weights.Add(*result);
        return;
      }
      for (size_t p = 0; p < op->args().size(); ++p)
        for (const Operand& operand : op->args()[p])
          if (!operand.value && operand.constant())
            weights.Add(fmt::format("{}.{}", op->results.empty() ? op->name : op->result()->name,
                                    op->def->canonical().params[p].name),
                        operand.constant());
    });
  return weights.Take();
}

}  // namespace mlc::analysis
