// Declares the calls of engine/seam.def as functions, without CUDA's headers.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace skein {

struct GemmArgs;       // backend.h
struct ConvArgs;       // backend.h
struct PoolArgs;       // backend.h
struct BatchNormArgs;  // backend.h
struct ChannelSums;    // backend.h
struct RawImage;       // raw_image.h
struct DeviceGroups;   // device_group.h
struct DriverLook;     // device_trouble.h

namespace cuda {
struct Graph;  // cuda/graph.h
#define PRIMITIVE(name, Args) void name(const Args&);
#define CUDA_CALL(result, name, parameters) result name parameters;
#include "engine/seam.def"
}  // namespace cuda

}  // namespace skein
