// Hides the difference between oneDNN 2.6 and 3.x, and asks the library about this processor.
#include "engine/cpu/onednn.h"

#include "engine/backend.h"
#include "engine/cpu/kernels.h"
#include "engine/device/processor.h"

namespace skein::cpu {

namespace {

dnnl::cpu_isa set_of(Isa isa) {
  constexpr dnnl::cpu_isa kSets[] = {dnnl::cpu_isa::avx2, dnnl::cpu_isa::avx512_core,
                                     dnnl::cpu_isa::avx512_core_bf16, dnnl::cpu_isa::avx512_core_amx};
  return kSets[int(isa)];
}

}  // namespace

unsigned onednn_isa() {
  static const unsigned isa = [] {
    const Isa chosen = chosen_isa();
    if (isa_is_forced() || chosen < this_processor().widest) {
      const auto status = dnnl::set_max_cpu_isa(set_of(chosen));
      CHECK(status == dnnl::status::success, "oneDNN was in use before SKEIN_CPU was read", int(status));
    }
    return unsigned(dnnl::get_effective_cpu_isa());
  }();
  return isa;
}

dnnl::engine& dnn_engine() {
  onednn_isa();
  static dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}

dnnl::stream& dnn_stream() {
  thread_local dnnl::stream s(dnn_engine());
  return s;
}

bool has_isa(dnnl::cpu_isa set) { return (onednn_isa() & unsigned(set)) == unsigned(set); }

bool native_bf16() { return has_isa(dnnl::cpu_isa::avx512_core_bf16); }

Md dense(const Dims& dims, DType t, const std::vector<int>& order) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[size_t(order[i])] = stride;
    stride *= dims[size_t(order[i])];
  }
  return Md(dims, dnn_type(t), strides);
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr a;
  a.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return a;
}

#if DNNL_VERSION_MAJOR < 3

ForwardDesc conv_forward_desc(const ConvDescs& c, const dnnl::primitive_attr& attr) {
  const auto kind = dnnl::prop_kind::forward_training;
  const auto direct = dnnl::algorithm::convolution_direct;
  using Desc = dnnl::convolution_forward::desc;
  const Desc d =
      c.bias.is_zero()
          ? Desc(kind, direct, c.x, c.w, c.y, c.strides, c.dilations, c.padding, c.padding)
          : Desc(kind, direct, c.x, c.w, c.bias, c.y, c.strides, c.dilations, c.padding, c.padding);
  return ForwardDesc(d, attr, dnn_engine());
}

DataDesc conv_data_desc(const ConvDescs& c, const dnnl::primitive_attr& attr) {
  const dnnl::convolution_backward_data::desc d(dnnl::algorithm::convolution_direct, c.x, c.w, c.y, c.strides,
                                                c.dilations, c.padding, c.padding);
  ConvDescs plain = c;
  plain.bias = Md();
  return DataDesc(d, attr, dnn_engine(), conv_forward_desc(plain, user_scratchpad()));
}

WeightsDesc conv_weights_desc(const ConvDescs& c, const dnnl::primitive_attr& attr) {
  const dnnl::convolution_backward_weights::desc d(dnnl::algorithm::convolution_direct, c.x, c.w, c.y,
                                                   c.strides, c.dilations, c.padding, c.padding);
  ConvDescs hint = c;
  hint.w = Md(c.w.dims(), c.x.data_type(), dnnl::memory::format_tag::any);
  return WeightsDesc(d, attr, dnn_engine(), conv_forward_desc(hint, user_scratchpad()));
}

dnnl::matmul::primitive_desc matmul_desc(const Md& a, const Md& b, const Md& bias, const Md& y,
                                         const dnnl::primitive_attr& attr) {
  using Desc = dnnl::matmul::desc;
  const Desc d = bias.is_zero() ? Desc(a, b, y) : Desc(a, b, bias, y);
  return dnnl::matmul::primitive_desc(d, attr, dnn_engine());
}

#else

ForwardDesc conv_forward_desc(const ConvDescs& c, const dnnl::primitive_attr& attr) {
  return ForwardDesc(dnn_engine(), dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
                     c.x, c.w, c.bias, c.y, c.strides, c.dilations, c.padding, c.padding, attr);
}

DataDesc conv_data_desc(const ConvDescs& c, const dnnl::primitive_attr& attr) {
  ConvDescs plain = c;
  plain.bias = Md();
  return DataDesc(dnn_engine(), dnnl::algorithm::convolution_direct, c.x, c.w, c.y, c.strides, c.dilations,
                  c.padding, c.padding, conv_forward_desc(plain, user_scratchpad()), attr);
}

WeightsDesc conv_weights_desc(const ConvDescs& c, const dnnl::primitive_attr& attr) {
  ConvDescs hint = c;
  hint.w = Md(c.w.get_dims(), c.x.get_data_type(), dnnl::memory::format_tag::any);
  return WeightsDesc(dnn_engine(), dnnl::algorithm::convolution_direct, c.x, c.w, c.y, c.strides, c.dilations,
                     c.padding, c.padding, conv_forward_desc(hint, user_scratchpad()), attr);
}

dnnl::matmul::primitive_desc matmul_desc(const Md& a, const Md& b, const Md& bias, const Md& y,
                                         const dnnl::primitive_attr& attr) {
  return dnnl::matmul::primitive_desc(dnn_engine(), a, b, bias, y, attr);
}

#endif

void execute(const dnnl::primitive& p, const Arguments& arguments, const char* what) {
  try {
    p.execute(dnn_stream(), arguments);
    dnn_stream().wait();
  } catch (const dnnl::error& e) {
    throw Error(text("oneDNN failed in ", what, ": ", e.what(), " (status ", int(e.status), ")"));
  }
}

std::string describe() {
  const dnnl_version_t* v = dnnl_version();
  const bool narrow = chosen_isa() > Isa::kAvx2 && kernels().width < 16;  // built by clang
  return text(name_of(chosen_isa()), isa_is_forced() ? " (SKEIN_CPU)" : "",
              narrow ? ", kernels of 8 floats" : "", ", oneDNN ", v->major, '.', v->minor, '.', v->patch,
              has_isa(set_of(chosen_isa())) ? "" : " limited by ONEDNN_MAX_CPU_ISA",
              native_bf16() ? ", bf16 in hardware" : ", bf16 stored and computed in f32");
}

}  // namespace skein::cpu
