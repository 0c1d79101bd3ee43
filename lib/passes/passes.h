// lib/passes/passes.h - the passes that pipeline.cpp lists; each is defined in the file of its
// name.
#pragma once

#include "lib/passes/pass.h"

namespace mlc {

extern const PassDef kCancelReshapes;
extern const PassDef kCancelTransposes;
extern const PassDef kCommonSubexpressions;
extern const PassDef kComposeConv1d;
extern const PassDef kDeadCode;
extern const PassDef kDeduplicateConstants;
extern const PassDef kFiniteConstants;
extern const PassDef kFoldConstants;
extern const PassDef kFoldControlFlow;
extern const PassDef kFp16Precision;
extern const PassDef kFuseActivations;
extern const PassDef kFuseConv;
extern const PassDef kFuseLinear;
extern const PassDef kFuseNorms;
extern const PassDef kFusePads;
extern const PassDef kLowerRank;
extern const PassDef kNewerForms;
extern const PassDef kOptimiseCasts;
extern const PassDef kQuantisedConstants;
extern const PassDef kRemoveNoOps;
extern const PassDef kSafeLogarithms;
extern const PassDef kSafeMasks;
extern const PassDef kSafeNorms;
extern const PassDef kScaleBeforeProduct;
extern const PassDef kSimplifyArithmetic;
extern const PassDef kSimplifyMoves;
extern const PassDef kSinkTransposes;
extern const PassDef kStaticShapes;

}  // namespace mlc
