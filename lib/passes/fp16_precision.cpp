// Computes in fp16 what the program computes in fp32, but for what fp16 cannot hold.
//
//   y: fp32 = conv(x: fp32, w: fp32)
//     ->   x16 = cast(x); y16 = conv(x16, w16); y = cast(y16 -> fp32)
//
// Casts stand at model inputs and outputs and around operations that stay fp32:
//   - operations with a constant whose finite values do not fit (65520 and above would become
//     infinity); bounds of clip, maximum, minimum and pad may become infinite;
//   - products with constants that are all below 2^-14, of which fp16 keeps few digits;
//   - sin, cos, tan and the coordinates of resample and crop_resize, with the arithmetic that makes
//     them: fp16 keeps an angle of 100 to within 0.03 only;
//   - arithmetic on converted integers that ends in integers, comparisons, rounding or differences
//     of such numbers: fp16 counts to 2048;
//   - products of whole numbers with what makes them, as integer convolutions are written: their
//     sums are exact in fp32;
//   - arithmetic that ends in rounding: fp16 would choose another step of a quantised number;
//   - log with what makes its operand, convolutions included: fp16 has nothing below 6e-8, where a
//     logarithm still differs by much;
//   - boxes and scores of non_maximum_suppression, with the arithmetic that makes them: which boxes
//     are kept hangs on their last digits, and classes are often told apart by great offsets;
//   - the small last operations before a model output, back to convolutions (results of at most
//     16384 elements, constants of at most 65536): scores near zero and near ties keep their
//     digits, and the output is fp32 anyway;
//   - operations that Core ML has in fp32 only;
//   - weights in other forms (constexpr operations) that only such operations take;
//   - with --precision mixed: reductions, normalisations, softmax, exp, log, pow and roots as well.
// Each is a decision in the manifest. A scalar below half the smallest fp16 number becomes that
// number (an epsilon must not vanish). Must not fire on integers, inside control flow, on programs
// compiled with --precision fp32, on programs that are fp16 already. Numeric effect: fp16 rounding,
// budget "fp16".
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "lib/passes/match.h"
#include "lib/support/threads.h"

namespace mlc {
namespace {

constexpr double kOverflow = 65520;    // rounds to infinity in binary16
constexpr double kSmallest = 0x1p-24;  // smallest binary16 above zero
constexpr double kNormal = 0x1p-14;    // below it binary16 loses digits

bool IsFp32(const Type& type) { return type.is_tensor() && type.dtype == DType::kFp32; }

// A reason to stay fp32 that goes back from an operation to those that make its operands, as far as
// nothing else uses their results.
struct Chain {
  std::string_view reason;
  bool (*starts)(const Operation&);
  bool (*carries)(const Operation&);
  // Also back from one of several uses, which may be inside control flow; the others read it
  // narrowed.
  bool shared = false;
};

template <Fp16::Digits digits>
bool Needs(const Operation& op) {
  return op.def->fp16.needs & digits;
}
template <Fp16::Digits digits>
bool Carries(const Operation& op) {
  return op.def->fp16.carries & digits;
}
bool Is(const Operation& op, Fp16::Kind kind) { return op.def->fp16.kind & kind; }

constexpr int64_t kTailElements = 16384, kTailConstant = 65536;

// Also in another form than a dense constant.
bool IsWeight(const Value* value) {
  return value->is_constant() || (value->def && value->def->def->is_constexpr());
}

bool IsLargeConstant(const Operand& operand) {
  if (const Tensor& constant = operand.constant()) return constant.size() > kTailConstant;
  return operand.value && IsWeight(operand.value) &&
         ElementCount(StaticDims(operand.type().shape)) > kTailConstant;
}

// Sizes that are not known count with their lower bounds.
bool IsSmall(const Operation& op) {
  for (const std::vector<Operand>& operands : op.args())
    if (std::any_of(operands.begin(), operands.end(), IsLargeConstant)) return false;
  const Symbols& symbols = op.block->function->symbols;
  for (const std::unique_ptr<Value>& result : op.results) {
    if (result->type.kind == Type::Kind::kDict) continue;  // of class labels
    if (!result->type.is_tensor()) return false;
    int64_t elements = 1;
    for (const Dim& dim : result->type.shape) {
      std::optional<int64_t> size = dim.Smallest(symbols);
      if (!size || __builtin_mul_overflow(elements, *size, &elements)) return false;
    }
    if (elements > kTailElements) return false;
  }
  return true;
}

// Convolutions are what fp16 is for: through them, a small network would stay fp32 as a whole.
bool CarriesTail(const Operation& op) { return IsSmall(op) && !Is(op, Fp16::kMain); }

bool StartsTail(const Operation& op) {
  for (const std::unique_ptr<Value>& result : op.results)
    if (!result->is_output()) return false;
  return IsSmall(op);
}

// Sums of products of whole numbers, as integer convolutions have them.
bool IsWholeNumber(const Value* value, int depth = 0) {
  const Operation* op = value->def;
  if (!op || depth > 8) return false;
  if (op->is("cast")) return op->value("x") && IsInteger(op->value("x")->type.dtype);
  if (Is(*op, Fp16::kMakesWhole)) return true;
  if (!Is(*op, Fp16::kKeepsWhole)) return false;
  for (const std::vector<Operand>& operands : op->args())
    for (const Operand& operand : operands)
      if (operand.value && !operand.value->is_constant() && IsFp32(operand.type()) &&
          !IsWholeNumber(operand.value, depth + 1))
        return false;
  return true;
}

bool StartsWholeSum(const Operation& op) {
  if (!Needs<Fp16::kWholeSums>(op)) return false;
  for (const std::vector<Operand>& operands : op.args())
    for (const Operand& operand : operands)
      if (operand.value && !IsWeight(operand.value) && !IsWholeNumber(operand.value)) return false;
  return true;
}

constexpr std::string_view kSums = "sums of products of whole numbers leave fp16";

constexpr Chain kChains[] = {
    {kSums, StartsWholeSum, Carries<Fp16::kWholeSums>},
    {"its last digits decide between two steps of quantised numbers", Needs<Fp16::kSteps>,
     Carries<Fp16::kSteps>, true},
    {"fp16 angles lose the digits that sin and cos need", Needs<Fp16::kAngles>,
     Carries<Fp16::kAngles>},
    {"fp16 loses the small numbers that a logarithm tells apart", Needs<Fp16::kLogarithms>,
     Carries<Fp16::kLogarithms>},
    {"fp16 boxes and scores are too coarse to select from", Needs<Fp16::kSelections>,
     Carries<Fp16::kSelections>, true},
    {"a small last operation, fp32 like the output", StartsTail, CarriesTail},
};

// What makes whole numbers, or asks how numbers compare with whole ones.
bool IsWhole(const Operation& op) {
  return Is(op, Fp16::kAsksWhole) || (op.is("cast") && IsInteger(op.result()->type.dtype));
}

// What two run-time numbers differ by: of counts, how far places are apart.
bool IsDifference(const Operation& op) {
  const Value *x = op.is("sub") ? op.value("x") : nullptr, *y = x ? op.value("y") : nullptr;
  return y && !x->is_constant() && !y->is_constant();
}

#if defined(__x86_64__)
// The largest finite magnitude among `count` elements, a multiple of 32, perhaps unaligned: what
// the compiler does not make of the loop below.
__attribute__((target("avx2"))) float MaxMagnitudeAvx2(const std::byte* values, int64_t count) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  const __m256 infinite = _mm256_set1_ps(std::numeric_limits<float>::infinity());
  __m256 largest[4] = {};
  for (int64_t i = 0; i < count; i += 32)
    for (int k = 0; k < 4; ++k) {
      __m256 block = _mm256_loadu_ps(reinterpret_cast<const float*>(values + (i + k * 8) * 4));
      __m256 magnitude = _mm256_andnot_ps(sign, block);
      __m256 finite = _mm256_cmp_ps(magnitude, infinite, _CMP_LT_OQ);
      largest[k] = _mm256_max_ps(largest[k], _mm256_and_ps(magnitude, finite));
    }
  float lanes[32];
  for (int k = 0; k < 4; ++k) _mm256_storeu_ps(lanes + k * 8, largest[k]);
  return *std::max_element(lanes, lanes + 32);
}
#endif

float MaxMagnitude(const std::byte* values, int64_t count) {
  float largest = 0;
  int64_t i = 0;
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) largest = MaxMagnitudeAvx2(values, i = count / 32 * 32);
#endif
  for (; i < count; ++i) {
    float value;
    std::memcpy(&value, values + i * 4, 4);
    value = std::fabs(value);
    if (value < std::numeric_limits<float>::infinity() && value > largest) largest = value;
  }
  return largest;
}

// The same of each constant, all of them at once, read block by block and given back to the system.
std::vector<double> MaxMagnitudes(std::vector<Tensor> constants) {
  struct Block {
    size_t constant;
    int64_t first, count;
    float largest = 0;
  };
  std::vector<Block> blocks;
  for (size_t i = 0; i < constants.size(); ++i) {
    Tensor& tensor = constants[i] = constants[i].Unordered();
    int64_t step = tensor.BlockElements(1 << 20);
    for (int64_t first = 0; first < tensor.size(); first += step)
      blocks.push_back({i, first, std::min(step, tensor.size() - first)});
  }
  ParallelFor(std::ssize(blocks), 0, [&](int64_t i) {
    Block& block = blocks[i];
    const Tensor& tensor = constants[block.constant];
    std::span<const std::byte> values = tensor.InPlace(block.first, block.count);
    std::unique_ptr<std::byte[]> copy;
    if (values.empty()) {
      copy.reset(new std::byte[static_cast<size_t>(block.count) * 4]);
      tensor.Read(block.first, block.count, copy.get());
      values = {copy.get(), static_cast<size_t>(block.count) * 4};
    }
    block.largest = MaxMagnitude(values.data(), block.count);
    tensor.Release(block.first, block.count);
  });
  std::vector<double> largest(constants.size());
  for (const Block& block : blocks)
    largest[block.constant] = std::max<double>(largest[block.constant], block.largest);
  return largest;
}

class Narrowing {
 public:
  Narrowing(Function& function, PassContext& context) : function_(function), context_(context) {}

  bool Run() {
    std::vector<Operation*> operations;
    for (const std::unique_ptr<Operation>& op : function_.body.operations())
      operations.push_back(op.get());
    std::vector<const Operation*> wide;
    ForEachOperation(function_, [&](Operation* op) {
      if (!op->def->is_const() && !op->def->is_constexpr() && HasFp32(*op)) wide.push_back(op);
    });
    wide_.reserve(wide.size());
    for (const Chain& chain : kChains) Follow(chain, wide);
    FindSums(operations);
    FindCounts(operations);
    FindExact(operations);
    MeasureConstants(operations);
    bool changed = false;
    for (Operation* op : operations) changed |= Convert(op);
    const std::vector<Value*> outputs = function_.body.outputs();
    for (size_t i = 0; i < outputs.size(); ++i)
      if (narrowed_.contains(outputs[i])) GiveWide(static_cast<int>(i), outputs[i]);
    return changed;
  }

 private:
  static bool HasFp32(const Operation& op) {
    for (const std::vector<Operand>& operands : op.args())
      for (const Operand& operand : operands)
        if (IsFp32(operand.type())) return true;
    return std::any_of(op.results.begin(), op.results.end(),
                       [](const auto& result) { return IsFp32(result->type); });
  }

  // `operations`: all that compute with fp32.
  void Follow(const Chain& chain, const std::vector<const Operation*>& operations) {
    std::unordered_set<const Operation*> members;
    for (auto it = operations.rbegin(); it != operations.rend(); ++it) {
      const Operation& op = **it;
      if (!chain.shared && op.block != &function_.body) continue;
      bool member = chain.starts(op);
      if (!member && chain.carries(op)) {
        bool all = true, any = false;
        for (const std::unique_ptr<Value>& result : op.results) {
          all = all && !result->is_output();
          for (const Operation* user : result->users) {
            bool is_member = members.contains(user);
            all = all && is_member;
            any = any || is_member;
          }
        }
        member = chain.shared ? any : all;
      }
      if (!member) continue;
      members.insert(&op);
      wide_.emplace(&op, chain.reason);
    }
  }

  // What takes sums of products of whole numbers, as they are or converted and added to.
  void FindSums(const std::vector<Operation*>& operations) {
    std::unordered_set<const Operation*> sums;
    for (const Operation* op : operations) {
      if (op->def->is_const() || !op->blocks.empty()) continue;
      bool takes = false;
      for (const std::vector<Operand>& operands : op->args())
        for (const Operand& operand : operands)
          takes =
              takes || (operand.value && operand.value->def && sums.contains(operand.value->def));
      if (takes && HasFp32(*op)) wide_.emplace(op, kSums);
      bool whole = op->is("mul") && IsInteger(op->result()->type.dtype);
      if (StartsWholeSum(*op) || (takes && (whole || Is(*op, Fp16::kKeepsSums)))) sums.insert(op);
    }
  }

  // Operations whose numbers come from integers alone.
  void FindCounts(const std::vector<Operation*>& operations) {
    for (Operation* op : operations) {
      if (op->def->is_const() || !op->blocks.empty()) continue;
      if (Value* x = op->is("cast") ? op->value("x") : nullptr; x && IsInteger(x->type.dtype)) {
        if (IsFp32(op->result()->type)) counts_.insert(op);
        continue;
      }
      if (!Carries<Fp16::kCounts>(*op) && !IsWhole(*op)) continue;
      bool all = true, any = false;
      for (const std::vector<Operand>& operands : op->args())
        for (const Operand& operand : operands) {
          if (!operand.value || operand.value->is_constant() || !IsFp32(operand.type())) continue;
          bool count = operand.value->def && counts_.contains(operand.value->def);
          all = all && count;
          any = any || count;
        }
      if (all && any) counts_.insert(op);
    }
  }

  // Counts that end in whole numbers, and what makes coordinates.
  void FindExact(const std::vector<Operation*>& operations) {
    for (auto it = operations.rbegin(); it != operations.rend(); ++it) {
      Operation* op = *it;
      if (op->def->is_const() || !op->blocks.empty() || !HasFp32(*op)) continue;
      bool count = counts_.contains(op), all = true,
           any = count && (IsWhole(*op) || IsDifference(*op));
      for (const std::unique_ptr<Value>& result : op->results) {
        all = all && !result->is_output();
        for (const Operation* user : result->users) {
          bool coordinates = UsesAsCoordinates(*user, result.get());
          bool exact = coordinates || exact_.contains(user);
          all = all && exact;
          any = any || exact;
        }
      }
      if (!any || !(count || (all && Carries<Fp16::kAngles>(*op)))) continue;
      exact_.insert(op);
      wide_.emplace(op, count ? "fp16 counts to 2048 only" : "fp16 is too coarse for coordinates");
    }
  }

  static bool UsesAsCoordinates(const Operation& user, const Value* value) {
    for (size_t i = 0; i < user.args().size(); ++i) {
      if (!user.def->fp16.IsWide(user.def->canonical().params[i].name)) continue;
      for (const Operand& operand : user.args()[i])
        if (operand.value == value) return true;
    }
    return false;
  }

  // Of all fp32 constants that are not trusted, before the first is replaced.
  void MeasureConstants(const std::vector<Operation*>& operations) {
    std::vector<Value*> values;
    std::vector<Tensor> constants;
    for (const Operation* op : operations) {
      if (!op->def->is_const() || !IsFp32(op->result()->type)) continue;
      const Tensor& constant = op->result()->constant();
      if (context_.trusted_from > 0 && constant.size() >= context_.trusted_from) {
        magnitudes_[op->result()] = 1;
        continue;
      }
      values.push_back(op->result());
      constants.push_back(constant);
    }
    std::vector<double> largest = MaxMagnitudes(std::move(constants));
    for (size_t i = 0; i < values.size(); ++i) magnitudes_[values[i]] = largest[i];
  }

  // Whether the operator takes fp16 in the form that the target has. Constant parameters that exist
  // in fp32 only (scale factors) stay what they are.
  bool TakesFp16(const Operation& op, Opset target) const {
    const Form* form = op.def->FormFor(target);
    if (!form) form = &op.def->forms.front();  // newer than the target: the writer refuses it
    for (size_t i = 0; i < op.args().size(); ++i) {
      int param = form->Find(op.def->canonical().params[i].name);
      for (const Operand& operand : op.args()[i])
        if (param >= 0 && !operand.constant() &&
            (IsFp32(operand.type()) || narrowed_.contains(operand.value)) &&
            !Contains(form->params[param].types, DType::kFp16))
          return false;
    }
    return true;
  }

  // Whether the operation computes in fp16 as it came, and only numbers beside are fp32: the forms
  // before iOS17 want them in fp16, too.
  bool ComputesInFp16(const Operation& op) const {
    if (!op.blocks.empty() || op.def->is_constexpr()) return false;
    bool half = false;
    for (const std::vector<Operand>& operands : op.args())
      for (const Operand& operand : operands) {
        const Tensor& constant = operand.constant();
        if (constant && IsFp32(operand.type()) &&
            (constant.size() != 1 || std::fabs(constant.Double(0)) >= kOverflow))
          return false;
        if (constant) continue;
        if (IsFp32(operand.type()) || narrowed_.contains(operand.value)) return false;
        half = half || (operand.type().is_tensor() && operand.type().dtype == DType::kFp16);
      }
    return half && std::none_of(op.results.begin(), op.results.end(),
                                [](const auto& result) { return IsFp32(result->type); });
  }

  // Why the operation must stay fp32; empty when it need not.
  std::string Reason(const Operation& op) {
    if (!op.blocks.empty()) return "control flow stays fp32";
    if (op.def->is_constexpr()) {
      bool any = false, all = true;
      for (const std::unique_ptr<Value>& result : op.results)
        for (const Operation* user : result->users) {
          any = true;
          all = all && !Reason(*user).empty();
        }
      return any && all ? "what takes it stays fp32" : "";
    }
    if (auto it = wide_.find(&op); it != wide_.end()) return std::string(it->second);
    if (!TakesFp16(op, context_.target)) {
      for (const Form& form : op.def->forms)
        if (TakesFp16(op, form.since))
          return fmt::format("Core ML has this operator in fp32 only before {}",
                             TargetName(form.since));
      return "Core ML has this operator in fp32 only";
    }
    if (context_.precision == PassContext::Precision::kMixed && !context_.judged &&
        Is(op, Fp16::kRough))
      return "--precision mixed";
    for (size_t i = 0; i < op.args().size(); ++i) {
      const Param& param = op.def->canonical().params[i];
      if (!Contains(param.types, DType::kFp16)) continue;
      for (const Operand& operand : op.args()[i]) {
        if (!operand.value || !operand.value->is_constant() || !IsFp32(operand.type())) continue;
        double magnitude = magnitudes_.at(operand.value);
        if (magnitude >= kOverflow && !op.def->fp16.IsBound(param.name))
          return fmt::format("constant {} holds {:g}, which fp16 cannot", param.name, magnitude);
        if (magnitude > 0 && magnitude < kNormal && Is(op, Fp16::kProduct) && param.name != "bias")
          return fmt::format("constant {} is at most {:g}, of which fp16 keeps few digits",
                             param.name, magnitude);
      }
    }
    return "";
  }

  Value* Half(Value* value, Operation* before) {
    auto it = halves_.find(value);
    if (it != halves_.end()) return it->second;
    Value* half = nullptr;
    if (value->is_constant()) {
      Tensor tensor = value->constant();
      if (tensor.size() == 1 && tensor.Double(0) != 0 && std::fabs(tensor.Double(0)) < kSmallest)
        tensor =
            Tensor::Full(DType::kFp32, tensor.dims(), std::copysign(kSmallest, tensor.Double(0)));
      Builder builder(function_.body, context_.diagnostics, value->def);
      builder.SetLocation(value->def->location);
      half = builder.Const(tensor.Cast(DType::kFp16), value->name + "_to_fp16");
    } else {
      // What was cast to fp32 is cast to fp16 from what it was, or was fp16.
      Value* source = value;
      if (Operation* cast = DefinedBy(value, "cast"); cast && cast->value("x")) {
        DType from = cast->value("x")->type.dtype;
        if (from == DType::kFp16) return halves_[value] = cast->value("x");
        if (!IsFloat(from)) source = cast->value("x");
      }
      Operation* place = value->def ? function_.body.Next(value->def) : FirstOperation();
      Builder builder(function_.body, context_.diagnostics, place ? place : before);
      builder.SetName(value->name + "_to_fp16");
      half = builder.Make("cast", {{"x", source}, {"dtype", "fp16"}});
    }
    return halves_[value] = half;
  }

  Operation* FirstOperation() {
    return function_.body.operations().empty() ? nullptr
                                               : function_.body.operations().front().get();
  }

  auto IsNarrowed() const {
    return [this](const Operand& operand) { return narrowed_.contains(operand.value); };
  }

  // Whether the operation has operands or results that are fp32, or were.
  bool HasWide(const Operation& op) const {
    if (HasFp32(op)) return true;
    return std::any_of(op.args().begin(), op.args().end(), [&](const auto& operands) {
      return std::any_of(operands.begin(), operands.end(), IsNarrowed());
    });
  }

  // Each operation gets its operands at once: one may have, and one value may be used by, a great
  // many.
  bool Convert(Operation* op) {
    bool keeps = op->def->is_const() || op->is("identity") || op->is("cast") || !HasWide(*op);
    if (std::string reason = keeps || ComputesInFp16(*op) ? "" : Reason(*op); !reason.empty()) {
      context_.diagnostics.Decide("fp32", op->name, fmt::format("{}: {}", op->def->name, reason));
      keeps = true;
    }
    if (keeps) {
      TakeWide(*op);
      return false;
    }
    bool narrowed = false;
    for (size_t i = 0; i < op->args().size(); ++i) {
      const Param& param = op->def->canonical().params[i];
      bool takes = Contains(param.types, DType::kFp16) && !op->def->fp16.IsWide(param.name);
      std::vector<Operand> operands = op->args()[i];
      bool changed = false;
      for (Operand& operand : operands) {
        if (narrowed_.contains(operand.value)) {
          if (takes)
            narrowed = true;
          else
            operand = Full(operand.value);
          changed |= !takes;
        } else if (takes && IsFp32(operand.type())) {
          operand = operand.value ? Operand(Half(operand.value, op))
                                  : Operand(operand.constant().Cast(DType::kFp16));
          changed = narrowed = true;
        }
      }
      if (changed) op->SetArg(static_cast<int>(i), std::move(operands));
    }
    if (!narrowed) return false;
    InferTypes(*op);
    for (std::unique_ptr<Value>& result : op->results)
      if (result->type.is_tensor() && result->type.dtype == DType::kFp16)
        narrowed_.insert(result.get());
    return true;
  }

  // What stays as it was reads narrowed values in fp32, in its blocks too.
  void TakeWide(Operation& op) {
    for (int i = 0; i < std::ssize(op.args()); ++i) {
      const std::vector<Operand>& given = op.args()[i];
      if (std::none_of(given.begin(), given.end(), IsNarrowed())) continue;
      std::vector<Operand> operands = given;
      for (Operand& operand : operands)
        if (narrowed_.contains(operand.value)) operand = Full(operand.value);
      op.SetArg(i, std::move(operands));
    }
    for (std::unique_ptr<Block>& block : op.blocks) {
      for (const std::unique_ptr<Operation>& inner : block->operations()) TakeWide(*inner);
      const std::vector<Value*> outputs = block->outputs();
      for (size_t i = 0; i < outputs.size(); ++i)
        if (narrowed_.contains(outputs[i])) block->SetOutput(static_cast<int>(i), Full(outputs[i]));
    }
  }

  // A narrowed value cast back for those who still want fp32.
  Value* Full(Value* half) {
    Value*& full = fulls_[half];
    if (full) return full;
    Builder builder(function_.body, context_.diagnostics, function_.body.Next(half->def));
    builder.SetName(half->name + "_to_fp32");
    builder.SetLocation(half->def->location);
    return full = builder.Make("cast", {{"x", half}, {"dtype", "fp32"}});
  }

  // Output `i`, which keeps its name.
  void GiveWide(int i, Value* half) {
    Value* full = Full(half);
    std::string name = half->name;
    bool named = full->is_output();
    function_.body.SetOutput(i, full);
    if (named) return;
    function_.Rename(half, name + "_fp16");
    function_.Rename(full, name);
  }

  Function& function_;
  PassContext& context_;
  std::unordered_map<Value*, Value*> halves_, fulls_;
  std::unordered_set<const Value*> narrowed_;  // fp16 results that were fp32
  std::unordered_map<Value*, double> magnitudes_;
  std::unordered_set<const Operation*> counts_, exact_;
  std::unordered_map<const Operation*, std::string_view> wide_;
};

bool Run(Program& program, PassContext& context) {
  if (context.precision == PassContext::Precision::kFp32) return false;
  if (context.measure) context.measure(program, context);
  bool changed = false;
  for (std::unique_ptr<Function>& function : program.functions)
    changed |= Narrowing(*function, context).Run();
  return changed;
}

}  // namespace

extern const PassDef kFp16Precision = {"fp16-precision",
                                       "compute in fp16, but for what fp16 cannot hold", Run};

}  // namespace mlc
