#include "lib/engine/fusion.h"

#include <algorithm>
#include <set>

namespace mlc::engine {

namespace {

bool IsFloat(const Type& type) {
  return type.is_tensor() && IsKernelFloat(type.dtype) && IsStatic(type.shape);
}

class Finder {
 public:
  explicit Finder(const Block& block) : block_(block) {
    for (Operation* op : block.operations()) inside_.insert(op);
  }

  std::vector<Fusion> Find() {
    std::vector<Fusion> fusions;
    for (Operation* op : block_.operations()) {
      if (taken_.contains(op) || FindChainKernels(op->def->name).empty()) continue;
      if (op->results.size() != 1 || !IsFloat(op->result()->type)) continue;
      Fusion fusion = From(*op);
      if (fusion.operations.size() == 1) continue;
      taken_.insert(fusion.operations.begin(), fusion.operations.end());
      fusions.push_back(std::move(fusion));
    }
    return fusions;
  }

 private:
  // Returns the users of a value; none if any of them is not an elementwise operation of this
  // block.
  std::vector<const Operation*> Users(const Value& value) const {
    std::vector<const Operation*> users;
    if (value.is_output()) return users;
    for (const Operation* user : value.users) {
      if (!inside_.contains(user) || taken_.contains(user) || !HasLoop(user->def->name)) return {};
      if (std::ranges::find(users, user) == users.end()) users.push_back(user);
    }
    return users;
  }

  // Appends a link; returns false if its operands do not fit.
  static bool Append(const Operation& op, Fusion& fusion) {
    const Type& type = fusion.operations.front()->result()->type;
    const Type& result = op.result()->type;
    if (!IsFloat(result) || result.shape != type.shape ||
        fusion.chain.links.size() == Chain::kMostLinks)
      return false;
    Chain::Link link;
    for (size_t p = 0; p < op.args().size(); ++p)
      for (const Operand& operand : op.args()[p]) {
        int place = Chain::kOwn;
        for (size_t i = 0; i < fusion.operations.size(); ++i)
          if (operand.value == fusion.operations[i]->result()) place = static_cast<int>(i);
        int index = static_cast<int>(p);
        if (index == op.def->Find("x") || index == op.def->Find("y")) {
          const Type& own = operand.type();
          if (place == Chain::kOwn && (!IsFloat(own) || (own.shape != type.shape &&
                                                         ElementCount(StaticDims(own.shape)) != 1)))
            return false;
          (index == op.def->Find("x") ? link.x : link.y) = place;
        } else if (!operand.constant()) {
          return false;
        }
      }
    fusion.operations.push_back(&op);
    fusion.chain.links.push_back(link);
    return true;
  }

  Fusion From(const Operation& first) const {
    Fusion fusion{{&first}, {}};
    for (;;) {
      std::vector<const Operation*> users = Users(*fusion.operations.back()->result());
      Fusion longer = fusion;
      if (users.size() == 1) {
        if (!Append(*users[0], longer)) break;
      } else if (users.size() != 2 ||
                 !(Around(users[0], users[1], longer) || Around(users[1], users[0], longer))) {
        break;
      }
      fusion = std::move(longer);
    }
    return fusion;
  }

  // Appends the path from `begin` to `end`, where `end` reads both the last result and that of the
  // path.
  bool Around(const Operation* begin, const Operation* end, Fusion& fusion) const {
    Fusion longer = fusion;
    for (const Operation* op = begin; op != end;) {
      if (!Append(*op, longer)) return false;
      std::vector<const Operation*> users = Users(*op->result());
      if (users.size() != 1) return false;
      op = users[0];
    }
    if (!Append(*end, longer)) return false;
    fusion = std::move(longer);
    return true;
  }

  const Block& block_;
  std::set<const Operation*> inside_, taken_;
};

}  // namespace

std::vector<Fusion> FindFusions(const Block& block) { return Finder(block).Find(); }

}  // namespace mlc::engine
