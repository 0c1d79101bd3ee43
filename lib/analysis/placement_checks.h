// lib/analysis/placement_checks.h - the conditions of the rules of placement (placement_rules.h).
//
// Each returns what was found, "x has 6 dimensions", or "" if the rule does not apply.
#pragma once

#include <string>

#include "lib/analysis/placement_rules.h"

namespace mlc::analysis {

std::string PortCast(const OperationAt&);
std::string Fp32(const OperationAt&);
std::string Integers(const OperationAt&);
std::string Rank(const OperationAt&);
std::string OpenShape(const OperationAt&);
std::string DataDependentShape(const OperationAt&);
std::string ZeroSized(const OperationAt&);
std::string LongAxis(const OperationAt&);
std::string VeryLongAxis(const OperationAt&);
std::string ControlFlow(const OperationAt&);
std::string Gather(const OperationAt&);
std::string Random(const OperationAt&);
std::string Product5d(const OperationAt&);
std::string Conv3d(const OperationAt&);
std::string KernelWider13(const OperationAt&);
std::string KernelWider15(const OperationAt&);
std::string DilatedTransposedConv(const OperationAt&);
std::string PoolWindow13(const OperationAt&);
std::string PoolWindow29(const OperationAt&);
std::string PoolWindow31(const OperationAt&);
std::string OldPoolStride(const OperationAt&);
std::string OldUpsampling(const OperationAt&);
std::string PadsChannels(const OperationAt&);
std::string Mirrors(const OperationAt&);
std::string WideResponseNorm(const OperationAt&);
std::string SmallFusedAttention(const OperationAt&);
std::string ManyStates(const OperationAt&);
std::string StateWidth(const OperationAt&);
std::string GroupedTables(const OperationAt&);
std::string FourBitWeights(const OperationAt&);
std::string BlockwiseWeights(const OperationAt&);
std::string AffineWeights(const OperationAt&);
std::string QuantizedActivations(const OperationAt&);
std::string PalettizedStride(const OperationAt&);
std::string PerTensorPalette(const OperationAt&);
std::string CompressedWeights(const OperationAt&);
std::string EightBitWeights(const OperationAt&);
std::string InfiniteConstant(const OperationAt&);
std::string OffsetSlice(const OperationAt&);
std::string FusedAttentionMask(const OperationAt&);
std::string LongTopK(const OperationAt&);
std::string NarrowRows(const OperationAt&);
std::string LinearLayer(const OperationAt&);
std::string HeadsTogether(const OperationAt&);
std::string SoftmaxOverRows(const OperationAt&);
std::string MovesLastAxis(const OperationAt&);
std::string ConvStride(const OperationAt&);
std::string LargeKernel(const OperationAt&);
std::string LargeDilation(const OperationAt&);
std::string PoolStride(const OperationAt&);
std::string Embedding(const OperationAt&);
std::string ListedShapesOfNorm(const OperationAt&);
std::string UpcastActivation(const OperationAt&);
std::string UnfusedAttention(const OperationAt&);
std::string PointwiseConv(const OperationAt&);
std::string Fragments(const Placement&, const Chip&);
std::string Above1GB(const Program&, const Chip&);
std::string Above2GB(const Program&, const Chip&);

}  // namespace mlc::analysis
