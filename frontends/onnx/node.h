// frontends/onnx/node.h - a node as the handler of its operator sees it.
//
// A handler reads attributes and inputs, makes operations and sets every output that the node
// wants:
//
//   void Softplus(Node& node) { node.Set(node.Make("softplus", {{"x", node.In(0)}})); }
//
// What goes wrong is thrown as Error; the importer adds the node's location and goes on with the
// next node. An attribute that the handler never looked at is an error after it, so that nothing is
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

// Elements in their order, or no sequence. One and that with another element behind share what they
// have in common: a chain of n has n elements, not n squared.
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
  std::shared_ptr<std::deque<Bound>> elements_;  // more than `size_` where others added some
  size_t size_ = 0;
};

// What an ONNX value is in the Program. A run-time value is fp32 (a float of any width, fp16 too),
// int32 (an integer of any width, in the range of its ONNX type) or bool: lib/lower/convert.h.
// Constants have the ONNX type itself.
//
// Core ML has no sequences and optionals: a sequence is known element by element, an optional is
// what it holds, or nothing.
struct Bound {
  Value* value = nullptr;
  DType dtype = DType::kNone;  // in ONNX; of a tensor
  Sequence sequence = {};      // instead of a value
  bool nothing = false;        // an optional that holds nothing

  // The node that makes it failed.
  bool failed() const { return !value && !sequence && !nothing; }
  std::string_view kind() const {
    return value ? "a tensor" : sequence ? "a sequence" : "an optional that holds nothing";
  }
};

class Node {
 public:
  Node(const NodeDef& def, Scope& scope, Builder& builder, int opset);

  const std::string& op() const { return def_.op; }
  const std::string& name() const { return def_.name; }
  int opset() const { return opset_; }  // of the operator's domain
  // The system that the program must run on, where the user named one.
  std::optional<Opset> target() const;

  // Attributes. Without a fallback, an absent one is Error "bad-attribute"; so is one of another
  // type.
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
  // Attributes that have no effect here.
  void Ignore(std::initializer_list<std::string_view> names) const;

  // Inputs. `inputs()` counts trailing absent ones out.
  int inputs() const;
  bool HasInput(int i) const;
  Value* In(int i) const;        // Error "bad-graph" when absent or no tensor
  Value* Optional(int i) const;  // null when absent
  DType dtype(int i = 0) const;  // in ONNX; kNone when absent
  const Shape& shape(int i = 0) const { return In(i)->type.shape; }
  int rank(int i = 0) const { return In(i)->type.rank(); }
  // An empty Tensor when absent or computed at run time.
  Tensor ConstantOrNone(int i) const;
  // The same, where shape arithmetic knows the elements, too.
  Tensor Known(int i) const;
  // Error "needs-constant" when computed at run time; it names the operand and the --const that
  // would help.
  Tensor Constant(int i, std::string_view operand) const;
  // One such error for all of these that are computed at run time; absent ones count for nothing.
  // A handler that wants several constants asks for them first, before the inputs that may fail.
  struct Wanted {
    int input;
    std::string_view operand;
  };
  void WantConstants(const std::vector<Wanted>& wanted, std::string_view because = {}) const;
  // One for a value, with the --const that would make it known.
  [[noreturn]] void FailUnknown(const Value* value, std::string_view text) const;
  std::vector<int64_t> ConstantInts(int i, std::string_view operand) const {
    return Constant(i, operand).Ints();
  }
  // Elements of an integer input of rank 0 or 1 where shape arithmetic knows them, constants
  // included.
  std::optional<std::vector<Dim>> Elements(int i) const;
  // Counted from the front; Error "bad-attribute" outside [-rank, rank).
  int Axis(int64_t axis, int rank) const;

  // Making.
  Builder& builder() const { return builder_; }
  // A node is where its operations go: it stands where functions of lib/lower and the like take a
  // Builder.
  operator Builder&() const { return builder_; }  // NOLINT
  // Error "unsupported-operator" when there is no such MIL operator.
  Value* Make(std::string_view op, Builder::Args args) const;
  Value* Const(Tensor value) const { return builder_.Const(std::move(value)); }

  // The first result of the ai.onnx operator `op` of that opset on these inputs, with this node's
  // attributes of these names (where it has them) and others.
  Value* Apply(std::string_view op, int opset, const std::vector<Bound>& inputs,
               std::initializer_list<std::string_view> attributes = {},
               std::vector<Attribute> others = {}) const;
  // An input with its type; Bound() when absent.
  Bound Input(int i) const;

  // Outputs.
  int outputs() const { return static_cast<int>(def_.outputs.size()); }
  bool Wants(int output) const;  // has a name
  // `dtype` in ONNX. Without it: input 0's when that is a type that `value` can hold, else the
  // value's own. So it must be given where an integer result is not of input 0's type (Shape,
  // ArgMax, Cast).
  void Set(int output, Value* value, DType dtype = DType::kNone);
  void Set(Value* value, DType dtype = DType::kNone) { Set(0, value, dtype); }
  void Set(int output, Bound bound);
  void SetSequence(Sequence sequence);  // output 0
  void SetSequence(std::vector<Bound> elements) { SetSequence(Sequence(std::move(elements))); }

  // Lowers a subgraph with these inputs, in place or where `into` is; its nodes see the values
  // around this one. One Bound per subgraph output.
  std::vector<Bound> Inline(const Graph& graph, const std::vector<Bound>& inputs) const {
    return Inline(graph, inputs, builder_);
  }
  std::vector<Bound> Inline(const Graph& graph, const std::vector<Bound>& inputs,
                            Builder& into) const;

  // error[unsupported-attribute]: OP: text.
  [[noreturn]] void Unsupported(std::string_view attribute, std::string_view text) const;
  [[noreturn]] void Fail(std::string_view id, std::string_view text) const;

  // For the importer.
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
