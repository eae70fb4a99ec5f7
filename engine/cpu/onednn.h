// oneDNN behind one header: the same few calls whether the library is 2.6 (descriptor classes) or 3.x (none).
#pragma once
#include <oneapi/dnnl/dnnl.hpp>

#include "engine/tensor.h"

namespace skein::cpu {

using Md = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

dnnl::engine& dnn_engine();  // one for the process
dnnl::stream& dnn_stream();  // one for each thread

// The instruction sets that oneDNN uses, as bits of dnnl::cpu_isa: the first call limits them to
// chosen_isa(), and precedes every other call of the library. Where that is the widest that the processor
// has, and not by SKEIN_CPU, oneDNN's own variable ONEDNN_MAX_CPU_ISA may limit them further.
unsigned onednn_isa();
bool has_isa(dnnl::cpu_isa);  // whether oneDNN uses it

// True where oneDNN runs bf16 convolutions and products at full speed (AVX-512 BF16 or AMX). Elsewhere bf16
// tensors are widened to f32 scratch, because oneDNN has no fast kernels for them. f16 tensors are always
// widened: oneDNN 2.6 refuses f16 on every processor, and 3.x takes it only with AVX-512 FP16.
bool native_bf16();

inline dnnl::memory::data_type dnn_type(DType t) {
  CHECK(t == kF32 || t == kBF16, "oneDNN gets f32 or bf16, not", t);
  return t == kBF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}
// A dense descriptor of `dims`; `order` lists indices into dims in memory order, outermost first.
Md dense(const Dims& dims, DType, const std::vector<int>& order);

// The caller provides scratchpads, so that one primitive may run in many threads at once.
dnnl::primitive_attr user_scratchpad();

struct ConvDescs {
  Md x, w, bias, y;  // bias may be empty
  Dims strides, dilations, padding;
};
using ForwardDesc = dnnl::convolution_forward::primitive_desc;
using DataDesc = dnnl::convolution_backward_data::primitive_desc;
using WeightsDesc = dnnl::convolution_backward_weights::primitive_desc;
ForwardDesc conv_forward_desc(const ConvDescs&, const dnnl::primitive_attr&);
DataDesc conv_data_desc(const ConvDescs&, const dnnl::primitive_attr&);
WeightsDesc conv_weights_desc(const ConvDescs&, const dnnl::primitive_attr&);
dnnl::matmul::primitive_desc matmul_desc(const Md& a, const Md& b, const Md& bias, const Md& y,
                                         const dnnl::primitive_attr&);

// Runs and waits. oneDNN's exceptions become Error, naming `what`.
using Arguments = std::unordered_map<int, dnnl::memory>;
void execute(const dnnl::primitive&, const Arguments&, const char* what);
inline dnnl::memory memory_at(const Md& d, void* p) { return dnnl::memory(d, dnn_engine(), p); }

}  // namespace skein::cpu
