// frontends/onnx/node.h - the interface between a node and the handler of its operator.
//
// A handler reads attributes and inputs, makes operations and sets every output that has a name:
//
//   void Softplus(Node& node) { node.Set(node.Make("softplus", {{"x", node.In(0)}})); }
//
// A handler throws Error; the importer adds the node's location and continues with the next node.
// An attribute that the handler did not read is reported as an error, so that no attribute is
// ignored silently.
#pragma once

#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/onnx/model/model.h"
#include "lib/ir/builder.h"

namespace mlc::onnx {

class Scope;
struct Bound;

// The elements of a sequence, in order; a default-constructed object is not a sequence. A sequence
// and a copy extended by With share their common elements, so a chain of n insertions stores n
// elements rather than n squared.
class Sequence {
 public:
  Sequence() = default;
  explicit Sequence(std::vector<Bound> elements);

  explicit operator bool() const { return elements_ != nullptr; }
  size_t size() const { return size_; }
  const Bound& operator[](size_t i) const;
  std::vector<Bound> All() const;
  Sequence With(Bound last) const;

 private:
  std::shared_ptr<std::deque<Bound>>
      elements_;  // may hold more than `size_` elements, added through other copies
  size_t size_ = 0;
};

// The value in the Program of an ONNX value. Run-time values are fp32 (for floats of any width,
// including fp16), int32 (for integers of any width, within the range of their ONNX type) or bool;
// see lib/lower/convert.h. Constants keep their ONNX type.
//
// Core ML has neither sequences nor optionals. A sequence is represented by its elements, and an
// optional by its contents or as empty.
struct Bound {
  Value* value = nullptr;
  DType dtype = DType::kNone;  // the ONNX type of a tensor
  Sequence sequence = {};      // set instead of `value`
  bool nothing = false;        // an empty optional

  // True when the node that produces this value failed.
  bool failed() const { return !value && !sequence && !nothing; }
  std::string_view kind() const {
    return value ? "a tensor" : sequence ? "a sequence" : "an empty optional";
  }
};

class Node {
 public:
  Node(const NodeDef& def, Scope& scope, Builder& builder, int opset);

  const std::string& op() const { return def_.op; }
  const std::string& name() const { return def_.name; }
  int opset() const { return opset_; }  // opset version of the operator's domain
  // The deployment target, if the user gave one.
  std::optional<Opset> target() const;

  // Attributes. A missing attribute without a fallback, and one of the wrong type, throw
  // "bad-attribute".
  bool Has(std::string_view name) const;
  int64_t Int(std::string_view name, std::optional<int64_t> fallback = {}) const;
  double Float(std::string_view name, std::optional<double> fallback = {}) const;
  std::string String(std::string_view name, std::optional<std::string> fallback = {}) const;
  std::vector<int64_t> Ints(std::string_view name,
                            std::optional<std::vector<int64_t>> fallback = {}) const;
  std::vector<double> Floats(std::string_view name,
                             std::optional<std::vector<double>> fallback = {}) const;
  std::vector<std::string> Strings(std::string_view name,
                                   std::optional<std::vector<std::string>> fallback = {}) const;
  Tensor TensorAttribute(std::string_view name) const;
  const Graph& Subgraph(std::string_view name) const;
  // Marks attributes that have no effect here as read.
  void Ignore(std::initializer_list<std::string_view> names) const;

  // Inputs. `inputs()` does not count trailing omitted inputs.
  int inputs() const;
  bool HasInput(int i) const;
  Value* In(int i) const;        // throws "bad-graph" when omitted or not a tensor
  Value* Optional(int i) const;  // null when omitted
  DType dtype(int i = 0) const;  // ONNX type; kNone when omitted
  const Shape& shape(int i = 0) const { return In(i)->type.shape; }
  int rank(int i = 0) const { return In(i)->type.rank(); }
  // Returns an empty Tensor for an input that is omitted or computed at run time.
  Tensor ConstantOrNone(int i) const;
  // Like ConstantOrNone, but also uses elements known from shape inference.
  Tensor Known(int i) const;
  // Throws "needs-constant" for an input computed at run time; the error names the operand and the
  // --const option that would help.
  Tensor Constant(int i, std::string_view operand) const;
  // Throws a single "needs-constant" error for all listed inputs that are computed at run time;
  // omitted inputs are skipped. A handler that requires several constants calls this first, before
  // it reads inputs that may have failed.
  struct Wanted {
    int input;
    std::string_view operand;
  };
  void WantConstants(const std::vector<Wanted>& wanted, std::string_view because = {}) const;
  // Throws "needs-constant" for `value` and names the --const option that would make it constant.
  [[noreturn]] void FailUnknown(const Value* value, std::string_view text) const;
  std::vector<int64_t> ConstantInts(int i, std::string_view operand) const {
    return Constant(i, operand).Ints();
  }
  // Returns the elements of an integer input of rank 0 or 1 if they are constant or known from
  // shape inference.
  std::optional<std::vector<Dim>> Elements(int i) const;
  // Normalizes a possibly negative axis. Throws "bad-attribute" outside [-rank, rank).
  int Axis(int64_t axis, int rank) const;

  // Building operations.
  Builder& builder() const { return builder_; }
  // A Node converts to its Builder, so that it can be passed to functions of lib/lower and
  // lib/networks.
  operator Builder&() const { return builder_; }  // NOLINT
  // Throws "unsupported-operator" when MIL has no such operator.
  Value* Make(std::string_view op, Builder::Args args) const;
  Value* Const(Tensor value) const { return builder_.Const(std::move(value)); }

  // Lowers the ai.onnx operator `op` of the given opset on these inputs and returns its first
  // result. It gets the listed attributes of this node (if present) and `others`.
  Value* Apply(std::string_view op, int opset, const std::vector<Bound>& inputs,
               std::initializer_list<std::string_view> attributes = {},
               std::vector<Attribute> others = {}) const;
  // Returns an input with its type; Bound() when omitted.
  Bound Input(int i) const;

  // Outputs.
  int outputs() const { return static_cast<int>(def_.outputs.size()); }
  bool HasOutput(int output) const;  // whether the output has a name
  // Sets an output of ONNX type `dtype`. By default this is the type of input 0 if `value` can hold
  // it, else the type of `value`. It must be given where an integer result does not have the type
  // of input 0 (Shape, ArgMax, Cast).
  void Set(int output, Value* value, DType dtype = DType::kNone);
  void Set(Value* value, DType dtype = DType::kNone) { Set(0, value, dtype); }
  void SetAlike(Value* value) { Set(0, value, dtype()); }  // output 0, of the type of input 0
  void Set(int output, Bound bound);
  void SetSequence(Sequence sequence);  // sets output 0
  void SetSequence(std::vector<Bound> elements) { SetSequence(Sequence(std::move(elements))); }

  // Lowers a subgraph with these inputs, in place or at `into`. Its nodes can read the values of
  // the enclosing scopes. Returns one Bound per subgraph output.
  std::vector<Bound> Inline(const Graph& graph, const std::vector<Bound>& inputs) const {
    return Inline(graph, inputs, builder_);
  }
  std::vector<Bound> Inline(const Graph& graph, const std::vector<Bound>& inputs,
                            Builder& into) const;

  // Throw "unsupported-dtype" for results or elements of a type without a run-time type
  // (lib/lower/convert.h), and for run-time arithmetic on 32- and 64-bit unsigned integers, which
  // are held as int32.
  void RequireRunTimeType(DType dtype, std::string_view of_what) const;
  void RequireRunTimeArithmetic(DType dtype) const;

  // Throws error[unsupported-attribute]: OP: text.
  [[noreturn]] void Unsupported(std::string_view attribute, std::string_view text) const;
  [[noreturn]] void Fail(std::string_view id, std::string_view text) const;
  template <class First, class... Rest>
  [[noreturn]] void Unsupported(std::string_view attribute, TextFormat<First, Rest...> format,
                                First&& first, Rest&&... rest) const {
    Unsupported(attribute,
                fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
  }
  template <class First, class... Rest>
  [[noreturn]] void Fail(std::string_view id, TextFormat<First, Rest...> format, First&& first,
                         Rest&&... rest) const {
    Fail(id, fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...));
  }

  // Used by the importer.
  Scope& scope() const { return scope_; }
  std::vector<std::string> UnreadAttributes() const;
  const std::vector<Bound>& results() const { return results_; }

 private:
  const Attribute* Find(std::string_view name) const;
  const Attribute* Find(std::string_view name, Attribute::Kind kind, Attribute::Kind list,
                        bool required) const;
  const NodeDef& def_;
  Scope& scope_;
  Builder& builder_;
  int opset_;
  mutable std::set<std::string, std::less<>> read_;
  std::vector<Bound> results_;
};

}  // namespace mlc::onnx
