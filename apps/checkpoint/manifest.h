// The manifest of a checkpoint: names, checksums, and a description of the run that wrote it.
#pragma once
#include <string>

#include "apps/checkpoint/checkpoint.h"

namespace skein::apps {

inline constexpr const char* kPartial = ".partial";  // the suffix of unfinished files and directories

std::string checkpoint_name(int64_t step);         // "step-00000042"
int64_t checkpoint_step(const std::string& path);  // the reverse; -1 for other names
std::string rank_file(int rank);                   // "rank-0003.safetensors"

// Writes CHECKPOINT/manifest.json with a checksum of itself, and flushes it.
void write_manifest(const std::string& checkpoint, const Manifest&);

}  // namespace skein::apps
