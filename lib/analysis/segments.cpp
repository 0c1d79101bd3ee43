#include "lib/analysis/segments.h"

#include <unordered_map>

namespace mlc::analysis {

namespace {

struct Step {
  const Operation* op;
  Side side;
  std::vector<int> users;  // steps that wait for this one
  int waits_for = 0;       // steps that are not done
};

// Calls visit(value) for each value that the operation reads, in nested blocks too.
void ForEachRead(const Operation& op, const std::function<void(const Value&)>& visit) {
  for (const Operands& operands : op.args())
    for (const Operand& operand : operands)
      if (operand.value) visit(*operand.value);
  for (const auto& nested : op.blocks) {
    for (const Operation* inner : nested->operations()) ForEachRead(*inner, visit);
    for (const Value* output : nested->outputs()) visit(*output);
  }
}

std::vector<Step> StepsOf(const Block& block,
                          const std::function<Side(const Operation&)>& side_of) {
  std::vector<Step> steps;
  std::unordered_map<const Operation*, int> index;
  for (const Operation* op : block.operations()) {
    const int at = static_cast<int>(steps.size());
    index[op] = at;
    steps.push_back({op, side_of(*op), {}, 0});
    int last = -1;  // skips most duplicates
    ForEachRead(*op, [&](const Value& value) {
      const auto from = value.def ? index.find(value.def) : index.end();
      if (from == index.end() || from->second == at || from->second == last) return;
      last = from->second;
      steps[from->second].users.push_back(at);
      ++steps[at].waits_for;
    });
  }
  return steps;
}

}  // namespace

std::vector<Segment> SegmentsOf(const Block& block,
                                const std::function<Side(const Operation&)>& side_of) {
  std::vector<Step> steps = StepsOf(block, side_of);
  std::vector<Segment> segments;
  // Steps that are ready, by side: a step that runs on either side joins the current segment.
  std::vector<int> ready[2];
  auto make_ready = [&](int at, int current) {
    const Side side = steps[at].side;
    ready[side == Side::kEither ? current : side == Side::kDevice].push_back(at);
  };
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i].waits_for == 0) make_ready(static_cast<int>(i), 0);
  for (int current = 0; !ready[0].empty() || !ready[1].empty(); current = 1 - current) {
    Segment segment{current ? Side::kDevice : Side::kElsewhere, {}};
    bool own = false;  // whether an operation must run on this side
    for (size_t next = 0; next < ready[current].size(); ++next) {
      const Step& step = steps[ready[current][next]];
      segment.operations.push_back(step.op);
      own = own || step.side != Side::kEither;
      for (int user : step.users)
        if (--steps[user].waits_for == 0) make_ready(user, current);
    }
    ready[current].clear();
    if (own) segments.push_back(std::move(segment));
  }
  return segments;
}

}  // namespace mlc::analysis
