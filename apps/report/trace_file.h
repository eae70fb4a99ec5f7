// --trace FILE: what all workers did, on one timeline, for chrome://tracing and ui.perfetto.dev.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator/communicator.h"

namespace skein::apps {

// Spans named "update" frame a step: only what remains of them without waits and other work is shown.
inline constexpr const char* kFrame = "update";
bool is_frame(const comm::Span&);
// Orders spans by their beginning and reduces frames to what is neither other work nor waiting.
std::vector<comm::Span> in_order(std::vector<comm::Span>);

// One worker's events, one per line, each ended by a comma: a process named after the worker, with
// a thread for compute, one for waiting, and as many for transfers as are in flight at once. Times
// are microseconds since `origin`.
std::string trace_events(int worker, std::vector<comm::Span>, double origin);

// Makes FILE without events, which a run that is killed leaves. Throws BadFile.
void begin_trace(const std::string& path);
// Collective; rank 0 of the communicator writes the file, atomically. Throws BadFile on every rank.
void end_trace(const std::string& path, comm::Communicator&, int worker, const comm::Trace&, double origin);

}  // namespace skein::apps
